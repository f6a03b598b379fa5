"""The stock of words of the sample: scenes to tell of, what a sentence may claim of them, and how
it is put.

All words were written for this project. Train and dev share people, places, times and topics, but
no act or fact.
"""

import random
from dataclasses import dataclass, replace

TIMES = ("yesterday", "on Sunday", "a week ago")
NAMES = (
    "Tom",
    "Lucy",
    "Mark",
    "Julia",
    "my brother",
    "our neighbour",
    "the teacher",
    "the postman",
)
# The last form is the one that a negation takes
PEOPLE: dict[str, tuple[str, ...]] = {
    "man": ("a man", "a guy", "the man"),
    "woman": ("a woman", "a lady", "the woman"),
    "neighbour": ("our neighbour", "the person next door", "our neighbour"),
    "grandfather": ("my grandfather", "my grandpa", "my grandfather"),
    "someone": ("someone", "somebody", "a person"),
    "men": ("two men", "two guys", "the two men"),
    "women": ("three women", "three ladies", "the three women"),
    "boy": ("a boy", "a young boy", "the boy"),
    "girl": ("a girl", "a little girl", "the girl"),
    "children": ("several children", "a group of kids", "the children"),
}
PLURALS = ("men", "women", "children")
MINORS = ("boy", "girl", "children")

# An entry: topic and kind | ways to say it | acts near to it | ways to say the opposite | places.
# Kinds: all or adults, who may do it; pair, one does it to another, with the passive ways second;
# fact, with its numbers second.
TRAIN = """
food all | eating a meal / having a bite to eat / tucking into a plate of food | eating an apple
  | refusing to eat / turning down all food | in a small café / in the garden / at the kitchen table
food adults | cooking dinner / preparing the evening meal / getting supper ready | baking a cake / making breakfast
  | too tired to cook dinner / too tired to prepare a meal | in the kitchen / at home
music all | playing the guitar / strumming chords on a guitar | playing the piano / practising the violin
  | putting the guitar away / packing the guitar back into its case | on a stage / in the living room / on the street
music all | singing a song / giving a vocal performance | humming a melody / whistling a tune
  | keeping silent / making no sound at all | in a church / on a stage / at a birthday party
sport all | swimming / taking a dip / doing a few laps | diving off a board / floating on an air mattress
  | staying out of the water / keeping well away from the water | at the pool / at the lake
sport all | playing football / kicking a ball around / having a game of soccer | playing tennis / playing basketball
  | sitting out the football match / taking no part in the football game | in the park / on the beach
sport fact | Our team won by {} goals. / We beat the other side by {} goals. / We scored {} goals more than they did.
  | two / three / four / six | Our team lost by {} goals. / The other side beat us by {} goals.
swimming pair | teaching {} to swim / giving {} swimming lessons | learning to swim from {}
home adults | opening the window / letting fresh air in through the window | opening the front door
  | closing the window / pulling the window shut | in the bedroom / in the office
travel adults | getting on the train / boarding the train / climbing aboard the train | waiting for the train
  | getting off the train / stepping down from the train | at a small station / with two suitcases
travel adults | arriving in Paris / reaching the French capital | arriving in Rome / arriving in Berlin
  | leaving Paris / saying goodbye to the French capital | with a lot of luggage / with a guidebook
travel fact | The bus leaves in {} minutes. / There are {} minutes to go before the bus departs.
  | two / ten / twenty / forty | The bus left {} minutes ago. / You missed the bus by {} minutes.
books all | reading a novel / absorbed in a long work of fiction | reading a newspaper / reading a cookbook
  | leaving the novel unread / putting the novel aside without reading it | in the library / on a park bench
books pair | lending a book to {} / letting {} borrow a book | borrowing a book from {} / being lent a book by {}
money adults | paying the bill / handing over the money for the meal | asking for the bill / tipping the waiter
  | refusing to pay / unwilling to hand over any money | at the restaurant / after lunch
money adults | saving money / putting cash aside for later | investing money in shares / paying into a pension
  | spending a lot of money / parting with plenty of cash | month after month
animals all | feeding the dog / serving the dog a meal / filling the dog's bowl | feeding the cat / feeding the chickens
  | leaving the dog hungry / letting the dog starve | in the kitchen / at the farm
animals all | walking the dog / taking the dog out | playing with the dog / training the dog
  | keeping the dog indoors / leaving the dog at home | in the park / on the beach / in the forest
help pair | helping {} / giving {} a hand | getting help from {} / being helped by {}
chase pair | chasing {} / running after {} | being chased by {} / running away from {}
weather fact | It will rain for {} days. / Wet weather is expected for {} days. / The forecast speaks of {} rainy days.
  | two / three / five / ten | It will stay dry for {} days. / No rain is expected for {} days.
"""
DEV = """
food all | peeling potatoes / taking the skins off potatoes | mashing potatoes / peeling oranges
  | leaving the skins on the potatoes / cooking the potatoes in their skins | in the kitchen / at the campsite
food adults | drinking coffee / having a hot espresso | drinking orange juice / having a glass of milk
  | staying away from coffee / avoiding any drink with caffeine | in a small café / at the kitchen table
music all | playing the drums / beating out a rhythm on a drum kit | playing the flute / shaking a tambourine
  | leaving the drums alone / keeping away from the drum kit | in the garage / on a stage
music all | listening to music / tuned in to songs on the radio | listening to the news / following a match on the radio
  | turning the music off / putting an end to the music | on the train / in the bedroom / at home
sport all | cycling / travelling by bike / getting around on two wheels | skateboarding / travelling by bus
  | leaving the bike at home / getting around without a bike | in the rain / on a country road
sport adults | climbing a mountain / scaling a high peak | walking up a hill / climbing a rock face
  | coming down from a mountain / descending from a high peak | in bad weather / in the rain
chess pair | beating {} at chess / winning a game of chess against {} | losing to {} at chess / being checkmated by {}
home adults | doing the laundry / washing clothes | washing the curtains / ironing clothes
  | letting the dirty laundry pile up / leaving the clothes unwashed | at home / after breakfast
home adults | cleaning the house / tidying up the rooms / doing the housework | painting the house / cleaning the car
  | leaving the house in a mess / neglecting the housework | before the party / after breakfast
travel adults | packing a suitcase / getting the luggage ready for the trip | packing a picnic basket
  | unpacking a suitcase / taking everything out of the luggage | in a great hurry / with great care
travel adults | asking the way to the museum / looking for the museum | asking the way to the station
  | explaining the way to the museum / giving a tourist directions to the museum | at a street corner / in the old town
school all | studying for an exam / preparing for a big test | preparing for a school play
  | doing nothing for the exam / not preparing for the test at all | at school / at home
flat adults | selling a house / putting a home on the market | selling a car / renting out a house
  | buying a house / purchasing a home | by the sea / in a small village
flat fact | My rent went up by {} euros. / I pay {} euros more for my flat than before. / My flat is {} euros dearer.
  | ten / fifty / ninety / two hundred | My rent went down by {} euros. / I pay {} euros less for my flat than before.
trade pair | selling a bicycle to {} / taking money from {} for a bicycle | buying a bicycle from {}
garden adults | planting a tree / putting a young tree into the ground | planting a hedge / planting roses
  | cutting down a tree / felling a tree | in the garden / behind the house
garden all | watering the flowers / giving the plants a drink | watering the lawn / watering the vegetables
  | letting the flowers dry out / leaving the plants without water | in the garden / behind the house
phone pair | phoning {} / giving {} a ring | being phoned by {} / getting a call from {}
photo pair | photographing {} / taking a picture of {} | being photographed by {} / having a picture taken by {}
weight fact | My uncle has lost {} kilos. / My uncle weighs {} kilos less than before. / My uncle is {} kilos lighter.
  | three / five / eight / twenty | My uncle has put on {} kilos. / My uncle is {} kilos heavier than before.
"""

