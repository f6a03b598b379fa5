"""ARCHITECTURE.md lists the rooms in their order: imports run downwards in it, and nowhere in circles."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import spacy_sbert

PACKAGE = Path(spacy_sbert.__file__).parent
ARCHITECTURE = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf8")
ROOMS = re.findall(r"^\| `(\w+)[./\w]*` ", ARCHITECTURE, re.MULTILINE)
MODULES = {".".join(file.relative_to(PACKAGE).with_suffix("").parts): file for file in PACKAGE.rglob("*.py")}


def imports_of(module: str) -> Iterator[str]:
    """The modules of the package that one of them imports, at the top or in a function."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = module.split(".")[: -node.level] + (node.module.split(".") if node.module else [])
            for alias in node.names:
                named = [".".join([*base, alias.name]), ".".join([*base, alias.name, "__init__"])]
                named += [".".join(base), ".".join([*base, "__init__"])]
                yield next(name for name in named if name in MODULES)
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not any(name.split(".")[0] == "spacy_sbert" for name in names), f"{module}: import relatively"


GRAPH = {module: set(imports_of(module)) for module in MODULES}


def between_rooms() -> set[tuple[str, str]]:
    pairs = {(module.split(".")[0], other.split(".")[0]) for module, others in GRAPH.items() for other in others}
    return {(room, other) for room, other in pairs if room != other}


CORE = ["architectures", "pipeline", "training", "losses", "models", "similarity", "files", "validation", "errors"]
CORE += ["progress"]
AROUND = [room for room in ROOMS if room not in CORE]


def test_every_room_is_described():
    assert sorted(ROOMS) == sorted({module.split(".")[0] for module in MODULES} - {"__init__"})


@pytest.mark.parametrize("order", [CORE, AROUND])
def test_imports_run_downwards(order):
    assert order == [room for room in ROOMS if room in order]
    pairs = [(room, other) for room, other in between_rooms() if room in order and other in order]
    assert [(room, other) for room, other in pairs if order.index(other) < order.index(room)] == []


def test_the_core_imports_nothing_around_it():
    assert [(room, other) for room, other in between_rooms() if room in CORE and other in AROUND] == []


def test_files_import_in_no_circle():
    assert TopologicalSorter(GRAPH).prepare() is None  # raises CycleError, which names one


def test_pipe_and_architectures_meet_in_the_config():
    assert ("pipeline", "architectures") not in between_rooms()
    assert [room for room, other in between_rooms() if other == "cli"] == []


def test_size():
    """The package does not grow again: its files, its lines, and the share of imports in them."""
    texts = [file.read_text(encoding="utf8") for file in MODULES.values()]
    lines = sum(len(text.splitlines()) for text in texts)
    nodes = [node for text in texts for node in ast.walk(ast.parse(text))]
    imports = sum(node.end_lineno - node.lineno + 1 for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
    assert len(MODULES) <= 155
    assert lines <= 33_000
    assert imports <= 0.07 * lines
