"""What a script of the papers' page writes."""

import json


def read_rows(folder):
    """The lines of each table in table.md, as cells."""
    tables = (folder / "table.md").read_text(encoding="utf8").split("\n\n")
    return [[line.strip("| ").split(" | ") for line in part.splitlines()[2:]] for part in tables]


def read_scores(folder):
    return {
        name: run["scores"]
        for name, run in json.loads((folder / "scores.json").read_text())["runs"].items()
    }


def refuse_training(load_script, monkeypatch):
    def trained(*args):
        raise AssertionError("nothing is trained again")

    for name in ("ablation", "argument_similarity", "supervised_sts"):
        monkeypatch.setattr(load_script(name), "trained", trained)
