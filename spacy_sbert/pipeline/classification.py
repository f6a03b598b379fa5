"""Labels of pairs, by the classification heads of a pipe that was trained on labels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..losses.softmax import label_probabilities
from ..models.encoded_docs import EncodedDoc
from ..models.spans import members, row_order
from ..training.batch_loss import objectives_of
from ..training.examples import attribute, predicted_label


def find_heads(model: Model) -> dict[str, Model]:
    """Return the trained heads of a pipe by the names of their objectives, "" where there is only one objective.

    Of the heads of a Matryoshka loss it is the one for the widest vectors.
    """
    loss = model.maybe_get_ref("loss")
    heads = {}
    for name, layer in {} if loss is None else objectives_of(loss).items():
        trained = [node for node in layer.walk() if node.attrs.get("labels")]
        if trained:
            heads[name] = max(trained, key=lambda node: node.get_dim("nI"))
    return heads


def choose_head(heads: Mapping[str, Model], objective: str, pipe: str) -> Model:
    """Return the head of an objective, or the only one. RAISES (ValueError): if there is none, or several."""
    if objective and heads and objective not in heads:
        names = ", ".join(f"'{known}'" for known in heads)
        raise ValueError(
            f"Cannot classify with the 'sbert' pipe '{pipe}' for the objective {objective!r}: it has trained heads "
            f"for {names}."
        )
    if objective not in heads and len(heads) != 1:
        raise ValueError(
            f"Cannot classify with the 'sbert' pipe '{pipe}': it has {len(heads)} trained classification heads. "
            "Expected one; train with spacy-sbert.SoftmaxLoss.v1, or name the objective of several: "
            f"{', '.join(heads)}."
        )
    return heads[objective] if objective in heads else next(iter(heads.values()))


def probabilities_of(head: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """Return the probability of each label, float (n, labels), for pairs of vectors, float (n, width) each."""
    width = head.get_dim("nI") // len(head.attrs["concatenation"])  # a Matryoshka head may see less than all
    return label_probabilities(head, u[:, :width], v[:, :width])


def label_pairs(
    heads: Mapping[str, Model], docs: Iterable[Doc], scores: Sequence[EncodedDoc], spans_key: str, name: str
) -> None:
    """Store the likeliest label of each pair, for the pipe "sbert" as doc.spans[spans_key].attrs["sbert_label"].

    It has another name than the gold label, which a copied reference would bring along. With several heads, that of the
    pair's objective labels it; a pair without objective then gets no label.
    """
    groups: dict[str, list[tuple[Doc, Floats2d]]] = {}
    for doc, encoded in zip(docs, scores, strict=True):
        pair = members(doc, spans_key)
        objective = attribute(doc, "objective", spans_key) or ("" if len(heads) > 1 else next(iter(heads)))
        chosen = cast(str, objective) if objective in heads else ""  # a head without a name is for all
        if chosen in heads and len(pair) == len(encoded.vectors) == 2:
            groups.setdefault(chosen, []).append((doc, encoded.vectors[row_order(pair)]))
    for objective, labelled in groups.items():
        head = heads[objective]
        stack = head.ops.xp.stack
        u, v = (stack([vectors[member] for _, vectors in labelled]) for member in (0, 1))
        for (doc, _), best in zip(labelled, to_numpy(probabilities_of(head, u, v)).argmax(axis=1), strict=True):
            doc.spans[spans_key].attrs[predicted_label(name)] = head.attrs["labels"][int(best)]
