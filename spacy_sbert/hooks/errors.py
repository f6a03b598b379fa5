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
    PART_NOT_PROCESSED = (
        "This Doc was joined of several, and its part '{text}' carries no sentence vectors of the pipe '{name}'. "
        "Process each Doc with the pipeline before Doc.from_docs joins them, or the joined text: nlp(doc.text)."
    )
    PART_CUT = (
        "This Doc was joined of several, and it is not known whose vectors its part '{text}' has: it was not processed "
        "by the pipe '{name}', or Span.as_doc cut it out of a Doc beside another one, and nothing tells where one "
        "ends. Process each Doc with the pipeline before Doc.from_docs joins them, or the joined text: nlp(doc.text)."
    )
    PART_WITHOUT_TEXT = (
        "This Doc was cut or joined, and the vectors of its part '{text}' were stored by an earlier version of "
        "spacy-sbert, without the text that they are of. Process the text again: nlp(doc.text)."
    )
    UNEQUAL_KINDS = (
        "This Doc was joined of parts whose vectors are of several kinds ({ours}; {theirs}), which have no mean. "
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
        "Cannot encode a query given as str: no living 'sbert' pipe named '{name}' shares the vocab of this Doc, which "
        "came without its pipeline, or is of another kind of pipe. Give the query as a Doc, nlp(query), or read Docs "
        "with the vocab of the loaded pipeline: doc_bin.get_docs(nlp.vocab)."
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
        "Docs with sentence vectors were read from bytes, a DocBin or another process (n_process), without their "
        "hooks: until spacy_sbert.restore(doc) is called, doc.vector and similarity are spaCy's defaults, such as the "
        "mean of doc.tensor or of static vectors. Call it for each Doc, or for all: spacy_sbert.restore(docs) of a "
        "list, for doc in spacy_sbert.restore(docs) of a stream such as nlp.pipe."
    )
    JOINED = (
        "Docs with sentence vectors were joined by Doc.from_docs, without their hooks: until spacy_sbert.restore(doc) "
        "is called, doc.vector and similarity are spaCy's defaults, such as the mean of doc.tensor or of static "
        "vectors."
    )
    RESTORE_UNUSED = (
        "Nothing was restored: spacy_sbert.restore was given a stream (an iterator), whose Docs are restored as they "
        "are taken from its result, and none was taken. Write for doc in spacy_sbert.restore(docs), or make a list "
        "first: docs = list(docs), spacy_sbert.restore(docs)."
    )
    POOLED_IN_CONTEXT = (
        "The vector of a Span was pooled from its wordpieces in the context of its Doc: Spans of one Doc look more "
        "alike than they are. For what Spans say by themselves, take "
        'spacy_sbert.find_sbert(nlp, "{name}").encode([span.text, ...]); sentences are encoded by themselves with '
        '[components.{name}.model.get_spans] unit = "doc+sent" (of the component "transformer" where that is shared) '
        "and sentence boundaries set before the encoder. The pipe '{name}' says this once."
    )
    MOST_SIMILAR_UNPREFIXED = (
        "_.most_similar is now called _.sbert_most_similar, with the name of the pipe before it. The old name will go."
    )
    BEHIND_LIMIT = (
        "A Span or Token lies wholly or partly behind the encoder's limit, where its Doc was cut: it has no vector, or "
        'that of its beginning alone. Set overflow = "windows" in the encoder\'s config; sentences are encoded by '
        "themselves with unit = \"doc+sent\". The pipe '{name}' says this once."
    )
