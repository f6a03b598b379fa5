"""Teach an English encoder German, French and Czech by translations, and measure how often the
nearest sentence of the other language is the translation.

Usage: python translations.py (needs SPACY_SBERT_DATA; results that are there stay)

The teacher is all-MiniLM-L6-v2, and so is the student when it begins. It is trained with
configs/multilingual.cfg for one epoch on English image captions of Multi30k, each with one
translation, in turn German, French and Czech. Measured are, before and after, the sentences of
Tatoeba, 1000 a language, other captions, 1014 a language, and the STS benchmark (dev). Spanish is
in no training text.

SOURCE: Reimers and Gurevych 2020, Making Monolingual Sentence Embeddings Multilingual using
Knowledge Distillation; the data of Elliott et al. 2016 (Multi30K) and Artetxe and Schwenk 2019
(Tatoeba).
"""

import csv
import gzip
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy
import spacy
from spacy.language import Language
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path(__file__).parent / "results" / "translations.json"
sys.path.append(str(ROOT / "benchmarks" / "objectives"))

from tasks import data_folder, run_once, sts_spearman  # noqa: E402

# By the names of Tatoeba, and of Multi30k
LANGUAGES = {"deu": "German", "fra": "French", "ces": "Czech", "spa": "Spanish, not taught"}
CAPTIONS_IN = {"de": "German captions", "fr": "French captions", "cs": "Czech captions"}
CAPTIONS, DEV_CAPTIONS = 18_000, 200
BATCH_SIZE, SEED = 32, 1
RESAMPLES = 10_000


def main() -> None:
    before = run_once(RESULTS, "before", partial(timed, untrained))
    after = run_once(RESULTS, f"after-{SEED}", partial(timed, trained))
    print(table(before, after, run_once(RESULTS, "wordpieces", wordpieces_per_word)))


# The measure


def is_nearest(sources: numpy.ndarray, targets: numpy.ndarray) -> numpy.ndarray:
    """Return of which sources the translation is the nearest of all targets by cosine, bool (n,).

    sources, targets (float (n, width)): the vectors of sentences and, in the same order, of their
        translations. A translation that is as near as another sentence counts as the nearest.
    SOURCE: TranslationEvaluator of sentence-transformers.
    """
    similarities = unit_length(sources) @ unit_length(targets).T
    return numpy.diagonal(similarities) >= similarities.max(axis=1)


