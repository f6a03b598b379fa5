"""InferSent (configs/infersent.cfg) by spacy-sbert and in plain PyTorch: the same network, data,
order and schedule.

Usage: python infersent.py check
           both from the same weights, ten steps of gradient descent
       python infersent.py spacy-sbert|pytorch SEED
           train one; a result that is there already is kept
       python infersent.py report
           the table

Data: the folder that SPACY_SBERT_DATA names. The measures are those of ../objectives/tasks.py.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy
import torch
from plain_infersent import LABELS, InferSent, hashed_rows, step
from spacy.language import Language
from spacy.training import Example
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train
from spacy.util import load_config, registry
from thinc.api import SGD, fix_random_seed

ROOT = Path(__file__).parent.parent.parent
RESULTS = Path(__file__).parent / "results" / "infersent.json"
sys.path.append(str(ROOT / "benchmarks" / "objectives"))

from tasks import data_folder, measure, read_runs, run_once  # noqa: E402

from spacy_sbert.pipeline.scorer import probabilities_of  # noqa: E402
from spacy_sbert.training.schedules import linear_warmup  # noqa: E402

STEPS, BATCH_SIZE, RATE, WIDTH = 1250, 64, 1e-3, 256
SIDES, RUNS = ("spacy-sbert", "pytorch"), (1, 2, 3, 4, 5)
MEASURES = {"accuracy": "SNLI dev accuracy", "sts_spearman": "STSb dev Spearman"}


def main() -> None:
    command, *rest = sys.argv[1:]
    if command in ("check", "report"):
        {"check": check, "report": report}[command]()
        return
    seed = int(rest[0])
    run_once(RESULTS, f"{command}-{seed}", lambda: run(command, seed))


def run(side: str, seed: int) -> dict[str, Any]:
    start = time.time()
    found = {"spacy-sbert": fit_ours, "pytorch": fit_plain}[side](seed)
    versions = {name: version(name) for name in ("spacy", "thinc", "torch")}
    print(found)
    return {**found, "seconds": round(time.time() - start), "versions": versions}


def initialized(seed: int) -> Language:
    data = data_folder() / "nli"
    overrides = {
        "system.seed": seed,
        "paths.train": str(data / "snli_sample_train.jsonl"),
        "paths.dev": str(data / "snli_dev.jsonl"),
        # What counts is measured afterwards
        "corpora.dev.limit": 32,
        "training.batcher.size": BATCH_SIZE,
        "training.max_epochs": 0,
        "training.max_steps": STEPS,
        "training.optimizer.learn_rate.initial_rate": RATE,
        "training.eval_frequency": 1_000_000,
        "training.logger.progress_bar": False,
        "components.sbert.model.tok2vec.embed.width": WIDTH,
        "components.sbert.model.tok2vec.encode.width": WIDTH,
    }
    return init_nlp(
        load_config(ROOT / "configs" / "infersent.cfg", overrides=overrides, interpolate=False)
    )


def batches(nlp: Language, seed: int) -> Iterator[list[Example]]:
    """The batches of spaCy's training loop, in its order."""
    config = nlp.config.interpolate()
    corpus = registry.resolve({"corpus": config["corpora"]["train"]})["corpus"]
    batcher = registry.resolve({"batcher": config["training"]["batcher"]})["batcher"]
    fix_random_seed(seed)
    yield from (batch for _, batch in create_train_batches(nlp, corpus, batcher, 0))


def fit_ours(seed: int) -> dict[str, float]:
    nlp = initialized(seed)
    with tempfile.TemporaryDirectory() as folder:
        train(nlp, Path(folder))
    pipe = nlp.get_pipe("sbert")
    head = pipe.model.heads[""]

    def classify(u: numpy.ndarray, v: numpy.ndarray) -> list[str]:
        return [head.attrs["labels"][i] for i in probabilities_of(head, u, v).argmax(axis=1)]

    return measure("classification", pipe.encode, classify)


def members(batch: list[Example]) -> tuple[list[str], list[str], list[str]]:
    """First texts, second texts and labels of a batch, the shortest first, as spaCy's loop sorts
    it.
    """
    groups = [eg.reference.spans["sbert"] for eg in sorted(batch, key=lambda eg: len(eg.predicted))]
    first, second = ([group[i].text for group in groups] for i in (0, 1))
    return first, second, [group.attrs["label"] for group in groups]


