"""`encode PIPELINE INPUT OUTPUT`, as the other commands have it, and `encode INPUT OUTPUT`."""

import numpy
import pytest
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["the cat sat", "a dog ran", "he"]


@pytest.fixture
def folder(make_nlp, tmp_path):
    nlp = make_nlp()
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    numpy.save(tmp_path / "expected.npy", nlp.get_pipe("sbert").encode(TEXTS))
    return tmp_path


def run(*arguments):
    done = CliRunner().invoke(app, ["encode", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.output.replace("\u2502", " ").split())


def test_both_forms_write_the_same(folder):
    paths, expected = (folder / "texts.txt", folder / "out.npy"), numpy.load(folder / "expected.npy")
    pipeline = folder / "nlp"
    forms = [(pipeline, *paths), (*paths, "--pipeline", pipeline), (*paths, "-p", pipeline), ("-q", pipeline, *paths)]
    forms += [(pipeline, *paths, "--pipe", "sbert")]
    forms += [(pipeline, *paths, "--gpu-id", "-1"), (pipeline, *paths, "--gpu-ids", ""), (pipeline, *paths, "-g", "-1")]
    for form in forms:
        code, said = run(*form, "--overwrite")
        assert code == 0 and "Wrote 3 vectors" in said, said
        assert numpy.allclose(numpy.load(folder / "out.npy"), expected, atol=1e-6)


def test_what_cannot_be_told_apart_is_refused(folder):
    paths = (folder / "texts.txt", folder / "out.npy")
    code, said = run(folder / "nlp", *paths, "--pipeline", folder / "nlp")
    assert code == 1 and "[sbert-encode-paths]" in said
    for given in ([], [folder / "texts.txt"]):
        code, said = run(*given)
        assert code == 2 and "There is no OUTPUT beside" in said
    code, said = run(folder / "nlp", *paths, "--pipe", "none")
    assert code == 1 and "no 'sbert' pipe named 'none'" in said
    code, said = run(folder / "nlp", *paths, "--gpu-id", 0, "--gpu-ids", "0,1")
    assert code == 1 and "[sbert-gpu-twice]" in said
    assert not paths[1].exists()
