"""Which columns of a table are the texts and the gold, by well-known names."""

import re
from collections.abc import Mapping, Sequence

# How many texts an example has
SINGLE = 1
PAIR = 2
TRIPLET = 3


class UnclearColumns(ValueError):
    """The names do not tell the columns; the message is the reason."""


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


# All names are spelled as by name_key: "Gold Label" is "goldlabel".
# Gold of this name comes before any other
_GOLD = _names("gold goldlabel goldscore goldstandard")
_SCORES = _names(
    "score scores similarity sim similarityscore semanticsimilarity cosinesimilarity rating grade "
    "relatedness relatednessscore relevance relevancescore stsscore humanscore meanscore "
    "averagescore goldscore"
)
_LABELS = _names(
    "label labels goldlabel gold relation entailment entailmentlabel entailmentjudgment judgment "
    "verdict class stance target isduplicate duplicate isparaphrase paraphrase ismatch match "
    "issame same issimilar isrelevant relevant iscorrect quality"
)
# Labels of single texts only
_CLASSES = _names("category topic intent genre tag type")
# Words that end as the names of ids do, and may be the gold
_WORDS_IN_ID = ("valid", "paid", "void", "hybrid", "solid", "fluid")
# Neither texts nor gold, as names that end in "id"
_OTHERS = _names("index idx split fold year date genre source url")

_TEXTS = _names(
    "text sentence utterance tweet review message comment body content document query question"
)
_ANCHORS = _names("anchor query question q a sent0")
_POSITIVES = _names("positive pos p good answer sent1 positivepassage chosen")
_NEGATIVES = _names("negative neg n bad hardneg hardnegative wronganswer negativepassage rejected")
_PAIRS = (
    ("premise", "hypothesis"),
    ("anchor", "positive"),
    ("query", "positive"),
    ("query", "pos"),
    ("question", "positive"),
    ("query", "document"),
    ("query", "passage"),
    ("query", "answer"),
    ("query", "response"),
    ("query", "title"),
    ("question", "answer"),
    ("question", "passage"),
    ("question", "document"),
    ("question", "context"),
    ("question", "sentence"),
    ("source", "target"),
    ("src", "tgt"),
    ("sentence", "paraphrase"),
    ("text", "paraphrase"),
    ("original", "paraphrase"),
    ("prompt", "response"),
    ("instruction", "response"),
    ("context", "response"),
    ("claim", "evidence"),
    ("x", "y"),
    ("sent0", "sent1"),
)
# The first two of a series, such as sentence1 and sentence2, are a pair unless there is the third
_STEMS = (
    "sentence",
    "sent",
    "text",
    "question",
    "q",
    "s",
    "t",
    "x",
    "string",
    "utterance",
    "phrase",
    "satz",
    "frage",
)
_NUMBERINGS = (
    ("1", "2", "3"),
    ("a", "b", "c"),
    ("one", "two", "three"),
    ("first", "second", "third"),
    ("left", "right", "middle"),
)


def _all_series() -> list[tuple[str, ...]]:
    series: list[tuple[str, ...]] = [*_NUMBERINGS]
    for numbers in _NUMBERINGS:
        for stem in _STEMS:
            series.append(tuple(stem + number for number in numbers))
            series.append(tuple(number + stem for number in numbers))
    return series


_SERIES = _all_series()


def name_key(name: str) -> str:
    """Return a name in lower case, without spaces, underscores, hyphens and the like."""
    return re.sub(r"[\W_]+", "", name.lower())


def is_label_name(name: str) -> bool:
    """Return whether a column of this name holds labels, which may be the numbers 0 and 1."""
    return name_key(name) in _LABELS


def text_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of a triplet, which may have several negatives, a pair or a single text.

    names: of all columns but the gold, if that is known.
    RAISES (UnclearColumns): if the names do not tell them.
    """
    keys = {name_key(name): name for name in names}
    members = _triplet(keys) or _pair(keys) or _single(keys)
    return tuple(keys[key] for key in members)


def _triplet(keys: Mapping[str, str]) -> tuple[str, ...]:
    negatives = [key for key in keys if key.rstrip("0123456789") in _NEGATIVES]
    if not negatives:
        return ()
    anchors = [key for key in keys if key in _ANCHORS]
    positives = [key for key in keys if key in _POSITIVES]
    # Such as negative_1 and negative_2
    kinds = {key.rstrip("0123456789") for key in negatives}
    if not len(anchors) == len(positives) == len(kinds) == 1:
        raise UnclearColumns(
            "by their names there is not one anchor, one positive and one kind of negative"
        )
    return anchors[0], positives[0], *negatives


def _pair(keys: Mapping[str, str]) -> tuple[str, ...]:
    pairs = [pair for pair in _PAIRS if keys.keys() >= set(pair)]
    for first, second, third in _SERIES:
        if first not in keys or second not in keys:
            continue
        if third in keys:
            raise UnclearColumns(
                f"{keys[first]}, {keys[second]} and {keys[third]} are more than a pair"
            )
        pairs.append((first, second))
    if len(pairs) > 1:
        raise UnclearColumns("by their names there are several pairs of texts")
    if not pairs:
        return ()
    return pairs[0]


def _single(keys: Mapping[str, str]) -> tuple[str, ...]:
    texts = [key for key in keys if key in _TEXTS]
    if len(texts) != 1:
        raise UnclearColumns("no names are those of a pair of texts")
    return (texts[0],)


def _is_no_gold(key: str) -> bool:
    """Return whether a column is known to be something else: an id, a date, a source."""
    is_id = key.endswith("id") and not key.endswith(_WORDS_IN_ID)
    return is_id or key in _OTHERS


def gold_column(names: Sequence[str], *, is_single: bool, is_given: bool) -> str | None:
    """Return the column of the gold; None if there is none.

    names: of all columns but the texts. is_single: whether there is one text. is_given: whether
        options name the texts, so that others may be anything.
    RAISES (UnclearColumns): if several columns may be the gold, or a column may be anything.
    """
    by_rank = [_GOLD, _SCORES | _LABELS]
    if is_single:
        by_rank = [_GOLD, _LABELS, _CLASSES]
    for known in by_rank:
        found = [name for name in dict.fromkeys(names) if name_key(name) in known]
        if len(found) > 1:
            raise UnclearColumns(f"{', '.join(found)} may each be the gold")
        if found:
            return found[0]
    unknown = [name for name in dict.fromkeys(names) if not _is_no_gold(name_key(name))]
    if unknown and not is_given:
        raise UnclearColumns(f"{', '.join(unknown)} may be the gold, or nothing that is read")
    return None
