"""What is said of search and clustering."""

from .. import errors


class Errors(errors.Errors):
    SEARCH_NOT_DOCS = "Cannot take Spans of {given}, number {number} (from 0) of docs: expected Docs, nlp.pipe(texts)."
    SEARCH_NO_SPANS = (
        "There is no Span with a vector to search in: the Docs are empty, or have no such unit. Give others, or "
        'another unit, such as unit = "doc".'
    )
    SEARCH_SPAN_COUNT = (
        "The index holds {given} vectors, but there are {expected} Spans with a vector. Give the Spans that it was "
        "built of, in their order."
    )
    SEARCH_OTHER_SPANS = (
        "The index holds other vectors than the Spans: none of the first ones is in it (best similarity {given:.2f}). "
        "Build it again of these Spans."
    )
    SEARCH_BAD_COSINE = "Cannot use the threshold {given}: expected a cosine similarity from -1 to 1."
    SEARCH_NO_SKLEARN = "k-means needs scikit-learn. Install it: pip install 'spacy-sbert[search]'."
    SEARCH_NO_FAISS = "An index needs FAISS. Install it: pip install 'spacy-sbert[search]'."
    SEARCH_RECALL_SHAPES = (
        "Cannot compare what was found, of shape {found}, with what exact search finds, of shape {exact}: expected "
        "both of one shape (queries, k)."
    )
    SEARCH_ZERO_VECTOR = (
        "Cannot quantise row {row} of the {name}: it is zero, as that of a text without wordpieces, and would become "
        "similar to something. Leave it out."
    )
    SEARCH_OTHER_VECTORS = (
        "Cannot rescore by vectors of shape {given}: expected {expected}, the vectors that were quantised."
    )
    SEARCH_ROW_COUNT = "Given {given} texts or ids for {expected} vectors: expected one for each."
    SEARCH_NO_INDEX = "There is no index in {folder}. Build one, and save it there."
    SEARCH_BAD_INDEX = "The index is damaged: {path}: {reason}. Build it again."
    SEARCH_NO_IDENTITY = (
        "Cannot tell the encoder of {given} from others: expected an 'sbert' pipe. Build and load the index of another "
        "pipe without encoder, and keep it beside the pipeline."
    )
    SEARCH_NO_ENCODER = (
        "The index in {folder} does not say which encoder made its vectors, so they cannot be searched with '{name}'. "
        "Build it again with encoder = identify(pipe), or load it without an encoder if you know that it fits."
    )
    SEARCH_OTHER_WIDTH = (
        "The index in {folder} holds vectors of width {theirs}, made by '{name}', but '{given}' makes vectors of width "
        "{ours}. Search it with the pipeline that it was built with, or build it again."
    )
    SEARCH_OTHER_ENCODER = (
        "The index in {folder} was built with another encoder, '{name}', whose weights or settings are not those of "
        "'{given}'. Search it with the pipeline that it was built with, or build it again."
    )
    SEARCH_OTHER_TEXTS = (
        "The index in {folder} was built of other texts than those of {corpus}. Delete it to build it again, or give "
        "another folder."
    )
    SEARCH_OTHER_KIND = (
        "The index in {folder} is of the kind {theirs}, not {given}. Delete it to build another, or leave --kind out."
    )
    SEARCH_NO_TEXTS = "The index in {folder} was saved without texts. Give the corpus that it was built of."
    SEARCH_TOO_FEW = (
        "Cannot build an index of the kind ivfpq of {given} vectors: expected {expected} at least, by which its codes "
        "are learned. Search without an index, or with one of another kind."
    )
    SEARCH_MANY_LISTS = "Cannot make n_lists = {given} of {n} vectors: expected {most} at most, of 40 vectors each."
    SEARCH_BAD_CODE = (
        "Cannot write a vector of width {width} in code_bytes = {given} bytes: expected a divisor of the width."
    )
    SEARCH_OTHER_STORED = (
        "The vectors in {folder} are not those that the index was built of, which stood in {theirs}. Give these, or "
        "build the index again."
    )
    SEARCH_ON_DISK = "An index of the kind ivfpq stands in a folder already: copy that."
    SEARCH_EMPTY_CORPUS = "{path} holds no text: expected one a line, or .jsonl with text."
    SEARCH_SINGLE_TEXT = "{path} holds one text: expected two or more, to compare them."
    SEARCH_TOO_MANY_PAIRS = (
        "More than {most} pairs have a similarity of {score:g} or more, too many to keep all: give a higher min_score "
        "(--min-score), or say with k how many of the best you want."
    )
    SEARCH_NO_COUNT = "k-means needs to know how many clusters to find: give n_clusters (--n-clusters)."
    SEARCH_TOO_MANY = (
        "Cannot cluster {given} texts hierarchically: all their distances are kept, so at most {most} are expected. "
        'Use the method "communities" or "kmeans", or take a part of the texts.'
    )
    SEARCH_UNUSED_OPTIONS = "The method '{method}' takes no {given}: expected some of {expected}."
    CLUSTERS_OR_THRESHOLD = (
        "Cannot cluster with n_clusters = {n_clusters} and threshold = {threshold}: expected exactly one of them."
    )
    BAD_THRESHOLD = (
        "Cannot merge clusters up to the distance threshold = {given}: expected a cosine distance from 0 to 2."
    )
