"""Graded pairs, in the layout of the STS benchmark.

A sentence says who does what, maybe with one detail (a place or a time), or states one fact with a
number in it. All words were written for this project. The grade follows from what the two sentences
mean, not from the words they share:

    what the two sentences tell                                    base   same who   same detail
    the same, in other words                                        2.8     +1.6        +0.6
    nearly the same, with another object or number                  1.8     +0.8        +0.4
    the same, but who does it to whom is swapped                    1.6     +0.4        +0.2
    the opposite or its negation, or another act of the same topic  1.0     +0.4        +0.4 *
    another topic                                                   0.0     +0.6        +0.3 *

Half of it for who, if one sentence says only "someone" (save for negations and in the last row);
half of it for the detail, if only one sentence has one (save in the rows with *). Where neither
sentence has any, it counts as the same, but not in the rows with *. So 5 is the same meaning, 4
differs in a detail, 3 in something important, 2 and 1 have the topic in common, 0 has nothing.
Train and dev share people, places, times and topics, but no act, fact or sentence.
"""

import random
from collections.abc import Iterator
from dataclasses import replace

from sample_scenes import (
    DEV,
    NAMES,
    TRAIN,
    Claim,
    Scene,
    random_claim,
    read_scenes,
    set_detail,
    tell,
)

# Grades from 0, 1, 2, 3 and 4 on, each with the same number of pairs
BANDS = 5
# base, same who, same detail
RULE = {
    "same": (2.8, 1.6, 0.6),
    "near": (1.8, 0.8, 0.4),
    "swapped": (1.6, 0.4, 0.2),
    "opposite": (1.0, 0.4, 0.4),
    "topic": (1.0, 0.4, 0.4),
    "unrelated": (0.0, 0.6, 0.3),
}


def partner(rng: random.Random, claim: Claim, scenes: list[Scene]) -> Claim:
    """Make a claim to pair with another: alike, or changed in one or more respects."""
    scene, goal = claim.scene, rng.choice(tuple(RULE))
    others = [
        other
        for other in scenes
        if other != scene and (other.topic == scene.topic) == (goal == "topic")
    ]
    if goal in ("topic", "unrelated") and others:
        other = random_claim(rng, rng.choice(others), claim.past)
        return (
            replace(other, who=claim.who)
            if other.scene.kind == scene.kind and rng.random() < 0.6
            else other
        )
    stance, variant = claim.stance, claim.variant
    if goal == "opposite":
        counters = ["no"] * bool(scene.opposite) + ["not"] * bool(claim.who)
        stance = rng.choice(counters) if stance == "yes" else "yes"
    if goal == "near" and (scene.kind == "fact" or (stance == "yes" and scene.kind != "pair")):
        variant = rng.choice(scene.near)
    who = claim.who[::-1] if goal == "swapped" else claim.who
    if goal != "swapped" and rng.random() < 0.4:
        who = random_claim(rng, scene, claim.past).who
        if scene.kind == "pair":
            who = (claim.who[0], rng.choice([name for name in NAMES if name not in claim.who]))
    other = Claim(scene, claim.past, who, claim.detail, stance, variant)
    suits = stance == "yes" or claim.detail not in scene.places
    return other if suits and rng.random() < 0.5 else set_detail(rng, other)


def relate(first: Claim, second: Claim) -> str:
    """Name the row of the rule that holds for two claims."""
    if first.scene.topic != second.scene.topic:
        return "unrelated"
    if first.scene != second.scene:
        return "topic"
    if first.stance != second.stance:
        return "opposite"
    if len(first.who) == 2 and first.who == second.who[::-1]:
        return "swapped"
    return "same" if first.variant == second.variant else "near"


def grade(first: Claim, second: Claim) -> float:
    """Grade two claims by the rule in the module's docstring."""
    relation = relate(first, second)
    base, same_who, same_detail = RULE[relation]
    loose = relation in ("opposite", "topic", "unrelated")
    who = detail = 0.0
    if first.who == second.who or relation == "swapped":
        who = float(bool(first.who) or not loose)
    elif ("someone",) in (first.who, second.who) and "not" not in (first.stance, second.stance):
        who = 0.5 * (relation != "unrelated")
    if first.detail == second.detail:
        detail = float(bool(first.detail) or not loose)
    elif "" in (first.detail, second.detail) and not loose:
        detail = 0.5
    return round(base + same_who * who + same_detail * detail, 3)


def make_pairs(rng: random.Random, scenes: list[Scene], count: int) -> list[tuple[float, str, str]]:
    """Draw pairs until each band of grades is full; no sentence is used twice."""
    pairs: list[tuple[float, str, str]] = []
    used: set[str] = set()
    while len(pairs) < count:
        claim = random_claim(rng, rng.choice(scenes), past=rng.random() < 0.5)
        other = partner(rng, claim, scenes)
        score, (what, first), (other_what, second) = (
            grade(claim, other),
            tell(rng, claim),
            tell(rng, other),
        )
        band = min(int(score), BANDS - 1)
        full = sum(min(int(pair[0]), BANDS - 1) == band for pair in pairs) >= count / BANDS
        # The same must be in other words
        repeated = relate(claim, other) == "same" and what == other_what
        if not full and not repeated and first != second and not used & {first, second}:
            pairs.append((score, first, second) if rng.random() < 0.5 else (score, second, first))
            used |= {first, second}
    return pairs


def pair_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """Genre, file, year, id, score and the two sentences, separated by tabs."""
    pairs = make_pairs(rng, read_scenes({"train": TRAIN, "dev": DEV}[part]), count)
    for number, (score, *texts) in enumerate(pairs, start=1):
        yield "\t".join(("sample", part, "2026", f"{number:04}", f"{score:.3f}", *texts))
