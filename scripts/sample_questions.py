"""Pairs of questions, half of them duplicates, in the layout of the Quora question pairs; and
duplicates alone.

A question asks whether something is so, who does it, where or when. A duplicate asks the same in
other words. The other pairs differ in the act (a near one, the opposite, another of the same or of
another topic), in who does it, in the detail, or in what they ask for.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sample_scenes import (
    PLURALS,
    TIMES,
    Claim,
    Scene,
    all_scenes,
    find_words,
    random_claim,
    set_detail,
)

CHANGES = ("near", "opposite", "who", "detail", "asks", "topic", "unrelated")
# How a place begins
WHERE = ("at ", "by ", "behind ", "in a ", "in the ", "on a ", "on the ")
SOMEONE = ("someone",)


@dataclass(frozen=True)
class Question:
    """What is asked of a claim."""

    claim: Claim
    # is, who, where or when
    asks: str


def allowed(claim: Claim) -> list[str]:
    """What can be asked of a claim."""
    asks = ["is", "who"]
    if claim.stance == "yes" and claim.who != SOMEONE:
        asks += ["where"] * all(place.startswith(WHERE) for place in claim.scene.places) + [
            "when"
        ] * claim.past
    return asks


def fit(claim: Claim, asks: str) -> Question:
    """Make the question, without the detail if that is what is asked for."""
    known = {"where": claim.scene.places, "when": TIMES}.get(asks, ())
    claim = replace(claim, detail="") if claim.detail in known else claim
    if asks == "who" and claim.scene.kind != "pair":
        claim = replace(claim, who=SOMEONE)
    return Question(claim, asks)


def random_question(rng: random.Random, scene: Scene) -> Question:
    """Ask something of a random claim that is not a negation."""
    claim = random_claim(rng, scene, past=rng.random() < 0.5)
    if claim.stance == "not":
        claim = set_detail(rng, replace(claim, stance="yes"))
    return fit(claim, rng.choice(allowed(claim)))


def change(rng: random.Random, question: Question, scenes: list[Scene]) -> Question | None:
    """Make a question that asks something else, or None where the change does not suit."""
    claim, scene, goal = question.claim, question.claim.scene, rng.choice(CHANGES)
    if goal in ("topic", "unrelated"):
        others = [
            other
            for other in scenes
            if other != scene and (other.topic == scene.topic) == (goal == "topic")
        ]
        return random_question(rng, rng.choice(others)) if others else None
    if goal == "asks":
        others_asked = [asks for asks in allowed(claim) if asks != question.asks]
        return (
            fit(claim, rng.choice(others_asked))
            if question.asks != "who" and others_asked
            else None
        )
    if goal == "near" and claim.stance == "yes" and scene.kind != "pair":
        return fit(replace(claim, variant=rng.choice(scene.near)), question.asks)
    if (
        goal == "opposite"
        and claim.stance == "yes"
        and scene.opposite
        and question.asks in ("is", "who")
    ):
        return fit(
            replace(claim, stance="no", detail=claim.detail if claim.detail in TIMES else ""),
            question.asks,
        )
    if goal == "who" and scene.kind == "pair":
        return fit(replace(claim, who=claim.who[::-1]), question.asks)
    if goal == "who" and question.asks != "who":
        other = random_claim(rng, scene, claim.past)
        return (
            fit(replace(claim, who=other.who), question.asks)
            if SOMEONE not in (claim.who, other.who)
            else None
        )
    changed = fit(set_detail(rng, claim), question.asks)
    return changed if goal == "detail" and claim.detail and changed.claim.detail else None


def ask(rng: random.Random, question: Question) -> tuple[str, str]:
    """Put a question into words. RETURNS (tuple): what is done, and the question."""
    claim, asks = question.claim, question.asks
    # Who does it, not to whom it is done
    if asks == "who" and claim.scene.kind == "pair":
        subject, what = claim.who[0], rng.choice(claim.scene.ways).format(claim.who[1])
    else:
        subject, what = find_words(rng, claim)
    plural = claim.who[0] in PLURALS
    verb = ("is", "are", "was", "were")[2 * claim.past + plural]
    start = {"is": f"{verb} {subject}", "who": f"who {verb}"}.get(asks, f"{asks} {verb} {subject}")
    text = f"{start} {what} {claim.detail}".rstrip() + "?"
    return what, text[0].upper() + text[1:]


def draw(rng: random.Random, scenes: list[Scene], duplicate: bool) -> tuple[Question, str, str]:
    """Draw a question and put it into words, with a duplicate or with another question."""
    while True:
        question = random_question(rng, rng.choice(scenes))
        other = question if duplicate else change(rng, question, scenes)
        if other is None or (other == question and not duplicate):
            continue
        (what, first), (other_what, second) = ask(rng, question), ask(rng, other)
        if first != second and not (duplicate and what == other_what):
            return question, first, second


def meaning(question: Question) -> Question:
    """The question without what it does not tell: who does it to another, if that is what is asked
    for.
    """
    claim = question.claim
    hidden = question.asks == "who" and claim.scene.kind == "pair"
    return replace(question, claim=replace(claim, who=claim.who[1:])) if hidden else question


def ask_pairs(
    rng: random.Random, part: str, labels: list[bool], unique: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield pairs of questions; none occurs twice, and if unique, neither does a meaning."""
    scenes = [scene for scene in all_scenes(part) if scene.kind != "fact"]
    used: set[Question | str] = set()
    for label in labels:
        while True:
            question, first, second = draw(rng, scenes, label)
            if not used & {first, second} and not (unique and meaning(question) in used):
                break
        used |= {meaning(question), first, second}
        yield first, second, label


def question_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """A header and rows as in the Quora question pairs; half of the pairs are duplicates."""
    labels = [True, False] * (count // 2)
    rng.shuffle(labels)
    yield "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate"
    for row, (first, second, label) in enumerate(ask_pairs(rng, part, labels, unique=False)):
        yield f"{row}\t{2 * row + 1}\t{2 * row + 2}\t{first}\t{second}\t{int(label)}"


def duplicate_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """A header and duplicates, each of another meaning: in a batch, any other question is a true
    negative.
    """
    yield "question1\tquestion2"
    for first, second, _ in ask_pairs(rng, part, [True] * count, unique=True):
        yield f"{first}\t{second}"
