"""Well-known names of columns: texts, gold, and what is neither."""

import re
from collections.abc import Sequence


def _names(listed: str) -> tuple[str, ...]:
    return tuple(listed.split())


# Names are compared in lower case, without spaces, underscores and hyphens: "Gold Label" is "goldlabel".
_GRADES = _names(
    """score scores goldscore similarity sim similarityscore simscore semanticsimilarity cosinesimilarity rating grade
    relatedness relatednessscore relevance relevancescore stsscore sts humanscore meanscore avgscore averagescore
    similarityrating semanticrelatedness semsim cossim cosinesim simlex qrel qrels ähnlichkeit aehnlichkeit relevanz
    bewertung punktzahl 相似度 相似性 相似度得分 分数 得分
    评分 相关性 相关度"""
)
_BINARY = _names(
    """isduplicate duplicate duplicated isdup dup isparaphrase paraphrase ismatch match matched matches same issame
    issimilar similar isrelevant relevant quality isentailment equivalent isequivalent related isrelated
    duplicates isduplicated isduplicatequestion paraphrases paraphrased entails isentailed isequal
    iscorrect correct isanswer isselected duplikat istduplikat 是否相似 是否重复"""
)
_LABELS = _names(
    """label labels relation entailment entailmentlabel entailmentjudgment entailmentjudgement judgment judgement
    nlilabel class classlabel verdict stance annotation etikett klasse 标签 类别 标注"""
)
_GOLD = _names("gold goldlabel goldscore goldstandard")  # before all others
# Of one text.
FIELDS = _names("category categories topic intent genre tag labeltext labelname classname target type kategorie thema")
NUMBERED = _names("target y")  # gold of pairs where they hold numbers
TIERS = (_GOLD, (*_GRADES, *_BINARY, *_LABELS), FIELDS)
GOLD_NAMES = frozenset(name for tier in TIERS for name in tier)
_ONLY_SCORES = frozenset(_GRADES)
SCORE_NAMES = frozenset((*_GRADES, *_BINARY))
CLASS_NAMES = frozenset(("goldlabel", *_LABELS))  # whose values are classes, be there ever so few rows
LABEL_NAMES = CLASS_NAMES | {*FIELDS, *NUMBERED}

# Words that names of gold are made of, such as avg_similarity_score and finalLabel: what it is, and what kind of it.
_WORDS = {
    "score": _names(
        """score scores similarity similarities sim rating ratings grade grades relatedness relevance sts gold
        ähnlichkeit"""
    ),
    "duplicate": _names(
        """duplicate duplicates duplicated dup paraphrase paraphrases match matches matched same similar related
        relevant equivalent equivalence entails"""
    ),
    "label": _names("label labels class relation entailment nli judgment judgement judgments verdict stance"),
}
_KINDS = _names(
    """mean avg average median final true manual human expert annotated annotation annotations majority overall norm
    normalized normalised scaled raw semantic textual text sentence pair pairs question cosine cos is are the has value
    level binary standard meaning flag graded degree of"""
)
# Names of numbers that are larger the less alike texts are.
_FAR = _names(
    """distance distances dist dissimilarity dissimilar unsimilar difference differences different differs diff
    unrelated unrelatedness mismatch mismatched mismatches nonmatch contradiction contradictory contradicts divergence
    disagreement levenshtein euclidean distanz abstand unterschied verschieden unähnlich unähnlichkeit
    距离 差异 不同 不相似"""
)
_NEGATIONS = _names("not non no isnt never un dis nicht kein")
_OF_PAIRS = re.compile("simil|relat|duplic|paraphras|match|same|equiv|entail|relevan|ähnlich|duplikat|相似|重复|相关")
_OF_PAIRS_SHORT = frozenset(_names("sim dup nli sts semsim cossim cosinesim simscore isdup stsscore nlilabel"))

_OTHERS = _names(
    """id ids uid guid uuid idx index no nr number num row rowid year month day date datetime time timestamp created
    createdat updated updatedat fold split subset part partition vote votes upvotes downvotes likes dislikes views
    clicks shares count counts freq frequency n length len size tokens words chars characters rank ranking position pos1
    page line offset start end price cost age version author user username annotator worker source dataset corpus domain
    lang language locale country city url link website file filename path weight confidence probability prob duration
    hours minutes seconds at"""
)
_OTHER_STARTS = _names("num n nr id count created updated")

