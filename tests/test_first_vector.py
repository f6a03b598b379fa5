"""What a first vector imports: its time is nearly all imports, so those that it does not need are left out."""

import json
import subprocess
import sys
from pathlib import Path

ROOMS = ("bulk", "cli", "evaluation", "hub", "readers", "render", "search", "visual")
HEAVY = {f"spacy_sbert.{room}" for room in ROOMS}
HEAVY |= {"datasets", "faiss", "mteb", "pandas", "pyarrow", "scipy.stats", "ray", "sentence_transformers"}
# Auto classes of Transformers import the configs of all models: half a second.
HEAVY |= {"transformers.models.distilbert.modeling_distilbert", "transformers.models.mpnet.modeling_mpnet"}
HEAVY |= {"transformers.models.llama"}
# Transformers imports scikit-learn where it is, and with it Pandas and PyArrow; nothing here may ask for them.
CODE = """
import json, sys
sys.modules["sklearn"] = None
import spacy
nlp = spacy.blank("en")
nlp.add_pipe("sbert", config={"model": {"name": sys.argv[1]}})
nlp("the cat sat").vector
core = {name: module.__file__ for name, module in sys.modules.items() if name.partition(".")[0] == "spacy_sbert"}
nlp.get_pipe("sbert").encode(["the cat sat"])
spacy.load(sys.argv[2])("the cat sat").vector
print(json.dumps([core, list(sys.modules)]))
"""
MOST_MODULES, MOST_LINES = 45, 9_000
AROUND_THE_CORE = ("models.listener", "models.shared_transformer", "engine.training", "text_encoders")
AROUND_THE_CORE += ("pipeline.most_similar", "pipeline.prefetch", "pipeline.scorer")


def test_first_vector_imports_nothing_heavy(make_nlp, tiny_bert, tmp_path):
    """A vector of a Doc, and a saved pipeline, load the core of the package, and nothing of what stands around it."""
    make_nlp("own").to_disk(tmp_path / "nlp")
    command = [sys.executable, "-c", CODE, str(tiny_bert), str(tmp_path / "nlp")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    core, imported = json.loads(done.stdout)
    assert "spacy_sbert.pipeline" in imported and sorted(HEAVY & set(imported)) == []
    assert [name for name in core if name.endswith(AROUND_THE_CORE)] == []
    lines = {name: len(Path(file).read_text(encoding="utf8").splitlines()) for name, file in core.items()}
    assert len(core) <= MOST_MODULES, lines
    assert sum(lines.values()) <= MOST_LINES, lines
