"""The paper's tables of meta-embeddings, on made data."""

import json
import shutil
from collections import Counter
from functools import partial

import pytest
from helpers.made_data import write_benchmark, write_year
from helpers.made_views import SENTENCES
from helpers.pipelines import ROOT

LENGTHS = ROOT / "tests" / "helpers" / "made_lengths.py"


def put_sentences(file, number):
    """Sentences that the encoders tell apart, in place of those of a made data set."""
    lines = [line.split("\t") for line in file.read_text(encoding="utf8").splitlines()]
    for place, line in enumerate(lines):
        line[-2:] = (
            SENTENCES[(12 * number + place + 5) % 120],
            SENTENCES[(7 * number + 3 * place) % 120],
        )
    file.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf8")


@pytest.fixture(scope="module")
def make_tables(run_script):
    """Run the script on the data of a folder; the scores that it writes."""

    def make(folder, *options):
        (folder / "corpus.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf8")
        given = ["--corpus", folder / "corpus.txt", "--data", folder / "data", "--any-count"]
        given += ["--code", LENGTHS, "--output", folder / "out", "--epochs", 2, "--batch-size", 60]
        run_script("meta_embeddings", folder / "ensemble", *given, *options)
        return json.loads((folder / "out" / "scores.json").read_text(encoding="utf8"))

    return make


@pytest.fixture(scope="module")
def finished(run_script, make_tables, tiny_bert, narrow_bert, tmp_path_factory):
    """Made data, an ensemble, and the folder of a run with all methods on 120 sentences: for
    copies.
    """
    folder = tmp_path_factory.mktemp("finished")
    files = [write_benchmark(folder / "data", pairs=12)]
    for year in (12, 14):
        files += sorted(write_year(folder / "data", year, pairs=12).glob("*.input.*"))
    for number, file in enumerate(files):
        put_sentences(file, number)
    given = [
        "--encoder",
        f"wide={tiny_bert}",
        f"narrow={narrow_bert}",
        "--function",
        "lengths=made_lengths.v2",
    ]
    run_script("ensemble", *given, "--code", LENGTHS, "--output", folder / "ensemble")
    make_tables(folder)
    return folder


@pytest.fixture
def tables(finished, make_tables, tmp_path):
    """Run the script in a copy of a finished run."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return partial(make_tables, tmp_path)


METHODS = ["conc (paper)", "avg (paper)", "svd (paper)", "gcca, raw (paper)", "gcca, unit length"]
METHODS += ["ae, raw (paper)", "ae, unit length"]


@pytest.mark.slow
def test_the_tables(tables, tmp_path):
    found = tables()
    assert found["widths"] == {"wide": 16, "narrow": 8, "lengths": 2}
    assert found["tuned_on"] == ["STSb-dev"]
    grid = {key: json.loads(key) for key in found["table1"]}
    counts = Counter((one["method"], one.get("normalize")) for one in grid.values())
    assert counts == {
        ("svd", None): 1,
        ("gcca", True): 5,
        ("gcca", False): 5,
        ("ae", True): 12,
        ("ae", False): 12,
    }
    rows = found["table2"]
    members = ["wide", "narrow", "lengths"]
    assert list(rows) == [*members, "narrow, projected up", "lengths, projected up", *METHODS]
    for name, row in rows.items():
        assert list(row["tasks"]) == ["STS12", "STS14", "STSb-dev"]
        # Without the set that hyper-parameters were chosen on
        for key, mean in row["mean"].items():
            assert mean == pytest.approx(
                (row["tasks"]["STS12"][key] + row["tasks"]["STS14"][key]) / 2
            ), name
    assert found["best_member"] == max(members, key=lambda name: rows[name]["mean"]["spearman"])
    for name in METHODS:
        assert rows[name]["seconds"] >= 0
        better = rows[name]["difference"]
        means = [rows[one]["mean"]["spearman"] for one in (name, found["best_member"])]
        assert better["difference"] == pytest.approx(means[0] - means[1])
        assert better["low"] <= better["difference"] <= better["high"]
    assert list(found["table3"]) == ["nobody", *members]
    for name in METHODS:
        of_all = found["table3"]["nobody"][name]
        assert of_all["mean"] == rows[name]["mean"]
        assert of_all["dev"] == pytest.approx(
            {key: rows[name]["tasks"]["STSb-dev"][key] for key in of_all["dev"]}
        )
    tables = [
        (tmp_path / "out" / f"table{i}.md").read_text(encoding="utf8").splitlines()
        for i in range(1, 5)
    ]
    heads = [
        "| settings | STS benchmark dev | fit, s |",
        "|  | STS12 | STS14 | STSb-dev (tuned) | mean | better | fit, s |",
    ]
    assert [table[0] for table in tables[:2]] == heads
    marked = [
        json.loads(line.split("|")[1].replace("(paper)", ""))
        for line in tables[0]
        if "} (paper) |" in line
    ]
    expected = {("svd", True), ("gcca", False), ("ae", False)}
    assert {(one["method"], one.get("normalize", True)) for one in marked} == expected
    assert [line.split(" | ")[0].strip("| ") for line in tables[1][2 : 2 + len(rows)]] == list(rows)
    assert tables[2][0].startswith("| left out | conc (paper), dev (tuned) | conc (paper), mean |")
    assert len(tables[3]) > 2 + 5 + 6
    assert tables[3][2].startswith("| STS12 MSRpar |")


@pytest.mark.slow
def test_a_table_goes_on_where_it_was_stopped(load_script, tables, tmp_path, monkeypatch):
    shutil.rmtree(tmp_path / "out")
    data = load_script("meta_scores").Data
    score = data.score
    methods = ("--methods", "svd", "gcca")

    def stop(self, source):
        if len(list((tmp_path / "out" / "runs").glob("gcca*"))) == 3:
            raise KeyboardInterrupt
        return score(self, source)

    monkeypatch.setattr(data, "score", stop)
    with pytest.raises(KeyboardInterrupt):
        tables(*methods)
    monkeypatch.setattr(data, "score", score)
    done = {file: file.stat().st_mtime_ns for file in (tmp_path / "out" / "runs").iterdir()}
    # One of svd
    assert len(done) == 4
    found = tables(*methods)
    assert all(file.stat().st_mtime_ns == at for file, at in done.items())
    assert tables(*methods) == found
    assert {json.loads(key)["method"] for key in found["table1"]} == {"svd", "gcca"}, (
        "those that were asked for"
    )
    assert list(found["table2"])[-3:] == ["svd (paper)", "gcca, raw (paper)", "gcca, unit length"]
