"""Pairs of a premise and a hypothesis, with the fields of SNLI.

Entailment: the hypothesis says the same in other words, leaves the detail out or says "someone" for
    who it is.
Contradiction: it says the opposite or a negation, another number, or swaps who does it to whom.
    Neutral: it tells of
another act of the same topic at another time, adds a detail, or says who "someone" is. No
consensus, "-": a near act.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import replace

from sample_scenes import MINORS, TIMES, Claim, Scene, all_scenes, random_claim, set_detail, tell

LABELS = ("entailment", "contradiction", "neutral")
UNDECIDED = {"train": 3, "dev": 0}
# To do it to one another at the same time is nothing odd
MUTUAL = ("help", "photo")
SOMEONE = ("someone",)
# Premise and hypothesis; None if the claim does not suit
Relation = tuple[Claim, Claim] | None


def entail(rng: random.Random, claim: Claim, scenes: list[Scene]) -> Relation:
    """The hypothesis says the same or less."""
    way = rng.choice(("words", "words", "detail", "who"))
    if way == "words":
        return claim, claim
    # What is denied of one place or person may hold elsewhere
    if claim.stance == "not":
        return None
    if way == "detail":
        return (claim, replace(claim, detail="")) if claim.detail else None
    return (
        (claim, replace(claim, who=SOMEONE))
        if len(claim.who) == 1 and claim.who != SOMEONE
        else None
    )


def contradict(rng: random.Random, claim: Claim, scenes: list[Scene]) -> Relation:
    """One of the two says that the other is not so."""
    scene = claim.scene
    if scene.kind == "fact" and rng.random() < 0.5:
        return claim, replace(
            claim, variant=rng.choice([number for number in scene.near if number != claim.variant])
        )
    if (
        scene.kind == "pair"
        and scene.topic not in MUTUAL
        and claim.stance == "yes"
        and rng.random() < 0.5
    ):
        return claim, replace(claim, who=claim.who[::-1])
    stances = ["no"] * bool(scene.opposite and claim.who != SOMEONE) + ["not"] * bool(claim.who)
    if claim.stance != "yes" or not stances:
        return None
    detail = claim.detail if claim.detail in TIMES and rng.random() < 0.5 else ""
    other = replace(claim, stance=rng.choice(stances), detail=detail)
    # The wider denial comes second: what it denies includes the detail
    if not detail and claim.detail:
        return claim, other
    return (claim, other) if rng.random() < 0.5 else (other, claim)


def neither(rng: random.Random, claim: Claim, scenes: list[Scene]) -> Relation:
    """The hypothesis may be so or not."""
    way = rng.choice(("topic", "detail", "who"))
    if way == "topic":
        others = [
            scene for scene in scenes if scene != claim.scene and scene.topic == claim.scene.topic
        ]
        return another_act(rng, claim, rng.choice(others)) if others else None
    if way == "detail":
        other = set_detail(rng, claim)
        return (
            (claim, other) if claim.stance == "yes" and not claim.detail and other.detail else None
        )
    someone = replace(claim, who=SOMEONE)
    return (
        (someone, claim)
        if len(claim.who) == 1 and claim.who != SOMEONE and claim.stance != "not"
        else None
    )


def another_act(rng: random.Random, claim: Claim, scene: Scene) -> Relation:
    """Let the same person, where the scene suits, do something else at another time."""
    other = replace(random_claim(rng, scene, past=True), stance="yes", detail="")
    if other.who:
        other = replace(other, detail=rng.choice([time for time in TIMES if time != claim.detail]))
    if len(claim.who) == len(other.who) == 1 and (
        scene.kind == "all" or claim.who[0] not in MINORS
    ):
        other = replace(other, who=claim.who)
    return claim, other


def disagree(rng: random.Random, claim: Claim, scenes: list[Scene]) -> Relation:
    """The hypothesis is nearly the same: some take it for the same, others do not."""
    suits = claim.stance == "yes" and len(claim.who) == 1
    return (claim, replace(claim, variant=rng.choice(claim.scene.near))) if suits else None


MAKERS = {"entailment": entail, "contradiction": contradict, "neutral": neither, "-": disagree}


def nli_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """As many pairs of each label, and in train a few without a consensus besides; no sentence is
    used twice.
    """
    scenes = all_scenes(part)
    labels = list(LABELS) * (count // len(LABELS)) + ["-"] * UNDECIDED[part]
    rng.shuffle(labels)
    used: set[str] = set()
    for label in labels:
        while True:
            relation = MAKERS[label](
                rng, random_claim(rng, rng.choice(scenes), past=rng.random() < 0.5), scenes
            )
            if relation is None:
                continue
            (what, premise), (other_what, hypothesis) = (
                tell(rng, relation[0]),
                tell(rng, relation[1]),
            )
            # The same must be in other words
            repeated = relation[0] == relation[1] and what == other_what
            if not repeated and premise != hypothesis and not used & {premise, hypothesis}:
                break
        used |= {premise, hypothesis}
        yield json.dumps(
            {"gold_label": label, "sentence1": premise, "sentence2": hypothesis}, ensure_ascii=False
        )
