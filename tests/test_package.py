"""`spacy package`: the wheel asks for spacy-sbert, and its pipeline works offline, away from where
it was made.
"""

import csv
import json
import os
import shutil
import subprocess
import sys
import venv
from importlib.metadata import version
from zipfile import ZipFile

import numpy
import pytest
import spacy
from helpers.killing import python, scripted, typed
from helpers.pipelines import ROOT, blocks

from spacy_sbert.hub.cards import describe, package_card, write_readme
from spacy_sbert.readers import read_sts

TEXT = "A man is eating food."
LOAD = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy, socket, spacy
def refuse(*args, **kwargs):
    raise AssertionError("no connection may be tried")
socket.socket.connect = refuse
numpy.save(sys.argv[2], spacy.load("en_tiny")(sys.argv[3]).vector)
"""


@pytest.mark.parametrize("encoder", ["own", pytest.param("shared", marks=pytest.mark.slow)])
def test_wheel(make_nlp, tmp_path, encoder):
    nlp = make_nlp(encoder, lang="en")
    expected = nlp(TEXT).vector
    nlp.to_disk(tmp_path / "nlp")
    card = package_card(describe(nlp, folder=tmp_path / "nlp", name="tiny", version="1.2.3"))
    assert write_readme(tmp_path / "nlp", card)
    package = tmp_path / "nlp", tmp_path, "--name", "tiny", "--version", "1.2.3", "--build", "none"
    succeeded(typed("package", *package))
    # Which --build wheel comes down to
    succeeded(python("setup.py", "bdist_wheel", folder=tmp_path / "en_tiny-1.2.3"))
    (wheel,) = tmp_path.rglob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    requirements = (tmp_path / "site" / "en_tiny-1.2.3.dist-info" / "METADATA").read_text(
        encoding="utf8"
    )
    readme = (tmp_path / "site" / "en_tiny" / "en_tiny-1.2.3" / "README.md").read_text(
        encoding="utf8"
    )
    # What PyPI shows
    assert readme.startswith(card)
    assert readme in requirements
    major, minor, _ = version("spacy-sbert").split(".")
    assert (
        f"Requires-Dist: spacy-sbert<{major}.{int(minor) + 1}.0,>={version('spacy-sbert')}"
        in requirements
    )

    shutil.rmtree(tmp_path / "nlp")
    shutil.rmtree(tmp_path / "en_tiny-1.2.3")
    succeeded(scripted(LOAD, tmp_path / "site", tmp_path / "vector.npy", TEXT))
    assert numpy.array_equal(numpy.load(tmp_path / "vector.npy"), expected)


def succeeded(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fresh_environment(folder):
    """A virtual environment that sees what is installed here; pip itself fetches what it builds
    with.
    """
    venv.create(folder, with_pip=True)
    (site,) = folder.glob("lib/python*/site-packages")
    paths = [ROOT, *(path for path in sys.path if path.endswith("site-packages"))]
    (site / "outer.pth").write_text("\n".join(map(str, paths)), encoding="utf8")
    path = os.pathsep.join([str(folder / "bin"), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "VIRTUAL_ENV": str(folder), "HF_HUB_OFFLINE": "1"}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="bin/")
def test_commands_of_the_tour(tmp_path):
    """As they stand, one after the other, in an environment of their own."""
    shown = blocks((ROOT / "docs" / "tour.md").read_text(), "bash")
    (commands,) = (block.strip().splitlines() for block in shown if "my.cfg" in block)
    assert len(commands) == 4
    for part, count in (("train", 128), ("dev", 60)):
        rows = list(read_sts(ROOT / "assets" / f"pairs-{part}.csv"))[:count]
        with (tmp_path / f"{part}.csv").open("w", newline="", encoding="utf8") as file:
            csv.writer(file).writerows(
                [("first", "second", "grade"), *((*texts, 5 * score) for *texts, score in rows)]
            )
    environment = fresh_environment(tmp_path / "venv")
    for command in commands:
        succeeded(
            subprocess.run(
                command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
            )
        )
    best = tmp_path / "training" / "mine" / "model-best"
    assert json.loads((best / "meta.json").read_text())["performance"]["sts_spearman"] > 0.6
    script = (
        "import sys, numpy, spacy; nlp = spacy.load(sys.argv[1]); numpy.save(sys.argv[2], "
        "nlp(sys.argv[3]).vector)"
    )
    vectors = []
    for place, name in enumerate(("en_my_sbert", best)):
        words = ["python", "-c", script, name, tmp_path / f"{place}.npy", TEXT]
        subprocess.run(list(map(str, words)), check=True, cwd=tmp_path / "venv", env=environment)
        vectors.append(numpy.load(tmp_path / f"{place}.npy"))
    assert numpy.array_equal(*vectors)
    assert vectors[0].any()
    installed = subprocess.run(
        ["pip", "show", "-f", "en_my_sbert"], env=environment, capture_output=True, text=True
    )
    assert str(tmp_path / "venv") in installed.stdout


@pytest.mark.slow
def test_wheel_in_a_fresh_environment(tmp_path):
    """The real model, in an environment of its own: what `make demo` does last."""
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert_transformer", name="transformer")
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}
    )
    nlp.to_disk(tmp_path / "nlp")
    (tmp_path / "packages").mkdir()
    command = [sys.executable, "-m", "spacy", "package", tmp_path / "nlp", tmp_path / "packages"]
    subprocess.run(
        [*command, "--name", "minilm", "--version", "0.0.1", "--build", "wheel"], check=True
    )
    command = [sys.executable, ROOT / "scripts" / "install_package.py", "en_minilm", "0.0.1"]
    options = ["--packages", tmp_path / "packages", "--pipeline", tmp_path / "nlp"]
    done = subprocess.run([*command, *options], capture_output=True, text=True)
    assert "similarity 0.6888" in succeeded(done)
