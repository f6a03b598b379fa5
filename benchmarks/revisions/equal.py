"""Whether two checkouts of the package make the same vectors and the same weights, bit by bit.

Usage, with the environment and in the folder of each checkout:
    .venv/bin/python benchmarks/revisions/equal.py write FILE.json [--configs]
and then
    python benchmarks/revisions/equal.py compare BASE.json NEW.json
`write` saves SHA-256 digests: of vectors by all ways of encoding (vectors.py), and with --configs
of all parameters after a few training steps with each config (training.py). It computes on one
thread. Digests of different machines, threads or versions of other packages need not be equal.
`compare` prints how many are equal, and names those that are not, or that only one side has; it
ends with 1 if there are any.
"""

import argparse
import logging
import os
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from digests import Digests
from training import add_configs
from vectors import add_vectors

import spacy_sbert


def write(output: Path, configs: bool) -> None:
    """Write the digests of the checkout in the current folder."""
    checkout = Path.cwd().resolve()
    package = Path(spacy_sbert.__file__).resolve()
    if not package.is_relative_to(checkout):
        raise SystemExit(f"{sys.executable} imports {package}, which is not in this folder.")
    torch.set_num_threads(1)
    # Warnings of poolings that differ from the encoder's, and the like
    logging.getLogger("spacy").setLevel(logging.ERROR)
    digests = Digests()
    add_vectors(digests)
    digests.save(output)
    if configs:
        add_configs(digests, checkout)
        digests.save(output)
    print(f"{len(digests.found)} digests, {len(digests.left_out)} left out")


def differences(base: Digests, new: Digests) -> list[str]:
    """Return a line for each name that is not equal, or that only one side has."""
    lines = []
    for name in sorted(base.found.keys() | new.found.keys()):
        if name not in base.found:
            lines.append(f"only in NEW: {name}{reason(base, name)}")
        elif name not in new.found:
            lines.append(f"only in BASE: {name}{reason(new, name)}")
        elif base.found[name] != new.found[name]:
            lines.append(f"differs: {name}")
    return lines


def reason(digests: Digests, name: str) -> str:
    """Return why a side has no digest of a name, if it is known."""
    reasons = [why for left_out, why in digests.left_out.items() if name.startswith(left_out)]
    return f" ({reasons[0]})" if reasons else ""


def missing(base: Digests, new: Digests) -> list[str]:
    """Return a line for each name that neither side has a digest of."""
    names = sorted(base.left_out.keys() & new.left_out.keys())
    return [f"on neither side: {name} ({new.left_out[name]})" for name in names]


def compare(base: Digests, new: Digests) -> bool:
    """Print how many digests are equal, and which are not; return whether all are."""
    lines = differences(base, new)
    n_names = len(base.found.keys() | new.found.keys())
    print(f"{n_names - len(lines)} of {n_names} are equal")
    print(*lines, *missing(base, new), sep="\n")
    return not lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write", help="save the digests of this checkout")
    writing.add_argument("output", type=Path, help="JSON file")
    writing.add_argument("--configs", action="store_true", help="train with each config, too")
    comparing = commands.add_parser("compare", help="compare what two checkouts have saved")
    comparing.add_argument("base", type=Path)
    comparing.add_argument("new", type=Path)
    args = parser.parse_args()
    if args.command == "write":
        write(args.output.resolve(), args.configs)
    elif not compare(Digests.load(args.base), Digests.load(args.new)):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
