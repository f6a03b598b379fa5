"""Triplets in the layout of the Wikipedia sections, sentences with their topic, and plain
sentences.
"""

import csv
import io
import random
from collections.abc import Iterator
from dataclasses import replace

from sample_scenes import TOPICS, Claim, Scene, all_scenes, random_claim, tell

Topics = dict[str, list[Scene]]


def scenes_by_topic(part: str) -> Topics:
    """The scenes of each topic that train and dev have in common."""
    scenes = all_scenes(part)
    return {topic: [scene for scene in scenes if scene.topic == topic] for topic in TOPICS}


def shuffled_topics(rng: random.Random, count: int) -> list[str]:
    """Each topic as often as any other."""
    topics = list(TOPICS) * (count // len(TOPICS))
    rng.shuffle(topics)
    return topics


def plain_claim(rng: random.Random, scenes: list[Scene]) -> Claim:
    """Claim that something is so, and not its opposite."""
    while True:
        claim = random_claim(rng, rng.choice(scenes), past=rng.random() < 0.5)
        if claim.stance == "yes":
            return claim


def triplet_texts(rng: random.Random, topics: Topics, topic: str) -> tuple[str, str, str]:
    """An anchor, a sentence that says the same or tells of the same topic, and one of another
    topic.
    """
    anchor = plain_claim(rng, topics[topic])
    positive = anchor if rng.random() < 0.5 else plain_claim(rng, topics[topic])
    negative = plain_claim(rng, topics[rng.choice([other for other in TOPICS if other != topic])])
    if (
        len(negative.who) == len(anchor.who) == 1
        and negative.scene.kind == anchor.scene.kind
        and rng.random() < 0.5
    ):
        # The same person must not be what gives the topic away
        negative = replace(negative, who=anchor.who)
    (what, first), (other_what, second), (_, third) = (
        tell(rng, claim) for claim in (anchor, positive, negative)
    )
    return triplet_texts(rng, topics, topic) if what == other_what else (first, second, third)


def triplet_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """A header and triplets, with the anchor's topic for the title; no sentence is used twice."""
    topics = scenes_by_topic(part)
    rows = [("Article Title", "Sentence1", "Sentence2", "Sentence3")]
    used: set[str] = set()
    for topic in shuffled_topics(rng, count):
        texts = triplet_texts(rng, topics, topic)
        while len({*texts} - used) < 3:
            texts = triplet_texts(rng, topics, topic)
        used |= {*texts}
        rows.append((topic.capitalize(), *texts))
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows(rows)
    yield from file.getvalue().splitlines()


def new_text(rng: random.Random, scenes: list[Scene], used: set[str]) -> str:
    """Tell something that was not told so far."""
    while True:
        text = tell(rng, random_claim(rng, rng.choice(scenes), past=rng.random() < 0.5))[1]
        if text not in used:
            used.add(text)
            return text


def topic_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """A header, and sentences with their topic."""
    topics, used = scenes_by_topic(part), set[str]()
    yield "text\tlabel"
    for topic in shuffled_topics(rng, count):
        yield f"{new_text(rng, topics[topic], used)}\t{topic}"


def text_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """Plain sentences of all scenes."""
    scenes, used = all_scenes(part), set[str]()
    for _ in range(count):
        yield new_text(rng, scenes, used)
