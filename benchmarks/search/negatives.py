"""Hard negatives: picks beside sentence-transformers' miner, time and memory of many texts, and
what a ranking loss learns from them.

Usage: python benchmarks/search/negatives.py parity|large|train [SOURCE] [--output FOLDER]
    [--encoder all-MiniLM-L6-v2] [--n N] [--seeds 1 2 3]
SOURCE: a folder with quora/paraphrase_train.tsv.gz, quora/qqp_dev.tsv and, for large,
    corpora/english_sentences.tsv.gz; by default the one that SPACY_SBERT_DATA names.
parity: 500 pairs of Quora; needs the package datasets. large: negatives for 1,000 pairs among
200,000 texts. train: 10,000 pairs of Quora for one epoch, with in-batch negatives alone and with a
mined one, average precision on qqp_dev. Each run is a line of negatives.jsonl in the output folder;
what is there is not run again.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import spacy
from sklearn.metrics import average_precision_score
from spacy.training import Example
from thinc.api import Adam, fix_random_seed, warmup_linear

from spacy_sbert import find_sbert
from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions
from spacy_sbert.meta.fit import read_sentences
from spacy_sbert.models.resolve import find_local
from spacy_sbert.readers import example_doc
from spacy_sbert.readers.examples import make_example
from spacy_sbert.search.hard_negatives import mine_hard_negatives
from spacy_sbert.similarity import cosine

sys.path.append(str(Path(__file__).parent.parent))

from quora import duplicate_pairs, labelled_pairs

BATCH_SIZE = 32
LEARN_RATE = 2e-5
PARITY = [
    {},
    {"range_min": 2, "range_max": 9, "num_negatives": 2},
    {"relative_margin": 0.05, "num_negatives": 5},
    {"absolute_margin": 0.1, "max_score": 0.8, "min_score": 0.2, "num_negatives": 4},
]
# Of large and train
MARGIN = {"num_negatives": 1, "relative_margin": 0.05}
MINED = {
    "in-batch alone": None,
    "relative margin 0.05": MARGIN,
    "relative margin 0.05, ranks from 5": {**MARGIN, "range_min": 5},
}


def pipeline(encoder: str) -> spacy.Language:
    loss = {"@layers": "spacy-sbert.MultipleNegativesRankingLoss.v1", "scale": 20.0}
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": encoder}, "loss": loss})
    nlp.initialize()
    return nlp


def parity(source: Path, encoder: str, n: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Pairs with the same negatives, and the largest difference of a score."""
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.util import mine_hard_negatives as mine_theirs

    pairs = duplicate_pairs(source / "quora", n)
    # The anchor itself may be a negative there
    positives = {positive for _, positive in pairs}
    pairs = [pair for pair in pairs if pair[0] not in positives]
    anchors, positives_of = zip(*pairs, strict=True)
    theirs = SentenceTransformer(str(find_local(encoder)), device="cpu")
    dataset = Dataset.from_dict({"anchor": anchors, "positive": positives_of})
    output = {"output_format": "n-tuple", "output_scores": True, "verbose": False}
    rows = mine_theirs(dataset, theirs, **output, **settings)
    mined = mine_hard_negatives(find_sbert(pipeline(encoder)), pairs, **settings)
    count = settings.get("num_negatives", 3)
    names = ["anchor", "positive", *(f"negative_{number + 1}" for number in range(count))]
    complete = [pair for pair in mined if len(pair.negatives) == count]
    same = 0
    largest = 0.0
    for pair, row in zip(complete, rows, strict=True):
        same += [*pair[:2], *pair.negatives] == [row[name] for name in names]
        difference = numpy.abs(numpy.subtract(pair.scores, row["scores"])).max()
        largest = max(largest, float(difference))
    return {"pairs": len(pairs), "mined": len(complete), "same": same, "difference": largest}


def large(source: Path, encoder: str, n: int) -> dict[str, Any]:
    """Seconds and the peak of memory (Linux), of encoding and of all."""
    sentences = read_sentences(source / "corpora/english_sentences.tsv.gz", 2)
    texts = list(islice(dict.fromkeys(text.strip() for text in sentences), n))
    if len(texts) < n:
        raise SystemExit(f"There are {len(texts)} different texts, expected {n}: give a lower --n.")
    pairs = duplicate_pairs(source / "quora", 1000)
    sbert = find_sbert(pipeline(encoder))
    sbert.encode(texts[:100])
    # The peak is the memory in use from here
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    before = memory("VmRSS")
    start = time.perf_counter()
    vectors = sbert.encode(texts, progress=True)
    encoding = time.perf_counter() - start
    del vectors
    start = time.perf_counter()
    mined = mine_hard_negatives(sbert, pairs, texts, progress=True, **MARGIN)
    seconds = time.perf_counter() - start
    return {
        "texts": n,
        "pairs": len(pairs),
        "mined": sum(len(pair.negatives) for pair in mined),
        "encoding_seconds": round(encoding, 1),
        "seconds": round(seconds, 1),
        "peak_mb": round((memory("VmHWM") - before) / 1e6),
    }


