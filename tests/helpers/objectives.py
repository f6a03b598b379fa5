"""Examples and pipelines of every objective."""

import numpy
from spacy.training import Example
from thinc.api import Adam, fix_random_seed
from thinc.util import to_numpy

from spacy_sbert.readers.examples import example_doc

TEXTS = [
    "A man is eating food.",
    "Someone is having a meal.",
    "The cat sat on the mat.",
    "He can go.",
    "The dog ran.",
]
TEXTS += ["A dog is eating.", "Someone sat on a cat.", "The man ran fast.", "He is having food."]
LABELS = ["entailment", "neutral", "contradiction"]


def make_examples(nlp, n_members, n=6, **gold):
    """Examples of texts that are all different within one."""
    found = []
    for i in range(n):
        texts = [TEXTS[(i + 3 * member) % len(TEXTS)] for member in range(n_members)]
        reference = example_doc(
            nlp, texts, **{key: values[i % len(values)] for key, values in gold.items()}
        )
        predicted = reference.copy()
        for key in gold:
            if key != "objective":
                del predicted.spans["sbert"].attrs[key]
        found.append(Example(predicted, reference))
    return found


SCORES = {"score": [0.1, 0.9, 0.5, 0.7, 0.3, 0.2]}
TEACHER_SCORES = {"scores": [[0.1 * i, 0.3, -0.2 * i] for i in range(6)]}
VECTORS = {
    "vector": [
        numpy.random.default_rng(i).normal(size=16).astype("float32").tolist() for i in range(6)
    ]
}
OBJECTIVES = {
    "SoftmaxLoss": (2, {"label": LABELS}, {}),
    "CosineSimilarityLoss": (2, SCORES, {}),
    "TripletLoss": (3, {}, {}),
    "MultipleNegativesRankingLoss": (2, {}, {}),
    "MultipleNegativesRankingLoss with negatives": (3, {}, {"symmetric": True}),
    "MultipleNegativesRankingLoss with several negatives": (4, {}, {}),
    "CachedMultipleNegativesRankingLoss": (2, {}, {"mini_batch_size": 4}),
    "MarginMSELoss": (4, TEACHER_SCORES, {"similarity": "cosine"}),
    "GISTEmbedLoss": (3, {}, {"guide": "sentence-transformers/all-MiniLM-L6-v2"}),
    "MegaBatchMarginLoss": (2, {}, {"margin": 2.0}),
    "CoSENTLoss": (2, SCORES, {}),
    "AnglELoss": (2, SCORES, {}),
    "ContrastiveLoss": (2, {"score": [1.0, 0.0]}, {}),
    "OnlineContrastiveLoss": (2, {"score": [1.0, 0.0]}, {"margin": 2.0}),
    "BatchHardTripletLoss": (1, {"label": ["a", "b"]}, {}),
    "MatryoshkaLoss": (
        2,
        {"label": LABELS},
        {"dims": [16, 4], "loss": {"@layers": "spacy-sbert.SoftmaxLoss.v1"}},
    ),
    "DistillationLoss": (1, VECTORS, {}),
    "DistillationLoss of translations": (2, VECTORS, {}),
    "ProjectedDistillationLoss": (1, {"vector": [vector[:7] for vector in VECTORS["vector"]]}, {}),
}


def layer(name, **settings):
    return {"@layers": f"spacy-sbert.{name.split()[0]}.v1", **settings}


MULTI = {
    "@layers": "spacy-sbert.MultiTaskLoss.v1",
    "objectives": {
        "nli": layer("SoftmaxLoss"),
        "sts": layer("CosineSimilarityLoss"),
        "tri": layer("TripletLoss"),
    },
    "weights": {"nli": 1.0, "sts": 2.0, "tri": 0.5},
}


def several(nlp):
    return [
        *make_examples(nlp, 2, 3, label=LABELS, objective=["nli"]),
        *make_examples(nlp, 2, 4, **SCORES, objective=["sts"]),
        *make_examples(nlp, 3, 2, objective=["tri"]),
    ]


def loss_of(name):
    return MULTI if name == "MultiTaskLoss" else layer(name, **OBJECTIVES[name][2])


def examples_of(nlp, name, n=6):
    """n examples of an objective; those of MULTI are of each of its own, and always as many."""
    if name == "MultiTaskLoss":
        return several(nlp)
    n_members, gold, _ = OBJECTIVES[name]
    return make_examples(nlp, n_members, n, **gold)


def make(make_nlp, encoder, name, **config):
    """A pipeline of one of OBJECTIVES, or of several, initialised; and its batch."""
    fix_random_seed(0)
    nlp = make_nlp(encoder, **{"loss": loss_of(name), **config})
    batch = examples_of(nlp, name)
    nlp.initialize(lambda: batch)
    return nlp, batch


def heads(nlp):
    loss = nlp.get_pipe("sbert").model.get_ref("loss")
    held = [
        (i, node, name)
        for i, node in enumerate(loss.walk())
        for name in node.param_names
        if node.has_param(name)
    ]
    return {(i, name): to_numpy(node.get_param(name)).copy() for i, node, name in held}


def step(nlp, batch, rate=0.01, **kwargs):
    losses = nlp.update(batch, sgd=False, **kwargs)
    optimizer = Adam(rate)
    for name, pipe in nlp.pipeline:
        if name not in kwargs.get("exclude", []):
            pipe.finish_update(optimizer)
    return losses
