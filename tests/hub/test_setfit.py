"""Folders of SetFit: its encoder, and its classifier as coefficients, never as a pickle."""

import json
from itertools import product

import joblib
import numpy
import pytest
import spacy
import torch
from helpers.invoking import said
from helpers.pipelines import ROOT, blocks, change_json
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier

from spacy_sbert import export_folder, find_sbert, import_folder
from spacy_sbert.textcat import find_textcat

WORDS = ["the cat", "a dog", "the mat", "a man", "food", "someone", "a meal", "he"]
TEXTS = [f"{who} {does}" for who, does in product(WORDS, ["sat", "ran fast", "is eating"])]
SETTINGS = {"normalize_embeddings": False, "labels": None}
# Of texts with the labels 0, 1, 2, and of the second alone
NUMBERS = numpy.arange(len(TEXTS)) % 3
SEVERAL = numpy.stack([NUMBERS != 0, NUMBERS == 1, numpy.arange(len(TEXTS)) % 2 == 0], axis=1)


class RandomHead(torch.nn.Module):
    """A classifier as SetFit's of PyTorch, with the attributes of SetFitHead."""

    def __init__(self, *, multitarget=False):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.linear = torch.nn.Linear(16, 3)
        self.temperature = 0.5
        self.eps = 1e-5
        self.multitarget = multitarget

    def fit(self, x, y):
        return self

    @torch.no_grad()
    def predict_proba(self, x):
        logits = self.linear(torch.as_tensor(x).float()) / (self.temperature + self.eps)
        return torch.sigmoid(logits) if self.multitarget else torch.softmax(logits, dim=-1)


def head_dtype(head):
    return "float32" if isinstance(head, RandomHead) else "float64"


@pytest.fixture(scope="module")
def encoder(make_nlp, tmp_path_factory):
    """The folder of an encoder whose vectors do not have length 1."""
    folder = tmp_path_factory.mktemp("setfit") / "encoder"
    nlp = make_nlp("own", model={"normalize": False})
    export_folder(nlp, folder)
    return folder


@pytest.fixture
def make(encoder, tmp_path):
    """Write a folder as SetFit does, and return the probabilities of TEXTS as it predicts them."""

    def make(head, targets, **settings):
        folder = tmp_path / "setfit"
        SentenceTransformer(str(encoder), device="cpu").save(str(folder))
        settings = {**SETTINGS, **settings}
        (folder / "config_setfit.json").write_text(json.dumps(settings, indent=2))
        body = SentenceTransformer(str(folder), device="cpu")
        vectors = body.encode(TEXTS, normalize_embeddings=settings["normalize_embeddings"])
        joblib.dump(head.fit(vectors, targets), folder / "model_head.pkl")
        # Without the rounding of scikit-learn's own
        probabilities = head.predict_proba(vectors.astype(head_dtype(head)))
        if isinstance(probabilities, list):
            probabilities = numpy.stack(probabilities, axis=1)[..., 1]
        return folder, numpy.asarray(probabilities)

    return make


def lines_of(folder):
    """The lines that the refusal of a folder gives."""
    with pytest.raises(ValueError, match="pickle, which can run any code") as refusal:
        import_folder(str(folder))
    return str(refusal.value).partition("\n\n")[2]


def write_by_page(folder):
    """Write the coefficients as docs/sentence-transformers.md does."""
    page = (ROOT / "docs" / "sentence-transformers.md").read_text(encoding="utf8")
    (block,) = (block for block in blocks(page) if "def write_head" in block)
    namespace = {}
    exec(block, namespace)
    namespace["write_head"](str(folder))


def probabilities_of(nlp, labels):
    assert find_textcat(nlp).labels == tuple(labels)
    return numpy.array([[doc.cats[label] for label in labels] for doc in nlp.pipe(TEXTS)])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize(
    ("targets", "given", "labels"),
    [
        (NUMBERS, ["cats", "dogs", "others"], ["cats", "dogs", "others"]),
        (NUMBERS[NUMBERS > 0].repeat(2)[: len(TEXTS)] - 1, ["no", "yes"], ["no", "yes"]),
        # Classes 1 and 2 of three labels
        (NUMBERS % 2 + 1, ["no", "one", "two"], ["one", "two"]),
        # Without labels; with labels in another order than that of the classes
        (NUMBERS, None, ["0", "1", "2"]),
        (numpy.array(["b", "a", "c"])[NUMBERS], ["b", "a", "c"], ["a", "b", "c"]),
    ],
)
def test_probabilities_are_those_of_scikit_learn(make, targets, given, labels, normalize):
    head = LogisticRegression(C=30.0, max_iter=1000)
    folder, expected = make(head, targets, labels=given, normalize_embeddings=normalize)
    exec(lines_of(folder), {})
    nlp = import_folder(str(folder))
    assert nlp.config["components"]["sbert"]["model"]["precision"] == "reference"
    assert numpy.abs(probabilities_of(nlp, labels) - expected).max() < 1e-6
    lengths = numpy.linalg.norm(find_sbert(nlp).encode(TEXTS), axis=1)
    assert numpy.allclose(lengths, 1.0, atol=1e-6) is normalize
    best = [labels[place] for place in expected.argmax(axis=1)]
    assert [nlp(text)._.sbert_label for text in TEXTS] == best


