"""ARCHITECTURE.md lists the top modules in their order: imports run downwards in it, and nowhere in
circles. Tests bear the names of the modules that they test.
"""

import ast
import re
import sys
from collections.abc import Iterator
from configparser import ConfigParser
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import spacy_sbert

PACKAGE = Path(spacy_sbert.__file__).parent
ARCHITECTURE = (PACKAGE.parent / "ARCHITECTURE.md").read_text(encoding="utf8")
TOP_MODULES = re.findall(r"^\| `(\w+)[./\w]*` ", ARCHITECTURE, re.MULTILINE)
CORE = [
    "architectures",
    "pipeline",
    "training",
    "losses",
    "models",
    "similarity",
    "arrays",
    "files",
    "validation",
    "errors",
]
CORE += ["progress"]
AROUND = [top for top in TOP_MODULES if top not in CORE]
TEXTS = {
    ".".join(file.relative_to(PACKAGE).with_suffix("").parts): file.read_text(encoding="utf8")
    for file in PACKAGE.rglob("*.py")
}
# The statements of each module, at the top or in a function
IMPORTS = {
    module: [
        node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    for module, text in TEXTS.items()
}
# Asked for where they are: a notebook's display, a GPU's arrays
OPTIONAL = {
    "IPython",
    "cupy",
    "_typeshed",
}
# Folders of tests, and the code that each tests: CONTRIBUTING.md states the rule of their names
TESTS = Path(__file__).parent
TESTED = {
    folder.name: PACKAGE / folder.name
    for folder in TESTS.iterdir()
    if (PACKAGE / folder.name).is_dir()
}
TESTED["scripts"] = PACKAGE.parent / "scripts"
TESTED["papers"] = PACKAGE.parent / "benchmarks" / "papers"
TESTED["multilingual"] = PACKAGE.parent / "benchmarks" / "multilingual"
SETUP = ConfigParser()
SETUP.read(PACKAGE.parent / "setup.cfg", encoding="utf8")


def imports_of(module: str) -> Iterator[str]:
    """The modules of the package that one of them imports."""
    for node in IMPORTS[module]:
        if isinstance(node, ast.ImportFrom) and node.level:
            base = module.split(".")[: -node.level] + (
                node.module.split(".") if node.module else []
            )
            for alias in node.names:
                named = [".".join([*base, alias.name]), ".".join([*base, alias.name, "__init__"])]
                named += [".".join(base), ".".join([*base, "__init__"])]
                yield next(name for name in named if name in TEXTS)


GRAPH = {module: set(imports_of(module)) for module in TEXTS}
EDGES = {
    (module.split(".")[0], other.split(".")[0])
    for module, others in GRAPH.items()
    for other in others
    if module.split(".")[0] != other.split(".")[0]
}


def test_every_top_module_is_described():
    assert sorted(TOP_MODULES) == sorted({module.split(".")[0] for module in TEXTS} - {"__init__"})


@pytest.mark.parametrize("order", [CORE, AROUND])
def test_imports_run_downwards(order):
    assert order == [top for top in TOP_MODULES if top in order]
    pairs = [(top, other) for top, other in EDGES if top in order and other in order]
    assert [(top, other) for top, other in pairs if order.index(other) < order.index(top)] == []


def test_the_core_imports_nothing_around_it():
    assert [(top, other) for top, other in EDGES if top in CORE and other in AROUND] == []
    # They meet in the config
    assert ("pipeline", "architectures") not in EDGES
    assert [top for top, other in EDGES if other == "cli"] == []


def test_files_import_in_no_circle():
    # Raises CycleError, which names one
    assert TopologicalSorter(GRAPH).prepare() is None


def test_other_packages_are_declared():
    """Every package that is imported is in install_requires or in an extra, and our own is imported
    relatively.
    """
    given = SETUP["options"]["install_requires"] + "\n".join(
        SETUP["options.extras_require"].values()
    )
    declared = {
        re.split(r"[<>=\[]", line)[0].strip().lower().replace("_", "-")
        for line in given.split("\n")
    }
    nodes = [node for found in IMPORTS.values() for node in found]
    imported = {
        node.module for node in nodes if isinstance(node, ast.ImportFrom) and not node.level
    }
    imported |= {
        alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
    }
    distributions = packages_distributions()
    for name in {name.split(".")[0] for name in imported} - set(sys.stdlib_module_names) - OPTIONAL:
        known = {dist.lower().replace("_", "-") for dist in distributions.get(name, [name])}
        assert name != "spacy_sbert" and known & declared, name


def test_files_beside_the_code_are_packaged():
    patterns = {
        name: re.split(r",\s*", value) for name, value in SETUP["options.package_data"].items()
    }
    for file in PACKAGE.rglob("*.*"):
        if file.suffix not in (".py", ".pyc"):
            package = ".".join(file.parent.relative_to(PACKAGE.parent).parts)
            assert any(file.match(pattern) for pattern in patterns[package]), file


@pytest.mark.parametrize("name", sorted(TESTED))
def test_a_file_bears_the_name_of_the_module_that_it_tests(name):
    """test_<module>.py or test_<module>_<aspect>.py; of a whole folder, the name of the folder."""
    for file in (TESTS / name).rglob("test_*.py"):
        tested = TESTED[name] / file.parent.relative_to(TESTS / name)
        modules = {module.stem.lstrip("_") for module in tested.glob("*.py")} | {tested.name}
        assert any(f"{file.stem}_".startswith(f"test_{module}_") for module in modules), file
