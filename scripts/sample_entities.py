"""Sentences with people, cities and dates, in the format that spaCy's converter reads as iob:
word|TAG|B-PERSON.

In the stock, a word and its tag are separated by a slash. Train and dev have no template in common;
most names, cities and dates of dev occur in train, some do not.
"""

import random
from collections.abc import Iterator

PEOPLE = (
    "Tom / Lucy / Mark / Julia / Anna Keller / Peter Novak / Maria Lopez / Ruth / Samuel Brook / "
    "Nina Falk"
)
CITIES = (
    "Paris / Rome / Berlin / New York / Cape Town / Madrid / Oslo / Buenos Aires / Cairo / Vienna"
)
WHEN = """yesterday/NN | a/DT week/NN ago/RB | last/JJ summer/NN | last/JJ week/NN | in/IN May/NNP | on/IN Sunday/NNP
  | on/IN Monday/NNP | in/IN 2019/CD | two/CD days/NNS ago/RB | on/IN 3/CD March/NNP | this/DT morning/NN"""
# Besides half of those above
NEW_IN_DEV = {
    "PERSON": "Clara / Victor Lind / Simon",
    "GPE": "Lisbon / Hong Kong / Dublin",
    "DATE": "three/CD years/NNS ago/RB | last/JJ winter/NN | on/IN Friday/NNP",
}
TRAIN = """
PERSON taught/VBD PERSON to/TO swim/VB in/IN GPE DATE
PERSON sold/VBD the/DT old/JJ bicycle/NN DATE
DATE ,/, PERSON arrived/VBD in/IN GPE with/IN two/CD suitcases/NNS
the/DT train/NN to/TO GPE was/VBD full/JJ DATE
PERSON got/VBD a/DT letter/NN from/IN PERSON DATE
my/PRP$ brother/NN met/VBD PERSON at/IN a/DT café/NN in/IN GPE
our/PRP$ neighbour/NN moved/VBD from/IN GPE to/TO GPE DATE
it/PRP rained/VBD in/IN GPE DATE
PERSON and/CC PERSON sang/VBD on/IN a/DT stage/NN in/IN GPE
PERSON read/VBD a/DT novel/NN in/IN the/DT garden/NN
the/DT children/NNS fed/VBD the/DT dog/NN DATE
the/DT teacher/NN bought/VBD apples/NNS at/IN the/DT market/NN
a/DT woman/NN from/IN GPE played/VBD the/DT piano/NN for/IN PERSON DATE
two/CD men/NNS looked/VBD for/IN the/DT station/NN
"""
DEV = """
PERSON beat/VBD PERSON at/IN chess/NN in/IN GPE DATE
DATE ,/, PERSON packed/VBD for/IN a/DT trip/NN to/TO GPE
the/DT museum/NN in/IN GPE was/VBD closed/JJ DATE
PERSON phoned/VBD PERSON from/IN GPE
the/DT postman/NN took/VBD a/DT picture/NN of/IN PERSON DATE
my/PRP$ uncle/NN bought/VBD a/DT house/NN in/IN GPE DATE
PERSON planted/VBD a/DT tree/NN behind/IN the/DT house/NN DATE
three/CD women/NNS climbed/VBD a/DT mountain/NN
"""
# word, tag, entity
Token = tuple[str, str, str]


def read_stock(part: str) -> dict[str, list[str]]:
    """The ways to fill each slot, with words and tags as in the templates."""
    named = {"PERSON": PEOPLE, "GPE": CITIES}
    stock = {slot: [tag_name(name) for name in text.split(" / ")] for slot, text in named.items()}
    stock["DATE"] = [" ".join(text.split()) for text in WHEN.split(" | ")]
    if part == "dev":
        for slot, text in NEW_IN_DEV.items():
            new = (
                text.split(" | ")
                if slot == "DATE"
                else [tag_name(name) for name in text.split(" / ")]
            )
            stock[slot] = stock[slot][::2] + new
    return stock


def tag_name(name: str) -> str:
    """Tag each word of a name, as in the stock."""
    return " ".join(f"{word}/NNP" for word in name.split())


def mark(words: str, label: str) -> list[Token]:
    """Make the tokens of an entity; a preposition before a date is no part of it."""
    tokens: list[Token] = []
    inside = False
    for word, tag in (token.split("/") for token in words.split()):
        outside = not label or tag == "IN"
        tokens.append((word, tag, "O" if outside else f"{'I' if inside else 'B'}-{label}"))
        inside = not outside
    return tokens


def fill(rng: random.Random, template: str, stock: dict[str, list[str]]) -> list[Token]:
    """Fill the slots of a template; none of them twice with the same."""
    left = {slot: rng.sample(ways, len(ways)) for slot, ways in stock.items()}
    tokens: list[Token] = []
    for word in template.split():
        tokens += mark(left[word].pop(), word) if word in left else mark(word, "")
    (first, tag, entity), *rest = tokens
    return [(first[0].upper() + first[1:], tag, entity), *rest, (".", ".", "O")]


def entity_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """One sentence a line; none occurs twice."""
    templates = (TRAIN if part == "train" else DEV).strip().splitlines()
    stock, used = read_stock(part), set[str]()
    while len(used) < count:
        line = " ".join("|".join(token) for token in fill(rng, rng.choice(templates), stock))
        if line not in used:
            used.add(line)
            yield line
