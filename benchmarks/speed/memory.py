"""Whether memory stays flat while sentences stream through `nlp.pipe`.

Usage: python benchmarks/speed/memory.py --data FOLDER --output FILE.json [--n 100000] [--every
    10000] [--gpu-id -1] [--precision bfloat16]
Questions of Quora's duplicates, more than half of them different, in a process of its own, whose
resident memory is measured; and in another one the same without `sbert`, for what spaCy's own
vocabulary and tokenizer keep of new words.
"""

import json
import resource
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import spacy
from measure import arguments, prepare, save
from texts import questions
from variants import own

SBERT, SPACY = "sbert", "spacy"


def memory() -> tuple[float, float]:
    """Resident memory now and the most so far, MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="utf8").split()[1])
    # KiB
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(pages * resource.getpagesize() / 1e6, 1), round(peak * 1024 / 1e6, 1)


def stream(args: Namespace) -> None:
    """Print the number of sentences done and the memory, before the first of them and at every so
    many.
    """
    texts = questions(args.data, args.n)
    nlp = own(args.precision) if args.child == SBERT else spacy.blank("en")
    print(json.dumps([0, *memory()]), flush=True)
    for done, doc in enumerate(nlp.pipe(texts), 1):
        assert args.child != SBERT or len(doc.vector)
        if done % args.every == 0:
            print(json.dumps([done, *memory()]), flush=True)


def measure(kind: str) -> list[list[float]]:
    """Sentences done, resident memory and its peak so far, MB, of a process of its own."""
    samples = []
    with subprocess.Popen(
        [sys.executable, *sys.argv, "--child", kind], stdout=subprocess.PIPE, text=True
    ) as child:
        for line in child.stdout or ():
            samples.append(json.loads(line))
            print("{}: {} sentences: {} MB, peak {} MB".format(kind, *samples[-1]), flush=True)
    if child.returncode:
        raise SystemExit(child.returncode)
    return samples


def main() -> None:
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--n", type=int, default=100_000, help="sentences")
    parser.add_argument("--every", type=int, default=10_000, help="sentences between measurements")
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument(
        "--child", choices=(SBERT, SPACY), help="measure in this process, and print"
    )
    args = parser.parse_args()
    start = prepare(args)
    if args.child:
        stream(args)
        return
    found = {kind: measure(kind) for kind in (SBERT, SPACY)}
    settings = {"sentences": args.n, "every": args.every, "precision": args.precision}
    save(args.output, start, settings, {"samples": found[SBERT], "spacy_alone": found[SPACY]})


if __name__ == "__main__":
    main()
