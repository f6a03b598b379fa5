"""Save pipelines and Docs, with what they answered: `python make.py FOLDER ENCODER`.

Run with the code of the commit whose layout is to be kept loadable; FOLDER was then packed with `tar -cJf`: the archive
beside this file is of commit d0391a8. ENCODER is a folder with the tiny BERT of conftest.py.
"""

import json
import pickle
import sys
from pathlib import Path

import numpy
import spacy
from spacy.language import Language
from spacy.tokens import DocBin
from spacy.training import Example
from thinc.api import fix_random_seed

from spacy_sbert.readers import example_doc

TEXTS = ["A man is eating food. He can go.", "the cat sat on the mat", "dog", "", "someone cannot go " * 9]
PAIRS = [
    ("the cat sat", "a cat ran", 0.9),
    ("a man is eating", "the dog ran fast", 0.1),
    ("he can go", "go dog", 0.4),
    ("a meal", "food", 0.8),
]
SPANS = {"@span_getters": "spacy-sbert.sentence_spans.v1", "unit": "doc+sent", "spans_key": "sbert"}


def examples(nlp: Language) -> list[Example]:
    found = []
    for number, (first, second, score) in enumerate(PAIRS):
        objective = "nli" if number % 2 else "sts"
        gold = {"label": "yes" if number == 1 else "no", "score": score, "objective": objective}
        reference = example_doc(nlp, (first, second), **gold)
        predicted = example_doc(nlp, (first, second), objective=objective)
        found.append(Example(predicted, reference))
    return found


def pipeline(name: str, encoder: str) -> Language:
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    own = {"name": encoder, "get_spans": SPANS}
    losses = {
        "@layers": "spacy-sbert.MultiTaskLoss.v1",
        "objectives": {
            "nli": {"@layers": "spacy-sbert.SoftmaxLoss.v1"},
            "sts": {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"},
        },
    }
    if name == "own":
        dense = {"@layers": "spacy-sbert.Dense.v1", "nI": 32, "nO": 8}
        model = {**own, "pooling": "cls+mean", "dense": dense, "prompts": {"query": "go "}, "overflow": "windows"}
        nlp.add_pipe("sbert", config={"model": model, "loss": losses})
    elif name == "slow":
        nlp.add_pipe("sbert", config={"model": {**own, "tokenizer_config": {"use_fast": False}}})
    elif name == "ranking":
        loss = {
            "@layers": "spacy-sbert.MatryoshkaLoss.v1",
            "loss": {"@layers": "spacy-sbert.MultipleNegativesRankingLoss.v1"},
            "dims": [8, 4],
        }
        nlp.add_pipe("sbert", config={"model": {**own, "truncate_dim": 8}, "loss": loss})
    elif name in ("shared", "replaced"):
        transformer = {"@architectures": "spacy-sbert.TransformerModel.v1", **own}
        nlp.add_pipe("transformer", config={"model": transformer})
        model = {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1", "pooling": "max"}
        nlp.add_pipe("sbert", config={"model": model, "loss": losses})
    elif name == "meta":
        for pooling in ("mean", "max"):
            nlp.add_pipe("sbert", name=pooling, config={"model": {**own, "pooling": pooling}, "set_hooks": False})
        nlp.add_pipe("sbert_meta", config={"pipes": ["mean", "max"], "method": "svd", "size": 3})
    elif name == "reranker":
        model = {"@architectures": "spacy-sbert.CrossEncoder.v1", "name": encoder, "n_outputs": 1}
        nlp.add_pipe("sbert_reranker", config={"model": model})
    return nlp


def train(nlp: Language, optimizer: object) -> dict[str, float]:
    losses: dict[str, float] = {}
    nlp.update(examples(nlp), sgd=optimizer, losses=losses)
    return losses


def answers(nlp: Language) -> dict[str, numpy.ndarray]:
    """What a pipeline says of texts; after one more step of training, too."""
    if "sbert_reranker" in nlp.pipe_names:
        reranker = nlp.get_pipe("sbert_reranker")
        return {"scores": numpy.asarray(reranker.score_pairs([pair[:2] for pair in PAIRS]))}
    docs = list(nlp.pipe(TEXTS))
    found = {"vectors": numpy.stack([doc.vector for doc in docs])}
    found["sentences"] = numpy.stack([s.vector for doc in docs if doc.text for s in doc.sents])
    found["norms"] = numpy.array([doc.vector_norm for doc in docs])
    if "sbert" in nlp.pipe_names:
        found["encoded"] = (
            nlp.get_pipe("sbert").encode(TEXTS) if "transformer" not in nlp.pipe_names else found["norms"]
        )
        if nlp.get_pipe("sbert").labels:
            found["labels"] = numpy.array(
                list(nlp.get_pipe("sbert").classify(docs[0], docs[1], objective="nli").values())
            )
    return found


def train_on(nlp: Language) -> dict[str, numpy.ndarray]:
    from thinc.api import SGD

    losses = train(nlp, SGD(0.01))
    found = {f"then_{key}": value for key, value in answers(nlp).items()}
    return {**found, "then_losses": numpy.array(sorted(losses.items()), dtype="U32")[:, 1].astype("float64")}


def make(folder: Path, encoder: str) -> None:
    expected: dict[str, numpy.ndarray] = {}
    for name in ("own", "slow", "ranking", "shared", "replaced", "meta", "reranker"):
        fix_random_seed(1)
        nlp = pipeline(name, encoder)
        if name == "meta":
            from spacy_sbert.meta.fitting import fit_meta

            fit_meta(nlp, "sbert_meta", lambda: [t for t in TEXTS if t] + [p[0] for p in PAIRS] + [p[1] for p in PAIRS])
        else:
            train(nlp, nlp.initialize(lambda nlp=nlp: examples(nlp)))
        if name == "replaced":
            nlp.replace_listeners("transformer", "sbert", ["model.tok2vec"])
            nlp.remove_pipe("transformer")
        nlp.to_disk(folder / name)
        expected |= {f"{name}/{key}": value for key, value in answers(nlp).items()}
        if name == "own":
            docs = list(nlp.pipe(TEXTS))
            (folder / "docs.pickle").write_bytes(pickle.dumps(docs))
            DocBin(docs=docs, store_user_data=True).to_disk(folder / "docs.spacy")
        if name != "meta":
            expected |= {f"{name}/{key}": value for key, value in train_on(nlp).items()}
    numpy.savez_compressed(folder / "expected.npz", **expected)
    (folder / "made.json").write_text(json.dumps({"spacy": spacy.__version__, "numpy": numpy.__version__}))


if __name__ == "__main__":
    make(Path(sys.argv[1]), sys.argv[2])
