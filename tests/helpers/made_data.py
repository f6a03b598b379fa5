"""Made data sets in the official layouts, and a source of vectors that is known."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy

from spacy_sbert.evaluation.encoders import VectorSource
from spacy_sbert.evaluation.protocols.sts import SUBSETS


class HashedSource(VectorSource):
    """Vectors drawn by the digest of each text; counts what it encodes."""

    learns = False
    nlp = None

    def __init__(self, name: str = "hashed", width: int = 6):
        self.name = name
        self.width = width
        self.seen: list[str] = []

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()

    def encode(self, texts: Sequence[str], fit_on: Sequence[str] = ()) -> numpy.ndarray:
        self.seen += texts
        return numpy.stack([self.vector(text) for text in texts])

    def vector(self, text: str) -> numpy.ndarray:
        seed = int.from_bytes(hashlib.sha256((self.name + text).encode()).digest()[:4], "little")
        return numpy.random.default_rng(seed).normal(size=self.width).astype("float32")


def write_year(root: Path, year: int = 12, *, pairs: int = 5) -> Path:
    """An STS folder with a few pairs in each sub-set, one of them without a gold score."""
    folder = root / f"STS{year}-en-test"
    folder.mkdir(parents=True)
    for subset in SUBSETS[year]:
        lines = [f"{subset} left {i}\t{subset} right {i}" for i in range(pairs)]
        scores = [str(5 * i / pairs) for i in range(pairs - 1)] + [""]
        (folder / f"STS.input.{subset}.txt").write_text("\n".join(lines) + "\n", encoding="utf8")
        (folder / f"STS.gs.{subset}.txt").write_text("\n".join(scores) + "\n", encoding="utf8")
    return folder


def write_benchmark(root: Path, split: str = "dev", *, pairs: int = 6) -> Path:
    """The STS benchmark with a few pairs."""
    path = root / "STSBenchmark" / f"sts-{split}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"main\tfile\t2012\t{i}\t{5 * i / pairs}\tfirst {i}\tsecond {i}" for i in range(pairs)]
    path.write_text("\n".join(lines) + "\n", encoding="utf8")
    return path
