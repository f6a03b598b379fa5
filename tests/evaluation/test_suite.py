"""Tasks run, are kept, are noticed to have changed; what is missing or broken does not stop the
others.
"""

import json
import re

import numpy
import pytest
import spacy
from helpers.made_data import HashedSource, write_benchmark, write_year
from helpers.pipelines import no_warnings
from scipy import stats
from spacy.language import Language

from spacy_sbert.evaluation import PipelineSource, Settings, evaluate_suites, register_tasks, suite
from spacy_sbert.evaluation.protocols import nli, senteval, speed, sts, triplets
from spacy_sbert.evaluation.protocols.sts import GradedPairs, PairsTask
from spacy_sbert.similarity import cosine

FEW = Settings(any_count=True, bootstrap=50)


@pytest.fixture(autouse=True)
def tasks_of_the_package(monkeypatch):
    """Those alone, whatever other tests have registered."""
    modules = (sts, triplets, nli, senteval, speed)
    tasks = [task for module in modules for task in module.TASKS]
    monkeypatch.setattr(suite, "_TASKS", {task.name: task for task in tasks})


def evaluate(root, source=None, settings=FEW, **kwargs):
    return evaluate_suites(
        source or HashedSource(), root, ["sts"], settings=settings, progress_bar=False, **kwargs
    )


def test_scores_are_those_of_scipy_under_their_own_names(tmp_path):
    write_year(tmp_path)
    source = HashedSource()
    result = evaluate(tmp_path, source)["tasks"]["STS12"]
    assert result["counts"] == {
        "MSRpar": 4,
        "MSRvid": 4,
        "SMTeuroparl": 4,
        "OnWN": 4,
        "SMTnews": 4,
        "all": 20,
    }
    gold = numpy.tile([0.0, 1.0, 2.0, 3.0], 5)
    names = ["MSRpar", "MSRvid", "SMTeuroparl", "surprise.OnWN", "surprise.SMTnews"]
    u, v = (
        source.encode([f"{name} {side} {i}" for name in names for i in range(4)])
        for side in ("left", "right")
    )
    similarities = {"cosine": cosine(u, v), "manhattan": -abs(u - v).sum(1), "dot": (u * v).sum(1)}
    similarities["euclidean"] = -numpy.linalg.norm(u - v, axis=1)
    scores = result["variants"][0]["scores"]
    for similarity, predicted in similarities.items():
        for name, correlate in (("spearman", stats.spearmanr), ("pearson", stats.pearsonr)):
            found = scores[similarity][name]
            each = [
                correlate(predicted[i : i + 4], gold[i : i + 4]).statistic for i in range(0, 20, 4)
            ]
            assert found["pooled"] == pytest.approx(correlate(predicted, gold).statistic, abs=1e-12)
            assert list(found["subsets"].values()) == pytest.approx(each, abs=1e-12)
            assert found["mean"] == pytest.approx(numpy.mean(each), abs=1e-12)
    exact = [
        u @ v / (u @ u * (v @ v)) ** 0.5
        for u, v in zip(u.astype("float64"), v.astype("float64"), strict=True)
    ]
    # Taken in float32
    assert result["predictions"]["predicted"] == pytest.approx(exact, abs=5e-7)


def test_the_weighted_mean_weighs_by_pairs(tmp_path):
    gold = write_year(tmp_path, 14) / "STS.gs.images.txt"
    gold.write_text("0\n1\n\n\n\n", encoding="utf8")
    scores = evaluate(tmp_path)["tasks"]["STS14"]["variants"][0]["scores"]["cosine"]["spearman"]
    sizes = [2 if name == "images" else 4 for name in scores["subsets"]]
    expected = numpy.average(list(scores["subsets"].values()), weights=sizes)
    assert scores["weighted_mean"] == pytest.approx(expected, abs=1e-12)
    assert scores["weighted_mean"] != pytest.approx(scores["mean"], abs=1e-3)


def test_a_second_run_encodes_nothing_and_a_change_is_noticed(tmp_path):
    write_year(tmp_path)
    benchmark = write_benchmark(tmp_path)

    def again(settings=FEW, name="hashed"):
        source = HashedSource(name)
        results = evaluate(tmp_path, source, settings, cache=tmp_path / "cache")
        reused = {task: result["reused"] for task, result in results["tasks"].items()}
        return results, reused, len(source.seen)

    first, reused, seen = again()
    assert not any(reused.values())
    assert seen == 52
    second, reused, seen = again()
    assert all(reused.values())
    assert seen == 0
    assert second["tasks"]["STS12"]["variants"] == first["tasks"]["STS12"]["variants"]

    benchmark.write_text(benchmark.read_text().replace("second 3", "another 3"), encoding="utf8")
    changed, reused, seen = again()
    assert reused == {"STS12": True, "STSb-dev": False}
    assert seen == 1
    assert changed["tasks"]["STSb-dev"]["data"] != first["tasks"]["STSb-dev"]["data"]

    _, reused, seen = again(Settings(any_count=True, bootstrap=50, seeds=(2,)))
    # The vectors are the same
    assert not any(reused.values())
    assert seen == 0
    _, reused, seen = again(name="another model")
    assert not any(reused.values())
    assert seen == 52


