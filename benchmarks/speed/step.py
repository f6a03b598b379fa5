"""Where a training step's time goes: the encoder's passes, its update, tokenising, and all that
spaCy and Thinc do.

Usage: python benchmarks/speed/step.py --data FOLDER --output FILE.json [--steps 100] [--gpu-id -1]
Regression on STS benchmark train, batches of 16 pairs, as in train.py. The first 20 steps are not
counted. "rest" is reading, batching, copies of Docs, alignment, Spans, pooling and the loss.
"""

from collections.abc import Callable
from functools import wraps
from itertools import islice
from typing import Any

from measure import arguments, now, prepare, save
from train import PRECISIONS, own

from spacy_sbert.models.shim import TransformerShim
from spacy_sbert.models.tokenization import BatchTokenizer

WARM_UP = 20
PARTS = {
    "forward": (TransformerShim, "begin_update"),
    "backward": (TransformerShim, "_end_step"),
    "update": (TransformerShim, "finish_update"),
    "tokenising": (BatchTokenizer, "__call__"),
}


def watch(seconds: dict[str, float]) -> None:
    """Add up the time of each part from now on."""

    def watched(part: str, function: Callable) -> Callable:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            start = now()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[part] += now() - start

        return call

    for part, (kind, name) in PARTS.items():
        setattr(kind, name, watched(part, getattr(kind, name)))


def main() -> None:
    parser = arguments(__doc__, rounds=None)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    begin = prepare(args)
    seconds = dict.fromkeys(PARTS, 0.0)
    watch(seconds)
    found = {}
    for precision in PRECISIONS:
        _, steps = own(args, precision, WARM_UP + args.steps)
        sum(islice(steps, WARM_UP))
        seconds.update(dict.fromkeys(PARTS, 0.0))
        start = now()
        n_pairs = sum(islice(steps, args.steps))
        total = now() - start
        parts = {**seconds, "rest": total - sum(seconds.values())}
        shares = {part: round(took / total, 4) for part, took in parts.items()}
        found[precision] = {
            "pairs_per_second": round(n_pairs / total, 2),
            "ms_a_step": round(1000 * total / args.steps, 1),
        }
        found[precision]["shares"] = shares
        print(precision, found[precision], flush=True)
    save(args.output, begin, {"steps": args.steps, "seed": args.seed}, {"step": found})


if __name__ == "__main__":
    main()
