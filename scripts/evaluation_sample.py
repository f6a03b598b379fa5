"""Lay the shipped sample out as the folder of data sets that `spacy sbert benchmark` reads.

python scripts/evaluation_sample.py corpus/evaluation
"""

import argparse
import shutil
from pathlib import Path

OFFICIAL = {
    "pairs-dev.csv": "STSBenchmark/sts-dev.csv",
    "triplets-dev.csv": "wikisec/test.csv",
    "nli-dev.jsonl": "nli/snli_dev.jsonl",
    "arguments.tsv": "argument/UKP_ASPECT.tsv",
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Lay the sample out as a folder of data sets.")
    parser.add_argument("output", type=Path, help="the folder to write to")
    parser.add_argument("--assets", type=Path, default=Path("assets"), help="where the sample is")
    args = parser.parse_args()
    for name, official in OFFICIAL.items():
        path = args.output / official
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(args.assets / name, path)


if __name__ == "__main__":
    main()
