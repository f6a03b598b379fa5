"""Messages about folders of sentence-transformers, and about what is made from a teacher."""

from .. import errors


class Errors(errors.Errors):
    IMPORT_MODULE = (
        "The folder {folder} has the module {given}, which is unknown here: expected Transformer and Pooling, or "
        "StaticEmbedding, any number of Dense, and optionally Normalize, in this order, all of sentence_transformers. "
        "Code in a folder is never run."
    )
    IMPORT_ORDER = (
        "The folder {folder} has the modules {given}: expected Transformer and Pooling, or StaticEmbedding, any "
        "number of Dense, and optionally Normalize, in this order."
    )
    IMPORT_POOLING = (
        "The Pooling module of {folder} asks for something unknown here, in {file}: expected some of {expected}."
    )
    IMPORT_DENSE = "The Dense module {folder} cannot be imported: {reason}."
    IMPORT_STATIC_PRECISION = (
        "precision = '{given}' is for transformers, and the folder holds a static encoder, whose table is float32: "
        "leave it out."
    )
    EXPORT_STATIC_POOLING = (
        "The pipe '{name}' pools its table of wordpieces with pooling = '{given}', and StaticEmbedding of "
        'sentence-transformers is always the mean: train the pipe with pooling = "mean" to export it.'
    )
    EXPORT_DENSE = (
        "The dense layer of the pipe '{name}' has the layer '{given}', which sentence-transformers has no module for: "
        "expected spacy-sbert.Dense.v1, or several in chain.v1."
    )
    STATIC_SIZE = (
        "Cannot make a table of {given} numbers from the teacher, whose vectors have {width}: set size to at most that."
    )
    FEW_TEXTS = (
        "The vocabulary has {given} texts with words, and {needed} are needed to fit a table of {size} numbers to the "
        "teacher: give more texts, one a line, or a smaller size."
    )


class Warnings(errors.Warnings):
    EXPORT_WINDOWS = (
        "The pipe '{name}' averages over windows of long texts (overflow = \"windows\"), which sentence-transformers "
        "cannot: it will cut texts at {limit} wordpieces."
    )
    IMPORT_STATIC_PROMPTS = (
        "The prompts of {name} are left out ({given}): a table of wordpieces takes none. Put them before your texts."
    )
    IMPORT_STATIC_UNCUT = (
        "The tokenizer of {name} cuts texts at {limit} wordpieces, which the imported pipeline does not: vectors of "
        "longer texts are those of the whole text, and differ from sentence-transformers'."
    )
    NO_WORDS = (
        "The teacher's tokenizer is of the kind {given}, into which no words can be put: the table has the teacher's "
        "wordpieces alone."
    )
