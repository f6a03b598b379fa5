"""Every package that is imported is declared, in install_requires or in an extra."""

import ast
import re
import sys
from configparser import ConfigParser
from importlib.metadata import packages_distributions
from pathlib import Path

import spacy_sbert

PACKAGE = Path(spacy_sbert.__file__).parent
OPTIONAL = {"IPython", "cupy"}  # asked for where they are: a notebook's display, a GPU's arrays


def imported() -> set[str]:
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").split(".")[0])
            elif isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
    return found - set(sys.stdlib_module_names) - OPTIONAL - {"_typeshed"}


def test_imports_are_declared():
    config = ConfigParser()
    config.read(PACKAGE.parent / "setup.cfg", encoding="utf8")
    given = config["options"]["install_requires"] + "\n".join(config["options.extras_require"].values())
    declared = {re.split(r"[<>=\[]", line)[0].strip().lower().replace("_", "-") for line in given.split("\n")}
    distributions = packages_distributions()
    missing = {
        name
        for name in imported()
        if not {dist.lower().replace("_", "-") for dist in distributions.get(name, [name])} & declared
    }
    assert missing == set()


def test_files_beside_the_code_are_packaged():
    config = ConfigParser()
    config.read(PACKAGE.parent / "setup.cfg", encoding="utf8")
    patterns = {name: re.split(r",\s*", value) for name, value in config["options.package_data"].items()}
    for file in PACKAGE.rglob("*.*"):
        if file.suffix not in (".py", ".pyc"):
            package = ".".join(file.parent.relative_to(PACKAGE.parent).parts)
            assert any(file.match(pattern) for pattern in patterns[package]), file
