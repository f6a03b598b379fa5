"""What is said of vectors on a Doc."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    SBERT_PIPE_DISABLED = (
        "The '{factory}' pipe '{name}' of the pipeline is disabled: enable it with nlp.enable_pipe(\"{name}\")."
    )
    NO_SBERT_PIPE = (
        "The pipeline has no '{factory}' pipe{named}: those it has are {expected}. {remedy} with "
        'nlp.add_pipe("{factory}"), before it is saved.'
    )
    OTHER_PIPE = (
        "The pipeline has no '{factory}' pipe named '{name}': those it has are {expected}. Its pipe '{name}' is a "
        '{given}: name one of them, or take that with nlp.get_pipe("{name}").'
    )
    NO_TOKEN_VECTORS = (
        "'{text}' is not a row of the encoder (a whole Doc, or a sentence where unit has \"sent\"), and its Doc "
        "was processed with token_vectors = false, so its vector is not known. Set token_vectors = true in the config "
        "of the 'sbert' pipe to have vectors for any Span and Token."
    )
    NOT_COMPARABLE = (
        "Cannot compare with {given}: expected a Doc, Span, Token or Lexeme that has a vector. Process the other text "
        "with the same pipeline."
    )
    JOINED_DOC = (
        "This Doc was joined from others, and '{text}' in it is not a whole text that the pipe '{name}' encoded. Call "
        "nlp on its text: nlp(doc.text)."
    )
    UNEQUAL_KINDS = (
        "This Doc was joined from others whose vectors are of several kinds ({ours}; {theirs}), which have no mean. "
        "Process all of them with the same pipeline."
    )
    META_SPAN = (
        "The span '{text}' is not a row (a whole Doc, a sentence, or a member of a pair), and the meta-embedding "
        "'{name}' stores vectors of rows alone. Ask the pipe: nlp.get_pipe('{name}').vector(span)."
    )
    DENSE_SPAN = (
        "The span '{text}' is not a row (a whole Doc, a sentence, or a member of a pair), and its vector needs the "
        "dense layer of the pipe '{name}'. Ask the pipe: nlp.get_pipe('{name}').vector(span)."
    )
    NOT_A_DOC = "There is no vector of {given}: expected a Doc, Span or Token that the pipeline has processed."
    RESTORE_NOT_DOCS = (
        "Cannot restore {given}: expected a Doc, a list of Docs, or a stream of them such as "
        "nlp.pipe(texts, n_process=2) or doc_bin.get_docs(nlp.vocab). With as_tuples=True each Doc has its context."
    )
    SEARCH_QUERY = "Cannot search for {given}: expected a str, a Doc, a Span, or where it says so a vector."
    SEARCH_NO_PIPE = (
        "Cannot encode a query given as str: this Doc does not know a pipe with the encoder that made its vectors "
        "(pipe '{name}'{encoder}). Give its pipeline (nlp=nlp), or the query as a Doc, nlp(query); if the pipe was "
        "replaced or trained since, process the text again: nlp(doc.text)."
    )
    NO_SENTENCE_VECTOR = (
        "A {given} has no sentence vector: expected a Doc, Span or Token that an 'sbert' pipe has processed, such as "
        "nlp(text)."
    )
    STATIC_WIDTH = (
        "Cannot compare a {kind} of {ours} numbers with a Lexeme's static vector of {theirs}: the vocab of the {kind} "
        "has no such vectors. With set_hooks = false in the config of the 'sbert' pipe, spaCy compares static vectors, "
        "and doc._.sbert_similarity sentence vectors."
    )
    SEARCH_IN_CONTEXT = (
        "The sentence '{text}' has no vector of its own: the encoder had no row of it, so that it would be pooled "
        "in the context of its Doc, and sentences that have nothing in common look alike. Two things make rows of "
        'sentences: [components.{name}.model.get_spans] unit = "doc+sent" (of the component "transformer" where that '
        "is shared), and boundaries that are set before the encoder: put it behind the parser, or add "
        'nlp.add_pipe("sentencizer", before="{name}").'
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    ARRIVED = (
        "A Doc has lost its hooks on its way (bytes, DocBin, n_process, from_docs): doc.vector and similarity are "
        "spaCy's own. Call spacy_sbert.restore(doc), restore(list_of_docs), or loop over restore(nlp.pipe(...))."
    )
    RESTORE_UNUSED = (
        "Nothing was restored: the result of spacy_sbert.restore(stream) was not read. Loop over it, or restore a "
        "list: spacy_sbert.restore(list(docs))."
    )
    POOLED_IN_CONTEXT = (
        "A Span is pooled in the context of its Doc. For its text alone: "
        'find_sbert(nlp, "{name}").encode(spans); for sentences: [components.{name}.model.get_spans] (or that of the '
        'shared transformer) unit = "doc+sent".'
    )
    OTHER_ENCODER = (
        "Compared vectors of two encoders, which have no common meaning ({ours}; {theirs}). Process both texts with "
        "the same pipeline."
    )
    BEHIND_LIMIT = (
        "A Span or Token lies behind the encoder's limit, where its Doc was cut: its vector is missing or incomplete. "
        'Set overflow = "windows" or unit = "doc+sent" in the config of the encoder of \'{name}\'.'
    )