@pytest.mark.parametrize(
    ("head", "targets", "multi_label"),
    [
        (LogisticRegression(C=30.0), NUMBERS, False),
        (LogisticRegression(C=30.0), NUMBERS > 0, False),
        (OneVsRestClassifier(LogisticRegression(C=30.0)), SEVERAL, True),
        (MultiOutputClassifier(LogisticRegression(C=30.0)), SEVERAL, True),
        (RandomHead(), NUMBERS, False),
        (RandomHead(multitarget=True), SEVERAL, True),
    ],
    ids=str,
)
def test_the_page_writes_every_classifier_of_setfit(make, head, targets, multi_label):
    labels = ["a", "b", "c"]
    folder, expected = make(head, targets.astype(int), labels=labels)
    write_by_page(folder)
    nlp = import_folder(str(folder))
    pipe = find_textcat(nlp)
    assert pipe.multi_label is multi_label and pipe.threshold == (0.5 if multi_label else 0.0)
    found = probabilities_of(nlp, labels[: expected.shape[1]])
    assert numpy.abs(found - expected).max() < 1e-6


@pytest.mark.parametrize(
    "head",
    [
        OneVsRestClassifier(LogisticRegression(C=30.0)),
        ClassifierChain(LogisticRegression(C=30.0)),
    ],
    ids=str,
)
def test_another_formula_is_refused(make, head):
    """One against the rest of exclusive classes divides by their sum; a chain reads predictions."""
    targets = NUMBERS if isinstance(head, OneVsRestClassifier) else SEVERAL
    folder, _ = make(head, targets.astype(int))
    with pytest.raises(ValueError, match=r"model_head\.json.*neither the softmax|dimensions"):
        write_by_page(folder)
        import_folder(str(folder))


@pytest.fixture
def written(make):
    """A folder with coefficients, of three classes."""
    folder, _ = make(LogisticRegression(C=30.0), NUMBERS, labels=["a", "b", "c"])
    exec(lines_of(folder), {})
    return folder


def test_a_pickle_is_never_loaded(make):
    folder, _ = make(LogisticRegression(), NUMBERS)
    (folder / "model_head.pkl").write_bytes(b"cos\nsystem\n(S'touch ran'\ntR.")
    lines_of(folder)
    nlp = import_folder(str(folder), encoder_only=True)
    assert nlp.pipe_names == ["sbert"]
    assert not (folder / "ran").exists()
    expected = SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    assert numpy.abs(find_sbert(nlp).encode(TEXTS) - expected).max() < 1e-5


@pytest.mark.parametrize("name", ["config_setfit.json", "model_head.pkl"])
def test_each_file_of_setfit_tells_it(make, name):
    folder, _ = make(LogisticRegression(), NUMBERS)
    (folder / name).unlink()
    assert "joblib.load" in lines_of(folder)


def test_a_pickle_that_was_written_later_is_refused(written):
    import_folder(str(written))
    (written / "model_head.pkl").write_bytes(b"another")
    with pytest.raises(ValueError, match=r"model_head\.json.*another model_head\.pkl than lies"):
        import_folder(str(written))
    # It need not be there
    (written / "model_head.pkl").unlink()
    assert import_folder(str(written)).pipe_names == ["sbert", "sbert_textcat"]


@pytest.mark.parametrize(
    ("file", "key", "value", "message"),
    [
        ("model_head.json", "weights", None, "weights = None: expected a list of lists"),
        ("model_head.json", "weights", [[1.0], [1.0, 2.0]], r"Cannot read .*model_head\.json"),
        ("model_head.json", "weights", [[1.0] * 16] * 3, "neither the softmax nor the sigmoid"),
        ("model_head.json", "bias", [0.0, float("nan"), 0.0], "neither the softmax"),
        ("model_head.json", "bias", "none", "bias = 'none': expected a list of numbers"),
        ("model_head.json", "classes", [True, False, 1], "classes"),
        ("model_head.json", "classes", [0, 1], r"The weights are \(3, 16\).*expected \(2, 16\)"),
        ("model_head.json", "classes", ["a", "b", "a"], "'a' is given twice"),
        ("model_head.json", "classes", ["a", "", "c"], "labels"),
        ("model_head.json", "probabilities", [[1.0, 0.0, 0.0]] * 16, "neither the softmax"),
        ("model_head.json", "sha256", "0", "another model_head.pkl"),
        ("config_setfit.json", "labels", [1, 2, 3], "labels = .*expected a list of strings"),
        ("config_setfit.json", "normalize_embeddings", "yes", "expected true or false"),
        ("config_setfit.json", "span_context", 3, "span_context = 3"),
        ("config_sentence_transformers.json", "truncate_dim", 8, r"expected \(3, 8\)"),
    ],
)
def test_bad_files_are_named(written, file, key, value, message):
    change_json(written / file, **{key: value})
    with pytest.raises(ValueError, match=message):
        import_folder(str(written))


def test_truncated_before_it_is_normalized_is_refused(written):
    change_json(written / "config_sentence_transformers.json", truncate_dim=8)
    change_json(written / "config_setfit.json", normalize_embeddings=True)
    with pytest.raises(ValueError, match=r"normalize_embeddings.*truncate_dim = 8.*encoder-only"):
        import_folder(str(written))


def test_the_command(written, tmp_path):
    output = said("import", written, tmp_path / "both")
    assert "Saved the pipeline" in output
    nlp = spacy.load(tmp_path / "both")
    expected = import_folder(str(written))
    for text in TEXTS[:3]:
        assert nlp(text).cats == expected(text).cats
    assert find_textcat(nlp).cross_validation == {}
    said("import", written, tmp_path / "one", "--encoder-only")
    assert spacy.load(tmp_path / "one").pipe_names == ["sbert"]
