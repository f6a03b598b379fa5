"""Write a small sample of graded English sentence pairs in the layout of the STS benchmark.

Each sentence says who does what, with at most one detail (a place or a time), or states one fact with a number in it.
All words were written for this project. The grade follows from what the two sentences share, not from their words:

    what they tell                                             base   same who   same detail
    the same thing, mostly in other words                       2.8     +1.6        +0.6
    nearly the same, another object or number                   1.8     +0.8        +0.4
    the same, but who does it to whom is swapped                1.6     +0.4        +0.2
    the opposite or the negation, or another act of the topic   1.0     +0.4        +0.4 *
    another topic                                               0.0     +0.6        +0.3 *

Half of `same who` is added where one sentence says "someone" or "nobody" only, half of `same detail` where only one
sentence names a detail. Without who or detail in either sentence they count as the same; in the rows marked * only
what both name counts. So 5 is the same meaning, 4 differs in a detail, 3 in something important, 2 and 1 share the
topic, 0 shares nothing. Train and dev share people, places, times and topics, but no act, fact or sentence.
"""

import argparse
import random
import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

SIZES = {"train": 480, "dev": 160}
BANDS = 5  # grades 0-1, 1-2, ... 4-5, each with the same number of pairs
RULE = {  # base, same who, same detail
    "same": (2.8, 1.6, 0.6),
    "near": (1.8, 0.8, 0.4),
    "swapped": (1.6, 0.4, 0.2),
    "opposite": (1.0, 0.4, 0.4),
    "topic": (1.0, 0.4, 0.4),
    "unrelated": (0.0, 0.6, 0.3),
}
LOOSE = ("opposite", "topic", "unrelated")
TIMES = ("yesterday", "on Sunday", "a week ago")
NAMES = ("Tom", "Lucy", "Mark", "Julia", "my brother", "our neighbour", "the teacher", "the postman")
SOMEONE = "someone"
PEOPLE = {  # the last form is the one that a negation takes
    "man": ("a man", "a guy", "the man"),
    "woman": ("a woman", "a lady", "the woman"),
    "neighbour": ("our neighbour", "the person next door", "our neighbour"),
    "grandfather": ("my grandfather", "my grandpa", "my grandfather"),
    SOMEONE: ("someone", "somebody", "a person"),
    "two men": ("two men", "a pair of men", "the two men"),
    "three women": ("three women", "a trio of women", "the three women"),
    "boy": ("a boy", "a young boy", "the boy"),
    "girl": ("a girl", "a little girl", "the girl"),
    "two girls": ("two girls", "a pair of girls", "the two girls"),
    "children": ("several children", "a group of kids", "the children"),
}
PLURALS = ("two men", "three women", "two girls", "children")
CHILDREN = ("boy", "girl", "two girls", "children")

