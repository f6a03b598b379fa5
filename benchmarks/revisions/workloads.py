"""The workloads of speed.py: each runs in a process of its own, and prints its figures as JSON.

Usage: python benchmarks/revisions/workloads.py NAME [--data FOLDER] [--texts 800]
The file is run by the environment of each revision, so it uses only what all of them have.
"""

import argparse
import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import spacy
import torch
from spacy.language import Language
from spacy.training import Example
from spacy.util import fix_random_seed, minibatch, registry
from thinc.api import Adam

import spacy_sbert

ASSETS = Path(__file__).parent.parent.parent / "assets"
SEED = 0
# A pass encodes all texts
PASSES = 3
CALLS, WARM_UP_CALLS = 100, 20
STEPS, WARM_UP_STEPS = 10, 2
BATCH_SIZE = 16
LEARN_RATE = 2e-5
# The objectives, and the examples, of configs/sts.cfg and configs/ranking.cfg
STS = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
RANKING = {"@layers": "spacy-sbert.MultipleNegativesRankingLoss.v1", "scale": 20.0}
STS_CORPUS = {"path": ASSETS / "pairs-train.csv", "format": "sts"}
RANKING_CORPUS = {
    "path": ASSETS / "duplicates-train.tsv",
    "format": "table",
    "members": ["question1", "question2"],
}


def sts_texts(data: Path, n: int) -> list[str]:
    """Return n sentences of the STS benchmark, in an order drawn at random.

    The file is read here, so that the texts do not depend on the revision.
    """
    file = data / "sts" / "STSBenchmark" / "sts-train.csv"
    lines = file.read_text(encoding="utf8").splitlines()
    sentences = [sentence for line in lines for sentence in line.split("\t")[5:7]]
    random.Random(SEED).shuffle(sentences)
    return sentences[:n]


def pipeline(precision: str = "float32") -> Language:
    """Return a blank pipeline with an `sbert` pipe, which has an encoder of its own."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"precision": precision}})
    return nlp


def seconds_of(work: Callable[[], object]) -> float:
    """Return the processor's seconds that work takes."""
    start = time.process_time()
    work()
    return time.process_time() - start


def passes(work: Callable[[], object]) -> list[float]:
    """Return the seconds of each pass, after one that is not counted."""
    work()
    return [seconds_of(work) for _ in range(PASSES)]


def calls(work: Callable[[], object]) -> list[float]:
    """Return the milliseconds of each call, after some that are not counted."""
    for _ in range(WARM_UP_CALLS):
        work()
    return [1000 * seconds_of(work) for _ in range(CALLS)]


def encode(texts: list[str], precision: str) -> list[float]:
    """Return the seconds of `encode` for all texts."""
    sbert: Any = pipeline(precision).get_pipe("sbert")
    return passes(lambda: sbert.encode(texts))


def encode_docs(texts: list[str]) -> list[float]:
    """Return the seconds of `nlp.pipe` for all texts, with the vector of each Doc."""
    nlp = pipeline()
    return passes(lambda: [doc.vector for doc in nlp.pipe(texts)])


def encode_one(texts: list[str], precision: str) -> list[float]:
    """Return the milliseconds of `encode` for one text."""
    sbert: Any = pipeline(precision).get_pipe("sbert")
    # The ranges of "int8" are found on more than one text
    sbert.encode(texts[:200])
    return calls(lambda: sbert.encode(texts[:1]))


def encode_one_doc(texts: list[str]) -> list[float]:
    """Return the milliseconds of `nlp` for one text, with the vector of the Doc."""
    nlp = pipeline()
    return calls(lambda: nlp(texts[0]).vector)


def peak_memory(texts: list[str]) -> list[float]:
    """Return the peak memory of the process, MB, after `encode` and `nlp.pipe` of all texts."""
    nlp = pipeline()
    sbert: Any = nlp.get_pipe("sbert")
    sbert.encode(texts)
    for doc in nlp.pipe(texts):
        assert len(doc.vector)
    # KiB on Linux
    return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6]


def train(loss: dict[str, Any], corpus: dict[str, Any]) -> list[float]:
    """Return the seconds of some training steps, all of them in one figure.

    `nlp.update` is given the same batches, in the same order, in every revision.
    """
    fix_random_seed(SEED)
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"max_grad_norm": 1.0}, "loss": loss})
    examples = list(registry.readers.get("spacy-sbert.PairCorpus.v1")(**corpus)(nlp))
    nlp.initialize(lambda: examples)
    steps = update_steps(nlp, examples)
    run_steps(steps, WARM_UP_STEPS)
    return [seconds_of(lambda: run_steps(steps, STEPS))]


def update_steps(nlp: Language, examples: list[Example]) -> Iterator[dict[str, float]]:
    """Train a step at a time, without end, and yield the losses."""
    optimizer = Adam(LEARN_RATE)
    for batch in minibatch(cycle(examples), BATCH_SIZE):
        yield nlp.update(batch, sgd=optimizer, drop=0.1)


def run_steps(steps: Iterator[object], n: int) -> None:
    """Take the next n steps."""
    for _ in islice(steps, n):
        pass


WORKLOADS: dict[str, Callable[[list[str]], list[float]]] = {
    "encode float32": lambda texts: encode(texts, "float32"),
    "encode bfloat16": lambda texts: encode(texts, "bfloat16"),
    "encode int8": lambda texts: encode(texts, "int8"),
    "nlp.pipe": encode_docs,
    "encode one text": lambda texts: encode_one(texts, "float32"),
    "encode one text int8": lambda texts: encode_one(texts, "int8"),
    "Doc of one text": encode_one_doc,
    "train sts": lambda _: train(STS, STS_CORPUS),
    "train ranking": lambda _: train(RANKING, RANKING_CORPUS),
    "memory": peak_memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("SPACY_SBERT_DATA")
    parser.add_argument("name", choices=WORKLOADS)
    parser.add_argument("--data", type=Path, default=data, required=data is None)
    parser.add_argument("--texts", type=int, default=800, help="how many are encoded")
    args = parser.parse_args()
    torch.set_num_threads(1)
    figures = WORKLOADS[args.name](sts_texts(args.data, args.texts))
    print(json.dumps({"package": spacy_sbert.__file__, "figures": figures}))


if __name__ == "__main__":
    main()