def unit_length(vectors: numpy.ndarray) -> numpy.ndarray:
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def interval(values: numpy.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean of n values, by a bootstrap over them."""
    rng = numpy.random.default_rng(SEED)
    means = [values[rng.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)]
    low, high = numpy.percentile(means, [2.5, 97.5])
    return float(low), float(high)


Encode = Callable[[Sequence[str]], numpy.ndarray]


def measure(encode: Encode) -> dict[str, Any]:
    """The figures of an encoder, x 100, and which sentences it gets right."""
    found: dict[str, Any] = {"sts_spearman": sts_spearman(encode)}
    for code in LANGUAGES:
        english, foreign = (encode(sentences(code, side)) for side in ("eng", code))
        found[code] = both_ways(english, foreign)
    return found | measure_captions(encode)


def measure_captions(encode: Encode) -> dict[str, Any]:
    english = encode(captions("val", "en"))
    return {code: both_ways(english, encode(captions("val", code))) for code in CAPTIONS_IN}


def both_ways(english: numpy.ndarray, foreign: numpy.ndarray) -> dict[str, Any]:
    return {
        "to English": accuracy(is_nearest(foreign, english)),
        "from English": accuracy(is_nearest(english, foreign)),
    }


def accuracy(right: numpy.ndarray) -> dict[str, Any]:
    return {
        "accuracy": 100 * float(right.mean()),
        "interval": [100 * end for end in interval(right)],
        "right": "".join("01"[int(one)] for one in right),
    }


def wordpieces_per_word() -> dict[str, float]:
    """How many wordpieces the words of each language have, on average, in Tatoeba; words end at
    spaces.
    """
    encoder = teacher().get_pipe("sbert").text_encoder()
    found = {}
    for code in LANGUAGES:
        texts = sentences(code, code)
        n_words = sum(len(text.split()) for text in texts)
        found[code] = int(encoder.tokenize(texts).n_text.sum()) / n_words
    return found


# Training


def untrained() -> dict[str, Any]:
    return measure(teacher().get_pipe("sbert").encode)


def teacher() -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": "all-MiniLM-L6-v2"}})
    return nlp


def trained() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        teacher().to_disk(folder / "teacher")
        rows = training_rows(CAPTIONS)
        write(folder / "train.tsv", ("english", "translation"), rows)
        write(folder / "dev.tsv", ("text", "label"), dev_rows(DEV_CAPTIONS))
        nlp = init_nlp(configured(folder))
        (folder / "out").mkdir()
        start = time.time()
        train(nlp, folder / "out")
        minutes = (time.time() - start) / 60
        nlp = spacy.load(folder / "out" / "model-last")
        found = measure(nlp.get_pipe("sbert").encode)
    return {**found, "rows": len(rows), "training_minutes": round(minutes, 1)}


def training_rows(n_captions: int) -> list[tuple[str, str]]:
    """English captions, each with a translation, in turn into each language."""
    english = captions("train", "en")[:n_captions]
    translations = [captions("train", code) for code in CAPTIONS_IN]
    return [(text, translations[i % len(CAPTIONS_IN)][i]) for i, text in enumerate(english)]


def dev_rows(n_captions: int) -> list[tuple[str, int]]:
    """Captions in four languages; those of the same picture have the same label."""
    return [
        (text, number)
        for code in ("en", *CAPTIONS_IN)
        for number, text in enumerate(captions("val", code)[:n_captions])
    ]


def captions(part: str, code: str) -> list[str]:
    path = data_folder() / "multilingual" / "multi30k" / f"{part}.{code}.gz"
    with gzip.open(path, "rt", encoding="utf8") as file:
        return [line.strip() for line in file]


def sentences(code: str, side: str) -> list[str]:
    """The sentences of Tatoeba in a language and in English, of which `side` names one."""
    path = data_folder() / "multilingual" / "tatoeba" / f"tatoeba.{code}-eng.{side}"
    return path.read_text(encoding="utf8").splitlines()


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *rows])


def configured(folder: Path) -> Any:
    settings = {
        "paths.train": str(folder / "train.tsv"),
        "paths.dev": str(folder / "dev.tsv"),
        "paths.teacher": str(folder / "teacher"),
        "system.seed": SEED,
        "training.max_epochs": 1,
        "training.batcher.size": BATCH_SIZE,
        "training.eval_frequency": 200,
        "training.logger.progress_bar": False,
    }
    return load_config(ROOT / "configs" / "multilingual.cfg", settings, interpolate=False)


def timed(make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    start = time.time()
    found = make()
    versions = {
        name: version(name) for name in ("spacy-sbert", "spacy", "thinc", "transformers", "torch")
    }
    return {**found, "seconds": round(time.time() - start), "versions": versions}


# The table


def table(before: dict[str, Any], after: dict[str, Any], wordpieces: dict[str, float]) -> str:
    ways = ("to English", "from English")
    head = ["accuracy x 100", *(f"{way}, {when}" for way in ways for when in ("before", "after"))]
    head.append("wordpieces a word")
    rows = [head, ["---"] * len(head)]
    for code, language in (LANGUAGES | CAPTIONS_IN).items():
        cells = [written(found[code][way]) for way in ways for found in (before, after)]
        rows.append([language, *cells, f"{wordpieces[code]:.2f}" if code in wordpieces else ""])
    text = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    sts = (f"{found['sts_spearman']:.2f}" for found in (before, after))
    return f"{text}\n\nSTSb dev, Spearman x 100: {', '.join(sts)}"


def written(found: dict[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['accuracy']:.1f} ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    main()