# An entry: kind | ways to say it | near to it | ways to say the opposite | places. Kinds: all, adults or one adult may
# do it; fact, with numbers as what is near; pair, one does it to the other, with the passive ways as what is near.
TRAIN = """
# food
all | eating a meal / having a bite to eat / tucking into a plate of food | drinking a cup of tea / licking an ice cream
  | refusing to eat anything / going without food | in a small café / in the garden / at the kitchen table
adults | cooking dinner / preparing the evening meal / getting supper ready | baking a cake / making breakfast
  | too tired to cook dinner / too lazy to make supper | in the kitchen / at home
adults | washing the dishes / cleaning the plates / doing the washing-up | drying the glasses / wiping the table
  | leaving the dishes dirty / letting the dirty plates pile up | in the kitchen / after lunch
# music
all | playing the guitar / strumming a guitar | playing the piano / practising the violin
  | putting the guitar away / packing the guitar back into its case | on a stage / in the living room / on the street
all | singing a song / giving a vocal performance | humming a melody / reciting a poem
  | keeping silent / not making a sound | in a church / on a stage / at a birthday party
all | dancing / moving to the music / swaying to the beat | clapping to the music / marching to the music
  | refusing to dance / staying off the dance floor | at a wedding / in the living room / on the beach
# sport
all | swimming / taking a dip / having a swim | diving off a board / floating on an air mattress
  | staying out of the water / keeping dry | at the pool / at the beach / in the lake
all | playing football / kicking a ball around / having a game of soccer | playing tennis / playing basketball
  | sitting out the football match / taking no part in the football game | in the park / on the beach
all | running / jogging / out for a run | taking a slow walk / riding a horse
  | standing still / staying in one spot | in the park / along the river / on a country road
fact | Our team won by {} goals. / We beat the other side by {} goals. / Our players scored {} goals more than theirs.
  | two / three / four / six | Our team lost by {} goals. / The other side beat us by {} goals.
pair | teaching {} to swim / giving {} swimming lessons | learning to swim from {} / taking swimming lessons with {}
# home
adults | opening the window / letting in some fresh air through the window | opening the front door / cleaning the window
  | closing the window / pulling the window shut | in the bedroom / in the office
all | sleeping / taking a nap / dozing | yawning / lying down with a headache
  | lying awake / unable to sleep | on the sofa / on the train / in an armchair
adults | cleaning the house / tidying up the rooms / doing the housework | cleaning the car / painting the house
  | leaving the house in a mess / neglecting the housework | before the party / after breakfast
# travel
one | driving a car / at the wheel of a car / steering an automobile | driving a tractor / riding a motorbike
  | leaving the car in the garage / getting around without a car | in heavy rain / on a country road
adults | getting on the train / boarding the train / climbing aboard the train | getting on the bus / waiting for the train
  | getting off the train / stepping down from the train | at a small station / with two suitcases
adults | arriving in Paris / getting to the French capital | arriving in Rome / arriving in Berlin
  | leaving Paris / saying goodbye to the French capital | with a lot of luggage / with a guidebook
fact | The bus leaves in {} minutes. / There are {} minutes to go before the bus departs. / You have {} minutes to catch
  the bus. | two / ten / twenty / forty | The bus left {} minutes ago. / You missed the bus by {} minutes.
pair | driving {} to the station / giving {} a lift to the station | getting a lift to the station from {} / being driven
  to the station by {}
# reading and writing
all | reading a novel / absorbed in a long work of fiction | reading a newspaper / writing a novel
  | leaving the novel unread / putting the novel aside without reading it | in the library / on a park bench
all | writing a letter / putting a few lines on paper for a friend | writing a shopping list / sending a text message
  | tearing up a letter / ripping a letter to pieces | at the desk / in the library / by candlelight
pair | lending a book to {} / letting {} borrow a book | borrowing a book from {} / being lent a book by {}
# money
adults | buying new clothes / shopping for something to wear | buying fresh vegetables / buying furniture
  | giving old clothes away / getting rid of old clothes | in town / at the shopping centre / at the market
adults | paying the bill / handing over the money for the meal | asking for the bill / leaving a tip for the waiter
  | leaving without paying / refusing to pay | at the restaurant / after lunch
adults | saving money / putting some cash aside for later | earning money / counting money
  | spending a lot of money / wasting cash on all sorts of things | at home / during the holidays
fact | The ticket costs {} pounds. / You have to pay {} pounds to get in. / Admission is {} pounds.
  | five / twelve / thirty / eighty | The ticket is free. / You do not have to pay to get in. / Admission is free.
fact | Bread went up by {} cents. / Bread is {} cents more expensive than before. / You now pay {} cents more for a loaf.
  | five / ten / thirty / fifty | Bread went down by {} cents. / Bread is {} cents cheaper than before.
# animals and plants
all | watering the flowers / giving the plants something to drink | picking flowers / planting flowers
  | letting the flowers dry out / leaving the plants without water | in the garden / behind the house
all | feeding the dog / giving the dog something to eat / filling the dog's bowl | feeding the cat / brushing the dog
  | leaving the dog hungry / taking the food away from the dog | in the kitchen / at the farm
all | walking the dog / taking the dog out | playing with the dog / looking for the dog
  | keeping the dog indoors / leaving the dog at home | in the park / on the beach / in the forest
# people
pair | helping {} / giving {} a hand | getting help from {} / being helped by {}
pair | chasing {} / running after {} | being chased by {} / running away from {}
pair | interviewing {} / asking {} a lot of questions | answering questions from {} / being interviewed by {}
fact | My sister has {} children. / My sister is the mother of {} kids. / There are {} kids in my sister's family.
  | two / three / five / six | My sister has no children. / My sister is childless. / There are no kids in her family.
# weather
fact | It will rain for {} days. / Wet weather is expected for {} days. / The forecast speaks of {} rainy days.
  | two / three / five / ten | It will stay dry for {} days. / No rain is expected for {} days.
"""
DEV = """
# food
all | peeling potatoes / taking the skins off potatoes | mashing potatoes / peeling oranges
  | leaving the skins on the potatoes / boiling the potatoes unpeeled | in the kitchen / at the campsite
adults | drinking coffee / enjoying a hot espresso | drinking orange juice / having a glass of milk
  | staying away from coffee / avoiding any drink with caffeine | in a small café / at the kitchen table
# music
all | playing the drums / beating out a rhythm on a drum kit | playing the flute / shaking a tambourine
  | leaving the drums alone / keeping away from the drum kit | in the garage / on a stage
all | listening to music / enjoying some songs on the radio | listening to the news / following a match on the radio
  | turning the music off / putting an end to the music | on the train / in the bedroom / at home
# sport
all | cycling / travelling by bike / getting around on two wheels | roller skating / travelling by bus
  | leaving the bike at home / getting around without a bike | along the river / on a country road
adults | climbing a mountain / making the ascent of a peak | climbing a ladder / climbing a tree
  | coming down from a mountain / descending from a peak | in Scotland / in bad weather
pair | beating {} at chess / winning a game of chess against {} | losing to {} at chess / being defeated by {} at chess
# home
all | turning on the lights / lighting up the room | changing a light bulb / turning on the television
  | turning off the lights / making the room dark | in the living room / in the office
adults | doing the laundry / washing clothes | ironing shirts / folding towels
  | letting the dirty laundry pile up / leaving the clothes unwashed | at home / at the campsite
# travel
adults | packing a suitcase / getting the luggage ready for the trip | carrying a suitcase / buying a suitcase
  | unpacking a suitcase / taking everything out of the luggage | in the hotel room / in a great hurry
adults | asking the way to the museum / trying to find out how to get to the museum | asking the way to the station
  / asking for directions to the hospital | explaining the way to the museum / giving a tourist directions to the museum
  | at a street corner / in the old town
fact | The village is {} kilometres from the sea. / From the village it is {} kilometres to the coast. / You have to go {}
  kilometres to get to the beach from the village. | two / five / thirty / ninety | The village is right by the sea.
  / You can step straight out of the village onto the beach.
# reading and writing
all | working at a computer / busy on a laptop | repairing a computer / buying a laptop
  | switching the computer off / shutting the laptop down | at the desk / in the library
all | studying for an exam / preparing for a big test | taking an exam / talking about an exam
  | doing nothing for the exam / not preparing for the test at all | in the library / at home
# money
adults | waiting in line / standing in a queue | filling a shopping basket / looking for a parking space
  | jumping the queue / pushing to the front of the line | at the bakery / at the post office
one | selling a house / putting a home on the market | selling a car / renting out a house
  | buying a house / purchasing a home | by the sea / in a small village
fact | My rent went up by {} euros. / I pay {} euros more for my flat than before. / My flat is now {} euros dearer.
  | ten / fifty / ninety / two hundred | My rent went down by {} euros. / I pay {} euros less for my flat than before.
pair | selling a bicycle to {} / letting {} have a bicycle for money | buying a bicycle from {} / being sold a bicycle by {}
# animals and plants
adults | planting a tree / putting a young tree into the ground | planting roses / trimming a tree
  | cutting down a tree / felling a tree | in the garden / behind the house
one | riding a horse / on horseback / sitting in the saddle | leading a horse / feeding a horse
  | falling off a horse / being thrown from the saddle | on the beach / at the farm
# people
pair | phoning {} / giving {} a ring | being phoned by {} / getting a call from {}
pair | photographing {} / taking a picture of {} | being photographed by {} / having a picture taken by {}
fact | My uncle has lost {} kilos. / My uncle weighs {} kilos less than before. / My uncle is {} kilos lighter now.
  | three / five / eight / twenty | My uncle has put on {} kilos. / My uncle is {} kilos heavier now.
"""


