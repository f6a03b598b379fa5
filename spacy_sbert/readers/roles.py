"""Which columns of a table are the texts, and which is the gold: by options, then by names, then by content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .column_facts import ColumnFacts
from .column_names import (
    BODIES,
    FIELDS,
    HEADINGS,
    LISTED,
    POSITIVES_ALONE,
    TIERS,
    find_pairs,
    find_series,
    find_triplets,
    is_other,
    is_series,
    normalized,
)
from .errors import Errors

SINGLE, PAIR, TRIPLET = 1, 2, 3
RANGES = ((0.0, 1.0), (1.0, 5.0), (0.0, 5.0), (-1.0, 1.0), (1.0, 10.0), (0.0, 10.0), (0.0, 100.0))
SHOWN = 3  # triplets that an error shows
ALIKE = 0.5  # of the words of the longest texts, which those of a triplet without names have at least


@dataclass(frozen=True)
class Roles:
    """The columns of the texts and of the gold, of which there may be none."""

    members: tuple[str, ...]
    score: str | None = None
    label: str | None = None

    @property
    def options(self) -> str:
        """The options that name these columns, and what is read then."""
        gold = {"--score": self.score, "--label": self.label}
        named = " ".join(f"{option} {_quoted(name)}" for option, name in gold.items() if name is not None)
        what = {SINGLE: "texts", PAIR: "pairs", TRIPLET: "triplets"}[len(self.members)]
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


def find_roles(path: Path, facts: Mapping[str, ColumnFacts], given: Given, *, header: bool) -> Roles:
    """Find out which columns hold what.

    path (Path): of the table, for errors. facts (dict): what is known of each column.
    given (Given): the columns that options name. header (bool): whether the columns have names.
    RETURNS (Roles): one, two or three columns of texts; one of gold, or none.
    RAISES (ValueError): if the columns cannot be told apart: with the readings that fit, and the options for each.
    """
    _check_nested(path, facts, given)
    others = [one for name, one in facts.items() if name not in (*given.members, given.score, given.label)]
    gold = Roles((), given.score, given.label)
    if given.score is None and given.label is None and len(given.members) < TRIPLET:
        gold = _named_gold(path, others, given, facts)
    left = [one for one in others if one.name not in (gold.score, gold.label)]
    members = given.members or _find_members(path, facts, left, gold, header=header)
    if len(members) > TRIPLET:
        raise _no_pair(path, facts, members)
    if len(members) == TRIPLET:
        return Roles(members, given.score, given.label)
    if gold.score is None and gold.label is None:
        gold = _other_gold(path, [one for one in left if one.name not in members], members, given)
    if len(members) == SINGLE:
        return _check_single(path, facts, members, gold)
    found = Roles(members, gold.score, gold.label)
    if found.label is not None and not given.members and given.label is None:
        _check_document(path, found)
    return found


def _check_nested(path: Path, facts: Mapping[str, ColumnFacts], given: Given) -> None:
    """RAISES (ValueError): if a column that was named, or that must be a text by its name, holds lists or objects."""
    named = {*given.members, given.score, given.label}
    for one in facts.values():
        if one.nested and (one.name in named or (not given.members and one.key in LISTED)):
            raise ValueError(Errors.TABLE_NESTED.format(path=path, line=one.nested, column=one.name))


# Texts


def _find_members(
    path: Path, facts: Mapping[str, ColumnFacts], columns: Sequence[ColumnFacts], gold: Roles, *, header: bool
) -> tuple[str, ...]:
    worded = [one for one in columns if one.has_words]
    names = [one.name for one in worded]
    triplets = find_triplets(names) if header else []
    if len(triplets) > 1:
        raise _ambiguous(path, [*(Roles(triplet) for triplet in triplets[:SHOWN]), Roles(triplets[0][:PAIR])])
    if triplets:
        return triplets[0]
    pairs = find_pairs(names) if header else []
    pairs = [pair for pair in pairs if all(facts[name].is_text for name in pair)] or pairs
    if len(pairs) > 1:
        raise _ambiguous(path, [Roles(pair, gold.score, gold.label) for pair in pairs])
    if pairs:
        return pairs[0]
    series = find_series(names) if header else ()
    texts = [one for one in worded if one.is_text and (one.name in series if series else not one.repeats_values)]
    if len(texts) < PAIR:
        texts = _fill(path, texts, worded, gold)
    found = tuple(one.name for one in texts)
    if len(texts) == TRIPLET:
        short, *_, long = sorted(one.words / max(one.filled, 1) for one in texts)
        is_alike = (is_series(found) or not header) and short >= ALIKE * long
        if gold.score is not None or gold.label is not None or not is_alike:
            raise _ambiguous(path, [Roles(found[:PAIR], gold.score, gold.label), Roles(found)])
    if not found or len(found) > TRIPLET:
        raise _no_pair(path, facts, found)
    return found


def _fill(path: Path, texts: Sequence[ColumnFacts], worded: Sequence[ColumnFacts], gold: Roles) -> list[ColumnFacts]:
    """The texts of a table that has fewer than two columns of different texts of several words.

    Texts may come several times each, or be single words.
    """
    spaced = [one for one in worded if one.is_text]  # texts, and texts of which each comes several times
    words = [one for one in worded if not one.is_text and not one.is_label]
    if len(spaced) == PAIR and texts and gold.score is None:  # what repeats may be the label
        other = next(one for one in spaced if one not in texts)
        single = Roles((texts[0].name,), label=gold.label or other.name)
        raise _ambiguous(path, [Roles(tuple(one.name for one in spaced), label=gold.label), single])
    if gold.score is not None and not spaced and len(words) < PAIR:
        words = [one for one in worded if not is_other(one.name)]
    if len(spaced) == SINGLE and len(words) == SINGLE and gold.score is not None:
        return [one for one in worded if one in spaced or one in words]
    return spaced or (words if len(words) <= PAIR else [])


# Gold


def _named_gold(path: Path, columns: Sequence[ColumnFacts], given: Given, facts: Mapping[str, ColumnFacts]) -> Roles:
    """The gold by its name: of the first tier of names that has one. A category or the like is of single texts."""
    for tier in TIERS:
        if tier is FIELDS and (len(given.members) == PAIR or (not given.members and _has_pair(facts))):
            break
        found = [one for one in columns if one.key in tier and not one.nested and (one.is_score or one.is_label)]
        if len(found) > 1:
            raise _many_gold(path, found)
        if found:
            return _gold_of(found[0])
    return Roles(())


def _has_pair(facts: Mapping[str, ColumnFacts]) -> bool:
    """Whether there may be two texts, so that a category belongs to a pair, if to anything."""
    texts = [one for one in facts.values() if one.is_text and one.key not in FIELDS]
    return len(texts) > 1 or bool(find_pairs([one.name for one in facts.values() if one.has_words]))


def _other_gold(path: Path, columns: Sequence[ColumnFacts], members: Sequence[str], given: Given) -> Roles:
    """The gold by its content, if one column may be it and the table says no more.

    Where options name the texts, columns in doubt are left out.
    """
    is_pair = len(members) == PAIR
    if is_pair and tuple(map(normalized, members)) in POSITIVES_ALONE:
        return Roles(())
    golds = [one for one in columns if not one.nested and not is_other(one.name) and (one.is_score or one.is_label)]
    if not is_pair:
        golds = [one for one in golds if one.is_label or one.is_binary]
    clear = [one for one in golds if _is_clear(one, given)]
    if given.members:
        golds = clear
    if len(golds) > 1:
        raise _many_gold(path, golds)
    if golds and golds != clear:
        raise _ambiguous(path, [_with(members, golds[0]), Roles(tuple(members))])
    return _gold_of(golds[0], is_pair=is_pair) if golds else Roles(())


def _is_clear(one: ColumnFacts, given: Given) -> bool:
    """Whether a column can hardly be anything but the gold: 0 and 1, classes in words, fractions of a usual range."""
    if one.key in FIELDS:
        return False
    if one.is_label or one.is_binary or given.has_range or not one.numbers:
        return True
    return not one.is_whole and any(low <= one.low and one.high <= high for low, high in RANGES)


def _gold_of(one: ColumnFacts, *, is_pair: bool = True) -> Roles:
    return Roles((), label=one.name) if one.is_label or not is_pair else Roles((), score=one.name)


def _with(members: Sequence[str], one: ColumnFacts) -> Roles:
    gold = _gold_of(one)
    return Roles(tuple(members), gold.score, gold.label)


def _check_single(path: Path, facts: Mapping[str, ColumnFacts], members: tuple[str, ...], gold: Roles) -> Roles:
    """A text and its class: the label may be binary, and is the score if it was found by its name."""
    named = [name for name in (gold.label, gold.score) if name is not None]
    if gold.label is None and not any(facts[name].is_binary or facts[name].is_label for name in named if name in facts):
        raise _no_pair(path, facts, members)
    return Roles(members, label=named[0])


def _check_document(path: Path, found: Roles) -> None:
    """RAISES (ValueError): if a pair with a label may be the title and the text of one document, which has a class."""
    heading, body = sorted(found.members, key=lambda name: normalized(name) not in HEADINGS)
    if normalized(heading) in HEADINGS and normalized(body) in BODIES:
        raise _ambiguous(path, [found, Roles((body,), label=found.label)])


# Errors


def _no_pair(path: Path, facts: Mapping[str, ColumnFacts], texts: Sequence[str]) -> ValueError:
    nested = [one for one in facts.values() if one.nested]
    if nested and len(texts) < PAIR:
        return ValueError(Errors.TABLE_NESTED.format(path=path, line=nested[0].nested, column=nested[0].name))
    found = ", ".join(texts) or "none"
    return ValueError(Errors.TABLE_NO_PAIR.format(path=path, given=found, columns=", ".join(facts)))


def _many_gold(path: Path, found: Sequence[ColumnFacts]) -> ValueError:
    labels = [one.name for one in found if one.is_label]
    scores = [one.name for one in found if not one.is_label]
    named = {"scores": ", ".join(scores) or "none", "labels": ", ".join(labels) or "none"}
    options = [f"--score {_quoted(name)}" for name in scores] + [f"--label {_quoted(name)}" for name in labels]
    return ValueError(Errors.TABLE_MANY_GOLD.format(path=path, **named, options=" or ".join(options)))


def _ambiguous(path: Path, readings: Sequence[Roles]) -> ValueError:
    listed = "\n".join(f"  {reading.options}" for reading in readings)
    return ValueError(Errors.TABLE_AMBIGUOUS.format(path=path, count=len(readings), readings=listed))


def _quoted(names: str) -> str:
    """As a shell takes it."""
    return names if names.replace(",", "").replace("_", "").replace("-", "").isalnum() else f'"{names}"'
