"""English sentences with a German or a French translation, and sentences in all three languages.

A sentence says who does what, and when or where. All words were written for this project.
"""

import random
from collections.abc import Iterator
from itertools import product

# In English, German and French
WHO = (
    ("The teacher", "Die Lehrerin", "La professeure"),
    ("My brother", "Mein Bruder", "Mon frère"),
    ("The doctor", "Der Arzt", "Le médecin"),
    ("A child", "Ein Kind", "Un enfant"),
    ("The baker", "Der Bäcker", "Le boulanger"),
    ("Her aunt", "Ihre Tante", "Sa tante"),
    ("The gardener", "Der Gärtner", "Le jardinier"),
    ("An old man", "Ein alter Mann", "Un vieil homme"),
    ("A woman", "Eine Frau", "Une femme"),
)
DETAILS = (
    ("today", "heute", "aujourd'hui"),
    ("every day", "jeden Tag", "tous les jours"),
    ("in the evening", "am Abend", "le soir"),
    ("on Sunday", "am Sonntag", "dimanche"),
    ("again", "wieder", "de nouveau"),
    ("in the garden", "im Garten", "dans le jardin"),
    ("at home", "zu Hause", "à la maison"),
)
# The German detail stands between the verb and the rest
ACTS = {
    "train": (
        ("reads a book", "liest", "ein Buch", "lit un livre"),
        ("drinks tea", "trinkt", "Tee", "boit du thé"),
        ("eats an apple", "isst", "einen Apfel", "mange une pomme"),
        ("writes a letter", "schreibt", "einen Brief", "écrit une lettre"),
        ("bakes bread", "backt", "Brot", "fait du pain"),
        ("plays the piano", "spielt", "Klavier", "joue du piano"),
        ("sings a song", "singt", "ein Lied", "chante une chanson"),
        ("does the dishes", "spült", "das Geschirr", "fait la vaisselle"),
        ("feeds the cat", "füttert", "die Katze", "nourrit le chat"),
        ("buys flowers", "kauft", "Blumen", "achète des fleurs"),
        ("paints a picture", "malt", "ein Bild", "peint un tableau"),
        ("learns French", "lernt", "Französisch", "apprend le français"),
        ("waits for the postman", "wartet", "auf den Briefträger", "attend le facteur"),
        ("repairs the bicycle", "repariert", "das Fahrrad", "répare le vélo"),
        ("sells a car", "verkauft", "ein Auto", "vend une voiture"),
        ("looks for the key", "sucht", "den Schlüssel", "cherche la clé"),
    ),
    "dev": (
        ("opens the window", "öffnet", "das Fenster", "ouvre la fenêtre"),
        ("cooks soup", "kocht", "Suppe", "prépare une soupe"),
        ("watches a film", "sieht", "einen Film", "regarde un film"),
        ("cleans the kitchen", "putzt", "die Küche", "nettoie la cuisine"),
        ("plants a tree", "pflanzt", "einen Baum", "plante un arbre"),
        ("visits a friend", "besucht", "eine Freundin", "rend visite à une amie"),
        ("takes a photo", "macht", "ein Foto", "prend une photo"),
        ("draws a horse", "zeichnet", "ein Pferd", "dessine un cheval"),
    ),
}


def translated(part: str) -> list[tuple[str, str, str]]:
    """All sentences of a part in English, German and French."""
    return [
        (
            f"{who[0]} {act} {detail[0]}.",
            f"{who[1]} {verb} {detail[1]} {rest}.",
            f"{who[2]} {french} {detail[2]}.",
        )
        for who, (act, verb, rest, french), detail in product(WHO, ACTS[part], DETAILS)
    ]


def translation_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """A header, and English sentences with a translation, German or French by turns; in dev each
    sentence by itself, with the same label in all languages.
    """
    if part == "train":
        yield "english\ttranslation"
        for i, texts in enumerate(rng.sample(translated(part), count)):
            yield f"{texts[0]}\t{texts[1 + i % 2]}"
    else:
        yield "text\tlabel"
        for i, texts in enumerate(rng.sample(translated(part), count // 3)):
            yield from (f"{text}\tmeaning {i + 1}" for text in texts)