@dataclass(frozen=True)
class Scene:
    """Something to tell of, with its ways to be told; see the note on entries above."""

    topic: str
    kind: str
    ways: tuple[str, ...]
    near: tuple[str, ...]
    opposite: tuple[str, ...]
    places: tuple[str, ...]


@dataclass(frozen=True)
class Claim:
    """What a sentence means. stance: yes, no (the opposite) or not (negated); variant: a near act, or the number."""

    scene: Scene
    who: tuple[str, ...]
    past: bool
    detail: str = ""
    stance: str = "yes"
    variant: str = ""


def read_scenes(text: str) -> list[Scene]:
    """Read the entries of a block above; an indented line goes on with the entry before it."""
    scenes, topic = [], ""
    for line in text.strip().replace("\n  ", " ").splitlines():
        if line.startswith("# "):
            topic = line[2:]
            continue
        kind, *fields = [field.strip() for field in line.split("|")]
        ways, near, opposite, places = ([*(tuple(field.split(" / ")) for field in fields), (), ()])[:4]
        scenes.append(Scene(topic, kind, ways, near, opposite, places))
    return scenes


def random_who(rng: random.Random, scene: Scene) -> tuple[str, ...]:
    if scene.kind == "fact":
        return ()
    if scene.kind == "pair":
        return tuple(rng.sample(NAMES, 2))
    barred = {"all": (), "adults": CHILDREN, "one": CHILDREN + PLURALS}[scene.kind]
    return (rng.choice([who for who in PEOPLE if who not in barred]),)