def test_damage_in_the_cache(tmp_path):
    """A damaged result is made again, damaged vectors are an error that says what to do."""
    write_benchmark(tmp_path)
    first = evaluate(tmp_path, cache=tmp_path / "cache")
    for damage in ("{}", '{"suite": "sts"'):
        next((tmp_path / "cache").glob("*.json")).write_text(damage)
        again = evaluate(tmp_path, cache=tmp_path / "cache")["tasks"]["STSb-dev"]
        assert not again["reused"]
        assert again["variants"] == first["tasks"]["STSb-dev"]["variants"]
    shard = next((tmp_path / "cache").rglob("*.npz"))
    shard.write_bytes(shard.read_bytes()[:50])
    with pytest.raises(ValueError, match=r"\.npz does not hold saved vectors.*Delete it"):
        evaluate(tmp_path, cache=tmp_path / "cache")


def test_what_is_finished_is_kept_when_one_is_interrupted(tmp_path):
    class Interrupted(HashedSource):
        def encode(self, texts, fit_on=()):
            if any("first" in text for text in texts):
                raise KeyboardInterrupt
            return super().encode(texts)

    write_year(tmp_path)
    write_benchmark(tmp_path)
    saved = []
    with pytest.raises(KeyboardInterrupt):
        evaluate(
            tmp_path,
            Interrupted(),
            cache=tmp_path / "cache",
            save=lambda results: saved.append(list(results["tasks"])),
        )
    assert saved == [["STS12"]]
    results = evaluate(tmp_path, cache=tmp_path / "cache")
    assert results["tasks"]["STS12"]["reused"]
    assert not results["tasks"]["STSb-dev"]["reused"]


def test_missing_sets_are_listed_and_the_others_run(tmp_path):
    folder = write_year(tmp_path)
    (folder / "STS.gs.MSRvid.txt").unlink()
    write_benchmark(tmp_path)
    results = evaluate(tmp_path)
    assert list(results["tasks"]) == ["STSb-dev"]
    assert not results["failed"]
    assert list(results["skipped"]) == ["STS12", "STS13", "STS14", "STS15", "STS16", "STSb-test"]
    assert "STS.gs.MSRvid.txt not found" in results["skipped"]["STS12"]
    assert "http" in results["skipped"]["STS13"]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (("gs", lambda text: text + "3.0\n"), r"STS\.input\.MSRpar\.txt has 5 lines, .*has 6"),
        (("gs", lambda text: text.replace("2.0", "5.5")), r"STS\.gs\.MSRpar\.txt, line 3: .*5\.5"),
        (("gs", lambda text: text.replace("2.0", "nan")), r"STS\.gs\.MSRpar\.txt, line 3: .*nan"),
        (
            ("input", lambda text: text.replace("MSRpar right 1", "")),
            r"STS\.input\.MSRpar\.txt, line 2: .*sentence2",
        ),
        (
            ("input", lambda text: text.replace("1\tMSRpar", "1 MSRpar")),
            r"STS\.input\.MSRpar\.txt, line 2",
        ),
        (
            ("input", lambda text: text.replace("left 2", "l\xe9ft 2").encode("latin-1")),
            r"MSRpar\.txt, line 3: .*UTF-8",
        ),
    ],
)
def test_broken_files_name_the_line_and_the_others_run(tmp_path, damage, message):
    kind, change = damage
    path = write_year(tmp_path) / f"STS.{kind}.MSRpar.txt"
    changed = change(path.read_text(encoding="utf8"))
    path.write_bytes(changed if isinstance(changed, bytes) else changed.encode("utf8"))
    write_benchmark(tmp_path)
    results = evaluate(tmp_path)
    assert list(results["tasks"]) == ["STSb-dev"]
    assert list(results["failed"]) == ["STS12"]
    assert re.search(message, results["failed"]["STS12"]), results["failed"]


def test_a_note_stands_where_training_data_touches(tmp_path):
    write_benchmark(tmp_path)
    failed = evaluate(tmp_path, settings=Settings(bootstrap=0))["failed"]
    assert "sts-dev.csv: 6 examples" in failed["STSb-dev"]
    assert "official data set has 1500" in failed["STSb-dev"]
    count, overlap = evaluate(tmp_path)["tasks"]["STSb-dev"]["notes"]
    assert "6 examples, where the official data set has 1,500" in count
    assert "if the encoder was trained on it" in overlap
    told = Settings(any_count=True, bootstrap=0, trained_on=("stsb-train", "snli"))
    (note,) = evaluate(tmp_path, settings=told)["tasks"]["STSb-dev"]["notes"][1:]
    assert note.startswith("The encoder was trained on stsb-train, which")
    assert note.endswith("is not zero-shot.")


