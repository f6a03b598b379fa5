"""What a first vector imports: its time is nearly all imports, so those that it does not need are left out."""

import subprocess
import sys

import pytest

HEAVY = {
    "spacy_sbert.bulk": "files of texts",
    "spacy_sbert.hub.cards": "model cards",
    "spacy_sbert.cli": "commands",
    "spacy_sbert.evaluation": "measures nothing",
    "spacy_sbert.hub": "no folder comes in or goes out",
    "spacy_sbert.readers": "reads no examples",
    "spacy_sbert.render": "draws nothing",
    "spacy_sbert.search": "looks for nothing",
    "spacy_sbert.visual": "draws nothing",
    "datasets": "of sentence-transformers' training, and of mteb",
    "faiss": "of search alone",
    "mteb": "of evaluation alone",
    "pandas": "of scikit-learn, as is pyarrow here: half a second",
    "pyarrow": "of tables in Parquet alone",
    "scipy.stats": "of scores alone",
    "ray": "of many machines alone",
    "sentence_transformers": "a peer, and of interchange alone",
    "transformers.models.distilbert.modeling_distilbert": "a family of encoders that this one is none of",
    "transformers.models.mpnet.modeling_mpnet": "another one",
    "transformers.models.llama": "asked for by Auto classes, which import the configs of all models: half a second",
}
# Transformers imports scikit-learn where it is, and with it Pandas and PyArrow; nothing here may ask for them.
CODE = """
import sys
sys.modules["sklearn"] = None
import spacy
nlp = {pipeline}
{vector}
print(*sys.modules)
"""
BLANK = 'spacy.blank("en"); nlp.add_pipe("sbert", config={{"model": {{"name": {folder!r}}}}})'
PIPELINES = {"made": BLANK, "loaded": "spacy.load({folder!r})"}
VECTORS = {"texts": 'nlp.get_pipe("sbert").encode(["the cat sat"])', "doc": 'nlp("the cat sat").vector'}


@pytest.mark.parametrize(("pipeline", "vector"), [("made", "texts"), ("loaded", "doc")])
def test_first_vector_imports_nothing_heavy(make_nlp, tiny_bert, tmp_path, pipeline, vector):
    folder = tiny_bert
    if pipeline == "loaded":
        folder = tmp_path / "nlp"
        make_nlp("own").to_disk(folder)
    made = PIPELINES[pipeline].format(folder=str(folder))
    code = CODE.format(pipeline=made, vector=VECTORS[vector])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert "spacy_sbert.pipeline" in imported
    assert sorted(imported & HEAVY.keys()) == []


CORE = """
import sys
import spacy
nlp = {pipeline}
{vector}
names = sorted(name for name in sys.modules if name.partition(".")[0] == "spacy_sbert")
lines = [len(open(sys.modules[name].__file__, encoding="utf8").read().splitlines()) for name in names]
print(*zip(lines, names, strict=True), sep="\\n", file=sys.stderr)
print(len(names), sum(lines))
"""
MOST_MODULES, MOST_LINES = 42, 9_450
AROUND_THE_CORE = (
    "text_encoders",
    "models.listener",
    "models.shared_transformer",
    "engine.training",
    "pipeline.classification",
    "pipeline.most_similar",
    "pipeline.prefetch",
    "pipeline.scorer",
)


def test_the_core_is_small(tiny_bert):
    """A vector of a Doc loads the core of the package, and nothing of what stands around it."""
    code = CORE.format(pipeline=BLANK.format(folder=str(tiny_bert)), vector=VECTORS["doc"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n_modules, n_lines = map(int, done.stdout.split())
    assert not [name for name in AROUND_THE_CORE if f"{name}'" in done.stderr]
    assert n_modules <= MOST_MODULES, done.stderr
    assert n_lines <= MOST_LINES, done.stderr