def memory(which: str) -> int:
    """Bytes in memory: VmRSS now, VmHWM the most since the mark was taken back."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(which)).split()[1])


def train(
    source: Path, encoder: str, n: int, seed: int, settings: dict[str, Any] | None
) -> dict[str, Any]:
    """Average precision on qqp_dev x 100 after one epoch."""
    fix_random_seed(seed)
    nlp = pipeline(encoder)
    sbert = find_sbert(nlp)
    rows: list[tuple[str, ...]] = list(duplicate_pairs(source / "quora", n))
    if settings is not None:
        mined = mine_hard_negatives(sbert, rows, **settings)
        # A pair without a negative has none to learn from, and a batch as many members each
        rows = [(pair.anchor, pair.positive, *pair.negatives) for pair in mined if pair.negatives]
    examples = [make_example(example_doc(nlp, row)) for row in rows]
    random.Random(seed).shuffle(examples)
    batches = [examples[start : start + BATCH_SIZE] for start in range(0, n, BATCH_SIZE)]
    batches = [batch for batch in batches if len(batch) > 1]
    rates = warmup_linear(LEARN_RATE, len(batches) // 10, len(batches))
    optimizer = Adam(rates, L2=0.0, grad_clip=1.0)
    start = time.perf_counter()
    for batch in batches:
        step(nlp, batch, optimizer)
    return {
        "rows": len(rows),
        "seconds": round(time.perf_counter() - start, 1),
        "ap": average_precision(source, sbert),
    }


def step(nlp: spacy.Language, batch: list[Example], optimizer: Adam) -> None:
    nlp.update(batch, sgd=optimizer)
    optimizer.step_schedules()


def average_precision(source: Path, sbert: Any) -> float:
    """Average precision x 100 of the cosine on the labelled pairs of qqp_dev."""
    rows = labelled_pairs(source / "quora")
    first, second = (sbert.encode([row[place] for row in rows]) for place in (1, 2))
    labels = [int(row[0]) for row in rows]
    return round(100 * float(average_precision_score(labels, cosine(first, second))), 3)


def run(path: Path, key: dict[str, Any], measure: Callable[[], dict[str, Any]]) -> None:
    """Measure, and add a line to the file, unless it has one of this key."""
    if path.exists():
        lines = path.read_text(encoding="utf8").splitlines()
        if any(json.loads(line)["run"] == key for line in lines):
            return
    result = {"run": key, **measure(), "machine": machine(), "versions": versions()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf8") as file:
        file.write(json.dumps(result) + "\n")
    print(json.dumps({"run": key, **{k: v for k, v in result.items() if k[0] not in "mv"}}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["parity", "large", "train"])
    parser.add_argument("source", nargs="?", type=Path, default=os.environ.get("SPACY_SBERT_DATA"))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--encoder", default="all-MiniLM-L6-v2")
    parser.add_argument("--n", type=int)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = parser.parse_args()
    if given.source is None:
        parser.error("give SOURCE, or set SPACY_SBERT_DATA")
    source = Path(given.source)
    path = given.output / "negatives.jsonl"
    if given.what == "parity":
        n = given.n or 500
        for settings in PARITY:
            key = {"what": "parity", "encoder": given.encoder, "n": n, "settings": settings}
            run(path, key, lambda s=settings: parity(source, given.encoder, n, s))
    elif given.what == "large":
        n = given.n or 200_000
        key = {"what": "large", "encoder": given.encoder, "n": n}
        run(path, key, lambda: large(source, given.encoder, n))
    else:
        n = given.n or 10_000
        key = {"what": "train", "encoder": given.encoder, "n": 0}
        run(
            path,
            key,
            lambda: {"ap": average_precision(source, find_sbert(pipeline(given.encoder)))},
        )
        for name, settings in MINED.items():
            for seed in given.seeds:
                key = {"what": "train", "encoder": given.encoder, "n": n, "seed": seed}
                key["negatives"] = name
                run(path, key, lambda s=settings, r=seed: train(source, given.encoder, n, r, s))


if __name__ == "__main__":
    main()
