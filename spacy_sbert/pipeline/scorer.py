"""Labels of pairs by trained heads, and the scores that `spacy train` reports."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model
from thinc.types import Floats2d
from thinc.util import to_numpy

from ..errors import DivergedError, Errors
from ..losses.softmax import label_probabilities
from ..models.encoded_docs import EncodedDoc
from ..models.spans import SPANS_KEY, members, row_order, trimmed
from ..similarity import cosine, euclidean, pearson, spearman, unit_length
from ..training.batch_loss import Scores
from ..training.examples import attribute, gold_value, kind_of, labels_of
from ..training.gold import MEASURES
from . import doc_vectors

# Texts that are compared with all others at once
_BLOCK = 1024


# Labels of pairs


def classify(
    heads: Mapping[str, Model], objective: str, pipe: str, u: Floats2d, v: Floats2d
) -> dict[str, float]:
    """Return the probability of each label for a pair, by the head of an objective.

    u, v (float (1, width)): the vectors of the pair.
    """
    chosen = objective
    if not objective and len(heads) == 1:
        chosen = next(iter(heads))
    if chosen not in heads:
        raise ValueError(
            f"Cannot classify with the 'sbert' pipe '{pipe}' for the objective {objective!r}: it "
            f"has {len(heads)} trained classification heads ({', '.join(map(repr, heads))}). Name "
            "one of several, or train with spacy-sbert.SoftmaxLoss.v1."
        )
    probabilities = to_numpy(probabilities_of(heads[chosen], u, v))[0]
    return dict(zip(heads[chosen].attrs["labels"], probabilities.tolist(), strict=True))


def probabilities_of(head: Model, u: Floats2d, v: Floats2d) -> Floats2d:
    """Return the probability of each label, float (n, labels), for pairs of vectors.

    u, v (float (n, width)): the vectors.
    """
    # A Matryoshka head may see less than all
    width = head.get_dim("nI") // len(head.attrs["concatenation"])
    return label_probabilities(head, u[:, :width], v[:, :width])


def label_pairs(
    heads: Mapping[str, Model],
    docs: Iterable[Doc],
    scores: Sequence[EncodedDoc],
    spans_key: str,
    name: str,
) -> None:
    """Store the likeliest label of each pair.

    The pipe "sbert" stores it as doc.spans[spans_key].attrs["sbert_label"].

    It has another name than the gold label, which a copied reference would bring along. With
    several heads, that of the pair's objective labels it; a pair without objective then gets no
    label.
    """
    pairs: dict[str, list[tuple[Doc, Floats2d]]] = {}
    for doc, encoded in zip(docs, scores, strict=True):
        pair = members(doc, spans_key)
        head_name = _head_of(doc, heads, spans_key)
        if head_name is not None and len(pair) == len(encoded.vectors) == 2:
            pairs.setdefault(head_name, []).append((doc, encoded.vectors[row_order(pair)]))
    for head_name, labelled in pairs.items():
        head = heads[head_name]
        u = head.ops.xp.stack([vectors[0] for _, vectors in labelled])
        v = head.ops.xp.stack([vectors[1] for _, vectors in labelled])
        best = to_numpy(probabilities_of(head, u, v)).argmax(axis=1)
        for (doc, _), label in zip(labelled, best.tolist(), strict=True):
            doc.spans[spans_key].attrs[f"{name}_label"] = head.attrs["labels"][label]


def _head_of(doc: Doc, heads: Mapping[str, Model], spans_key: str) -> str | None:
    """Return the name of the head that labels a pair; None if there is none."""
    objective = cast(str, attribute(doc, "objective", spans_key) or "")
    if not objective and len(heads) == 1:
        return next(iter(heads))
    if objective in heads:
        return objective
    # A head without a name is for all
    return "" if "" in heads else None


# Scores of pairs


def score_pairs(
    examples: Iterable[Example],
    *,
    name: str | None = None,
    spans_key: str = SPANS_KEY,
    **kwargs: object,
) -> Scores:
    """Score pairs, triplets and labelled texts, each kind by its own measure.

    Pairs are graded or labelled.

    examples (Iterable[Example]): those with two members and a gold score, two members and a label,
        three members or more, or one member and a label.
    name, spans_key: see score_sts.
    RETURNS (dict): sts_spearman and sts_pearson of graded pairs, see score_sts; where all gold
        scores are 0 or 1, pair_ap, the average precision of cosine, and what thresholds on it give,
        see threshold_scores; nli_acc, the fraction of right labels among the pairs that the pipe's
        classification heads labelled; triplet_acc, the fraction of triplets whose anchor is nearer
        to the positive, Euclidean, than to each negative; knn_acc of labelled texts, see
        _neighbour_accuracy. From 0 to 1 (correlations from -1); None where there is nothing to
        measure. Where examples are of several objectives, each measure also of each alone, such as
        sts_spearman_sick.
    RAISES (ValueError): see score_sts.
    SOURCE: Reimers and Gurevych 2019, sections 4.1 (Spearman) and 4.4 (triplet accuracy).
    """
    examples = [eg for eg in examples if members(eg.predicted, spans_key)]
    scores = _measures(examples, name, spans_key)
    by_objective: dict[str, list[Example]] = {}
    for example in examples:
        objective = kind_of(example.reference, spans_key) or ""
        by_objective.setdefault(objective, []).append(example)
    if by_objective.keys() <= {""}:
        return scores
    for objective, group in sorted(by_objective.items()):
        own = _measures(group, name, spans_key)
        scores |= {f"{key}_{objective}": own[key] for key in own if own[key] is not None}
    return scores


def _measures(examples: Sequence[Example], name: str | None, spans_key: str) -> Scores:
    """Return all measures of examples, by their kinds; None where there is nothing to measure."""
    scores: Scores = dict.fromkeys(MEASURES)
    scores |= _graded_scores(_with_gold(examples, 2, "score", spans_key), name, spans_key)
    scores |= _label_scores(_with_gold(examples, 2, "label", spans_key), name, spans_key)
    scores |= _neighbour_scores(_with_gold(examples, 1, "label", spans_key), name, spans_key)
    triplets = [eg for eg in examples if len(members(eg.predicted, spans_key)) >= 3]
    scores |= _triplet_scores(triplets, name, spans_key)
    return scores


def _with_gold(
    examples: Sequence[Example], n_members: int, key: str, spans_key: str
) -> list[Example]:
    """Return the examples of so many members that have a gold value of this name."""
    of_size = [eg for eg in examples if len(members(eg.predicted, spans_key)) == n_members]
    return [eg for eg in of_size if attribute(eg.reference, key, spans_key) is not None]


def _graded_scores(pairs: Sequence[Example], name: str | None, spans_key: str) -> Scores:
    # Several scores of a reranker are those of labels
    graded = [eg for eg in pairs if not isinstance(_reranker_score(eg, name, spans_key), list)]
    similarities = _similarities(graded, name, spans_key)
    gold = numpy.array([gold_value(eg, "score", spans_key) for eg in graded])
    scores = _correlations(similarities, gold)
    if set(gold.tolist()) == {0.0, 1.0}:
        scores["pair_ap"] = _average_precision(similarities, gold)
        scores |= threshold_scores(similarities, gold)
    return scores


def _label_scores(pairs: Sequence[Example], name: str | None, spans_key: str) -> Scores:
    right = []
    for eg in pairs:
        pipe = name or next((record.name for record in doc_vectors.find(eg.predicted)), "")
        predicted = attribute(eg.predicted, f"{pipe}_label", spans_key)
        # The pipe has a head for it
        if predicted is not None:
            right.append(predicted == labels_of([eg], spans_key)[0])
    if not right:
        return {}
    return {"nli_acc": float(numpy.mean(right))}


def _neighbour_scores(texts: Sequence[Example], name: str | None, spans_key: str) -> Scores:
    known = [eg for eg in texts if doc_vectors.find(eg.predicted, name)]
    if not known:
        return {}
    vectors = numpy.stack([_vectors(eg, name, spans_key)[0] for eg in known])
    return {"knn_acc": _neighbour_accuracy(vectors, labels_of(known, spans_key))}


def _triplet_scores(triplets: Sequence[Example], name: str | None, spans_key: str) -> Scores:
    if not triplets:
        return {}
    right = []
    for eg in triplets:
        anchor, *others = _vectors(eg, name, spans_key)
        near, *far = euclidean(numpy.stack([anchor] * len(others)), numpy.stack(others))
        right.append(near < min(far))
    return {"triplet_acc": float(numpy.mean(right))}


def threshold_scores(scores: numpy.ndarray, relevant: numpy.ndarray) -> Scores:
    """Return what the best thresholds on scores give.

    Pairs of at least that score are said to belong together.

    accuracy = (TP + TN) / n, precision = TP / (TP + FP), recall = TP / (TP + FN)
    F1 = 2 precision recall / (precision + recall)
    MCC = (TP TN - FP FN) / sqrt((TP + FP) (TP + FN) (TN + FP) (TN + FN)), 0 where that is 0 / 0

    scores (float (n,)): of pairs, such as cosines. relevant (float (n,)): 1 for those that belong
        together, else 0; there is at least one of each.
    RETURNS (dict): pair_acc and pair_f1, the highest accuracy and F1, each with its threshold,
        pair_acc_threshold and pair_f1_threshold; pair_precision, pair_recall and pair_mcc at the
        threshold of F1. A threshold is the middle between two scores, in their dtype, the lowest
        score, or just above the highest; the highest of equals.
    SOURCE: BinaryClassificationEvaluator of sentence-transformers 6.2.
    """
    ranked, accepted, found = _accepted_by_threshold(scores, relevant)
    # A middle that is rounded to the next score would accept its pairs, too.
    middles = (ranked[:-1] + ranked[1:]) / 2
    thresholds = numpy.append(numpy.where(middles == ranked[1:], ranked[:-1], middles), ranked[-1])

    n_relevant = relevant.sum()
    n_right = found + (len(scores) - n_relevant) - (accepted - found)
    accuracy = numpy.append(len(scores) - n_relevant, n_right) / len(scores)
    most_right = int(accuracy.argmax())
    acceptances = numpy.append(
        numpy.nextafter(ranked[0], numpy.inf, dtype=ranked.dtype), thresholds
    )

    precision = found / accepted
    recall = found / n_relevant
    both = precision + recall
    f1 = numpy.divide(2 * precision * recall, both, out=numpy.zeros_like(both), where=both > 0)
    best = int(f1.argmax())
    return {
        "pair_acc": float(accuracy[most_right]),
        "pair_acc_threshold": float(acceptances[most_right]),
        "pair_f1": float(f1[best]),
        "pair_f1_threshold": float(thresholds[best]),
        "pair_precision": float(precision[best]),
        "pair_recall": float(recall[best]),
        "pair_mcc": _matthews_correlation(found[best], accepted[best], n_relevant, len(scores)),
    }


def _matthews_correlation(found: float, accepted: float, n_relevant: float, n: int) -> float:
    """Return Matthews' correlation, see threshold_scores, from TP, TP + FP, TP + FN and n."""
    variances = float(accepted) * (n - accepted) * n_relevant * (n - n_relevant)
    if not variances:
        return 0.0
    return float((found * n - accepted * n_relevant) / variances**0.5)


