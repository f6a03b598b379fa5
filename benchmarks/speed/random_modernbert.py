"""Write a ModernBERT of the size of ModernBERT-base, with weights drawn at random.

Usage: python benchmarks/speed/random_modernbert.py FOLDER
    python benchmarks/speed/encode.py --encoder FOLDER --n 200 --rounds 2 --threads 1

For figures of speed, which depend on the weights' shapes alone. The tokenizer is that of the
default encoder.
"""

import argparse
from pathlib import Path

import torch
from transformers import AutoTokenizer, ModernBertConfig, ModernBertModel

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.resolve import resolve


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    names = ["input_ids", "attention_mask"]
    tokenizer = AutoTokenizer.from_pretrained(
        resolve(DEFAULT_NAME), model_input_names=names, model_max_length=512
    )
    torch.manual_seed(0)
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.cls_token_id,
        cls_token_id=tokenizer.cls_token_id,
        eos_token_id=tokenizer.sep_token_id,
        sep_token_id=tokenizer.sep_token_id,
    )
    ModernBertModel(config).save_pretrained(given.folder)
    tokenizer.save_pretrained(given.folder)


if __name__ == "__main__":
    main()
