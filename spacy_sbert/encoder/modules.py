"""The modules of sentence-transformers by name, and those that have no counterpart here: what to do instead."""

from pathlib import Path

from .errors import Errors

PACKAGE = "sentence_transformers"  # of which the modules are
SPARSE = ("a part of a sparse encoder", "Use an encoder of dense vectors.")
ROUTES = (
    "several encoders, one for each kind of text",
    "Save the route that you want as a folder of its own, "
    "SentenceTransformer(modules=list(model[0].sub_modules['query'])).save(...), and take that.",
)
ALONE = (
    "To use the transformer without it, name the folder in spacy-sbert.SentenceEncoder.v1 with normalize = true or "
    "false, and train anew."
)
FOREIGN = {
    "BoW": ("a count of words, as wide as its vocabulary", "Use an encoder with a Transformer or StaticEmbedding."),
    "WordEmbeddings": (
        "a table of word vectors",
        "Convert the vectors with python -m spacy init vectors, and pool them with spacy-sbert.WordVectors.v1 in "
        "spacy-sbert.Tok2VecSentenceEncoder.v1.",
    ),
    "WordWeights": (
        "weights of words, such as inverse frequencies",
        "Weigh tokens with spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 in spacy-sbert.Tok2VecSentenceEncoder.v1.",
    ),
    "CNN": (
        "convolutions over the states of words",
        "Train spacy.HashEmbedCNN.v2 in spacy-sbert.Tok2VecSentenceEncoder.v1 in its place.",
    ),
    "LSTM": (
        "a recurrent network over the states of words",
        "Train spacy-sbert.BiLSTMEncoder.v1 in spacy-sbert.Tok2VecSentenceEncoder.v1 in its place.",
    ),
    "WeightedLayerPooling": ("a mean over all layers of the transformer, of which the last alone is read here", ALONE),
    "LayerNorm": ("a layer that centres and scales vectors", ALONE),
    "Router": ROUTES,
    "Asym": ROUTES,
    "CLIPModel": ("an encoder of pictures and texts", "Use an encoder of texts alone."),
    "MLMTransformer": SPARSE,
    "SpladePooling": SPARSE,
    "SparseAutoEncoder": SPARSE,
    "SparseStaticEmbedding": SPARSE,
    "LogitScore": ("the head of a CrossEncoder", "Use an encoder of single texts."),
}


def module_kind(given: str) -> str:
    """The name of a module's class; with its package where that is not sentence_transformers.

    given (str): its type in modules.json.
    """
    package, _, name = given.rpartition(".")
    return name if package.split(".")[0] == PACKAGE else f"{package or 'unknown'}.{name}"


def foreign_module(folder: Path, given: str) -> ValueError | None:
    """The error that a folder has a module of sentence-transformers that has no counterpart here; None for others.

    given (str): its type in modules.json.
    """
    if module_kind(given) not in FOREIGN:
        return None
    kind, remedy = FOREIGN[module_kind(given)]
    return ValueError(Errors.FOREIGN_MODULE.format(folder=folder, given=given, kind=kind, remedy=remedy))
