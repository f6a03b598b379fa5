"""The digest of a pipeline: of all that the vectors of its Docs depend on."""

import inspect
import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache, partial
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

from spacy.language import Language
from spacy.util import registry
from thinc.api import Model

from ..files.checksum import digest_of_bytes, digest_of_stream, file_digest
from ..files.serialization import PACKAGES
from ..models.fingerprint import encoder_digest, precision_of
from ..models.transformer import SpanTransformer
from .sentence_model import SentenceModel

# Settings that came later, and the values that change nothing: older digests still hold
_NO_EFFECT = {"backend": "torch", "backend_config": {}}
# It reads the metadata of all packages: a second or more
_distributions = cache(packages_distributions)
# Folders of packages; code of a package elsewhere is installed as editable
_INSTALLED = {"site-packages", "dist-packages"}


def pipeline_digest(nlp: Language) -> str:
    """Return the SHA-256 of a pipeline: of all that the vectors of its Docs depend on.

    Texts and arithmetic are left out.

    Example:
        assert pipeline_digest(nlp) == pipeline_digest(spacy.load(folder))

    """
    return digest_of_stream(_pipeline_parts(nlp))


def _pipeline_parts(nlp: Language) -> Iterator[str | bytes]:
    components = nlp.config["components"]
    settings = {name: _effective(components.get(name)) for name in nlp.pipe_names}
    yield json.dumps([nlp.lang, settings], sort_keys=True, default=str)
    yield nlp.tokenizer.to_bytes(exclude=["vocab"])  # type: ignore[union-attr]
    if nlp.vocab.vectors.size:
        yield nlp.vocab.vectors.to_bytes(exclude=["strings"])
    for name, pipe in nlp.pipeline:
        yield name
        yield from _component_parts(pipe)
    yield from _package_versions(nlp)
    yield from _own_code(nlp)


def _effective(block: object) -> object:
    """Return the block of a config without the settings that change nothing."""
    if not isinstance(block, dict):
        return block
    return {
        key: _effective(value)
        for key, value in block.items()
        if key not in _NO_EFFECT or value != _NO_EFFECT[key]
    }


def _component_parts(pipe: object) -> Iterator[str | bytes]:
    model = getattr(pipe, "model", None)
    nodes = list(model.walk()) if isinstance(model, Model) else []
    for node in nodes:
        # Or its state and precision would change with use
        if isinstance(node, SpanTransformer):
            node.load()
    if isinstance(model, SentenceModel) and model.source.span_transformer is not None:
        transformer = model.source.span_transformer
        transformer.load()
        # Heads of the training do not change vectors
        yield encoder_digest(transformer, model.pooling)
        # The folder's, of queries and documents; those of the pipe are in its config
        yield from map(str, transformer.shim.load().prompts.items())
    elif hasattr(pipe, "to_bytes"):
        yield pipe.to_bytes(exclude=["vocab"])
    # "auto" in the config does not tell the precision
    precisions = [precision_of(shim) for node in nodes for shim in node.shims]
    yield from (precision for precision in precisions if precision != "float32")


def _package_versions(nlp: Language) -> Iterator[str]:
    """Yield the packages whose code runs in the pipeline, with their versions."""
    packages: set[str] = set()
    for pipe in _pipes(nlp):
        packages.update(_packages_of(type(pipe)))
    for code in _code(nlp):
        # The versions of PACKAGES stand beside the digest wherever it is kept
        packages.update(set(_packages_of(code)) - set(PACKAGES))
    for package in sorted(packages):
        yield f"{package} {version(package)}"


def _own_code(nlp: Language) -> Iterator[str]:
    """Yield the digests of the code that runs in the pipeline and is of no package."""
    digests = {code_digest(code) for code in _code(nlp) if _is_own(code)}
    yield from sorted(digests - {""})


def unseen_by_digest(nlp: Language) -> list[str]:
    """Return the names of what may change vectors without the digest of the pipeline.

    That is code of no package, which reads more than the file that defines it, and components that
    are not saved, whose attributes anybody may set.
    """
    names = {_definition(code).__qualname__ for code in _code(nlp) if _is_own(code)}
    for pipe in _pipes(nlp):
        definition = _definition(pipe)
        if inspect.isclass(definition) and not hasattr(definition, "to_bytes"):
            names.add(definition.__qualname__)
    return sorted(names)


def _is_own(code: object) -> bool:
    """Return whether a function or a class is of no package, or of one that is being edited."""
    module = str(_definition(code).__module__)
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names or top == __name__.partition(".")[0]:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    is_installed = file is None or not _INSTALLED.isdisjoint(Path(file).parts)
    return not (is_installed and _packages_of(code))


def _pipes(nlp: Language) -> list[Any]:
    return [pipe for _, pipe in nlp.pipeline]


def _packages_of(code: object) -> list[str]:
    """Return the packages that a function or a class is of; none for a file of the user's."""
    module = str(_definition(code).__module__)
    return _distributions().get(module.partition(".")[0], [])


def _code(nlp: Language) -> Iterator[object]:
    """Yield the tokenizer, the components, and the registered functions that their config names."""
    yield nlp.tokenizer
    yield from _pipes(nlp)
    components = nlp.config["components"]
    for block in (nlp.config["nlp"], *map(components.get, nlp.pipe_names)):
        yield from _registered(block)


def _registered(block: object) -> Iterator[object]:
    """Yield the registered functions that a block of a config names."""
    if not isinstance(block, Mapping):
        return
    for key, value in block.items():
        kind = "factories" if key == "factory" else key.removeprefix("@")
        if kind != key and registry.has(kind, value):
            yield registry.get(kind, value)
        yield from _registered(value)


def code_digest(code: object) -> str:
    """Return the digest of the file that defines a function, or the class of an object.

    Of code that was typed in, it is that of its source. "" for code that is built in.
    """
    definition = _definition(code)
    functions = [definition]
    if inspect.isclass(definition):
        # A file that is not imported as a module, as spaCy's --code, is known to functions alone
        functions = list(filter(inspect.isfunction, vars(definition).values()))
    for function in functions:
        try:
            file = inspect.getsourcefile(function)
            if file is not None and Path(file).is_file():
                return file_digest(Path(file))
            return digest_of_bytes(inspect.getsource(function).encode("utf8"))
        except (OSError, TypeError):
            # Of the next one it may be known
            continue
    return ""


def _definition(code: object) -> Any:
    """Return a function without what wraps it, or the class of an object."""
    while isinstance(code, partial):
        code = code.func
    if inspect.isroutine(code):
        return inspect.unwrap(code)
    return code if inspect.isclass(code) else type(code)