_PAIRS = (  # the first text, the second
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
    ("x", "y"),
    ("q", "a"),
    ("t", "h"),
    ("text", "hypothesis"),
    ("claim", "sentence"),
    ("claim", "passage"),
    ("tweet", "reply"),
    ("post", "reply"),
    ("src", "mt"),
    ("mt", "ref"),
    ("original", "paraphrase"),
    ("original", "paraphrased"),
    ("original", "rewrite"),
    ("original", "rewritten"),
    ("original", "simplified"),
    ("complex", "simple"),
    ("normal", "simple"),
    ("reference", "candidate"),
    ("reference", "hypothesis"),
    ("reference", "prediction"),
    ("query", "doc"),
    ("question", "doc"),
    ("question", "context"),
    ("context", "response"),
    ("prompt", "completion"),
    ("instruction", "response"),
)
HEADINGS = _names("title headline subject heading")
# Words by which two names differ that are otherwise the same, such as left_text and right_text.
_PLACES = (
    ("1", "2"),
    ("a", "b"),
    ("one", "two"),
    ("first", "second"),
    ("left", "right"),
    ("source", "target"),
    ("src", "tgt"),
    ("ltable", "rtable"),
    ("original", "paraphrase"),
    ("original", "paraphrased"),
)
_NEXT = {"1": "3", "a": "c", "one": "three", "first": "third"}  # by the first of them, a third, which makes no pair
_SENTENCES = _names("sentence sent s text t question q string utterance phrase tweet str x")  # stems of pairs
_LEADS = _names("context instruction goal topic post story passage document")  # what several texts may be about
_ASIDES = _names(
    """explanation explanations rationale reason reasoning comment comments note notes remark remarks justification
    feedback evidence"""
)
POSITIVES_ALONE = (("anchor", "positive"), ("query", "positive"), ("query", "pos"), ("question", "positive"))
_ANCHORS = _names("anchor query question q sentence text sent0 premise source input prompt a")
_POSITIVES = _names(
    """positive pos p good positivepassage positivetext positivedoc positivedocument positiveanswer relevant chosen
    right correct correctanswer answer passage document response sent1 entailment"""
)
_NEGATIVES = _names(
    """negative neg n bad hardneg hardnegative negativepassage negativetext negativedoc negativedocument negativeanswer
    wrong wronganswer incorrect incorrectanswer irrelevant rejected distractor contradiction"""
)
_SERIES = (("0", "1", "2"), ("1", "2", "3"), ("a", "b", "c"), ("one", "two", "three"))
LISTED = _names("pos neg positive negative positives negatives passages documents answers candidates")


def normalized(name: str) -> str:
    """Return a name in lower case, without spaces, underscores, hyphens and the like."""
    return re.sub(r"[\W_]+", "", name.lower())


def only_scores(key: str) -> bool:
    """Whether a column of this normalized name holds graded scores, which are never missing."""
    return key in _ONLY_SCORES


def gold_key(name: str) -> str:
    """Return the well-known name of gold that a name is, or is made of: "score" for avg_sim; else it, normalized."""
    key = normalized(name)
    if key in GOLD_NAMES or is_far(name):
        return key
    found = ""
    for word in _words_of(name):
        kind = next((kind for kind, words in _WORDS.items() if word in words), "")
        if not kind and word not in _KINDS:
            return key
        found = kind or found
    return found or key


