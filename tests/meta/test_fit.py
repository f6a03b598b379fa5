"""Corpora of plain sentences, and the command that fits on them."""

import gzip

import numpy
import pytest
import spacy
from helpers.invoking import said
from helpers.made_views import SENTENCES as CORPUS

from spacy_sbert.meta import GCCA
from spacy_sbert.meta.fit import read_sentences


def test_layouts(tmp_path):
    (tmp_path / "plain.txt").write_text("\ufeffOne. \n\n  Two.\r\n", encoding="utf8")
    assert list(read_sentences(tmp_path / "plain.txt")) == ["One.", "Two."]
    with gzip.open(tmp_path / "table.tsv.gz", "wt", encoding="utf8") as file:
        file.write("made\tOne.\nmade\t \nmade\tTwo.\n")
    assert list(read_sentences(tmp_path / "table.tsv.gz", 2)) == ["One.", "Two."]
    (tmp_path / "table.csv").write_text('made,"One, two."\nmade,Three.\n', encoding="utf8")
    assert list(read_sentences(tmp_path / "table.csv", 2)) == ["One, two.", "Three."]
    (tmp_path / "objects.jsonl").write_text(
        '{"text": "One."}\n{"text": " Two.", "id": 1}\n', encoding="utf8"
    )
    assert list(read_sentences(tmp_path / "objects.jsonl")) == ["One.", "Two."]


@pytest.mark.parametrize(
    ("name", "text", "column", "message"),
    [
        ("a.tsv", "made\tOne.\nTwo.\n", 2, "a.tsv.*line 2"),
        (
            "a.tsv",
            "made\tOne.\nmade\tTwo.\tmore\n",
            2,
            "line 2: 3 columns, but the first line has 2",
        ),
        (
            "a.jsonl",
            '{"text": "One."}\n{"texts": "Two."}\n',
            None,
            'line 2: expected an object with a string "text"',
        ),
        ("a.jsonl", "One.\n", None, "line 1: expected a JSON object"),
    ],
)
def test_damaged_lines_are_named(tmp_path, name, text, column, message):
    (tmp_path / name).write_text(text, encoding="utf8")
    with pytest.raises(ValueError, match=message):
        list(read_sentences(tmp_path / name, column))


@pytest.fixture(scope="module")
def two_encoders(make_nlp, tiny_bert, tmp_path_factory):
    nlp = make_nlp()
    folder = tmp_path_factory.mktemp("fit")
    nlp.add_pipe(
        "sbert", name="sbert_max", config={"model": {"name": str(tiny_bert), "pooling": "max"}}
    )
    nlp.to_disk(folder / "in")
    (folder / "corpus.txt").write_text("\n".join([*CORPUS[:40], "a " * 61]) + "\n", encoding="utf8")
    return folder


def fit(folder, *options, source="in", target="out", code=0):
    return said(
        "fit-meta", folder / source, folder / "corpus.txt", folder / target, *options, code=code
    )


def test_the_command_fits_and_saves(two_encoders):
    cache = two_encoders / "c"
    done = fit(
        two_encoders, "--method", "gcca", "--size", "5", "--option", "tau=0.5", "--cache", cache
    )
    assert "1 sentences of 60 tokens or more were left out" in done
    nlp = spacy.load(two_encoders / "out")
    pipe = nlp.get_pipe("sbert_meta")
    assert nlp.pipe_names == ["sbert", "sbert_max", "sbert_meta"]
    assert pipe.estimator.settings == {"size": 5, "normalize": True, "tau": 0.5}
    views = [
        numpy.memmap(file, dtype="f4").reshape(40, 16) for file in sorted(cache.rglob("*.f32"))
    ]
    assert numpy.array_equal(
        GCCA(size=5, tau=0.5).fit(views).components_, pipe.estimator.components_
    )
    fit(two_encoders, "--option", "tau=2.0", source="out", target="again")
    nlp = spacy.load(two_encoders / "again")
    assert nlp.pipe_names == ["sbert", "sbert_max", "sbert_meta"]
    assert nlp.get_pipe("sbert_meta").estimator.settings == {
        "size": 5,
        "normalize": True,
        "tau": 2.0,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "pca"), "Unknown method 'pca'"),
        (("--method", "svd", "--option", "tau=1"), "'svd' has no setting tau"),
        (("--option", "tau"), "Bad value 'tau' for --option: expected such as tau=1.0"),
        (("--pipe", "sbert"), "'sbert' is not an 'sbert_meta' but a SentenceBert"),
    ],
)
def test_the_command_says_what_is_wrong(two_encoders, options, message):
    assert message in fit(two_encoders, *options, target="none", code=1)
    assert not (two_encoders / "none").exists()
