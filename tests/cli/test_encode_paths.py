"""`encode PIPELINE INPUT OUTPUT`, as the other commands have it, and `encode INPUT OUTPUT`."""

import numpy
import pytest
from typer.testing import CliRunner

from spacy_sbert.cli import app

TEXTS = ["the cat sat", "a dog ran", "he"]


@pytest.fixture
def folder(make_nlp, nlp_folder):
    (nlp_folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    numpy.save(nlp_folder / "expected.npy", make_nlp().get_pipe("sbert").encode(TEXTS))
    return nlp_folder


def run(*arguments):
    done = CliRunner().invoke(app, ["encode", *map(str, arguments)])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, " ".join(done.output.replace("\u2502", " ").split())


def test_forms_of_the_command(folder):
    paths, expected = (folder / "texts.txt", folder / "out.npy"), numpy.load(folder / "expected.npy")
    pipeline = folder / "nlp"
    forms = [(pipeline, *paths, "--pipe", "sbert"), (*paths, "--pipeline", pipeline), (*paths, "-p", pipeline)]
    forms += [("-q", pipeline, *paths, "--gpu-id", "-1"), (pipeline, *paths, "--gpu-ids", "")]
    for form in forms:
        code, said = run(*form, "--overwrite")
        assert code == 0 and "Wrote 3 vectors" in said, said
        assert numpy.allclose(numpy.load(folder / "out.npy"), expected, atol=1e-6)


def test_refused(folder):
    nlp, paths = folder / "nlp", (folder / "texts.txt", folder / "out.npy")
    for given, code, message in (
        ([nlp, *paths, "--pipeline", nlp], 1, "--pipeline"),
        ([], 2, "no OUTPUT"),
        ([paths[0]], 2, "no OUTPUT"),
        ([nlp, *paths, "--pipe", "none"], 1, "'none'"),
        ([nlp, *paths, "--gpu-id", 0, "--gpu-ids", "0,1"], 1, "--gpu-id"),
    ):
        found, said = run(*given)
        assert found == code and message in said
    assert not paths[1].exists()