# Further scenes, not for the graded pairs: with them, the topics below have two scenes or more in
# train and in dev.
MORE_TRAIN = """
home adults | doing the dishes / washing the plates and cups | drying the glasses / polishing the spoons
  | leaving the dishes in the sink / letting the dirty plates pile up | after dinner / in the kitchen
garden adults | mowing the lawn / cutting the grass | raking the leaves / trimming the bushes
  | leaving the lawn uncut / letting the grass grow long | in the garden / behind the house
garden all | picking strawberries / gathering ripe strawberries | picking cherries / picking plums
  | leaving the strawberries unpicked / letting the strawberries rot | in the garden / at the farm
school all | doing homework / working on exercises from school | drawing a map for school / writing an essay
  | putting off the homework / leaving the homework undone | at the kitchen table / in the library
school adults | teaching history / giving a history lesson | teaching maths / giving a chemistry lesson
  | calling off the history lesson / cancelling the history class | in a small classroom / at the village school
"""
MORE_DEV = """
books all | taking the books back to the library / returning the library books | sorting the library books
  | keeping the library books too long / failing to return the library books | in the rain / after breakfast
books all | writing a poem / composing some verses | writing a short story / writing a diary
  | tearing up a poem / throwing a poem away | at a small desk / by the window
animals all | brushing the horse / grooming the horse | riding the horse / leading the horse by the reins
  | leaving the horse unbrushed / neglecting the horse's coat | in the stable / at the farm
animals all | watching birds / observing wild birds | watching squirrels / looking for frogs
  | scaring the birds away / frightening the birds off | in the forest / by the river
money adults | counting coins / adding up the coins | sorting banknotes / exchanging banknotes
  | putting the coins away uncounted / leaving the coins uncounted | at the bank / at a market stall
money adults | borrowing money from the bank / taking out a loan | opening a bank account / closing a bank account
  | paying back a loan / returning borrowed money to the bank | for a new car / for a small shop
school adults | marking essays / grading the essays of the class | writing school reports / copying worksheets
  | leaving the essays unmarked / putting off grading the essays | at home / in the staff room
"""
TOPICS = (
    "animals",
    "books",
    "food",
    "garden",
    "home",
    "money",
    "music",
    "school",
    "sport",
    "travel",
)


