"""Configs that spaCy reads again as they were: it writes `$` doubled, and reads it as it is written."""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import srsly
from spacy.language import Language
from thinc.api import Config

KEPT, SETTLED = "kept_config", "settled"  # in the cfg of a pipe
_DECIDED = ("name", "n_outputs")  # settings of a model that its weights decide once they are there
_OTHERS = ("nlp", "components")  # sections that spaCy fills from the pipes


def config_text(config: Config) -> str:
    """Return the text of a config whose values spaCy reads as they are, interpolated or not."""
    return config.to_str(interpolate=False).replace("$$", r"\u0024")


def check_value(value: str) -> None:
    """Refuse a text that a config cannot hold: spaCy would read it as a variable."""
    if "${" in value:
        raise ValueError(
            f"Cannot write {value!r} to a config, where '${{' begins a variable. Rename the file, folder or column."
        )


def _as_read(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what spaCy reads from the file that it writes for a config."""
    return Config().from_str(Config({KEPT: config}).to_str(), interpolate=False)[KEPT]


def kept_config(nlp: Language | None, pipe: object) -> dict[str, Any] | None:
    """Return what spaCy would not read as it is, of a pipe's config and of other sections; None if there is nothing."""
    name = _name_in(nlp, pipe)
    if nlp is None or name is None:
        return None
    config = _changed_by_reading(_config_of(nlp, name))
    others = {key: _changed_by_reading(section) for key, section in nlp.config.items() if key not in _OTHERS}
    sections = {key: section for key, section in others.items() if section}
    return {"pipe": config or None, "sections": sections} if config or sections else None


def _changed_by_reading(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what spaCy would read as something else, in its blocks."""
    plain = srsly.json_loads(srsly.json_dumps(config))  # tuples are lists in both
    return _differences(plain, _as_read(plain))


def _differences(config: Mapping[str, Any], read: Mapping[str, Any]) -> dict[str, Any]:
    if config.keys() != read.keys():
        return dict(config)
    found = {key: value for key, value in config.items() if value != read[key]}
    blocks = {key for key, value in found.items() if isinstance(value, dict) and isinstance(read[key], dict)}
    return {key: _differences(value, read[key]) if key in blocks else value for key, value in found.items()}


def restore_config(nlp: Language | None, pipe: object, kept: Mapping[str, Any]) -> object:
    """Put what was kept in place of what spaCy read, in the pipeline's config.

    RETURNS (pipe): the pipe, made again if its own config changes.
    """
    name = _name_in(nlp, pipe)
    if nlp is None or name is None:
        return pipe
    config = nlp.config
    given = config.interpolate()["components"][name]
    for key in kept["sections"].keys() & config.keys():
        config[key] = _restored(config[key], _as_read(kept["sections"][key]), kept["sections"][key])
    found = given if kept["pipe"] is None else _restored(given, _as_read(kept["pipe"]), kept["pipe"])
    if found == given:
        return pipe
    settings = {key: value for key, value in found.items() if key != "factory"}
    return nlp.create_pipe(nlp.get_pipe_meta(name).factory, name, config=settings)


def settled(nlp: Language | None, pipe: object) -> dict[str, str]:
    """Return digests of the settings of a pipe's model that its weights decide, by their names in the config."""
    return {setting: _digest(value) for setting, value in _settled(nlp, pipe).items()}


def check_settled(nlp: Language | None, pipe: object, saved: Mapping[str, str], file: Path) -> None:
    """Refuse a config with other settings than those that the weights were saved with, which a file names."""
    for setting, given in _settled(nlp, pipe).items():
        if _digest(given) != saved.get(setting, _digest(given)):
            named = {"name": _name_in(nlp, pipe), "file": file}
            raise ValueError(
                (
                    "Cannot load '{name}' with {setting} = {given!r}: by {file} its weights were saved with "
                    "another value, that of the saved config.cfg. Leave the setting as it is there; to use another "
                    "encoder, make a new pipe with nlp.add_pipe."
                ).format(**named, setting=setting, given=given)
            )


def _settled(nlp: Language | None, pipe: object) -> dict[str, Any]:
    name = _name_in(nlp, pipe)
    return {} if nlp is None or name is None else dict(_decided(_config_of(nlp, name).get("model"), "model"))


def _digest(value: object) -> str:
    """Return the digest of a setting: a name may be a path, which is nobody else's business."""
    return hashlib.sha256(str(value).encode("utf8", "surrogatepass")).hexdigest()[:12]


def _decided(block: Any, path: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (any value of a config)
    for key, value in block.items() if isinstance(block, Mapping) else ():
        if key in _DECIDED and "@architectures" in block:
            yield f"{path}.{key}", value
        yield from _decided(value, f"{path}.{key}")


def _config_of(nlp: Language, name: str) -> Mapping[str, Any]:
    """Return the config of a pipe, without variables."""
    config = nlp.get_pipe_config(name)
    return nlp.config.interpolate()["components"][name] if "$" in str(config) else config


def _restored(given: Any, read: Any, saved: Any) -> Any:  # noqa: ANN401 (any value of a config)
    """Return the saved values where those given are what spaCy read, and the others, which are overrides."""
    if given == read:
        return saved
    if not all(isinstance(one, Mapping) for one in (given, read, saved)):
        return given
    known = read.keys() & saved.keys()
    return {key: _restored(value, read[key], saved[key]) if key in known else value for key, value in given.items()}


def _name_in(nlp: Language | None, pipe: object) -> str | None:
    """Return the name of a pipe in a pipeline; None if it is not in it."""
    return None if nlp is None else next((name for name, other in nlp.components if other is pipe), None)
