"""Which columns of a table are the texts, and which is the gold: by options, then by names, then by content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import Errors
from .column_names import (
    FIELDS,
    GOLD_NAMES,
    HEADINGS,
    LISTED,
    NUMBERED,
    POSITIVES_ALONE,
    TIERS,
    find_pairs,
    find_series,
    find_triplets,
    is_aside,
    is_far,
    is_numbered,
    is_of_pairs,
    is_other,
    is_series,
    may_be_member,
    normalized,
)
from .column_stats import ColumnFacts

SINGLE, _PAIR, TRIPLET = 1, 2, 3
RANGES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0), (-1.0, 1.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
_SHOWN = 3  # triplets that an error shows
_ALIKE = 0.5  # of the words of the longest texts, which those of a triplet without names have at least


@dataclass(frozen=True)
class _Roles:
    """The columns of the texts and of the gold, of which there may be none."""

    members: tuple[str, ...]
    score: str | None = None
    label: str | None = None

    @property
    def options(self) -> str:
        """The options that name these columns, and what is read with them."""
        gold = {"--score": self.score, "--label": self.label}
        named = " ".join(f"{option} {_quoted(name)}" for option, name in gold.items() if name is not None)
        what = {SINGLE: "texts", _PAIR: "pairs", TRIPLET: "triplets"}[len(self.members)]
        kind = "with scores" if self.score is not None else "with labels" if self.label is not None else "alone"
        shown = what if kind == "alone" and len(self.members) == TRIPLET else f"{what} {kind}"
        return f"--members {_quoted(','.join(self.members))}{f' {named}' if named else ''} ({shown})"


@dataclass(frozen=True)
class Given:
    """The columns that options name. has_range (bool): whether they give the range of scores, too."""

    members: tuple[str, ...] = ()
    score: str | None = None
    label: str | None = None
    has_range: bool = False


def find_roles(path: Path, facts: Mapping[str, ColumnFacts], given: Given, *, header: bool) -> _Roles:
    """Find out which columns hold what.

    path (Path): of the table, for errors. facts (dict): what is known of each column.
    given (Given): the columns that options name. header (bool): whether the columns have names.
    RETURNS (Roles): one, two or three columns of texts; one of gold, or none.
    RAISES (ValueError): if the columns cannot be told apart: with the readings that fit, and the options for each.
    """
    _check_nested(path, facts, given)
    others = [one for name, one in facts.items() if name not in (*given.members, given.score, given.label)]
    gold = _Roles((), given.score, given.label)
    if given.score is None and given.label is None and len(given.members) < TRIPLET:
        gold = _named_gold(path, others, given, facts)
    left = [one for one in others if one.name not in (gold.score, gold.label)]
    members = given.members or _find_members(path, facts, left, gold, header=header)
    if len(members) > TRIPLET:
        raise _no_pair(path, facts, members)
    if len(members) == TRIPLET:
        return _Roles(members, given.score, given.label)
    if header and not given.members and given.score is None and (gold.score or gold.label):
        _check_document(path, facts, members, gold)
    if gold.score is None and gold.label is None:
        rest = [one for one in left if one.name not in members]
        gold = _other_gold(path, facts, rest, members, given, header=header)
    if len(members) == SINGLE:
        return _check_single(path, facts, members, gold)
    return _Roles(members, gold.score, gold.label)


def _check_nested(path: Path, facts: Mapping[str, ColumnFacts], given: Given) -> None:
    """Refuse lists or objects in a column that was named, or that must be a text by its name."""
    named = {*given.members, given.score, given.label}
    for one in facts.values():
        if one.nested and (one.name in named or (not given.members and one.key in LISTED)):
            raise ValueError(Errors.TABLE_NESTED.format(path=path, line=one.nested, column=one.name))


# Texts


def _find_members(
    path: Path, facts: Mapping[str, ColumnFacts], columns: Sequence[ColumnFacts], gold: _Roles, *, header: bool
) -> tuple[str, ...]:
    worded = [one for one in columns if one.has_words]
    names = [one.name for one in worded]
    triplets = find_triplets(names) if header else []
    if len(triplets) > 1:
        raise _ambiguous(path, [*(_Roles(triplet) for triplet in triplets[:_SHOWN]), _Roles(triplets[0][:_PAIR])])
    if triplets:
        return triplets[0]
    pairs = find_pairs(names) if header else []
    pairs = [pair for pair in pairs if all(facts[name].is_text for name in pair)] or pairs
    if len(pairs) > 1:
        raise _ambiguous(path, [_Roles(pair, gold.score, gold.label) for pair in pairs])
    if pairs:
        return _check_pair(path, facts, worded, pairs[0], gold)
    series = find_series(names) if header else ()
    more = [one.name for one in worded if one.is_text and not one.repeats_values and not is_aside(one.name)]
    if series and not {*more} <= {*series}:
        raise _no_pair(path, facts, list(dict.fromkeys((*series, *more))))
    texts = [one for one in worded if one.is_text and (one.name in series if series else not one.repeats_values)]
    if len(texts) < _PAIR:
        texts = _fill(path, texts, worded, gold)
    found = tuple(one.name for one in texts)
    if len(texts) == TRIPLET:
        short, *_, long = sorted(one.words / max(one.filled, 1) for one in texts)
        is_alike = (is_series(found) or not header) and short >= _ALIKE * long
        if gold.score is not None or gold.label is not None or not is_alike:
            readings = [_Roles(found[:_PAIR], gold.score, gold.label), _Roles(found)]
            raise _ambiguous(path, [*readings, *_single_readings(facts, found, gold, columns)])
    if not found or len(found) > TRIPLET:
        raise _no_pair(path, facts, found)
    return found


def _check_pair(
    path: Path, facts: Mapping[str, ColumnFacts], worded: Sequence[ColumnFacts], pair: tuple[str, ...], gold: _Roles
) -> tuple[str, ...]:
    """Return a pair that names tell, or the one text of it, if the other is its label.

    RAISES (ValueError): if names tell as much of another reading: a third text that a numbered pair belongs to, or a
        second one of few values, which may be the label of the first.
    """
    first, second = (facts[name] for name in pair)
    label, text = (first, second) if first.is_label and not first.is_text else (second, first)
    has_gold = gold.score is not None or gold.label is not None
    if not has_gold and label.is_label and not label.is_text and text.is_text and not text.repeats_values:
        if is_numbered(pair):
            return (text.name,)
        raise _ambiguous(path, [_Roles(pair), _Roles((text.name,), label=label.name)])
    of_pairs = any(is_of_pairs(name) for name in (gold.score, gold.label) if name is not None)
    others = [one for one in worded if one.name not in pair and one.is_text and not one.repeats_values]
    more = [one.name for one in others if is_numbered(pair) and not of_pairs and may_be_member(one.name, pair)]
    if more:
        triplet = (more[0], *pair)
        raise _ambiguous(path, [_Roles(pair, gold.score, gold.label), _Roles(triplet), _Roles(triplet[:_PAIR])])
    return pair


def _fill(path: Path, texts: Sequence[ColumnFacts], worded: Sequence[ColumnFacts], gold: _Roles) -> list[ColumnFacts]:
    """Return the texts of a table that has fewer than two columns of different texts of several words.

    Texts may come several times each, or be single words.
    """
    spaced = [one for one in worded if one.is_text]  # texts, and texts of which each comes several times
    words = [one for one in worded if not one.is_text and not one.is_label]
    if len(spaced) == _PAIR and texts and gold.score is None:  # what repeats may be the label
        other = next(one for one in spaced if one not in texts)
        single = _Roles((texts[0].name,), label=gold.label or other.name)
        raise _ambiguous(path, [_Roles(tuple(one.name for one in spaced), label=gold.label), single])
    if gold.score is not None and not spaced and len(words) < _PAIR:
        words = [one for one in worded if not is_other(one.name)]
    if len(spaced) == SINGLE and len(words) == SINGLE and gold.score is not None:
        return [one for one in worded if one in spaced or one in words]
    return spaced or (words if len(words) <= _PAIR else [])


# Gold


def _named_gold(path: Path, columns: Sequence[ColumnFacts], given: Given, facts: Mapping[str, ColumnFacts]) -> _Roles:
    """Return the gold by its name: of the first tier of names that has one.

    A category or the like is of single texts.
    """
    golds = [one for one in columns if not one.nested and (one.is_score or one.is_label)]
    made = [one for one in golds if one.key not in GOLD_NAMES and one.gold_key in GOLD_NAMES]
    found = next((found for tier in TIERS[:-1] if (found := [one for one in golds if one.key in tier])), made)
    is_single = len(given.members) == SINGLE or (not given.members and not _has_pair(facts))
    if not found:
        found = [
            one for one in golds if one.key in FIELDS and (is_single or (one.key in NUMBERED and one.is_mostly_number))
        ]
    if len(found) > 1:
        raise _many_gold(path, found)
    return _gold_of(found[0]) if found else _Roles(())


def _has_pair(facts: Mapping[str, ColumnFacts]) -> bool:
    """Whether there may be two texts, so that a category belongs to a pair, if to anything."""
    texts = [one for one in facts.values() if one.is_text and one.key not in FIELDS]
    return len(texts) > 1 or bool(find_pairs([one.name for one in facts.values() if one.has_words]))


def _other_gold(
    path: Path,
    facts: Mapping[str, ColumnFacts],
    columns: Sequence[ColumnFacts],
    members: Sequence[str],
    given: Given,
    *,
    header: bool,
) -> _Roles:
    """Return the gold of single texts, or of a table without names, by its content; pairs with names have none.

    Where options name the texts, columns in doubt are left out.

    RAISES (ValueError): if there is a column that may be the gold of pairs, and its name says no more.
    """
    is_pair = len(members) == _PAIR
    if is_pair and tuple(map(normalized, members)) in POSITIVES_ALONE:
        return _Roles(())
    golds = [one for one in columns if not one.nested and not is_other(one.name) and (one.is_score or one.is_label)]
    if not is_pair:
        golds = [one for one in golds if one.is_label or one.is_binary]
    named = [one for one in golds if is_pair and one.key in NUMBERED and one.is_mostly_number]
    near = [one for one in golds if not (is_pair and is_far(one.name))]
    clear = named if is_pair and header and not given.has_range else [one for one in near if _is_clear(one, given)]
    if given.members:
        golds = near = clear
    if golds and not near:
        raise _far_gold(path, golds[0], members)
    if len(near) > 1:
        raise _many_gold(path, near)
    if near and near != clear:
        raise _ambiguous(path, _gold_readings(facts, members, near[0]))
    return _gold_of(near[0], is_pair=is_pair) if near else _Roles(())


def _is_clear(one: ColumnFacts, given: Given) -> bool:
    """Whether a column can hardly be anything but the gold: 0 and 1, classes in words, fractions of a usual range."""
    if one.key in FIELDS:
        return False
    if one.is_label or one.is_binary or given.has_range or not one.numbers:
        return True
    return not one.is_whole and any(low <= one.low and one.high <= high for low, high in RANGES)


def _gold_of(one: ColumnFacts, *, is_pair: bool = True) -> _Roles:
    return _Roles((), label=one.name) if one.is_label or not is_pair else _Roles((), score=one.name)


def _gold_readings(facts: Mapping[str, ColumnFacts], members: Sequence[str], one: ColumnFacts) -> list[_Roles]:
    """Return a pair with its gold, alone, and a text of it with its label: as far as each fits."""
    gold = _gold_of(one)
    readings = [_Roles(tuple(members), gold.score, gold.label), _Roles(tuple(members))]
    if gold.score is not None and one.may_be_class and not one.is_binary:
        readings.insert(1, _Roles(tuple(members), label=one.name))
    return readings + ([] if find_pairs(members) else _single_readings(facts, members, gold))


def _single_readings(
    facts: Mapping[str, ColumnFacts], members: Sequence[str], gold: _Roles, columns: Sequence[ColumnFacts] = ()
) -> list[_Roles]:
    """Return the longest text with its label: the gold, if it may be one, or the only other column that may be."""
    others = [one.name for one in columns if one.name not in members and not one.nested and not is_other(one.name)]
    names = [name for name in (gold.label, gold.score) if name is not None] or others
    labels = [name for name in names if name in facts and facts[name].may_be_class]
    if len(labels) != 1:
        return []
    sizes = {member: facts[member].words / max(facts[member].filled, 1) for member in members}
    text = max(members, key=lambda member: (normalized(member) not in HEADINGS, sizes[member]))
    return [_Roles((text,), label=labels[0])]


def _check_single(path: Path, facts: Mapping[str, ColumnFacts], members: tuple[str, ...], gold: _Roles) -> _Roles:
    """Return a text and its class: the label may be binary, and is the score if it was found by its name."""
    named = [name for name in (gold.label, gold.score) if name is not None]
    if gold.label is None and not any(facts[name].is_binary or facts[name].is_label for name in named if name in facts):
        raise _no_pair(path, facts, members)
    return _Roles(members, label=named[0])


def _check_document(path: Path, facts: Mapping[str, ColumnFacts], members: Sequence[str], gold: _Roles) -> None:
    """Refuse two columns whose names make no pair if they may be parts of a document that has a class."""
    name = gold.label or gold.score or ""
    if len(members) != _PAIR or find_pairs(members) or is_of_pairs(name):
        return
    if singles := _single_readings(facts, members, gold):
        raise _ambiguous(path, [_Roles(tuple(members), gold.score, gold.label), *singles])


# Errors


def _no_pair(path: Path, facts: Mapping[str, ColumnFacts], texts: Sequence[str]) -> ValueError:
    nested = [one for one in facts.values() if one.nested]
    if nested and len(texts) < _PAIR:
        return ValueError(Errors.TABLE_NESTED.format(path=path, line=nested[0].nested, column=nested[0].name))
    found = ", ".join(texts) or "none"
    return ValueError(
        f"Cannot tell which columns of {path} are the texts: those of several words are {found}, of "
        f"{', '.join(facts)}. Name two, or three of triplets: --members first,second. Of a text and its class "
        "name both: --members text --label category."
    )


def _many_gold(path: Path, found: Sequence[ColumnFacts]) -> ValueError:
    labels = [one.name for one in found if one.is_label]
    scores = [one.name for one in found if not one.is_label]
    named = {"scores": ", ".join(scores) or "none", "labels": ", ".join(labels) or "none"}
    options = [f"--score {_quoted(name)}" for name in scores] + [f"--label {_quoted(name)}" for name in labels]
    return ValueError(
        (
            "Cannot tell which column of {path} is the gold: numbers are in {scores}; labels in {labels}. Name "
            "one: {options}."
        ).format(path=path, **named, options=" or ".join(options))
    )


def _far_gold(path: Path, one: ColumnFacts, members: Sequence[str]) -> ValueError:
    options = f"--members {_quoted(','.join(members))}", f"--score {_quoted(one.name)}"
    named = dict(zip(("alone", "gold"), options, strict=True))
    return ValueError(
        (
            "By its name the column '{column}' of {path} is larger the less alike texts are, so it is no score. "
            "Leave it out with {alone}, or give {gold} if larger is more alike."
        ).format(path=path, column=one.name, **named)
    )


def _ambiguous(path: Path, readings: Sequence[_Roles]) -> ValueError:
    listed = "\n".join(f"  {reading.options}" for reading in readings)
    return ValueError(f"{path} can be read in {len(readings)} ways. Give the options of the right one:\n{listed}")


def _quoted(names: str) -> str:
    """Return names as a shell takes them."""
    return names if names.replace(",", "").replace("_", "").replace("-", "").isalnum() else f'"{names}"'