def random_claim(rng: random.Random, scene: Scene, past: bool) -> Claim:
    places = scene.places + (TIMES if past and scene.kind != "fact" else ())
    detail = rng.choice(places) if places and rng.random() < 0.6 else ""
    variant = rng.choice(scene.near) if scene.kind == "fact" else ""
    return Claim(scene, random_who(rng, scene), past, detail, variant=variant)


def partner(rng: random.Random, claim: Claim, scenes: list[Scene]) -> Claim:
    """Make the claim to pair with another: the same, then changed in one or more respects."""
    scene, goal = claim.scene, rng.choice(tuple(RULE))
    if goal in ("topic", "unrelated"):
        others = [other for other in scenes if other != scene and (other.topic == scene.topic) == (goal == "topic")]
        scene = rng.choice(others or [scene])
    other = random_claim(rng, scene, claim.past)
    if rng.random() < 0.6 and (claim.detail in ("", *scene.places) or (claim.detail in TIMES and scene.kind != "fact")):
        other = replace(other, detail=claim.detail)
    if scene.kind == claim.scene.kind and rng.random() < 0.6:
        other = replace(other, who=claim.who)
    if goal == "near" and scene.kind not in ("fact", "pair"):
        other = replace(other, variant=rng.choice(scene.near))
    elif goal == "swapped":
        other = replace(other, who=claim.who[::-1])
    elif goal == "opposite":
        stances = ["no"] * bool(scene.opposite) + ["not"] * (scene.kind != "fact")
        other = replace(other, stance=rng.choice(stances))
    if goal in ("same", "opposite"):
        other = replace(other, variant=claim.variant)
    if other.stance != "yes" and other.detail in scene.places:
        other = replace(other, detail="")  # places suit the act, hardly ever its opposite
    return other


