"""A notebook, run by a real kernel: what its cells show."""

import os
import re
import sys
from pathlib import Path

import pytest

import spacy_sbert

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

# A kernel in a process of its own; visual/test_page.py has another in its place
pytestmark = pytest.mark.slow
TESTS = Path(__file__).parent
CELLS = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
import numpy, spacy
from spacy_sbert import visual
from spacy_sbert.search import SpanSearch, VectorIndex, collect_spans
from spacy_sbert.visual.scatter import scatter
nlp = spacy.load({nlp!r})
nlp.get_pipe("sbert")

docs = list(nlp.pipe(["A man is eating. The cat sat.", "He cannot go.", "The <b>dog</b> ran."]))
SpanSearch(collect_spans(docs))

VectorIndex.build(numpy.stack([doc.vector for doc in docs]), texts=[doc.text for doc in docs])

shown = visual.render(docs[1:], options={{"title": "Two texts"}})
print(shown is None, visual.render(docs[1:], jupyter=False).startswith("<figure"))

scatter(docs, labels=[0, 0, 1], title="Three texts")
"""


def outputs(cells, folder):
    """What each cell leaves, run by a kernel of this Python, which is named on the spot: none need
    be installed.
    """
    from jupyter_client.manager import AsyncKernelManager

    class Manager(AsyncKernelManager):
        @property
        def kernel_spec(self):
            from jupyter_client.kernelspec import KernelSpec

            return KernelSpec(
                argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
            )

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(
        notebook, km=Manager(), timeout=120, resources={"metadata": {"path": str(folder)}}
    )
    client.execute(
        env={**os.environ, "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_DATA_DIR": str(folder)}
    )
    return [
        [output for output in cell.outputs if output.get("name") != "stderr"]
        for cell in notebook.cells
    ]


def test_what_the_cells_of_a_notebook_show(make_nlp, tmp_path):
    make_nlp(unit="doc+sent", lang="en").to_disk(tmp_path / "nlp")
    places = {
        "root": str(Path(spacy_sbert.__file__).parents[1]),
        "tests": str(TESTS),
        "nlp": str(tmp_path / "nlp"),
    }
    cells = CELLS.format(**places).split("\n\n")
    (pipe,), (spans,), (index,), asked, (picture,) = outputs(cells, tmp_path)
    shown = r"SentenceBert\('sbert': .*, mean pooling, 16 numbers, float32 on cpu\)"
    assert re.fullmatch(shown, pipe.data.pop("text/plain"))
    assert not pipe.data
    assert spans.data["text/html"].count("<tr>") == 1 + 4
    assert "The &lt;b&gt;dog&lt;/b&gt; ran." in index.data["text/html"]
    display = next(output for output in asked if output.output_type == "display_data")
    assert display.data["text/html"].startswith("<figure ")
    assert "Two texts" in display.data["text/html"]
    assert [output.text for output in asked if output.output_type == "stream"] == ["True True\n"]
    assert picture.data["text/html"].startswith("<figure ")
    assert "0: cat, eating, man" in picture.data["text/html"]
