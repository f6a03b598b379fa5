"""Put sentence encoders side by side into one pipeline, with functions and static vectors of words.

    python scripts/ensemble.py --output training/ensemble --encoder
        minilm=sentence-transformers/all-MiniLM-L6-v2 small=static/potion
        nli=training/nli/model-last --function lengths=my_lengths.v1 --code functions.py --counts
        enwiki_vocab_min200.txt

An encoder is a folder or a name of sentence-transformers, with a transformer or a table
(StaticEmbedding), or a pipeline of this package, of which the `sbert` pipe is taken with the
transformer or tok2vec that it listens to. Each gets a pipe of its own. A function is registered by
the file of code, which whoever loads the pipeline needs, too. The static vector of a word is the
mean of the input embeddings of its wordpieces, of the first encoder's transformer; `sif` is their
mean by smooth inverse frequency. The pipe `sbert_meta` concatenates all until it is fitted.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import spacy
from spacy.language import Language
from spacy.util import import_file, is_package

from spacy_sbert.files.text_lines import read_counts
from spacy_sbert.hub import import_folder
from spacy_sbert.pipeline.sbert import find_sbert
from spacy_sbert.pipeline.sentence_model import find_transformer

WORDS = 50_000


def make_ensemble(
    encoders: Mapping[str, str],
    poolings: Mapping[str, str],
    functions: Mapping[str, str],
    counts: Path | None = None,
    words: int = WORDS,
) -> Language:
    """A pipeline with a pipe for each encoder, and the pipe that combines them.

    encoders: from the name of a pipe to an encoder. poolings: to another pooling of the first of
        them. functions: from
    a name to that of a registered function. counts, words: the file of words and counts, and how
    many of the most frequent get a static vector.
    """
    nlp = spacy.blank("en")
    first = next(iter(encoders), "")
    members = dict.fromkeys(encoders)
    # All poolings of one transformer share its forward pass
    if poolings:
        members = {first: None, **dict.fromkeys(poolings), **members}
        add_poolings(nlp, encoders[first], {first: None, **poolings})
    for name, encoder in encoders.items():
        if name not in nlp.pipe_names:
            add_encoder(nlp, name, encoder)
    blocks = {name: {"@misc": function} for name, function in functions.items()}
    if counts is not None:
        counted = read_counts(counts)
        set_vectors(nlp, first, sorted(counted, key=counted.__getitem__, reverse=True)[:words])
        blocks["sif"] = {"@misc": "spacy-sbert.SmoothInverseFrequency.v1"}
    nlp.add_pipe("sbert_meta", config={"pipes": list(members), "functions": blocks})
    return nlp


def add_poolings(nlp: Language, encoder: str, poolings: Mapping[str, str | None]) -> None:
    """One transformer, and a pipe for each pooling of it; None for the usual one."""
    nlp.add_pipe("sbert_transformer", name="transformer", config={"model": {"name": encoder}})
    for name, pooling in poolings.items():
        model = {
            "@architectures": "spacy-sbert.SharedSentenceEncoder.v1",
            **({"pooling": pooling} if pooling else {}),
        }
        nlp.add_pipe("sbert", name=name, config={"model": model, "token_vectors": False})


def add_encoder(nlp: Language, name: str, encoder: str) -> None:
    """A pipe with an encoder of its own."""
    if is_package(encoder) or (Path(encoder) / "config.cfg").is_file():
        source = spacy.load(encoder)
        pipe = find_sbert(source).name
        for upstream, other in source.pipeline:
            if pipe in getattr(other, "listener_map", {}):
                source.replace_listeners(upstream, pipe, ["model.tok2vec"])
    else:
        source, pipe = import_folder(encoder), "sbert"
    nlp.add_pipe(pipe, name=name, source=source)
    find_sbert(nlp, name).token_vectors = False


def set_vectors(nlp: Language, pipe: str, words: list[str]) -> None:
    """Static vectors of words: the mean of the input embeddings of their wordpieces."""
    # Loads the encoder
    nlp("A text.")
    encoder: Any = find_transformer(pipe, find_sbert(nlp, pipe).model)
    shim = encoder.shim
    embeddings = shim.network.get_input_embeddings().weight.detach().numpy()
    found = shim.tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"]
    vectors = numpy.stack(
        [embeddings[ids].mean(axis=0) if ids else numpy.zeros(embeddings.shape[1]) for ids in found]
    )
    nlp.vocab.vectors = spacy.vectors.Vectors(
        data=vectors.astype("float32"), keys=[nlp.vocab.strings.add(word) for word in words]
    )


def named(text: str) -> tuple[str, str]:
    """name=value, as two."""
    name, _, value = text.partition("=")
    if not value:
        raise argparse.ArgumentTypeError(f"expected name=value, got {text}")
    return name, value


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Several sentence encoders in one pipeline.")
    parser.add_argument(
        "--encoder", nargs="*", type=named, default=[], metavar="NAME=ENCODER", help="see above"
    )
    parser.add_argument(
        "--pooling", nargs="*", type=named, default=[], metavar="NAME=POOLING", help="of the first"
    )
    parser.add_argument(
        "--trained",
        nargs="*",
        type=named,
        default=[],
        metavar="NAME=PIPELINE",
        help="more encoders",
    )
    parser.add_argument("--function", nargs="*", type=named, default=[], metavar="NAME=REGISTERED")
    parser.add_argument("--code", type=Path, help="a Python file that registers functions")
    parser.add_argument("--counts", type=Path, help="words and their counts, for static vectors")
    parser.add_argument(
        "--words", type=int, default=WORDS, help="how many words get a static vector"
    )
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    names = [name for name, _ in (*args.encoder, *args.trained, *args.pooling, *args.function)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        parser.error(f"each member needs a name of its own, given twice: {', '.join(twice)}")
    if (args.pooling or args.counts) and not args.encoder:
        parser.error("--pooling and --counts take the first --encoder: give one")
    return args


def main() -> None:
    args = arguments()
    if args.code:
        import_file(f"code_{args.code.stem}", args.code)
    encoders = dict([*args.encoder, *args.trained])
    nlp = make_ensemble(encoders, dict(args.pooling), dict(args.function), args.counts, args.words)
    nlp.to_disk(args.output)


if __name__ == "__main__":
    main()
