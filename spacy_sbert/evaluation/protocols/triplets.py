"""Triplets of sentences from Wikipedia's sections: which of two is nearer to the anchor."""

from ...arrays import Arrays
from ...files.text_lines import check_cell
from ...readers.datasets import WIKISECTION_SENTENCES, wikisection_records
from ..results import Json, mean_of
from ..task import DataFile, Run, Task, as_they_are, check_official_count
from .sts import SIMILARITIES


class _TripletTask(Task):
    """Accuracy: how often the anchor is nearer to the sentence of its own section.

    Triplets with two equal sentences are left out: they ask nothing, or what has no answer.
    """

    name = "wikisec"
    suite = "triplets"
    # How many triplets the test set of Ein Dor et al. 2018 has
    official = 222_957
    place = DataFile(
        tuple(
            f"{folder}/test.csv"
            for folder in ("wikisec", "wikipedia-sections", "wikipedia-sections-triplets")
        ),
        "https://sbert.net/datasets/wikipedia-sections-triplets.zip",
    )

    def run(self, run: Run) -> Json:
        path = self.place.find(run.root)
        members = WIKISECTION_SENTENCES
        read: list[list[str]] = []
        for line, texts in wikisection_records(path):
            named = zip(texts, members, strict=True)
            read.append([check_cell(text, name, path, line) for text, name in named])
        triplets = [texts for texts in read if len(set(texts)) == len(members)]
        n = len(triplets)
        equal = len(read) - n
        check_official_count(n, path)
        anchors, positives, negatives = zip(*triplets, strict=True)
        rows = run.encode([*anchors, *positives, *negatives])
        anchor, positive, negative = rows.reshape(3, n, -1)
        right: Arrays = {}
        for name in ("euclidean", "cosine", "manhattan"):
            similarity = SIMILARITIES[name]
            right[name] = similarity(anchor, positive) > similarity(anchor, negative)
        accuracy = {"euclidean.accuracy": mean_of(right["euclidean"])}
        scores = {name: {"accuracy": float(values.mean())} for name, values in right.items()}
        settings = run.settings
        notes = settings.touched("The encoder was trained on {}.", "wiki")
        # Samples of it are in use, so any number is taken
        notes += check_official_count(len(read), path, self.official)
        if equal:
            notes.append(
                f"{equal} triplets with two equal sentences are left out; the official number "
                "includes them."
            )
        return {
            "counts": {"test": n},
            "primary": "euclidean.accuracy",
            "variants": as_they_are(scores),
            "intervals": settings.intervals(accuracy, n),
            "predictions": {"right": "".join(map(str, right["euclidean"].astype(int)))},
            "notes": notes,
        }


TASKS: tuple[Task, ...] = (_TripletTask(),)