@pytest.mark.parametrize(("part", "changed"), [("versions", {"torch": "0.1"}), ("device", "gpu")])
def test_versions_and_device_are_noticed(tmp_path, monkeypatch, part, changed):
    write_benchmark(tmp_path)
    evaluate(tmp_path, cache=tmp_path / "cache")
    for module in ("suite", "encoders"):
        monkeypatch.setattr(f"spacy_sbert.evaluation.{module}.{part}", lambda: changed)
    source = HashedSource()
    results = evaluate(tmp_path, source, cache=tmp_path / "cache")
    assert not results["tasks"]["STSb-dev"]["reused"]
    assert len(source.seen) == 12


def test_a_constant_prediction_is_undefined(tmp_path):
    class Constant(HashedSource):
        def vector(self, text):
            return numpy.ones(3, dtype="float32")

    write_year(tmp_path)
    result = evaluate(tmp_path, Constant())["tasks"]["STS12"]
    scores = result["variants"][0]["scores"]["cosine"]["spearman"]
    assert scores["pooled"] is scores["mean"] is scores["subsets"]["MSRpar"] is None
    assert result["intervals"]["cosine.spearman.pooled"] is None
    assert "NaN" not in json.dumps(result)
    write_benchmark(tmp_path)
    failed = evaluate(tmp_path, PipelineSource(spacy.blank("xx")))["failed"]
    assert "gives no vectors" in failed["STSb-dev"]
    assert 'add_pipe("sbert")' in failed["STSb-dev"]


def test_tasks_of_ones_own(tmp_path):
    """A registered task is scored as those of the package are, and one of the same name takes its
    place.
    """
    file = tmp_path / "own.csv"
    file.write_text("one", encoding="utf8")

    class Own(PairsTask):
        name = "mine"
        suite = "own"

        def find(self, root):
            return [file]

        def pairs(self, run):
            return GradedPairs("abc", "def", numpy.arange(3.0), ["all"] * 3), [
                file.read_text(encoding="utf8")
            ]

    def measured():
        return evaluate_suites(
            HashedSource(), tmp_path, ["own"], settings=FEW, cache=tmp_path / "cache"
        )["tasks"]

    with pytest.raises(
        ValueError,
        match=r"suite 'own': expected some of sts, ",
    ):
        measured()
    register_tasks(Own())
    register_tasks(Own())
    first = measured()["mine"]
    again = measured()["mine"]
    u, v = (HashedSource().encode(texts) for texts in ("abc", "def"))
    spearman = stats.spearmanr(cosine(u, v), numpy.arange(3)).statistic
    assert first["variants"][0]["scores"]["cosine"]["spearman"]["pooled"] == pytest.approx(
        spearman, abs=1e-12
    )
    assert first["notes"] == ["one"]
    assert again["reused"]
    assert not first["reused"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        pytest.param(
            {"normalizations": ("none", "zscore")},
            "STS12 knows none .* zscore: expected none",
            id="normalizations",
        ),
        pytest.param({"sizes": ("pca-3",)}, "sizes pca-3: expected own", id="sizes"),
        pytest.param({"classifiers": ("mlp",)}, "mlp: expected lr.*--code", id="classifiers"),
        pytest.param({"normalizations": ()}, "expected at least one", id="no normalization"),
        pytest.param({"seeds": (1, 1)}, "none twice", id="equal seeds"),
        pytest.param({"bootstrap": -1}, "bootstrap = -1", id="bootstrap"),
    ],
)
def test_settings_that_no_task_follows_are_refused_before_anything_is_encoded(
    tmp_path, setting, message
):
    write_benchmark(tmp_path)
    source = HashedSource()
    with pytest.raises(ValueError, match=message):
        evaluate(tmp_path, source, Settings(**setting))
    assert not source.seen


def test_settings_of_tasks_that_are_not_asked_for(tmp_path):
    write_benchmark(tmp_path)
    settings = Settings(classifiers=("mlp",))
    evaluate_suites(HashedSource(), tmp_path, ["speed"], settings=settings, progress_bar=False)


def identity(doc):
    return doc


def test_what_is_kept_of_own_code_is_used_again_with_a_warning(tmp_path):
    write_year(tmp_path)
    Language.component("identity_of_suite", func=identity)
    source = HashedSource()
    source.nlp = spacy.blank("en")
    source.nlp.add_pipe("identity_of_suite")
    cache = tmp_path / "cache"
    with no_warnings():
        evaluate(tmp_path, source, cache=cache)
    with pytest.warns(UserWarning, match=r"\[sbert-kept-of-own-code\] The pipeline runs identity"):
        again = evaluate(tmp_path, source, cache=cache)
    assert again["tasks"]["STS12"]["reused"]