def _average_precision(scores: Sequence[float] | numpy.ndarray, relevant: numpy.ndarray) -> float:
    """Return the mean precision over the relevant items, by falling score.

    Equal scores are one step.

    AP = sum_k (R_k - R_(k-1)) P_k, over the thresholds k

    relevant (float (n,)): 1 for relevant items, of which there is one at least, else 0.
    """
    _, accepted, found = _accepted_by_threshold(numpy.asarray(scores), relevant)
    return float(numpy.sum(numpy.diff(found / found[-1], prepend=0.0) * found / accepted))


def _accepted_by_threshold(
    scores: numpy.ndarray, relevant: numpy.ndarray
) -> tuple[numpy.ndarray, ...]:
    """Count the items that have at least a score.

    RETURNS (float (k,), int (k,), float (k,)): each different score, the highest first; how many
        items have at least this score; how many of them are relevant.
    """
    order = numpy.argsort(-scores, kind="stable")
    ranked = scores[order]
    # Of each run of equal scores
    last = numpy.append(numpy.flatnonzero(numpy.diff(ranked)), len(ranked) - 1)
    return ranked[last], last + 1, numpy.cumsum(relevant[order])[last]


def _neighbour_accuracy(vectors: numpy.ndarray, labels: Sequence[str]) -> float | None:
    """Return the leave-one-out accuracy of the nearest neighbor, by cosine.

    The first of equally near ones counts.

    Texts whose label no other text has count as neighbours only. None if there are fewer than two
    labels, or none comes twice. vectors: float (n, width).
    """
    counts = Counter(labels)
    scored = [i for i, label in enumerate(labels) if counts[label] > 1]
    if len(counts) < 2 or not scored:
        return None
    units = unit_length(vectors)
    nearest: list[int] = []
    for start in range(0, len(scored), _BLOCK):
        rows = scored[start : start + _BLOCK]
        similarities = units[rows] @ units.T
        similarities[numpy.arange(len(rows)), rows] = -numpy.inf
        nearest += similarities.argmax(axis=1).tolist()
    n_right = sum(labels[i] == labels[j] for i, j in zip(scored, nearest, strict=True))
    return n_right / len(scored)


