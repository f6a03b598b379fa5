"""Pairs of arguments in the layout of the UKP aspect corpus.

Each topic has facets, two and two of which are near to each other, and each facet is put in three
ways. Of one facet makes high similarity (HS), of a near one some (SS), of another of the topic none
(NS); an argument on another topic makes a pair of different topics (DTORCD).
"""

import random
from collections.abc import Iterator

Facet = tuple[str, str, str]
# Those at 0 and 1, 2 and 3, 4 and 5 are near
FACETS: dict[str, tuple[Facet, ...]] = {
    "school uniforms": (
        ("Uniforms hide who has rich parents.", "Equal dress keeps pupils from showing off money.",
         "Nobody can be laughed at for cheap clothes where all wear the same."),
        ("Uniforms strengthen the feeling of belonging together.", "Whoever dresses alike feels part of one school.",
         "A common outfit makes pupils proud of their community."),
        ("A uniform takes the freedom to express oneself.", "Pupils cannot show their personality in prescribed dress.",
         "Clothing rules suppress the individual taste of the young."),
        ("Young people should learn to decide for themselves what to put on.",
         "Choosing an outfit each day teaches responsibility.",
         "Whoever never selects clothes does not learn to make choices."),
        ("Families have to pay for yet another set of clothes.", "Uniforms are a burden for parents with low wages.",
         "Buying the prescribed outfit is expensive for households."),
        ("A single outfit for school saves money in the long run.", "Parents spend less when fashion plays no role.",
         "Durable uniforms cost less than following each trend."),
    ),
    "night trains": (
        ("Night trains emit far less than planes.", "Sleeping on rails is the cleaner way to cross the continent.",
         "Travellers protect the climate when they take the sleeper in place of a flight."),
        ("Railways need less land than motorways and airports.", "Tracks spare the landscape more than runways do.",
         "Less nature is built over for rails than for roads."),
        ("Passengers save a day as they travel while asleep.", "One arrives in the morning and has lost no time.",
         "The hours in bed are the hours on the way."),
        ("The ticket also spares a night in a hotel.", "Travellers need not pay for a room in the city.",
         "A berth replaces an expensive stay elsewhere."),
        ("Sleeping cars run at a loss.", "Operators cannot earn money with beds on wheels.",
         "Night services have never been profitable for the railways."),
        ("Without public subsidies there would be no sleepers.", "Taxpayers have to keep the night network alive.",
         "The state must add money for each berth that is sold."),
    ),
    "robots in care": (
        ("Robots relieve nurses of heavy lifting.", "Machines can spare the backs of the staff.",
         "Carers suffer less strain if a device carries the patients."),
        ("Automation helps where too few carers can be found.", "Machines fill the gap that missing staff leave.",
         "Devices can take over work for which nobody applies."),
        ("Old people need human warmth, not machines.", "A device cannot replace an affectionate touch.",
         "Nobody is comforted by metal and plastic."),
        ("Residents would become lonely among machines.", "Whoever is tended by devices talks to nobody all day.",
         "Automated care cuts the elderly off from company."),
        ("A fault in the software can hurt a patient.", "Errors of a machine put lives at risk.",
         "Broken sensors may injure those who depend on them."),
        ("It is unclear who is liable when a robot makes a mistake.", "Nobody knows who pays for damage by a device.",
         "The law does not say whose fault the error of a machine is."),
    ),
    "city tolls": (
        ("A toll reduces traffic jams in the centre.", "Fewer cars queue where driving costs money.",
         "Streets flow again once entering the city has a price."),
        ("Buses run on time when fewer cars are in the way.", "Public transport becomes faster with a toll.",
         "Trams are no longer stuck behind private cars."),
        ("The air gets cleaner with fewer exhaust pipes.", "Residents breathe less dirt where drivers pay.",
         "Pricing the roads lowers pollution."),
        ("Quieter streets let the residents sleep.", "Noise falls when cars stay outside.",
         "Less traffic means calmer nights in the centre."),
        ("Tolls hit those with small incomes hardest.", "The poor cannot afford to enter their own city.",
         "Only the wealthy go on driving as they please."),
        ("Craftsmen who need their van would have to pay daily.", "Small firms are burdened by the fee.",
         "Businesses that deliver goods suffer from the charge."),
    ),
}  # fmt: skip
LABELS = ("HS", "SS", "NS", "DTORCD")


def second_of(rng: random.Random, label: str, topic: str, facet: int) -> str:
    """An argument that makes the label with one of the facet."""
    if label == "DTORCD":
        topic = rng.choice([other for other in FACETS if other != topic])
        facet = rng.randrange(len(FACETS[topic]))
    elif label == "SS":
        facet ^= 1
    elif label == "NS":
        facet = rng.choice(
            [other for other in range(len(FACETS[topic])) if other // 2 != facet // 2]
        )
    return rng.choice(FACETS[topic][facet])


def argument_lines(rng: random.Random, part: str, count: int) -> Iterator[str]:
    """A header and pairs, each topic and label as often; no pair occurs twice, in neither order."""
    yield "topic\tsentence_1\tsentence_2\tlabel"
    wanted = [(topic, label) for topic in FACETS for label in LABELS]
    pairs = wanted * (count // len(wanted))
    rng.shuffle(pairs)
    used: set[frozenset[str]] = set()
    for topic, label in pairs:
        first = second = ""
        while first == second or frozenset((first, second)) in used:
            facet = rng.randrange(len(FACETS[topic]))
            first, second = rng.choice(FACETS[topic][facet]), second_of(rng, label, topic, facet)
        used.add(frozenset((first, second)))
        yield f"{topic}\t{first}\t{second}\t{label}"
