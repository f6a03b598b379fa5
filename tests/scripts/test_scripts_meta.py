"""The scripts of meta-embeddings: ensembles of several kinds of encoders, and the paper's tables."""

import json
import shutil
from collections import Counter
from functools import partial

import numpy
import pytest
import spacy
from helpers.made_data import write_benchmark, write_year
from helpers.made_views import SENTENCES
from transformers import BertConfig, BertModel

from spacy_sbert.hub import export_folder
from spacy_sbert.similarity import spearman

CODE = """
import numpy
from spacy.util import registry

@registry.misc("made_lengths.v2")
def make_lengths():
    return lambda texts: numpy.array([[len(text), len(text.text) ** 0.5] for text in texts], dtype="f4")
"""


@pytest.fixture(scope="module")
def narrow_bert(tiny_bert, tmp_path_factory):
    """Another BERT, width 8."""
    folder = tmp_path_factory.mktemp("narrow")
    BertModel(
        BertConfig.from_pretrained(tiny_bert, hidden_size=8, intermediate_size=16)
    ).save_pretrained(folder)
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_bert / name, folder)
    return folder


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    file = tmp_path_factory.mktemp("code") / "lengths.py"
    file.write_text(CODE, encoding="utf8")
    return file


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["own", "shared", "listening"])
def test_an_ensemble_of_every_kind_of_member(
    run_script, make_nlp, tiny_bert, narrow_bert, code, tmp_path, kind
):
    export_folder(make_nlp("static"), tmp_path / "table")
    pipeline = make_nlp(kind)
    pipeline.to_disk(tmp_path / "pipeline")
    encoders = [
        f"wide={tiny_bert}",
        f"narrow={narrow_bert}",
        f"table={tmp_path}/table",
        f"own={tmp_path}/pipeline",
    ]
    given = ["--encoder", *encoders, "--function", "lengths=made_lengths.v2", "--code", code]
    run_script("ensemble", *given, "--output", tmp_path / "ensemble")
    nlp = spacy.load(tmp_path / "ensemble")
    doc = nlp("A man is eating.")
    assert [one.name for one in nlp.get_pipe("sbert_meta").members] == [
        "wide",
        "narrow",
        "table",
        "own",
        "lengths",
    ]
    assert doc.vector.shape == (16 + 8 + 16 + 16 + 2,)
    assert doc._.own_vector == pytest.approx(pipeline("A man is eating.").vector, abs=1e-5)
    assert doc._.table_vector == pytest.approx(
        make_nlp("static")("A man is eating.").vector, abs=1e-6
    )
    assert doc._.wide_vector == pytest.approx(make_nlp()("A man is eating.").vector, abs=1e-5)
    assert doc.vector[-2:] == pytest.approx(numpy.array([5, 4]) / 41**0.5, abs=1e-6)


def test_poolings_share_a_transformer_beside_another_one(
    run_script, tiny_bert, narrow_bert, tmp_path
):
    given = ["--encoder", f"mean={tiny_bert}", f"other={narrow_bert}", "--pooling", "max=max"]
    run_script("ensemble", *given, "--output", tmp_path / "ensemble")
    nlp = spacy.load(tmp_path / "ensemble")
    assert nlp.pipe_names == ["transformer", "mean", "max", "other", "sbert_meta"]
    assert nlp("A man.").vector.shape == (40,)


def test_ensembles_that_cannot_be(run_script, capsys):
    for given, message in (
        (("--encoder", "a=x", "--trained", "a=y"), "a name of its own, given twice: a"),
        (("--counts", "words.txt"), "take the first --encoder"),
    ):
        with pytest.raises(SystemExit):
            run_script("ensemble", *given, "--output", "nowhere")
        assert message in capsys.readouterr().err


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
def make_tables(run_script, code):
    """Run the script on the data of a folder; the scores that it writes."""

    def make(folder, *options):
        (folder / "corpus.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf8")
        given = ["--corpus", folder / "corpus.txt", "--data", folder / "data", "--any-count"]
        given += ["--code", code, "--output", folder / "out", "--epochs", 2, "--batch-size", 60]
        run_script("meta_embeddings", folder / "ensemble", *given, *options)
        return json.loads((folder / "out" / "scores.json").read_text(encoding="utf8"))

    return make


@pytest.fixture(scope="module")
def finished(run_script, make_tables, tiny_bert, narrow_bert, code, tmp_path_factory):
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
    run_script("ensemble", *given, "--code", code, "--output", folder / "ensemble")
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
    assert found["widths"] == {"wide": 16, "narrow": 8, "lengths": 2} and found["tuned_on"] == [
        "STSb-dev"
    ]
    grid = {key: json.loads(key) for key in found["table1"]}
    counts = Counter((one["method"], one.get("normalize")) for one in grid.values())
    assert counts == {
        ("svd", None): 1,
        ("gcca", True): 5,
        ("gcca", False): 5,
        ("ae", True): 12,
        ("ae", False): 12,
    }
    rows, members = found["table2"], ["wide", "narrow", "lengths"]
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
    assert len(tables[3]) > 2 + 5 + 6 and tables[3][2].startswith("| STS12 MSRpar |")


@pytest.mark.slow
def test_a_table_goes_on_where_it_was_stopped(load, tables, tmp_path, monkeypatch):
    shutil.rmtree(tmp_path / "out")
    data = load("meta_scores").Data
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


def test_resamples_are_those_of_each_subset(load):
    script = load("meta_scores")
    rng = numpy.random.default_rng(0)
    gold, subset = rng.normal(size=60), ["a"] * 40 + ["b"] * 20
    near, far = gold + 0.5 * rng.normal(size=60), gold + 2 * rng.normal(size=60)

    def tasks(predicted):
        given = {"gold": gold, "subset": subset}
        return {"one": {"predicted": predicted, **given}, "tuned": {"predicted": gold, **given}}

    ours, theirs = (script.resampled(tasks(predicted), ["tuned"]) for predicted in (near, far))
    halves = slice(40), slice(40, None)
    expected = [
        100 * numpy.mean([spearman(p[half], gold[half]) for half in halves]) for p in (near, far)
    ]
    assert [ours[0], theirs[0]] == pytest.approx(expected)
    found = script.difference(ours, theirs)
    assert found["difference"] == pytest.approx(expected[0] - expected[1]) and found["low"] > 0
    assert script.difference(ours, ours) == {"difference": 0.0, "low": 0.0, "high": 0.0}
    shifted = script.resampled(tasks(3 * near + 1), ["tuned"])
    # Ranks alone count, of the same resamples
    assert shifted == pytest.approx(ours)
    assert script.difference(script.resampled(tasks(near), ["one", "tuned"]), ours) is None
