"""Sentences a second of pipelines, and of WordLlama and model2vec where they are installed, in turn
in one run.

Usage: python speed.py PIPELINE [PIPELINE ...] [--peers wordllama model2vec=FOLDER] [--n 12000]
    [--rounds 3]

Texts are those of STS benchmark train, each once. Each encoder runs once before anything is timed;
what is slower than a thousand a second takes a quarter of the texts. Medians of the rounds, and
ratios to the first pipeline.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
import spacy
import torch

sys.path.append(str(Path(__file__).parent.parent / "objectives"))

from tasks import data_folder

Encode = Callable[[Sequence[str]], numpy.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pipelines", nargs="+")
    parser.add_argument("--peers", nargs="*", default=[])
    parser.add_argument("--n", type=int, default=12000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    encoders: dict[str, Encode] = {
        path: spacy.load(path).get_pipe("sbert").encode for path in arguments.pipelines
    }
    encoders |= {peer: load_peer(peer) for peer in arguments.peers}
    texts = read_texts(arguments.n)
    counts = {
        name: len(texts) if speed(encode, texts[:500]) > 1000 else arguments.n // 4
        for name, encode in encoders.items()
    }
    found: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(arguments.rounds):
        for name, encode in encoders.items():
            found[name].append(speed(encode, texts[: counts[name]]))
    first = statistics.median(found[arguments.pipelines[0]])
    for name, rates in found.items():
        rate = statistics.median(rates)
        print(
            f"{name}: {rate:.0f} sentences a second ({min(rates):.0f} to {max(rates):.0f}), "
            f"{rate / first:.2f}"
        )


def read_texts(count: int) -> list[str]:
    lines = (
        (data_folder() / "sts" / "STSBenchmark" / "sts-train.csv")
        .read_text(encoding="utf8")
        .splitlines()
    )
    texts = dict.fromkeys(text for line in lines for text in line.split("\t")[5:7])
    return list(texts)[:count]


def speed(encode: Encode, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    encode(texts)
    return len(texts) / (time.perf_counter() - start)


def load_peer(peer: str) -> Encode:
    name, _, folder = peer.partition("=")
    if name == "wordllama":
        import wordllama

        cache = Path(wordllama.__file__).parent
        model = wordllama.WordLlama.load(cache_dir=cache, disable_download=True)
        return lambda texts: model.embed(list(texts), norm=False)
    from model2vec import StaticModel

    return StaticModel.from_pretrained(folder).encode


if __name__ == "__main__":
    main()