def score_sts(
    examples: Iterable[Example],
    *,
    name: str | None = None,
    spans_key: str = SPANS_KEY,
    **kwargs: object,
) -> Scores:
    """Return the Spearman and Pearson correlation of scores of pairs with gold scores.

    A score is the cosine, or that of a reranker.

    examples (Iterable[Example]): those whose predicted Doc has two members and stored vectors, or a
        score, count.
    name (str): the pipe whose vectors are compared, or whose scores are taken; by default the one
        that answers `doc.vector`.
    spans_key (str): where the members stand, doc.spans[spans_key].
    RETURNS (dict): sts_spearman and sts_pearson, from -1 to 1; None where they are not defined:
        fewer than two pairs, or all similarities or all gold scores alike.
    RAISES (ValueError): if a pair has no gold score, its members are not rows, or its similarity is
        not finite.
    SOURCE: Reimers and Gurevych 2019, section 4 (Spearman; Reimers et al. 2016 argue against
        Pearson).
    """
    pairs = [eg for eg in examples if len(members(eg.predicted, spans_key)) == 2]
    predicted = _similarities(pairs, name, spans_key)
    gold = numpy.array([gold_value(eg, "score", spans_key) for eg in pairs])
    return _correlations(predicted, gold)


def _correlations(similarities: numpy.ndarray, gold: numpy.ndarray) -> Scores:
    return {
        "sts_spearman": spearman(similarities, gold),
        "sts_pearson": pearson(similarities, gold),
    }


