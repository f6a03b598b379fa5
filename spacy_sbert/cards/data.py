"""The corpora that the config of a trained pipeline names."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from thinc.api import Config

from ..readers import PairCorpus

OURS = "spacy-sbert.PairCorpus.v1"


@dataclass(frozen=True)
class Corpus:
    """One file of data.

    role: where it stands in [corpora], such as "train" or "dev, sts". file: its name, without the folder it was in.
    count: its examples, None where that is not known.
    """

    role: str
    file: str
    count: int | None


def read_corpora(config: Config) -> Iterator[Corpus]:
    """Find the files that [corpora] of a config names. Examples are counted where a file of pairs is still there.

    config (Config): of a pipeline that `spacy train` made.
    """
    for key, block in config.interpolate().get("corpora", {}).items():
        yield from _read(block, (key,))


def _read(block: Mapping[str, Any], role: tuple[str, ...]) -> Iterator[Corpus]:
    path = block.get("path")
    if isinstance(path, str) and path:
        yield Corpus(", ".join(role), Path(path).name, _count(block))
    for key, inner in block.items():
        if isinstance(inner, Mapping):
            # Readers that hold others call them "corpora" or "corpus", which tells nothing.
            yield from _read(inner, role if key in ("corpora", "corpus") else (*role, key))


def _count(block: Mapping[str, Any]) -> int | None:
    if block.get("@readers") != OURS or not Path(block["path"]).is_file():
        return None
    settings = {key: value for key, value in block.items() if key != "@readers"}
    try:
        return PairCorpus(**settings).count()
    except (OSError, TypeError, ValueError):
        return None  # another file by now, or another layout: not what was trained on
