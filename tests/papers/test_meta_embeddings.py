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


@pytest.fixture(scope="module")
def found(finished):
    """The scores of the finished run."""
    return json.loads((finished / "out" / "scores.json").read_text(encoding="utf8"))


def read_table(folder, number):
    return (folder / "out" / f"table{number}.md").read_text(encoding="utf8").splitlines()


MEMBERS = ["wide", "narrow", "lengths"]
METHODS = ["conc (paper)", "avg (paper)", "svd (paper)", "gcca, raw (paper)", "gcca, unit length"]
METHODS += ["ae, raw (paper)", "ae, unit length"]


@pytest.mark.slow
def test_each_setting_is_tried_on_the_benchmark(found, finished):
    grid = [json.loads(key) for key in found["table1"]]
    assert found["tuned_on"] == ["STSb-dev"]
    assert Counter((one["method"], one.get("normalize")) for one in grid) == {
        ("svd", None): 1,
        ("gcca", True): 5,
        ("gcca", False): 5,
        ("ae", True): 12,
        ("ae", False): 12,
    }
    head, *lines = read_table(finished, 1)
    assert head == "| settings | STS benchmark dev | fit, s |"
    of_the_paper = [line for line in lines if "} (paper) |" in line]
    settings = [json.loads(line.split("|")[1].replace("(paper)", "")) for line in of_the_paper]
    expected = {("svd", True), ("gcca", False), ("ae", False)}
    assert {(one["method"], one.get("normalize", True)) for one in settings} == expected


@pytest.mark.slow
def test_members_and_combinations_are_scored_on_each_task(found, finished):
    rows = found["table2"]
    assert found["widths"] == {"wide": 16, "narrow": 8, "lengths": 2}
    assert list(rows) == [*MEMBERS, "narrow, projected up", "lengths, projected up", *METHODS]
    head, _, *lines = read_table(finished, 2)
    assert head == "|  | STS12 | STS14 | STSb-dev (tuned) | mean | better | fit, s |"
    assert [line.split(" | ")[0].strip("| ") for line in lines[: len(rows)]] == list(rows)


@pytest.mark.slow
def test_the_mean_leaves_out_the_set_that_settings_were_chosen_on(found):
    for name, row in found["table2"].items():
        tasks = row["tasks"]
        assert list(tasks) == ["STS12", "STS14", "STSb-dev"]
        for key, mean in row["mean"].items():
            assert mean == pytest.approx((tasks["STS12"][key] + tasks["STS14"][key]) / 2), name


@pytest.mark.slow
def test_each_method_is_compared_with_the_best_member(found):
    rows = found["table2"]
    spearman = {name: row["mean"]["spearman"] for name, row in rows.items()}
    best = max(MEMBERS, key=spearman.get)
    assert found["best_member"] == best
    for name in METHODS:
        assert rows[name]["seconds"] >= 0
        better = rows[name]["difference"]
        assert better["difference"] == pytest.approx(spearman[name] - spearman[best])
        assert better["low"] <= better["difference"] <= better["high"]


@pytest.mark.slow
def test_each_member_is_left_out_once(found, finished):
    assert list(found["table3"]) == ["nobody", *MEMBERS]
    for name in METHODS:
        of_all = found["table3"]["nobody"][name]
        row = found["table2"][name]
        tuned = row["tasks"]["STSb-dev"]
        assert of_all["mean"] == row["mean"]
        assert of_all["dev"] == pytest.approx({key: tuned[key] for key in of_all["dev"]})
    head = read_table(finished, 3)[0]
    assert head.startswith("| left out | conc (paper), dev (tuned) | conc (paper), mean |")


@pytest.mark.slow
def test_the_subsets_have_a_table(finished):
    lines = read_table(finished, 4)
    assert len(lines) > 2 + 5 + 6
    assert lines[2].startswith("| STS12 MSRpar |")


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
