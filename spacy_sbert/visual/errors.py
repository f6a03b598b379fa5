"""Messages about pictures."""

from .. import errors


class Errors(errors.Errors):
    VISUAL_STYLE = "Unknown style '{given}' of a picture: expected one of {expected}."
    VISUAL_OPTION = "The style '{style}' has no option '{given}': expected some of {expected}."
    VISUAL_NOT_DOCS = (
        "Cannot draw {given}, number {number} (from 0) of what was given: expected Docs and Spans. Process texts "
        "first: render(nlp.pipe(texts))."
    )
    VISUAL_NO_SENTENCES = (
        "Cannot draw the sentences of '{text}': the Doc has no sentence boundaries. Put a sentencizer, senter or "
        "parser into the pipeline, or give a list of Docs or Spans."
    )
    VISUAL_NO_VECTOR = (
        "Number {number} (from 0) of the texts to draw, '{text}', has no vector: it has no words, or its Doc was not "
        "processed by a pipe that makes vectors, such as 'sbert', or its user data did not travel with it. Leave it "
        "out, or process the text with the pipeline."
    )
    VISUAL_TOO_FEW = (
        "Cannot draw {given} texts: expected at least {least}. Give more; for the sentences of one Doc give the Doc "
        "itself, not a list of it."
    )
    VISUAL_TOO_MANY_CELLS = (
        "Cannot draw a heat map with {given} texts on a side: expected at most {most}. Choose some of them (--limit "
        '{most}), or draw all with style = "map" (--style map).'
    )
    VISUAL_TOO_MANY_TOKENS = (
        "The tokens of these texts have {given} similarities to the texts of the other side: expected at most {most}, "
        'which a browser can hold. Draw sentences, or fewer texts, or set options = {{"tokens": False}}.'
    )
    VISUAL_NOT_TWO = (
        "Cannot draw the tokens of {given} texts: expected two Docs or Spans, or one Doc that has two sentences. Give "
        "two of them, on the command line with --limit 2."
    )
    VISUAL_NO_TOKENS = (
        "Number {number} (from 0) of the texts to draw, '{text}', has no vectors of tokens. Process the text with a "
        "pipe that keeps them: 'sbert' does unless its setting token_vectors is false, 'sbert_meta' does not."
    )
    VISUAL_LONG_TEXT = (
        "Number {number} (from 0) of the texts to draw has {given} tokens: expected at most {most}. Give a Span of it, "
        "such as one of its sentences."
    )
    VISUAL_TERMS = (
        'Cannot name labels by their terms: none are given. Give options = {"labels": ...}, such as the clusters of '
        "spacy_sbert.search.kmeans_clusters."
    )
    VISUAL_TOO_MANY_POINTS = (
        "Cannot draw a map of more than {most} texts, which is what a browser can hold. Draw a random sample of them, "
        "such as random.sample(texts, {most})."
    )
    VISUAL_TOO_MANY_LABELS = (
        "Cannot tell {given} clusters apart in one picture: expected at most {most}. Find fewer, or let the command "
        "`cluster` find them: of the labels of a table the largest are told apart."
    )
    VISUAL_LABEL_COUNT = "Given {given} labels, expected one for each of the {expected} texts."
    VISUAL_RANGE = (
        "Cannot give similarities from {low} to {high} colours: expected low below high, high above 0, such as low = "
        "0.6, high = 1.0."
    )
    VISUAL_PROJECTION = "Unknown projection '{given}': expected one of {expected}."
    VISUAL_ONE_DIRECTION = (
        "All {n} vectors have the same direction, so there is nothing to map. Give texts that differ, or look for why "
        "the pipeline gives them the same vector."
    )
    VISUAL_NO_SKLEARN = "t-SNE needs scikit-learn. Install it: pip install 'spacy-sbert[visual]'."
    VISUAL_NO_IPYTHON = (
        "Showing a picture in a notebook needs IPython, which every notebook has. Without one set jupyter = False, and "
        "write the returned HTML to a file."
    )
