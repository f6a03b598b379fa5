"""How fast texts become vectors, against sentence-transformers, spacy-transformers and a padded
run.

Usage: python benchmarks/speed/encode.py --data FOLDER --output FILE.json [--comparison sentences]
    [--n 4000] [--rounds 5] [--gpu-id -1] [--only VARIANT ...] [--encoder NAME]
sentences: of the STS benchmark, shuffled, with the quality on STS benchmark dev. mixed: texts of 5
    to 250 wordpieces,
such sentences joined. shared and shared_sentences: the same through a transformer that `sbert`
shares, against spacy-transformers' own. alone: such sentences, one in each call.
"pipe" is nlp.pipe with Docs and hooks; "rows" the same with token_vectors = false; "encode" is
without Docs. Needs sentence-transformers 5.x.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from measure import Encode, arguments, compare, prepare, save
from texts import SEED, dev_pairs, dev_spearman, mixed_texts, sts_sentences
from variants import (
    STOCK,
    direct,
    one_by_one,
    padded,
    pipe,
    sentence_transformer,
    shared,
    single_docs,
)

from spacy_sbert.architectures import DEFAULT_NAME

PEER = {
    # Its default
    "peer-float32-32": partial(sentence_transformer, "float32", 32),
    "peer-bfloat16-32": partial(sentence_transformer, "bfloat16", 32),
}
OURS = {
    "pipe-float32": partial(pipe, "float32"),
    "pipe-float32-rows": partial(pipe, "float32", token_vectors=False),
    "pipe-bfloat16": partial(pipe, "bfloat16"),
    "pipe-bfloat16-rows": partial(pipe, "bfloat16", token_vectors=False),
}


SHARED = {
    "stock-float32": partial(shared, STOCK),
    "shared-float32": partial(shared, "float32"),
    "shared-bfloat16": partial(shared, "bfloat16"),
}


@dataclass(frozen=True)
class Comparison:
    """Variants on the same texts.

    read: from the folder of data and a number to so many texts. n: how many by default. variants:
        the first is the one that vectors are compared with. pairs: of STS benchmark dev, for
        correlations.
    """

    read: Callable[[Path, int], list[str]]
    n: int
    variants: Mapping[str, Callable[[], Encode]]
    pairs: int = 0


COMPARISONS = {
    "sentences": Comparison(
        lambda data, n: sts_sentences(data)[:n],
        4000,
        {
            **PEER,
            "peer-bfloat16-128": partial(sentence_transformer, "bfloat16", 128),
            **OURS,
            "encode-float32": partial(direct, "float32"),
            "encode-bfloat16": partial(direct, "bfloat16"),
        },
        pairs=1500,
    ),
    "mixed": Comparison(mixed_texts, 500, {**PEER, "padded-float32": partial(padded, 32), **OURS}),
    "shared": Comparison(
        mixed_texts,
        500,
        {
            **SHARED,
            "stock-float32-rows": partial(shared, STOCK, token_vectors=False),
            "shared-float32-rows": partial(shared, "float32", token_vectors=False),
            "shared-bfloat16-rows": partial(shared, "bfloat16", token_vectors=False),
        },
    ),
    "shared_sentences": Comparison(lambda data, n: sts_sentences(data)[:n], 2000, SHARED),
    "alone": Comparison(
        lambda data, n: sts_sentences(data)[:n],
        300,
        {
            "peer-float32": partial(one_by_one, partial(sentence_transformer, "float32", 32)),
            "doc-float32": partial(single_docs, "float32"),
            "encode-float32": partial(one_by_one, partial(direct, "float32")),
            "encode-bfloat16": partial(one_by_one, partial(direct, "bfloat16")),
        },
    ),
}


def correlations(variants: Mapping[str, Encode], data: Path, n: int) -> dict[str, float]:
    """Spearman's correlation of each variant on the first n pairs of STS benchmark dev."""
    first, second, gold = dev_pairs(data, n)
    return {
        name: dev_spearman(encode(first), encode(second), gold) for name, encode in variants.items()
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--comparison", choices=COMPARISONS, default="sentences")
    parser.add_argument(
        "--n", type=int, help="texts; by default 4000 sentences, 500 of mixed lengths"
    )
    parser.add_argument(
        "--pairs", type=int, help="of STS benchmark dev, 0 for none; by default all, with sentences"
    )
    parser.add_argument("--only", nargs="+", default=[], help="variants, by default all")
    parser.add_argument("--encoder", default=DEFAULT_NAME, help="its name or folder")
    args = parser.parse_args()
    start = prepare(args)
    comparison = COMPARISONS[args.comparison]
    texts = comparison.read(args.data, args.n or comparison.n)
    makers = {name: partial(make, name=args.encoder) for name, make in comparison.variants.items()}
    chosen = {name: make for name, make in makers.items() if name in args.only or not args.only}
    variants, measured = compare(chosen, texts, args.rounds, next(iter(comparison.variants)))
    pairs = comparison.pairs if args.pairs is None else args.pairs
    for name, found in correlations(variants, args.data, pairs).items() if pairs else ():
        measured["quality"].setdefault(name, {})["sts_spearman"] = found
    settings = {
        "encoder": args.encoder,
        "texts": len(texts),
        "rounds": args.rounds,
        "seed": SEED,
        "pairs": pairs,
    }
    save(args.output, start, settings, measured)


if __name__ == "__main__":
    main()
