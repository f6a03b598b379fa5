"""The corpora that the config of a trained pipeline names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spacy.util import registry
from thinc.api import Config

OURS = "spacy-sbert.PairCorpus.v1"


@dataclass(frozen=True)
class Corpus:
    """One file of data, or several that are read as one.

    role: where it stands in [corpora], such as "train" or "dev, sts". file: its name, without the folder it was in, or
    theirs.
    count: of its examples, None where that is not known.
    """

    role: str
    file: str
    count: int | None


def read_corpora(config: Config) -> Iterator[Corpus]:
    """Find the files that [corpora] of a config names, and count the examples of those files of pairs that still exist.

    config (Config): of a pipeline that `spacy train` made.
    """
    for key, block in config.interpolate().get("corpora", {}).items():
        yield from _read(block, (key,))


def _read(block: Mapping[str, object], role: tuple[str, ...]) -> Iterator[Corpus]:
    path = block.get("path")
    paths = [one for one in (path if isinstance(path, list) else [path]) if isinstance(one, str) and one]
    if paths:
        yield Corpus(", ".join(role), ", ".join(Path(one).name for one in paths), _count(block, paths))
    for key, inner in block.items():
        if isinstance(inner, Mapping):
            # Readers that hold others call them "corpora" or "corpus", which says nothing about them.
            yield from _read(inner, role if key in ("corpora", "corpus") else (*role, key))


def _count(block: Mapping[str, object], paths: list[str]) -> int | None:
    if block.get("@readers") != OURS or not all(Path(path).is_file() for path in paths):
        return None
    try:
        return registry.resolve({"corpus": dict(block)})["corpus"].count()
    except (OSError, TypeError, ValueError):
        return None  # another file by now, or another layout: not what was trained on
