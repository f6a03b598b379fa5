"""What sentence encoders are compared with: each baseline is a Source, by its name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from spacy.language import Language

from ...errors.checks import NonNegative, Width
from ..errors import Errors
from ..sources import Source
from .power_means import POWERS, PowerMeans
from .random_projection import WIDTH, RandomProjection
from .smooth_inverse_frequency import SmoothInverseFrequency
from .static_vectors import AverageStaticVectors
from .tf_idf import TfIdf
from .untuned_transformer import BERT, UntunedTransformer

__all__ = [
    "BASELINES",
    "AverageStaticVectors",
    "PowerMeans",
    "RandomProjection",
    "SmoothInverseFrequency",
    "TfIdf",
    "UntunedTransformer",
    "make_baseline",
]

BASELINES = ("static", "sif", "power-means", "tf-idf", "untuned-mean", "untuned-cls", "random-projection")
VECTORS = "a pipeline with static vectors (nlp), such as en_core_web_md"
COUNTS = (
    "word counts (counts): a file with a word and its count on each line, such as enwiki_vocab_min200.txt of "
    "https://github.com/PrincetonML/SIF"
)
GivenT = TypeVar("GivenT")


def make_baseline(
    name: str,
    *,
    nlp: Language | None = None,
    counts: Path | None = None,
    encoder: str | None = None,
    powers: Sequence[Any] = POWERS,
    width: Width = WIDTH,
    seed: NonNegative = 0,
) -> Source:
    """Make a baseline by its name.

    name (str): one of BASELINES.
    nlp (Language): the pipeline with static vectors of "static", "sif" and "power-means"; whose tokenizer "tf-idf" and
        "random-projection" use, by default the English one.
    counts (Path): the word counts of "sif", see read_counts.
    encoder (str): the transformer of "untuned-mean" and "untuned-cls", by default BERT base.
    powers (Sequence[float]): of "power-means". width, seed (int): of "tf-idf" and "random-projection".
    RAISES (ValueError): for an unknown name, or if something is missing that the baseline needs; (ImportError): if a
        package is.
    """
    if name not in BASELINES:
        raise ValueError(Errors.UNKNOWN_BASELINE.format(given=name, expected=", ".join(BASELINES)))
    if name.startswith("untuned"):
        return UntunedTransformer(encoder or BERT, name.removeprefix("untuned-"))
    if name in ("tf-idf", "random-projection"):
        return (TfIdf if name == "tf-idf" else RandomProjection)(nlp, width, seed)
    nlp = _needed(nlp, name, VECTORS)
    if name == "sif":
        return SmoothInverseFrequency(nlp, _needed(counts, name, COUNTS))
    return AverageStaticVectors(nlp) if name == "static" else PowerMeans(nlp, powers)


def _needed(given: GivenT | None, name: str, needs: str) -> GivenT:
    if given is None:
        raise ValueError(Errors.BASELINE_NEEDS.format(name=name, needs=needs))
    return given
