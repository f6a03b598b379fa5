"""Triplets by hand."""

import numpy
import pytest
from helpers.made_data import HashedSource

from spacy_sbert.evaluation import Settings, evaluate_suites

FEW = Settings(bootstrap=20)


def evaluate(root):
    results = evaluate_suites(Placed(), root, ["triplets"], settings=FEW, progress_bar=False)
    return results["tasks"].get("wikisec") or results["failed"]["wikisec"]


class Placed(HashedSource):
    """Vectors by the number in the text."""

    places = (((0, 0), (0, 2), (1.5, 1.5)), ((0, 0), (0, 3), (2, 2)), ((1, 0), (1, 1), (5, 0)))

    def vector(self, text):
        row, member = map(int, text.split())
        return numpy.array(self.places[row][member], dtype="float32")


def test_triplets_by_three_distances(tmp_path):
    """Triplets with equal sentences are left out and counted."""
    (tmp_path / "wikisec").mkdir()
    file = tmp_path / "wikisec" / "test.csv"
    rows = ["0 0,0 1,0 2", "1 0,1 1,1 1", "1 0,1 1,1 2", "2 0, 2 0 ,2 2", "2 0,2 1,2 2"]
    text = "Article Title,Sentence1,Sentence2,Sentence3\n" + "".join(
        f"title,{row}\n" for row in rows
    )
    file.write_text(text)
    found = evaluate(tmp_path)
    # Euclidean 2 < 2.12, 3 > 2.83, 1 < 4; Manhattan 2 < 3, 3 < 4, 1 < 4; cosine 0 = 0, 0 = 0, 0.71
    # < 1
    scores = {name: score["accuracy"] for name, score in found["variants"][0]["scores"].items()}
    assert scores == {"euclidean": pytest.approx(2 / 3), "cosine": 0.0, "manhattan": 1.0}
    assert found["predictions"] == {"right": "101"}
    assert found["primary"] == "euclidean.accuracy"
    assert found["counts"] == {"test": 3}
    assert "222,957" in found["notes"][0]
    assert found["notes"][0].startswith("test.csv: 5 examples")
    assert found["notes"][1].startswith("2 triplets with two equal sentences are left out")
    for damaged, place in (
        (text.splitlines()[0] + "\ntitle,a,a,b\n", "test.csv"),
        (text + "title,a,,b\n", "line 7"),
    ):
        file.write_text(damaged)
        assert place in evaluate(tmp_path)
