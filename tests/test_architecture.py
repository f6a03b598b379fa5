"""ARCHITECTURE.md lists the rooms in their order: imports run downwards in it, and nowhere in circles."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import spacy_sbert

PACKAGE = Path(spacy_sbert.__file__).parent
ROOMS = re.findall(
    r"^\| `(\w+)[./\w]*` ", (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf8"), re.MULTILINE
)
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


def test_every_room_is_described():
    assert sorted(ROOMS) == sorted({module.split(".")[0] for module in MODULES} - {"__init__"})
    assert len(ROOMS) + 1 <= 26  # and the package's own face


def test_imports_run_downwards():
    order = {room: place for place, room in enumerate(["__init__", *ROOMS])}
    upwards = [(room, other) for room, other in between_rooms() if order[other] < order[room] and other != "__init__"]
    assert upwards == []


def test_rooms_know_few_others():
    """What the package's own face imports when it is asked for a name, and names for type checkers, is not counted."""
    assert len(between_rooms() - {("__init__", module.split(".")[0]) for module in spacy_sbert.LAZY.values()}) <= 100


def test_files_import_in_no_circle():
    assert TopologicalSorter(GRAPH).prepare() is None  # raises CycleError, which names one


def test_pipe_and_architectures_meet_in_the_config():
    assert ("component", "models") not in between_rooms()
    assert [room for room, other in between_rooms() if other == "cli"] == []