def relation(first: Claim, second: Claim) -> str:
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
    kind = relation(first, second)
    base, same_who, same_detail = RULE[kind]
    loose = kind in LOOSE
    if first.who == second.who or kind == "swapped":
        who = float(bool(first.who) or not loose)
    else:
        who = 0.5 if kind != "unrelated" and (SOMEONE,) in (first.who, second.who) else 0.0
    if first.detail == second.detail:
        detail = float(bool(first.detail) or not loose)
    else:
        detail = 0.5 if not loose and "" in (first.detail, second.detail) else 0.0
    return round(base + same_who * who + same_detail * detail, 3)


def act(rng: random.Random, claim: Claim) -> tuple[str, str]:
    """Choose the words for who does it, and for what is done."""
    scene = claim.scene
    if scene.kind == "pair":
        active = rng.random() < 0.5
        subject, other = claim.who if active else claim.who[::-1]
        return subject, rng.choice(scene.ways if active else scene.near).format(other)
    forms = PEOPLE[claim.who[0]]
    if claim.stance == "not":
        subject = rng.choice(("nobody", "no one")) if claim.who[0] == SOMEONE else forms[-1]
    else:
        subject = rng.choice(forms)
    return subject, claim.variant or rng.choice(scene.opposite if claim.stance == "no" else scene.ways)


def tell(rng: random.Random, claim: Claim) -> str:
    """Put a claim into words."""
    if claim.scene.kind == "fact":
        return rng.choice(claim.scene.ways if claim.stance == "yes" else claim.scene.opposite).format(claim.variant)
    subject, what = act(rng, claim)
    verb = ("were" if claim.past else "are") if claim.who[0] in PLURALS else ("was" if claim.past else "is")
    if claim.stance == "not" and not subject.startswith("no"):
        verb += " not"
    parts = [subject, verb, what]
    if claim.detail:
        leads = re.match("(in|at|on|yesterday|a week)\\b", claim.detail) and rng.random() < 0.3
        parts = [claim.detail + ",", *parts] if leads else [*parts, claim.detail]
    text = " ".join(parts)
    return text[0].upper() + text[1:] + "."


def overlap(first: str, second: str) -> float:
    words, others = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(words & others) / len(words | others)


def make_pairs(rng: random.Random, scenes: list[Scene], count: int) -> list[tuple[float, str, str]]:
    """Draw pairs until each band of grades is full; no sentence is used twice."""
    pairs: list[tuple[float, str, str]] = []
    used: set[str] = set()
    bands: Counter[int] = Counter()
    while len(pairs) < count:
        claim = random_claim(rng, rng.choice(scenes), past=rng.random() < 0.5)
        other = partner(rng, claim, scenes)
        score, texts = grade(claim, other), (tell(rng, claim), tell(rng, other))
        band = min(int(score), BANDS - 1)
        in_other_words = relation(claim, other) != "same" or overlap(*texts) < 0.5
        if bands[band] < count / BANDS and in_other_words and texts[0] != texts[1] and not used & set(texts):
            first, second = texts if rng.random() < 0.5 else texts[::-1]
            pairs.append((score, first, second))
            used.update(texts)
            bands[band] += 1
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a sample of graded sentence pairs.")
    parser.add_argument("--output", type=Path, default=Path("assets"), help="the folder to write to")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    rng = random.Random(args.seed)
    for part, text in (("train", TRAIN), ("dev", DEV)):
        pairs = make_pairs(rng, read_scenes(text), SIZES[part])
        rows = [
            f"sample\t{part}\t2026\t{number:04d}\t{score:.3f}\t{first}\t{second}\n"
            for number, (score, first, second) in enumerate(pairs)
        ]
        (args.output / f"pairs-{part}.csv").write_text("".join(rows), encoding="utf8", newline="\n")


if __name__ == "__main__":
    main()
