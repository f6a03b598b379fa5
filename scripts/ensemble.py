"""Put sentence encoders side by side into one pipeline, with static vectors of words made of wordpieces.

    python scripts/ensemble.py --output training/ensemble --encoder minilm=sentence-transformers/all-MiniLM-L6-v2
        --trained nli=training/nli/model-last --counts enwiki_vocab_min200.txt

Each encoder gets a pipe of its own, also one that was trained on a shared transformer. The static vector of a word is
the mean of the input embeddings of its wordpieces, of the first encoder's transformer; `sif` is their mean by smooth
inverse frequency. The pipe `sbert_meta` concatenates all until it is fitted.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy
import spacy
from spacy.language import Language

from spacy_sbert.component.upstream import find_transformer
from spacy_sbert.files.word_counts import read_counts

WORDS = 50_000


def make_ensemble(
    encoders: dict[str, str], poolings: dict[str, str], trained: dict[str, str], counts: Path | None, words: int
) -> Language:
    """A pipeline with a pipe for each encoder, and the pipe that combines them.

    encoders: from the name of a pipe to that of an encoder. poolings: to another pooling of the first of them. trained:
    to a pipeline with an `sbert`, which is taken out of it. counts, words: the file of words and counts, and how many
    of the most frequent get a static vector.
    """
    nlp = spacy.blank("en")
    (first, encoder), *others = encoders.items()
    models: dict[str, dict[str, str]] = {first: {"name": encoder}}
    if poolings:  # all poolings of one transformer share its forward pass
        architecture = {"@architectures": "spacy-sbert.TransformerModel.v1", "name": encoder}
        nlp.add_pipe("transformer", config={"model": architecture})
        shared = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}
        models = {first: shared, **{name: {**shared, "pooling": pooling} for name, pooling in poolings.items()}}
    models.update({name: {"name": other} for name, other in others})
    for name, model in models.items():
        nlp.add_pipe("sbert", name=name, config={"model": model, "token_vectors": False})
    for name, folder in trained.items():
        source = spacy.load(folder)
        if "transformer" in source.pipe_names:
            source.replace_listeners("transformer", "sbert", ["model.tok2vec"])
        nlp.add_pipe("sbert", name=name, source=source)
        nlp.get_pipe(name).token_vectors = False  # type: ignore[attr-defined]
    functions = {}
    if counts is not None:
        counted = read_counts(counts)
        set_vectors(nlp, first, sorted(counted, key=counted.__getitem__, reverse=True)[:words])
        functions["sif"] = {"@misc": "spacy-sbert.SmoothInverseFrequency.v1"}
    nlp.add_pipe("sbert_meta", config={"pipes": [*models, *trained], "functions": functions})
    return nlp


def set_vectors(nlp: Language, pipe: str, words: list[str]) -> None:
    """Static vectors of words: the mean of the input embeddings of their wordpieces."""
    nlp("A text.")  # loads the encoder
    encoder: Any = find_transformer(pipe, nlp.get_pipe(pipe).model)  # type: ignore[attr-defined]
    shim = encoder.shim
    embeddings = shim.network.get_input_embeddings().weight.detach().numpy()
    found = shim.tokenizer(words, add_special_tokens=False, verbose=False)["input_ids"]
    vectors = numpy.stack([embeddings[ids].mean(axis=0) if ids else numpy.zeros(embeddings.shape[1]) for ids in found])
    nlp.vocab.vectors = spacy.vectors.Vectors(
        data=vectors.astype("float32"), keys=[nlp.vocab.strings.add(word) for word in words]
    )


def named(text: str) -> tuple[str, str]:
    """name=value, as two."""
    name, _, value = text.partition("=")
    if not value:
        raise argparse.ArgumentTypeError(f"expected name=value, got {text}")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description="Several sentence encoders in one pipeline.")
    parser.add_argument("--encoder", nargs="*", type=named, required=True, metavar="NAME=ENCODER")
    parser.add_argument("--pooling", nargs="*", type=named, default=[], metavar="NAME=POOLING", help="of the first")
    parser.add_argument("--trained", nargs="*", type=named, default=[], metavar="NAME=PIPELINE")
    parser.add_argument("--counts", type=Path, help="words and their counts, for static vectors")
    parser.add_argument("--words", type=int, default=WORDS, help="how many words get a static vector")
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args()
    nlp = make_ensemble(dict(args.encoder), dict(args.pooling), dict(args.trained), args.counts, args.words)
    nlp.to_disk(args.output)


if __name__ == "__main__":
    main()
