"""What a user writes by the docs is clean for mypy, and the names at the top level have their
types.
"""

import ast
import re
from pathlib import Path

import pytest
from mypy import api

import spacy_sbert

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# As by default; a line of its own, above a title
SETTINGS = "# mypy: allow-untyped-defs, ignore-missing-imports"
USER = """
import spacy
from spacy_sbert import SentenceBert, find_meta, find_reranker, find_sbert

nlp = spacy.blank("en")
nlp.add_pipe("sbert")
sbert: SentenceBert = find_sbert(nlp)
reveal_type(find_sbert(nlp).encode(["a"], batch_size=32, device="cpu", precision="float32"))
reveal_type(find_sbert(nlp).encode(["a"], convert_to_tensor=True))
reveal_type(find_meta(nlp).encode(["a"], batch_size=32, device="cpu"))
reveal_type(find_reranker(nlp).rank("a", ["b"], top_k=1)[0].text)
reveal_type(find_reranker(nlp).score_pairs([("a", "b")], batch_size=32, device="cpu"))
reveal_type(find_reranker(nlp).score_pairs([("a", "b")], convert_to_tensor=True))
"""
WRONG = """
import spacy
from spacy_sbert import find_sbertt

spacy.blank("en").get_pipe("sbert").encode(["a"])
"""

TYPOS = """
import numpy
from spacy_sbert import import_folder, load_pipe
from spacy_sbert.reranker import SentenceReranker
from spacy_sbert.search import SpanSearch, VectorIndex, collect_spans, hierarchical_clusters
from spacy_sbert.visual import render
from spacy_sbert.visual.heatmap import heatmap

def wrong(reranker: SentenceReranker) -> None:
    load_pipe(precision="bf16")
    import_folder("a", precision="half")
    collect_spans([], "sents")
    SpanSearch([], kind="hsnw")
    VectorIndex.build(numpy.ones((2, 2)), kind="HNSW")
    hierarchical_clusters(numpy.ones((2, 2)), n_clusters=1, linkage="ward")
    render([], "heat-map")
    heatmap([], order="similar")
    reranker.rank("a", ["b"], num_workers=3)
    reranker.score_pairs([("a", "b")], activation="sigmoid")
"""


def python_of(text: str) -> str:
    """The Python blocks of a page, each line where it stands."""
    lines = [SETTINGS]
    language = ""
    for line in text.splitlines()[1:]:
        if line.startswith("```"):
            language = "" if language else line[3:] or "text"
            lines.append("")
        else:
            lines.append(line if language == "python" else "")
    return "\n".join(lines) + "\n"


def checked(folder: Path, sources: dict[str, str]) -> str:
    """What mypy says of files by these names, with the project's settings and cache, which its own
    check fills.
    """
    for name, source in sources.items():
        (folder / f"{name}.py").write_text(source, encoding="utf8")
    files = [str(folder / f"{name}.py") for name in sources]
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--no-error-summary", "--no-pretty"]
    found, failed, _ = api.run([*options, *files])
    assert failed == ""
    # A cached message names an earlier folder
    return re.sub(r"^.*[/\\](?=\w+\.py:)", "", found, flags=re.MULTILINE)


@pytest.mark.slow
def test_what_a_user_writes_by_the_docs(tmp_path, monkeypatch):
    """One call of mypy: most of its time goes into what it reads of PyTorch and spaCy."""
    monkeypatch.chdir(ROOT)
    pages = {
        f"page_{page.stem.replace('-', '_')}": python_of(page.read_text(encoding="utf8"))
        for page in PAGES
    }
    found = checked(tmp_path, {**pages, "user": USER, "wrong": WRONG, "typos": TYPOS})
    refused = re.findall(
        r"^typos\.py:(\d+): error: .*\[(?:arg-type|call-arg|call-overload)\]", found, re.MULTILINE
    )
    assert sorted(set(map(int, refused))) == list(range(10, TYPOS.count("\n") + 1))
    found = re.sub(r"^typos\.py:.*\n", "", found, flags=re.MULTILINE)
    assert sorted(re.findall(r"^\w+\.py:\d+: error: .*", found, re.MULTILINE)) == [
        'wrong.py:3: error: Module "spacy_sbert" has no attribute "find_sbertt"; maybe '
        '"find_sbert"?  [attr-defined]',
        'wrong.py:5: error: "Callable[[Doc], Doc]" has no attribute "encode"  [attr-defined]',
    ]
    revealed = re.findall(r'Revealed type is "(?:\w+\.)*(\w+)', found)
    assert revealed == ["ndarray", "Tensor", "ndarray", "str", "ndarray", "Tensor"]


def test_what_is_lazy_is_typed():
    """LAZY, what type checkers read, and __all__ name the same, from the same modules."""
    tree = ast.parse(Path(spacy_sbert.__file__).read_text(encoding="utf8"))
    (typed,) = (
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    names = {alias.name: node.module for node in typed.body for alias in node.names}
    assert names == spacy_sbert.LAZY
    assert sorted(spacy_sbert.__all__) == sorted(["__version__", *spacy_sbert.LAZY])
    for name in spacy_sbert.LAZY:
        assert getattr(spacy_sbert, name).__name__ == name
