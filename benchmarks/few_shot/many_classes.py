"""Time and memory of `sbert_textcat` with 150 classes and 100,000 texts.

The class of a text is the nearest of 150 texts that were drawn, by the vectors of the default
encoder. It prints the seconds and the peak of the process's memory after encoding, and after
fitting, which encodes the texts again.

python benchmarks/few_shot/many_classes.py SENTENCES.tsv.gz

The last column of SENTENCES.tsv.gz is a sentence.
"""

import argparse
import gzip
import json
import resource
import time
from pathlib import Path

import numpy
import spacy

from spacy_sbert import find_sbert
from spacy_sbert.textcat import find_textcat

N_CLASSES = 150
N_TEXTS = 100_000


def read_sentences(file: Path, count: int) -> list[str]:
    sentences: dict[str, None] = {}
    with gzip.open(file, "rt", encoding="utf8") as opened:
        for line in opened:
            sentences[line.rstrip("\n").rpartition("\t")[2]] = None
            if len(sentences) == count:
                break
    return list(sentences)


def report(step: str, start: float) -> None:
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = time.perf_counter() - start
    print(json.dumps({"step": step, "seconds": round(seconds), "MB": round(megabytes)}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--texts", type=int, default=N_TEXTS)
    parser.add_argument("--classes", type=int, default=N_CLASSES)
    given = parser.parse_args()
    texts = read_sentences(given.sentences, given.texts)
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert")
    nlp.add_pipe("sbert_textcat")
    start = time.perf_counter()
    vectors = find_sbert(nlp).encode(texts)
    report(f"{len(texts)} texts encoded", start)
    centers = numpy.random.default_rng(0).choice(len(texts), given.classes, replace=False)
    labels = [f"class {number}" for number in (vectors @ vectors[centers].T).argmax(axis=1)]
    start = time.perf_counter()
    textcat = find_textcat(nlp).fit(texts, labels)
    report(f"{len(textcat.labels)} classes fitted", start)
    print(json.dumps(textcat.cross_validation))


if __name__ == "__main__":
    main()
