"""What commands and a first vector import: nearly all of their time, so what they do not need is
left out.
"""

import json
import subprocess
import sys

import pytest

from spacy_sbert.models.private_attributes import is_installed

OTHERS = ("bulk", "cli", "evaluation", "hub", "readers", "render", "search", "visual")
HEAVY = {f"spacy_sbert.{module}" for module in OTHERS}
HEAVY |= {
    "datasets",
    "faiss",
    "mteb",
    "pandas",
    "pyarrow",
    "scipy.stats",
    "ray",
    "sentence_transformers",
}
# Auto classes import the configs of all models
HEAVY |= {"transformers.models.llama"}
# Hugging Face's classes of models take as long as all else, with what they import
if not is_installed():
    HEAVY |= {"transformers.modeling_utils", "torch._dynamo", "sklearn"}
# They import scikit-learn where it is, and with it Pandas and PyArrow; nothing here may ask for
# them.
CODE = """
import importlib, json, os, sys, warnings
if sys.argv[3:]:
    sys.modules["sklearn"] = None
import spacy_sbert.cli
of_commands = list(sys.modules)
for name in [name for name in sys.modules if name.partition(".")[0] == "spacy_sbert"]:
    del sys.modules[name]  # so that a vector imports what it needs
import spacy, torch
for name in sys.argv[3:]:
    importlib.import_module(name)  # it changes some settings itself
def state():
    return (
        torch.get_num_threads(),
        dict(os.environ),
        list(warnings.filters),
        torch.get_default_dtype(),
    )
before = state()
nlp = spacy.blank("en")
nlp.add_pipe("sbert", config={"model": {"name": sys.argv[1]}})
is_same = state() == before
nlp("the cat sat").vector
core = [name for name in sys.modules if name.partition(".")[0] == "spacy_sbert"]
nlp.get_pipe("sbert").encode(["the cat sat"])
spacy.load(sys.argv[2])("the cat sat").vector
of_vectors, before = list(sys.modules), state()
import spacy_sbert.architectures, spacy_sbert.readers
print(json.dumps([of_commands, core, of_vectors, is_same and state() == before]))
"""
AROUND_THE_CORE = (
    "models.listener",
    "models.shared_transformer",
    "engine.training",
    "engine.packed_training",
    "engine.fused_adam",
    "text_encoders",
)
AROUND_THE_CORE += ("pipeline.most_similar", "pipeline.prefetch", "pipeline.scorer")


@pytest.fixture(scope="module")
def seen(make_nlp, tiny_bert, tmp_path_factory):
    """Of one process: the modules of the commands, the files of the core, all modules, and whether
    settings stayed.
    """
    folder = tmp_path_factory.mktemp("saved")
    make_nlp("own").to_disk(folder)
    command = [
        sys.executable,
        "-c",
        CODE,
        str(tiny_bert),
        str(folder),
        *["spacy_transformers"] * is_installed(),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_commands_import_no_deep_learning(seen):
    """Every spaCy command imports those of the package."""
    assert {"transformers", "scipy", "spacy_transformers"} & set(seen[0]) == set()


def test_first_vector_imports_nothing_heavy(seen):
    """A vector of a Doc, and a saved pipeline, load the core of the package, and nothing of what
    stands around it.

    And nobody has to import the package for spaCy to find its pipes.
    """
    _, core, imported, _ = seen
    assert "spacy_sbert.pipeline" in imported
    assert sorted(HEAVY & set(imported)) == []
    assert [name for name in core if name.endswith(AROUND_THE_CORE)] == []


def test_importing_changes_no_global_setting(seen):
    assert seen[3], "threads, environment, filters of warnings, or dtype"
