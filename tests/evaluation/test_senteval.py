"""Transfer and probing tasks are scikit-learn on the vectors, with SentEval's splits; their files are as published."""

import sys
from pathlib import Path

import numpy
import pytest
from made_data import HashedSource
from pipelines import real_data
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from spacy_sbert.evaluation import Settings
from spacy_sbert.evaluation.encoders import VectorStore
from spacy_sbert.evaluation.protocols import classification
from spacy_sbert.evaluation.protocols.classification import _fit_mlp
from spacy_sbert.evaluation.protocols.senteval import TASKS, _x_probe_rows
from spacy_sbert.evaluation.task import MissingData, Run, Variant

BY_NAME = {task.name: task for task in TASKS}
GRID = {"C": [0.25, 8.0]}  # some of SentEval's
FOLDS = StratifiedKFold(10, shuffle=True, random_state=1111)
INNER = StratifiedKFold(5, shuffle=True, random_state=1111)
COARSE = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
assert classification._C_GRID == (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(classification, "_C_GRID", tuple(GRID["C"]))
    monkeypatch.setattr(classification, "_MAX_PASSES", 20)


@pytest.fixture
def one_c(monkeypatch, few):
    monkeypatch.setattr(classification, "_C_GRID", (1.0,))


class Cued(HashedSource):
    """Noise, and a direction for the first word, that classifiers can learn in part."""

    def vector(self, text):
        return super().vector(text) + 0.8 * super().vector(text.split(" ")[0])


def run(name, root, source=None, **settings):
    store = VectorStore(source or Cued(), None, lambda items, _: items)
    settings = Settings(**{"any_count": True, "bootstrap": 50, "classifiers": ("lr",), **settings})
    return BY_NAME[name].run(Run(root, store, settings, lambda items, _: items))


def write(path: Path, lines, encoding="utf8"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(("\n".join(lines) + "\n").encode(encoding))


def write_polarity(root, positive=40, negative=30, folder="MR", files=("rt-polarity.pos", "rt-polarity.neg")):
    texts = [f"good film {i}" for i in range(positive)], [f"bad film {i}" for i in range(negative)]
    for file, lines in zip(files, texts, strict=True):
        write(root / folder / file, lines)
    return [*texts[0], *texts[1]], numpy.array(["positive"] * positive + ["negative"] * negative)


def write_treebank(root, labels, line, **sizes):
    found = {}
    for split, size in sizes.items():
        rows = [(f"word{i % len(labels)} {split} {i}", labels[i % len(labels)]) for i in range(size)]
        folder = "binary" if len(labels) == 2 else "fine"
        write(root / f"SST/{folder}/sentiment-{split}", [line(*row) for row in rows])
        found[split] = [text for text, _ in rows], numpy.array([label for _, label in rows])
    return found


def write_questions(root, train=60, test=24):
    found = {}
    for split, file, size in (("train", "train_5500.label", train), ("test", "TREC_10.label", test)):
        rows = [(f"{COARSE[i % 6]}q\xe9 {split} {i} ?", COARSE[i % 6]) for i in range(size)]
        write(root / "TREC" / file, [f"{label}:fine {text}" for text, label in rows], "latin-1")
        found[split] = [text for text, _ in rows], numpy.array([label for _, label in rows])
    return found


def write_paraphrases(root, train=40, test=20):
    found = {}
    for split, size in (("train", train), ("test", test)):
        rows = [(str(i % 3 % 2), f'{split} "one {i}', f"{'same' if i % 3 % 2 else 'other'} {i}") for i in range(size)]
        lines = ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"]
        lines += [f"{y}\t{i}\t9\t{u}\t{v}" for i, (y, u, v) in enumerate(rows)]
        write(root / f"MRPC/msr_paraphrase_{split}.txt", lines)
        found[split] = rows
    return found


def search():
    return GridSearchCV(LogisticRegression(max_iter=1000), GRID, cv=INNER)


def bits(right):
    return "".join("01"[int(value)] for value in right)


def encoded(data, source=None):
    """Vectors and labels of each split."""
    return (((source or Cued()).encode(texts), labels) for texts, labels in data.values())


def test_cross_validation_is_that_of_scikit_learn(tmp_path):
    texts, labels = write_polarity(tmp_path)
    result = run("MR", tmp_path)
    rows, chosen, expected = Cued().encode(texts), [], numpy.zeros(70, dtype=bool)
    for train, test in FOLDS.split(rows, labels):
        found = search().fit(rows[train], labels[train])
        chosen.append(found.best_params_["C"])
        expected[test] = found.predict(rows[test]) == labels[test]
    assert 0.6 < expected.mean() < 1
    assert result["predictions"]["right"] == bits(expected), "in the order of the data"
    assert result["variants"][0]["scores"] == {"lr": {"accuracy": pytest.approx(expected.mean(), abs=1e-12)}}
    assert result["variants"][0]["c"] == chosen and len(set(chosen)) > 1
    low, high = result["intervals"]["lr.accuracy"]
    assert low < expected.mean() < high
    assert result["counts"] == {"all": 70} and result["primary"] == "lr.accuracy"


def perceptron(rows, labels, seed, dev=None):
    """What the MLP is, of training data alone or with others to stop it."""
    names, classes = numpy.unique(labels, return_inverse=True)
    if dev is not None:
        return _fit_mlp((rows, classes), (dev[0], numpy.searchsorted(names, dev[1])), len(names), seed)
    folds = min(20, *numpy.bincount(classes))
    fit, held = next(StratifiedKFold(folds, shuffle=True, random_state=seed).split(rows, classes))
    return _fit_mlp((rows[fit], classes[fit]), (rows[held], classes[held]), len(names), seed)


def test_train_and_test_are_kept_apart_and_mlp_is_a_mean_over_seeds(tmp_path):
    data = write_questions(tmp_path)
    result = run("TREC", tmp_path, classifiers=("lr", "mlp"), seeds=(5, 6, 7, 8))
    (train, y), (test, gold) = encoded(data)
    lr = search().fit(train, y)
    assert result["predictions"]["right"] == bits(lr.predict(test) == gold)
    variant = result["variants"][0]
    assert variant["c"] == [lr.best_params_["C"]]
    best = [perceptron(train, y, seed) for seed in (5, 6, 7)]
    mlp = [(numpy.array(COARSE)[one.predict(test)] == gold).mean() for one in best]
    assert variant["networks"] == [{**best[0].setting._asdict(), "passes": best[0].passes}]
    assert variant["scores"]["mlp"]["accuracy"] == pytest.approx(numpy.mean(mlp), abs=1e-12)
    assert variant["deviation"]["mlp"]["accuracy"] == pytest.approx(numpy.std(mlp, ddof=1), abs=1e-12)
    assert variant["deviation"]["lr"]["accuracy"] is None
    assert "5, 6, 7" in result["protocol"]["mlp"]


def test_pairs_are_compared_by_difference_and_product(tmp_path):
    data = write_paraphrases(tmp_path)
    result = run("MRPC", tmp_path, trained_on=("mrpc-train", "stsb"))
    rows, labels = {}, {}
    for split, found in data.items():
        labels[split], first, second = (list(column) for column in zip(*found, strict=True))
        u, v = Cued().encode(first), Cued().encode(second)
        rows[split] = numpy.hstack([abs(u - v), u * v])
    predicted = search().fit(rows["train"], labels["train"]).predict(rows["test"])
    scores = result["variants"][0]["scores"]["lr"]
    assert result["predictions"]["right"] == bits(predicted == labels["test"])
    assert scores["f1"] == pytest.approx(f1_score(labels["test"], predicted, pos_label="1"), abs=1e-12)
    assert 0 < scores["f1"] < 1
    assert "trained on mrpc-train, which" in result["notes"][-1]


def test_c_is_chosen_on_dev_where_there_is_one(tmp_path):
    data = write_treebank(tmp_path, "01234", "{1} {0}".format, train=60, dev=25, test=25)
    result = run("SST-5", tmp_path, trained_on=("mr",))
    (train, y), (dev, dev_y), (test, gold) = encoded(data)
    models = {c: LogisticRegression(C=c, max_iter=1000).fit(train, y) for c in GRID["C"]}
    accuracies = [model.score(dev, dev_y) for model in models.values()]
    best = GRID["C"][int(numpy.argmax(accuracies))]
    assert min(accuracies) < max(accuracies)
    assert result["variants"][0]["c"] == [best]
    assert result["predictions"]["right"] == bits(models[best].predict(test) == gold)
    assert result["counts"] == {"train": 60, "dev": 25, "test": 25, "all": 110}
    assert not any("trained on" in note for note in result["notes"])


class Small(Cued):
    """Numbers so small that regularized regression finds the cue only after z-scoring."""

    def vector(self, text):
        return 1e-4 * super().vector(text)


def test_each_classifier_has_a_normalization_of_its_own(tmp_path):
    """Moments are of training data; the normalization that is best on dev is tuned."""
    data = write_treebank(tmp_path, "01", "{0}\t{1}".format, train=60, dev=40, test=40)
    names = ("none", "zscore")
    result = run("SST-2", tmp_path, Small(), normalizations=names, classifiers=("lr", "mlp"), seeds=(1, 2))
    (train, y), (dev, dev_y), (test, gold) = encoded(data, Small())
    scaler = StandardScaler().fit(train.astype("float64"))
    on_dev, on_test = {"lr": {}, "mlp": {}}, {"lr": {}, "mlp": {}}
    for name in names:
        scale = Variant(name).fit(train, 1)
        rows, others, tested = (scale(part).astype("float32") for part in (train, dev, test))
        if name == "zscore":
            assert rows == pytest.approx(scaler.transform(train.astype("float64")), abs=1e-5)
        tolerance = classification._tolerance(rows, y)
        models = [LogisticRegression(C=c, max_iter=1000, tol=tolerance).fit(rows, y) for c in GRID["C"]]
        lr = max(models, key=lambda model: model.score(others, dev_y))
        networks = [perceptron(rows, y, seed, (others, dev_y)) for seed in (1, 2)]
        on_dev["lr"][name] = lr.score(others, dev_y)
        on_dev["mlp"][name] = numpy.mean([(one.predict(others).astype(str) == dev_y).mean() for one in networks])
        on_test["lr"][name] = lr.score(tested, gold)
        on_test["mlp"][name] = numpy.mean([(one.predict(tested).astype(str) == gold).mean() for one in networks])
    for classifier in ("lr", "mlp"):
        found = {entry["normalization"]: entry["scores"][classifier]["accuracy"] for entry in result["variants"]}
        assert found == pytest.approx(on_test[classifier], abs=1e-12)
        chosen = max(on_dev[classifier], key=on_dev[classifier].__getitem__)
        assert result["tuned"]["by_classifier"][classifier] == [chosen]
        assert result["tuned"]["scores"][classifier]["accuracy"] == found[chosen]
    assert result["tuned"]["normalization"] == result["tuned"]["by_classifier"]["lr"] == ["zscore"]


def test_a_source_that_learns_is_shown_training_texts_alone(tmp_path, one_c):
    class Learning(Cued):
        learns = True

        def encode(self, texts, fit_on=()):
            shown.append(set(fit_on))
            return super().encode(texts)

    texts, labels = write_polarity(tmp_path)
    shown = []
    run("MR", tmp_path, Learning())
    assert shown == [{texts[i] for i in train} for train, _ in FOLDS.split(texts, labels)]


def test_blank_lines_count_officially_but_are_no_examples(tmp_path, one_c):
    write_polarity(tmp_path, 30, 30, "CR", ("custrev.pos", "custrev.neg"))
    with (tmp_path / "CR/custrev.neg").open("a", encoding="utf8") as file:
        file.write("\n \n")
    result = run("CR", tmp_path)
    assert result["counts"] == {"all": 60} and "2 blank lines" in result["notes"][-1]
    assert result["notes"][0].startswith("CR: 62 examples, where the official data set has 3,775")
    with pytest.raises(ValueError, match=r"CR: 62 examples .* has 3775"):
        run("CR", tmp_path, any_count=False)


BROKEN = [
    ("MR", "MR/rt-polarity.neg", b"bad film\nna\xefve\n", "line 2: not UTF-8"),
    ("SST-5", "SST/fine/sentiment-test", b"5 fine\n", "line 1: unknown label '5'"),
    ("SST-5", "SST/fine/sentiment-test", b"4 fine\n4\n", "line 2: sentence is empty"),
    ("TREC", "TREC/TREC_10.label", b"WHO:ind Who ?\n", "line 1: unknown label 'WHO'"),
    ("MRPC", "MRPC/msr_paraphrase_test.txt", b"1\t2\t3\ta\tb\n", "line 1: expected a column 'Quality'"),
    ("MRPC", "MRPC/msr_paraphrase_test.txt", b"Quality\t#1 String\t#2 String\n1\ta\n", "line 2: no column"),
    ("SubjNum", "probing/subj_number.txt", b"xx\tNN\ta\n", "line 1: unknown label 'xx', expected one of tr, va, te"),
    ("SubjNum", "probing/subj_number.txt", b"tr\tNN\ta\nte\tNN\n", "line 2: no column 'sentence'"),
    ("SubjNum", "probing/subj_number.txt", b"te\t\ta text\n", "line 1: label is empty"),
    ("SubjNum", "probing/subj_number.txt", b"te\tNN\t \n", "line 1: sentence is empty"),
]


@pytest.mark.parametrize("name, file, content, message", BROKEN)
def test_broken_files_are_named_with_the_line(tmp_path, name, file, content, message):
    write_polarity(tmp_path)
    write_treebank(tmp_path, "01234", "{1} {0}".format, train=20, dev=10, test=10)
    write_questions(tmp_path)
    write_paraphrases(tmp_path)
    write_probing(tmp_path, "subj_number", probing())
    (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=f"{Path(file).name}, {message}"):
        run(name, tmp_path)


def test_one_class_and_too_few_examples_are_refused(tmp_path):
    write_questions(tmp_path, train=6 * 4)
    with pytest.raises(ValueError, match="TREC: the training examples have 6 labels, the rarest, 'ABBR', 4 times"):
        run("TREC", tmp_path)
    write(tmp_path / "TREC/train_5500.label", ["HUM:ind Who ?"] * 20)
    with pytest.raises(ValueError, match="TREC: the training examples have 1 labels, the rarest, 'HUM', 20 times"):
        run("TREC", tmp_path)
    write_polarity(tmp_path, 20, 9)
    with pytest.raises(ValueError, match=r"'negative', 9 times\. Expected two labels or more, each at least 10 times"):
        run("MR", tmp_path)


def test_missing_files_and_a_missing_scikit_learn_are_named(tmp_path, monkeypatch):
    for task in TASKS:
        with pytest.raises(MissingData, match="SICK_train" if task.name == "SICK-E" else "SentEval"):
            task.find(tmp_path)
    write_polarity(tmp_path)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(ImportError, match=r"MR needs scikit-learn.*spacy-sbert\[evaluation\]"):
        run("MR", tmp_path)


def real_paths(name, least=1):
    try:
        paths = BY_NAME[name].find(real_data())
    except MissingData as missing:
        pytest.skip(str(missing))
    if len(paths) < least:
        pytest.skip("SentEval's own file")
    return paths


@pytest.mark.parametrize(
    "name, counts", [("MR", [5331, 5331]), ("CR", [2407, 1368]), ("TREC", [5452, 500]), ("SST-2", [67349, 872, 1821])]
)
def test_the_official_files_are_read_whole(name, counts):
    files = zip(real_paths(name), BY_NAME[name].files, strict=True)
    rows = [list(read(path)) for path, (_, _, read) in files]
    assert list(map(len, rows)) == counts
    assert len({row.label for each in rows for row in each}) == {"TREC": 6}.get(name, 2)


@pytest.mark.parametrize(
    "name, size, classes", [("SentLen", 4998, 6), ("WC", 10_000, 1000), ("BShift", 10_000, 2), ("Tense", 10_000, 2)]
)
def test_real_files_of_probing_are_read_whole(name, size, classes):
    for path in real_paths(name, least=2):
        rows = list(_x_probe_rows(path))
        assert (len(rows), len({row.label for row in rows})) == (size, classes)


def test_logistic_regression_learns_where_its_first_gradient_is_below_the_usual_tolerance():
    rng = numpy.random.default_rng(0)
    classes = numpy.repeat(numpy.arange(5), 20)
    labels = numpy.array(COARSE)[classes]
    rows = (1e-4 * (numpy.eye(5)[classes] + 0.1 * rng.normal(size=(100, 5)))).astype("float32")
    assert LogisticRegression().fit(rows, labels).n_iter_ == [0], "scikit-learn's own stops at once"
    first = abs((1 / 5 - numpy.eye(5)[classes]).T @ rows / 100).max()
    assert classification._tolerance(rows, labels) == pytest.approx(0.01 * first, rel=1e-6)
    assert classification._tolerance(1e4 * rows, labels) == 1e-4
    train, test = numpy.arange(0, 100, 2), numpy.arange(1, 100, 2)
    fold = classification._Fold(train, test, ((train, test),))
    predicted, accuracy, _ = classification._predict_lr(rows, labels, fold, compare=True)
    assert (predicted == labels[test]).all() and accuracy == 1


def test_other_official_files_are_read(tmp_path, one_c):
    for name, files in {"SUBJ": ("subj.subjective", "subj.objective"), "MPQA": ("mpqa.pos", "mpqa.neg")}.items():
        write_polarity(tmp_path / "senteval", 12, 10, name, files)
        assert [path.name for path in BY_NAME[name].find(tmp_path)] == list(files)
        assert [len(list(read(place.find(tmp_path)))) for _, place, read in BY_NAME[name].files] == [12, 10]
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment"
    labels = ("NEUTRAL", "ENTAILMENT", "CONTRADICTION")
    for file, size in (("SICK_train.txt", 30), ("SICK_trial.txt", 9), ("SICK_test_annotated.txt", 12)):
        lines = [f"{i}\t{labels[i % 3]} a {i}\t{labels[i % 3]} b {i}\t3.5\t{labels[i % 3]}" for i in range(size)]
        write(tmp_path / "SICK" / file, [header, *lines])
    result = run("SICK-E", tmp_path)
    assert result["counts"] == {"train": 30, "dev": 9, "test": 12, "all": 51}
    assert len(result["predictions"]["right"]) == 12


def test_with_much_to_train_one_network_is_enough(tmp_path, monkeypatch):
    write_questions(tmp_path)
    monkeypatch.setattr(classification, "_MLP_ROWS", 59)
    result = run("TREC", tmp_path, classifiers=("mlp",))
    assert result["primary"] == "mlp.accuracy" and list(result["variants"][0]["scores"]) == ["mlp"]
    assert result["protocol"]["mlp"].endswith("mean over the seeds 1") and "deviation" not in result["variants"][0]


SIZES = {"tr": 40, "va": 20, "te": 30}


def probing(splits=SIZES):
    labels = "NNS", "NN"
    return {split: [(f"cue{i % 2} {split} {i}", labels[i % 2]) for i in range(SIZES[split])] for split in splits}


def write_probing(root, file, data, more=""):
    rows = [f"{split}\t{label}\t{more}{text}" for split, each in data.items() for text, label in each]
    write(root / "probing" / f"{file}.txt", rows)


def write_x_probe(root, file, data):
    for split, rows in data.items():
        write(root / "probing" / file / f"{split}.txt", [f"{text}\t{label}" for text, label in rows])


def right(model, train, test):
    (texts, y), (tested, gold) = (map(list, zip(*rows, strict=True)) for rows in (train, test))
    return bits(model.fit(Cued().encode(texts), y).predict(Cued().encode(tested)) == numpy.array(gold))


def test_both_layouts_of_probing_give_the_same(tmp_path):
    data = probing()
    write_probing(tmp_path, "word_content", data)
    official = run("WC", tmp_path)
    write_probing(tmp_path, "word_content", data, more="more\t")
    assert run("WC", tmp_path) == official, "the sentence is the last column"
    (tmp_path / "probing" / "word_content.txt").unlink()
    write_x_probe(tmp_path, "word_content", data)
    other = run("WC", tmp_path)
    assert official["counts"] == {"train": 40, "dev": 20, "test": 30, "all": 90}
    assert other["variants"] == official["variants"]
    (c,) = official["variants"][0]["c"]
    expected = right(LogisticRegression(C=c, max_iter=1000), data["tr"], data["te"])
    assert official["predictions"] == {"right": expected} == other["predictions"]
    assert "X-Probe" in other["notes"][0] and len(official["notes"]) == 3, "three splits that are not whole"


def test_without_tr_va_is_trained_on_and_it_is_said(tmp_path):
    data = probing(["va", "te"])
    write_x_probe(tmp_path, "obj_number", data)
    result = run("ObjNum", tmp_path)
    assert result["predictions"]["right"] == right(search(), data["va"], data["te"])
    assert result["counts"] == {"train": 20, "test": 30, "all": 50}
    assert any(note.startswith("Trained on va") for note in result["notes"])


def test_incomplete_probing_data_are_refused(tmp_path):
    write_probing(tmp_path, "bigram_shift", probing())
    with pytest.raises(ValueError, match=r"bigram_shift\.txt: 40 examples .* has 100000"):
        run("BShift", tmp_path, any_count=False)
    write_probing(tmp_path, "top_constituents", probing(["tr", "va"]))
    with pytest.raises(ValueError, match=r"top_constituents\.txt"):
        run("TopConst", tmp_path)
    write_x_probe(tmp_path, "past_present", probing(["va"]))
    with pytest.raises(MissingData, match=r"te\.txt not found"):
        BY_NAME["Tense"].find(tmp_path)
