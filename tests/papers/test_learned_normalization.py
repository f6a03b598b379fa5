"""Similarities learned with both normalizations: one small run."""

import json

import pytest
import spacy
from helpers.made_data import write_benchmark
from helpers.made_tables import text
from protocols import learned_similarity


def test_learned_normalization(load_script, run_script, tiny_bert, tmp_path, monkeypatch):
    """Figures are those of the protocol; the difference and the spread are those of the figures."""
    script = load_script("learned_normalization")
    monkeypatch.setattr(script, "TASKS", script.TASKS[:1])
    monkeypatch.setattr(script, "RESAMPLES", 50)
    monkeypatch.setattr(learned_similarity, "_PASSES", 1)
    monkeypatch.setattr(learned_similarity, "_MAX_PASSES", 0)
    for split, pairs in (("train", 30), ("dev", 12)):
        path = write_benchmark(tmp_path / "data" / "sts", split, pairs=pairs)
        lines = path.read_text(encoding="utf8").splitlines()
        rows = [[*line.split("\t")[:5], text(), text()] for line in lines]
        path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf8")
    monkeypatch.setenv("SPACY_SBERT_DATA", str(tmp_path / "data"))
    (tmp_path / "encoders").mkdir()
    for name, pooling in (("mean", "mean"), ("cls", "cls")):
        nlp = spacy.blank("en")
        nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert), "pooling": pooling}})
        nlp.to_disk(tmp_path / "encoders" / name)
    folders = ["--encoders", tmp_path / "encoders", "--output", tmp_path / "results"]
    run_script("learned_normalization", *folders, "--names", "mean", "cls")
    file = tmp_path / "results" / "learned-normalized.json"
    found = json.loads(file.read_text(encoding="utf8"))
    spearman = {}
    for name, one in found.items():
        task = one["tasks"]["STSb-learned"]
        none, zscore = (
            task["scores"][each]["learned"]["spearman"] for each in script.NORMALIZATIONS
        )
        difference = task["learned.spearman, zscore less none"]
        assert difference["difference"] == pytest.approx(zscore - none, abs=1e-12)
        assert difference["low"] <= difference["high"]
        spearman[name] = none
    table = (file.parent / "learned-normalized.md").read_text(encoding="utf8").splitlines()
    spread = table[-2].split("|")
    column = table[0].split("|").index(" learned, none ")
    expected = 100 * abs(spearman["mean"] - spearman["cls"])
    assert float(spread[column]) == pytest.approx(expected, abs=0.006)