def _similarities(examples: Sequence[Example], name: str | None, spans_key: str) -> numpy.ndarray:
    """Return a reranker's scores of pairs, or the cosines of their vectors, float32 (n,).

    Cosines are computed in float64 and rounded once: equal vectors have exactly 1, and not noise
    that has a rank.
    """
    similarities = numpy.zeros(len(examples), dtype="float32")
    for row, example in enumerate(examples):
        score = _reranker_score(example, name, spans_key)
        if score is None:
            u, v = numpy.stack(_vectors(example, name, spans_key)).astype("float64")
            score = cosine(u[None], v[None])[0]
        similarities[row] = score
    return similarities


def _reranker_score(example: Example, name: str | None, spans_key: str) -> Any:
    """Return what the reranker `name` gave a pair: a number, or a list; None without one."""
    return attribute(example.predicted, f"{name}_score", spans_key) if name else None


def _vectors(example: Example, name: str | None, spans_key: str) -> list[numpy.ndarray]:
    """Return the vectors of the members, in their order."""
    doc = example.predicted
    records = doc_vectors.find(doc, name)
    if not records:
        raise doc_vectors.no_vectors(doc, name)
    rows = []
    expected = [trimmed(span.text, span.start_char) for span in members(doc, spans_key)]
    for start, end in expected:
        found = (record.row_at(start, end) for record in records)
        row = next((row for row in found if row is not None), None)
        if row is None:
            given = [tuple(row) for record in records for row in record.rows.tolist()]
            message = Errors.WRONG_ROWS.format(
                text=doc.text[:50], given=given, expected=expected, key=spans_key
            )
            raise ValueError(message)
        if not numpy.isfinite(row).all():
            raise DivergedError(Errors.NOT_FINITE.format(text=doc.text[:50]))
        rows.append(row)
    return rows
