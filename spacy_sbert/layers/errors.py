"""What is said of layers."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    UNKNOWN_POOLING = (
        "Unknown pooling '{given}': expected one of {expected}, or several joined with '+', such as cls+mean."
    )
    UNKNOWN_ACTIVATION = "Unknown activation '{given}' of a dense layer: expected one of {expected}."
    DENSE_WIDTH = (
        "The dense layer takes vectors of width {expected}, but the pooled ones have width {given}. Set nI to that: "
        "the encoder's width, times the number of poolings."
    )
    NO_WORD_VECTORS = (
        "spacy-sbert.WordVectors.v1 looks up static vectors, and the pipeline's vocab has none. Set vectors of "
        "[initialize] to a pipeline that has them (en_core_web_md, or what python -m spacy init vectors writes), or "
        "embed hashes: spacy-sbert.NgramHashEmbed.v1."
    )
    FLORET_TRAINABLE = (
        "trainable = true of spacy-sbert.WordVectors.v1 needs a vector for each word, and floret vectors are made of "
        "those of subwords. Set trainable = false."
    )
    OTHER_WORD_VECTORS = (
        "The pipeline's vocab has static vectors of {given} numbers, and the encoder was made with vectors of "
        "{expected}. Load the pipeline with the vectors that it was saved with."
    )
    NO_SIF_COUNTS = (
        "spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 needs counts of words: set counts to a file with a word and its "
        "count on each line, such as enwiki_vocab_min200.txt of https://github.com/PrincetonML/SIF."
    )
    NO_SIF_WEIGHTS = (
        "spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 has no weights of words yet: call nlp.initialize(), which reads "
        "the file of counts, or load a pipeline that has them."
    )
    OTHER_SIF_COUNTS = (
        "counts = '{path}' of spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 counts none of the words of the examples, "
        "such as '{text}': is it of another language? Give a file of lower-cased words of theirs."
    )
    NOTHING_EMBEDDED = (
        "spacy-sbert.NgramHashEmbed.v1 with words = false and ngram_size = 0 embeds nothing: set one of them."
    )