@dataclass(frozen=True)
class Scene:
    """Something to tell of; see the note on entries above."""

    topic: str
    kind: str
    ways: tuple[str, ...]
    near: tuple[str, ...]
    opposite: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


@dataclass(frozen=True)
class Claim:
    """What a sentence means. stance: yes, no (the opposite) or not (negated); variant: a near act,
    or the number.
    """

    scene: Scene
    past: bool
    who: tuple[str, ...]
    detail: str
    stance: str
    variant: str


def read_scenes(text: str) -> list[Scene]:
    scenes = []
    for line in text.strip().replace("\n  |", " |").splitlines():
        head, *fields = line.split(" | ")
        topic, kind = head.split()
        scenes.append(Scene(topic, kind, *(tuple(field.split(" / ")) for field in fields)))
    return scenes


def random_claim(rng: random.Random, scene: Scene, past: bool) -> Claim:
    who: tuple[str, ...] = ()
    if scene.kind == "pair":
        who = tuple(rng.sample(NAMES, 2))
    elif scene.kind != "fact":
        who = (
            rng.choice(
                [person for person in PEOPLE if scene.kind == "all" or person not in MINORS]
            ),
        )
    stances = ["yes"] * 6 + ["no"] * bool(scene.opposite) + ["not"] * bool(who)
    variant = rng.choice(scene.near) if scene.kind == "fact" else ""
    return set_detail(rng, Claim(scene, past, who, "", rng.choice(stances), variant))


def set_detail(rng: random.Random, claim: Claim) -> Claim:
    """Give a claim a detail that suits it, or none."""
    # Places hardly ever suit the opposite of an act
    details = claim.scene.places if claim.stance == "yes" else ()
    details += TIMES if claim.past and claim.who else ()
    return replace(claim, detail=rng.choice(details) if details and rng.random() < 0.6 else "")


def find_words(rng: random.Random, claim: Claim) -> tuple[str, str]:
    """Choose the words for who does it, and for what is done; with a fact, the second is the whole
    sentence.
    """
    scene = claim.scene
    if scene.kind == "fact":
        return "", rng.choice(scene.opposite if claim.stance == "no" else scene.ways).format(
            claim.variant
        )
    if scene.kind == "pair":
        passive = rng.random() < 0.5
        subject, other = claim.who[::-1] if passive else claim.who
        return subject, rng.choice(scene.near if passive else scene.ways).format(other)
    subjects = PEOPLE[claim.who[0]]
    if claim.stance == "not":
        subjects = ("nobody", "no one") if claim.who == ("someone",) else subjects[-1:]
    return rng.choice(subjects), claim.variant or rng.choice(
        scene.opposite if claim.stance == "no" else scene.ways
    )


def tell(rng: random.Random, claim: Claim) -> tuple[str, str]:
    """Put a claim into words. RETURNS (tuple): what is done, and the sentence."""
    subject, what = find_words(rng, claim)
    if not subject:
        return what, what
    verb = ("is", "are", "was", "were")[2 * claim.past + (claim.who[0] in PLURALS)]
    if claim.stance == "not" and claim.who != ("someone",):
        verb += " not"
    text = f"{subject} {verb} {what}"
    if claim.detail in TIMES and rng.random() < 0.3:
        text = f"{claim.detail}, {text}"
    elif claim.detail:
        text += f" {claim.detail}"
    return what, text[0].upper() + text[1:] + "."


def all_scenes(part: str) -> list[Scene]:
    """The scenes of a part, "train" or "dev": those of the graded pairs, and the further ones."""
    return read_scenes({"train": TRAIN, "dev": DEV}[part]) + read_scenes(
        {"train": MORE_TRAIN, "dev": MORE_DEV}[part]
    )
