"""Well-known names of columns: texts, gold, and what is neither."""

import re
from collections.abc import Sequence


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


# Names are compared in lower case, without spaces, underscores and hyphens: "Gold Label" is "goldlabel".
GRADES = _names(
    """score scores goldscore similarity sim similarityscore simscore semanticsimilarity cosinesimilarity rating grade
    relatedness relatednessscore relevance relevancescore stsscore sts humanscore meanscore avgscore averagescore
    similarityrating"""
)
BINARY = _names(
    """isduplicate duplicate duplicated isdup dup isparaphrase paraphrase ismatch match matched matches same issame
    issimilar similar isrelevant relevant quality isentailment equivalent isequivalent related isrelated"""
)
LABELS = _names(
    """label labels relation entailment entailmentlabel entailmentjudgment entailmentjudgement judgment judgement
    nlilabel class"""
)
GOLD = _names("gold goldlabel goldscore goldstandard")  # before all others
FIELDS = _names("category categories topic intent genre tag labeltext labelname classname target type")  # of one text
TIERS = (GOLD, (*GRADES, *BINARY, *LABELS), FIELDS)
GOLD_NAMES = frozenset(name for tier in TIERS for name in tier)
ONLY_SCORES = frozenset(GRADES)
SCORE_NAMES = frozenset((*GRADES, *BINARY))
CLASS_NAMES = frozenset(("goldlabel", *LABELS))  # whose values are classes, be there ever so few rows
LABEL_NAMES = CLASS_NAMES | {*FIELDS}

OTHERS = _names(
    """id ids uid guid uuid idx index no nr number num row rowid year month day date datetime time timestamp created
    createdat updated updatedat fold split subset part partition vote votes upvotes downvotes likes dislikes views
    clicks shares count counts freq frequency n length len size tokens words chars characters rank ranking position pos1
    page line offset start end price cost age version author user username annotator worker source dataset corpus domain
    lang language locale country city url link website file filename path weight confidence probability prob duration
    hours minutes seconds at"""
)
OTHER_STARTS = _names("num n nr id count created updated")

PAIRS = (  # the first text, the second
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
    ("query", "text"),
    ("question", "answer"),
    ("question", "passage"),
    ("question", "sentence"),
    ("question", "document"),
    ("question", "response"),
    ("source", "target"),
    ("src", "tgt"),
    ("sentence", "paraphrase"),
    ("text", "paraphrase"),
    ("prompt", "response"),
    ("claim", "evidence"),
    ("left", "right"),
    ("first", "second"),
)
HEADINGS, BODIES = _names("title headline subject heading"), _names("text body content description abstract article")
POSITIVES_ALONE = (("anchor", "positive"), ("query", "positive"), ("query", "pos"), ("question", "positive"))
ANCHORS = _names("anchor query question q sentence text sent0 premise source input prompt a")
POSITIVES = _names(
    """positive pos p good positivepassage positivetext positivedoc positivedocument positiveanswer relevant chosen
    right correct correctanswer answer passage document response sent1 entailment"""
)
NEGATIVES = _names(
    """negative neg n bad hardneg hardnegative negativepassage negativetext negativedoc negativedocument negativeanswer
    wrong wronganswer incorrect incorrectanswer irrelevant rejected distractor contradiction"""
)
SERIES = (("0", "1", "2"), ("1", "2", "3"), ("a", "b", "c"), ("one", "two", "three"))
LISTED = _names("pos neg positive negative positives negatives passages documents answers candidates")


def normalized(name: str) -> str:
    """Return a name in lower case, without spaces, underscores, hyphens and the like."""
    return re.sub(r"[\W_]+", "", name.lower())


def only_scores(key: str) -> bool:
    """Whether a column of this normalized name holds graded scores, which are never missing."""
    return key in ONLY_SCORES


def is_other(name: str) -> bool:
    """Whether a column of this name is neither text nor gold: an id, a year, a fold, a count, a source."""
    if normalized(name) in OTHERS:
        return True
    words = re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return len(words) > 1 and (words[-1] in OTHERS or words[0] in OTHER_STARTS)


def find_triplets(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return anchor, positive and negative as names tell them, one triplet for each column of negatives."""
    keys = {normalized(name): name for name in names}
    negatives = [name for key, name in keys.items() if key.rstrip("0123456789") in NEGATIVES]
    positives = [keys[key] for key in POSITIVES if key in keys]
    anchors = [keys[key] for key in ANCHORS if key in keys and keys[key] not in positives[:1]]
    return [(anchors[0], positives[0], negative) for negative in negatives] if anchors and positives else []


def find_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that names tell: premise and hypothesis, sentence1 and sentence2, text_a and text_b.

    The first two of three, such as text1 to text3, are no pair.
    """
    keys = {normalized(name): name for name in names}
    found = [(keys[first], keys[second]) for first, second in PAIRS if first in keys and second in keys]
    for first, second, third in SERIES:
        for stem in [key.removesuffix(first) for key in keys if key.endswith(first)]:
            is_longer = stem + third in keys or (first == "1" and stem + "0" in keys)
            if stem + second in keys and not is_longer:
                found.append((keys[stem + first], keys[stem + second]))
    return list(dict.fromkeys(found))


def find_series(names: Sequence[str]) -> tuple[str, ...]:
    """Return three columns whose names say no more than first, second, third, such as text1 to text3, or none.

    There is none if a fourth is there.
    """
    keys = {normalized(name): name for name in names}
    found = []
    for ends in SERIES:
        stems = [key.removesuffix(ends[0]) for key in keys if key.endswith(ends[0])]
        found += [tuple(keys[stem + end] for end in ends) for stem in stems if all(stem + end in keys for end in ends)]
    return found[0] if len(found) == 1 else ()


def is_series(names: Sequence[str]) -> bool:
    """Whether three names say no more than first, second, third: a, b, c; text1, text2, text3."""
    return find_series(names) == tuple(names)
