"""Messages about folders of sentence-transformers."""

from .. import errors


class Errors(errors.Errors):
    IMPORT_MODULE = (
        "The folder {folder} has the module {given}, which is unknown here: expected Transformer, Pooling, any number "
        "of Dense, and optionally Normalize, in this order, all of sentence_transformers. Code in a folder is never "
        "run."
    )
    IMPORT_ORDER = (
        "The folder {folder} has the modules {given}: expected Transformer, Pooling, any number of Dense, and "
        "optionally Normalize, in this order."
    )
    IMPORT_POOLING = (
        "The Pooling module of {folder} asks for something unknown here, in {file}: expected some of {expected}."
    )
    IMPORT_DENSE = "The Dense module {folder} cannot be imported: {reason}."
    EXPORT_DENSE = (
        "The dense layer of the pipe '{name}' has the layer '{given}', which sentence-transformers has no module for: "
        "expected spacy-sbert.Dense.v1, or several in chain.v1."
    )


class Warnings(errors.Warnings):
    EXPORT_WINDOWS = (
        "The pipe '{name}' averages over windows of long texts (overflow = \"windows\"), which sentence-transformers "
        "cannot: it will cut texts at {limit} wordpieces."
    )
