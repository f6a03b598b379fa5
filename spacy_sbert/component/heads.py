"""The trained classification heads of an `sbert` pipe, and the labels they give to pairs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..losses.softmax import label_probabilities
from ..spans import members, row_order
from ..training.members import attribute, predicted_label
from ..training.objectives import objectives_of
from ..vectors.encoded import EncodedDoc


def find_heads(model: Model) -> dict[str, Model]:
    """The trained heads in the model tree of a pipe by the names of their objectives, "" where there is but one.

    Of the heads of a Matryoshka loss that for the widest vectors.
    """
    loss = model.maybe_get_ref("loss")
    heads = {}
    for name, layer in {} if loss is None else objectives_of(loss).items():
        trained = [node for node in layer.walk() if node.attrs.get("labels")]
        if trained:
            heads[name] = max(trained, key=lambda node: node.get_dim("nI"))
    return heads


def probabilities_of(head: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """The probability of each label, float (n, labels), for pairs of vectors, float (n, width) each."""
    width = head.get_dim("nI") // len(head.attrs["concatenation"])  # a Matryoshka head may see less than all
    return label_probabilities(head, u[:, :width], v[:, :width])


def label_pairs(
    heads: Mapping[str, Model], docs: Iterable[Doc], scores: Sequence[EncodedDoc], spans_key: str, name: str
) -> None:
    """Note the likeliest label of each pair beside its members, for the pipe "sbert" in
    doc.spans[spans_key].attrs["sbert_label"]: not under the name of the gold label, which a copied reference would
    bring along.

    Of several heads that of the pair's objective labels it; a pair without objective then gets no label.
    """
    if not heads:
        return
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
