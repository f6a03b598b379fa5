"""How fast pairs are trained on, against sentence-transformers' trainer, and what both reach.

Usage: python benchmarks/speed/train.py --data FOLDER --output FILE.json [--steps 120 | --epoch]
    [--gpu-id -1]
Regression on STS benchmark train (configs/sts.cfg): batches of 16, learning rate 2e-5 at most. The
sides take turns: a segment of steps of sentence-transformers, as many of each of ours, the next
segment. Loading and evaluation are in no segment, and the first segment of each is not counted.
--epoch trains on all pairs once, and scores STS benchmark dev. Needs sentence-transformers 5.x,
datasets and accelerate.
"""

import os

# The trainer asks the hub about the model it is given
os.environ["HF_HUB_OFFLINE"] = "1"

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
from datasets import Dataset
from measure import Encode, arguments, now, prepare, save, timing
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import fix_random_seed, load_config, registry, resolve_dot_names
from texts import dev_pairs, dev_spearman, sts_file
from thinc.api import get_torch_default_device
from transformers import TrainerCallback
from variants import through_docs

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.resolve import resolve
from spacy_sbert.readers.datasets import read_sts

CONFIG = Path(__file__).parent.parent.parent / "configs" / "sts.cfg"
PEER = "peer-float32"
PRECISIONS = ("float32", "bfloat16")
BATCH_SIZE, LEARN_RATE, WARMUP = 16, 2e-5, 0.1


class Turns(TrainerCallback):
    """Lets others train after each segment of the trainer's steps, and keeps the time of all.

    others: for each, an iterator that trains a step and gives the number of its pairs. segment:
        steps.
    """

    def __init__(self, others: Mapping[str, Iterator[int]], segment: int, n_pairs: int):
        self.others = others
        self.segment = segment
        self.n_pairs = n_pairs
        self.seconds: dict[str, list[float]] = {name: [] for name in (PEER, *others)}
        self.start, self.steps = now(), 0

    def on_train_begin(self, *args: Any, **kwargs: Any) -> None:
        self.start = now()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.global_step % self.segment and state.global_step < state.max_steps:
            return
        done, self.steps = self.steps, state.global_step
        pairs = min(self.steps * BATCH_SIZE, self.n_pairs) - done * BATCH_SIZE
        self.record(PEER, pairs)
        for name, steps in self.others.items():
            self.record(name, sum(islice(steps, self.steps - done)))

    def record(self, name: str, pairs: int) -> None:
        """Keep the seconds since the last record, as if a segment always had the same number of
        pairs.
        """
        seconds = now() - self.start
        self.seconds[name].append(seconds * self.segment * BATCH_SIZE / pairs)
        print(f"{name}: {pairs / seconds:.1f} pairs/s", flush=True)
        self.start = now()


def own(args: argparse.Namespace, precision: str, n_steps: int) -> tuple[Language, Iterator[int]]:
    """Our pipeline, and its training as `spacy train` does it, a step at a time, without
    evaluation.

    RETURNS (Language, Iterator[int]): the pipeline; each next() of the iterator trains a step and
        gives its pairs.
    """
    overrides = {
        "paths.train": str(sts_file(args.data, "train")),
        "paths.dev": str(sts_file(args.data, "dev")),
        "system.seed": args.seed,
        "components.transformer.model.precision": precision,
        "training.batcher.size": BATCH_SIZE,
        "training.optimizer.learn_rate.initial_rate": LEARN_RATE,
        "training.optimizer.learn_rate.warmup": WARMUP,
        "training.max_epochs": 0,
        "training.max_steps": n_steps,
    }
    nlp = init_nlp(load_config(CONFIG, overrides=overrides), use_gpu=args.gpu_id)
    config = nlp.config.interpolate()
    fix_random_seed(config["training"]["seed"])
    training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpus = resolve_dot_names(config, [training["train_corpus"]])[0]
    steps = train_while_improving(
        nlp,
        training["optimizer"],
        create_train_batches(nlp, corpus, training["batcher"], training["max_epochs"]),
        lambda: (0.0, {}),
        exclude=training["frozen_components"],
        **{
            key: training[key]
            for key in ("dropout", "accumulate_gradient", "patience", "max_steps", "eval_frequency")
        },
        **{key: training[key] for key in ("annotating_components", "before_update")},
    )
    return nlp, (len(batch) for batch, _, _ in steps)


def train_peer(
    args: argparse.Namespace, turns: Turns, n_steps: int, folder: str
) -> SentenceTransformer:
    """sentence-transformers' trainer, which lets the others take turns."""
    first, second, gold = zip(*read_sts(sts_file(args.data, "train")), strict=True)
    settings = SentenceTransformerTrainingArguments(
        output_dir=folder,
        max_steps=n_steps,
        per_device_train_batch_size=BATCH_SIZE,
        learning_rate=LEARN_RATE,
        warmup_ratio=WARMUP,
        seed=args.seed,
        report_to=[],
        save_strategy="no",
        logging_strategy="no",
        use_cpu=args.gpu_id < 0,
        disable_tqdm=True,
    )
    model = SentenceTransformer(str(resolve(DEFAULT_NAME)), device=str(get_torch_default_device()))
    rows = Dataset.from_dict({"first": first, "second": second, "label": gold})
    loss = losses.CosineSimilarityLoss(model)
    trainer = SentenceTransformerTrainer(
        model, settings, train_dataset=rows, loss=loss, callbacks=[turns]
    )
    trainer.train()
    return model


def scores(
    pipelines: Mapping[str, Language], peer: SentenceTransformer, data: Path
) -> dict[str, dict[str, float]]:
    """What each has reached on STS benchmark dev."""
    first, second, gold = dev_pairs(data)
    encoders: dict[str, Encode] = {
        PEER: lambda texts: numpy.asarray(peer.encode(texts, batch_size=64))
    }
    encoders.update({name: through_docs(nlp) for name, nlp in pipelines.items()})
    return {
        name: {"sts_spearman": dev_spearman(encode(first), encode(second), gold)}
        for name, encode in encoders.items()
    }


def main() -> None:
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--steps", type=int, default=120, help="of each side")
    parser.add_argument("--segment", type=int, default=20, help="steps between turns")
    parser.add_argument("--epoch", action="store_true", help="all pairs once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--precision", nargs="+", choices=PRECISIONS, default=PRECISIONS, help="of ours"
    )
    args = parser.parse_args()
    start = prepare(args)
    n_pairs = sum(1 for _ in read_sts(sts_file(args.data, "train")))
    n_steps = -(-n_pairs // BATCH_SIZE) if args.epoch else args.steps
    ours = {f"train-{precision}": own(args, precision, n_steps) for precision in args.precision}
    turns = Turns({name: steps for name, (_, steps) in ours.items()}, args.segment, n_pairs)
    with tempfile.TemporaryDirectory() as folder:
        peer = train_peer(args, turns, n_steps, folder)
    pairs = args.segment * BATCH_SIZE
    measured = {
        "timings": {name: timing(found[1:], pairs) for name, found in turns.seconds.items()},
        "quality": {},
    }
    if args.epoch:
        measured["quality"] = scores(
            {name: nlp for name, (nlp, _) in ours.items()}, peer, args.data
        )
    save(
        args.output,
        start,
        {"steps": n_steps, "segment": args.segment, "seed": args.seed, "epoch": args.epoch},
        measured,
    )


if __name__ == "__main__":
    main()