def fit_plain(seed: int) -> dict[str, float]:
    # For its tokenizer, its data and their order
    nlp = initialized(seed)
    torch.manual_seed(seed)
    model = InferSent(WIDTH)
    optimizer = torch.optim.Adam(model.parameters())
    order = [members(batch) for _, batch in zip(range(STEPS), batches(nlp, seed), strict=False)]
    unique = list(dict.fromkeys(text for first, second, _ in order for text in (*first, *second)))
    rows = dict(zip(unique, hashed_rows(nlp, unique), strict=True))
    model.train()
    for (first, second, labels), rate in zip(order, linear_warmup(RATE, STEPS), strict=False):
        model.loss(
            [rows[text] for text in first], [rows[text] for text in second], labels
        ).backward()
        step(model, optimizer, rate)

    def classify(u: numpy.ndarray, v: numpy.ndarray) -> list[str]:
        with torch.no_grad():
            return [
                LABELS[i] for i in model.scores(torch.tensor(u), torch.tensor(v)).argmax(1).tolist()
            ]

    return measure("classification", lambda texts: model.encode(hashed_rows(nlp, texts)), classify)


def copy_weights(nlp: Language, model: InferSent) -> None:
    """Give the network the weights that ours begins with."""
    found = [*nlp.get_pipe("sbert").model.walk()]
    tables = [node.get_param("E") for node in found if node.has_param("E")]
    maxout, norm = (
        next(node for node in found if node.name == name) for name in ("maxout", "layernorm")
    )
    head = nlp.get_pipe("sbert").model.get_ref("loss")
    lstm = next(shim for node in found for shim in node.shims)._model
    pairs = list(zip([table.weight for table in model.embed], tables, strict=True))
    pairs += [(model.mix.weight, maxout.get_param("W").reshape(-1, 3 * WIDTH))]
    pairs += [(model.mix.bias, maxout.get_param("b").reshape(-1))]
    pairs += [(model.norm.weight, norm.get_param("G")), (model.norm.bias, norm.get_param("b"))]
    pairs += [(model.head.weight, head.get_param("W")), (model.head.bias, head.get_param("b"))]
    with torch.no_grad():
        for own, given in pairs:
            own.copy_(torch.tensor(given))
    model.lstm.load_state_dict(lstm.state_dict())


def check(n_steps: int = 10) -> None:
    """Print how far apart the two are, without dropout: it is rounding.

    Adam would blow that up: it divides by gradients of whatever size, and PyTorch adds eps at
    another place.
    """
    nlp, model = initialized(1), InferSent(WIDTH, dropout=0.0)
    copy_weights(nlp, model)
    ours, optimizer = SGD(0.1, grad_clip=1.0), torch.optim.SGD(model.parameters())
    for number, batch in zip(range(n_steps), batches(nlp, 1), strict=False):
        first, second, labels = members(batch)
        rows = hashed_rows(nlp, first), hashed_rows(nlp, second)
        vectors = abs(nlp.get_pipe("sbert").encode(first) - model.encode(rows[0])).max()
        given = nlp.update(batch, sgd=False, drop=0.0)["sbert"]
        model.train()
        loss = model.loss(*rows, labels)
        loss.backward()
        print(
            f"step {number}: loss {given:.6f} and {loss.item():.6f}, largest difference of "
            f"vectors {vectors:.1e}"
        )
        nlp.get_pipe("sbert").finish_update(ours)
        step(model, optimizer, 0.1)


def report() -> None:
    print("| measure x 100 | spacy-sbert | PyTorch | difference |\n|---|---|---|---|")
    runs = read_runs(RESULTS)
    for key, label in MEASURES.items():
        names = [[f"{side}-{seed}" for seed in RUNS] for side in SIDES]
        found = [[runs[name][key] for name in of_side if name in runs] for of_side in names]
        cells = [
            f"{statistics.mean(v):.2f} ({', '.join(f'{x:.2f}' for x in v)})" if v else ""
            for v in found
        ]
        difference = (
            f"{statistics.mean(found[0]) - statistics.mean(found[1]):+.2f}" if all(found) else ""
        )
        print(f"| {label} | {cells[0]} | {cells[1]} | {difference} |")


if __name__ == "__main__":
    main()
