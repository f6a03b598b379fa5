"""The pair search of benchmarks/papers: one small run."""

import json

import numpy
import pytest
import spacy
from helpers.made_data import write_benchmark
from helpers.paper_runs import read_rows

from spacy_sbert import find_sbert


def test_pair_search(run_script, tiny_bert, tmp_path, monkeypatch):
    """The pair is the most similar of all, and all pairs take as long as those that were scored."""
    pytest.importorskip("faiss")
    write_benchmark(tmp_path / "data" / "sts")
    monkeypatch.setenv("SPACY_SBERT_DATA", str(tmp_path / "data"))
    options = ["--n", 12, "--pairs", 8, "--output", tmp_path]
    run_script("pair_search", "--encoders", tiny_bert, *options)
    found = json.loads((tmp_path / "pairs.json").read_text(encoding="utf8"))
    (one,) = found["encoders"].values()
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    u, v = find_sbert(nlp).encode(one["pair"])
    cosine = u @ v / numpy.linalg.norm(u) / numpy.linalg.norm(v)
    assert one["similarity"] == pytest.approx(float(cosine), abs=1e-6)
    assert set(one["seconds"]) == {
        "encode, padded",
        "encode, sorted",
        "encode, as it is",
        "pair",
        "clusters",
    }
    cross = found["cross-encoder"]
    assert cross["all_pairs"] == 66
    assert cross["hours of all"] == round(cross["seconds"] / 8 * 66 / 3600, 1)
    rows, _ = read_rows(tmp_path)
    assert rows[0][0] == tiny_bert.name
    assert rows[0][-1] == str(one["clusters"])