def _words_of(name: str) -> list[str]:
    """Return the words of a name in lower case: of isDuplicate, is and duplicate. Digits are left out."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def is_far(name: str) -> bool:
    """Whether numbers under a name are larger the less alike texts are: a distance, or a negation of what is gold."""
    words, key = _words_of(name), normalized(name).removeprefix("is")
    if any(word in _FAR for word in words) or key.removesuffix("score").endswith(_FAR):
        return True
    gold = {*SCORE_NAMES, *(word for listed in _WORDS.values() for word in listed)}
    is_negated = any(word in _NEGATIONS for word in words[:-1]) and any(word in gold for word in words)
    return is_negated or any(key.startswith(start) and key.removeprefix(start) in gold for start in _NEGATIONS)


def is_of_pairs(name: str) -> bool:
    """Whether gold of this name is of two texts, such as a similarity; a label or a rating may be of one, too."""
    return bool(_OF_PAIRS.search(normalized(name))) or not _OF_PAIRS_SHORT.isdisjoint(
        [normalized(name), *_words_of(name)]
    )


def is_other(name: str) -> bool:
    """Whether a column of this name is neither text nor gold: an id, a year, a fold, a count, a source."""
    if normalized(name) in _OTHERS:
        return True
    words = _words_of(name)
    return len(words) > 1 and (words[-1] in _OTHERS or words[0] in _OTHER_STARTS)


def find_triplets(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return anchor, positive and negative as names tell them, one triplet for each column of negatives."""
    keys = {normalized(name): name for name in names}
    negatives = [name for key, name in keys.items() if key.rstrip("0123456789") in _NEGATIVES]
    positives = [keys[key] for key in _POSITIVES if key in keys]
    anchors = [keys[key] for key in _ANCHORS if key in keys and keys[key] not in positives[:1]]
    return [(anchors[0], positives[0], negative) for negative in negatives] if anchors and positives else []


def find_pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of columns that names tell: premise and hypothesis, sentence1 and sentence2, text_a and text_b.

    The first two of three, such as text1 to text3, are no pair.
    """
    keys = {normalized(name): name for name in names}
    found = [(keys[first], keys[second]) for first, second in _PAIRS if first in keys and second in keys]
    for first, second, third in _SERIES:
        for stem in [key.removesuffix(first) for key in keys if key.endswith(first)]:
            is_longer = stem + third in keys or (first == "1" and stem + "0" in keys)
            if stem + second in keys and not is_longer:
                found.append((keys[stem + first], keys[stem + second]))
    parts = {tuple(_parts(name)): name for name in names}
    for words, name in parts.items():
        for i, word in enumerate(words):
            for first, second in _PLACES:
                same, more = ((*words[:i], place, *words[i + 1 :]) for place in (second, _NEXT.get(first, "")))
                if word == first and same in parts and more not in parts:
                    found.append((name, parts[same]))
    return list(dict.fromkeys(found))


def is_aside(name: str) -> bool:
    """Whether texts under a name are about other columns, such as an explanation of the gold, or an author."""
    return is_other(name) or normalized(name).rstrip("0123456789") in _ASIDES


def is_numbered(pair: Sequence[str]) -> bool:
    """Whether the names of a pair say no more than first and second."""
    names = tuple(map(normalized, pair))
    return names not in _PAIRS or names in _PLACES


def may_be_member(name: str, pair: Sequence[str]) -> bool:
    """Whether another column of texts may belong to a numbered pair, as a question does to answer1 and answer2."""
    if is_aside(name):
        return False
    key = normalized(name)
    first, second = map(normalized, pair)
    ends = [first.removesuffix(a) for a, b, _ in _SERIES if first.endswith(a) and second.endswith(b)]
    stem = "".join(word for word in _parts(pair[0]) if word in _parts(pair[1])) or next(iter(ends), "")
    is_lead = key in (*_ANCHORS, *_LEADS) or any(key == names[0] for names in _PAIRS)
    return is_lead or stem not in ("", *_SENTENCES)


def find_series(names: Sequence[str]) -> tuple[str, ...]:
    """Return three columns whose names say no more than first, second, third, such as text1 to text3, or none.

    There is none if a fourth is there.
    """
    keys = {normalized(name): name for name in names}
    found = []
    for ends in _SERIES:
        stems = [key.removesuffix(ends[0]) for key in keys if key.endswith(ends[0])]
        found += [tuple(keys[stem + end] for end in ends) for stem in stems if all(stem + end in keys for end in ends)]
    return found[0] if len(found) == 1 else ()


def _parts(name: str) -> list[str]:
    """Return the words and numbers of a name, in lower case."""
    return re.findall(r"[^\W\d_]+|\d+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def is_series(names: Sequence[str]) -> bool:
    """Whether three names say no more than first, second, third: a, b, c; text1, text2, text3."""
    return find_series(names) == tuple(names)
