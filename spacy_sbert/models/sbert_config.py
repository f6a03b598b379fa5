"""modules.json and sentence_bert_config.json: the configuration of a sentence-transformers folder."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass
from transformers import PretrainedConfig

from ..errors import Errors

PACKAGE = "sentence_transformers"  # of which the modules are
SPARSE = ("a part of a sparse encoder", "Use an encoder of dense vectors.")
ROUTES = (
    "several encoders, one for each kind of text",
    "Save the route that you want as a folder of its own, "
    "SentenceTransformer(modules=list(model[0].sub_modules['query'])).save(...), and take that.",
)
ALONE = (
    "To use the transformer without it, name the folder in spacy-sbert.SentenceEncoder.v1 with normalize = true or "
    "false, and train anew."
)
FOREIGN = {
    "BoW": ("a count of words, as wide as its vocabulary", "Use an encoder with a Transformer or StaticEmbedding."),
    "WordEmbeddings": (
        "a table of word vectors",
        "Convert the vectors with python -m spacy init vectors, and pool them with spacy-sbert.WordVectors.v1 in "
        "spacy-sbert.Tok2VecSentenceEncoder.v1.",
    ),
    "WordWeights": (
        "weights of words, such as inverse frequencies",
        "Weigh tokens with spacy-sbert.SmoothInverseFrequencyTok2Vec.v1 in spacy-sbert.Tok2VecSentenceEncoder.v1.",
    ),
    "CNN": (
        "convolutions over the states of words",
        "Train spacy.HashEmbedCNN.v2 in spacy-sbert.Tok2VecSentenceEncoder.v1 in its place.",
    ),
    "LSTM": (
        "a recurrent network over the states of words",
        "Train spacy-sbert.BiLSTMEncoder.v1 in spacy-sbert.Tok2VecSentenceEncoder.v1 in its place.",
    ),
    "WeightedLayerPooling": ("a mean over all layers of the transformer, of which the last alone is read here", ALONE),
    "LayerNorm": ("a layer that centres and scales vectors", ALONE),
    "Router": ROUTES,
    "Asym": ROUTES,
    "CLIPModel": ("an encoder of pictures and texts", "Use an encoder of texts alone."),
    "MLMTransformer": SPARSE,
    "SpladePooling": SPARSE,
    "SparseAutoEncoder": SPARSE,
    "SparseStaticEmbedding": SPARSE,
    "LogitScore": ("the head of a CrossEncoder", "Use an encoder of single texts."),
}


def module_kind(given: str) -> str:
    """Return the name of a module's class; with its package where that is not sentence_transformers.

    given (str): its type in modules.json.
    """
    package, _, name = given.rpartition(".")
    return name if package.split(".")[0] == PACKAGE else f"{package or 'unknown'}.{name}"


def foreign_module(folder: Path, given: str) -> ValueError | None:
    """Return the error for a module of sentence-transformers that has no counterpart here; None for others.

    given (str): its type in modules.json.
    """
    if module_kind(given) not in FOREIGN:
        return None
    kind, remedy = FOREIGN[module_kind(given)]
    return ValueError(f"The folder {folder} has the module {given}, which is unknown here: it is {kind}. {remedy}")


Unexpected = Callable[[str, Any, str], ValueError]
MOST_LAYERS = 1000  # no encoder has so many, and to make them would take until memory is full


def check_config(values: Mapping[str, Any], config: PretrainedConfig, unexpected: Unexpected) -> None:
    """Compare each value with the default that the config's class has for it.

    values (dict): as they were given. config: of Hugging Face. unexpected: from key, value and what was expected to
        the error.
    RAISES (ValueError): that error, for a value of another type, or one that cannot be.
    """
    try:
        defaults = type(config)()
    except Exception:  # a class of the folder's own may take arguments
        return
    for key, given in values.items():
        name = config.attribute_map.get(key, key)
        expected = _expected(key, given, getattr(defaults, name, None))
        if expected:
            raise unexpected(key, given, expected)
        if key in ("num_hidden_layers", config.attribute_map.get("num_hidden_layers")) and given > MOST_LAYERS:
            raise unexpected(key, given, f"at most {MOST_LAYERS}")


def _expected(key: str, given: Any, default: object) -> str | None:  # noqa: ANN401 (JSON holds any type)
    """Return what was expected in place of a value; None if the value may be."""
    is_number = isinstance(given, int | float) and not isinstance(given, bool)
    if key.endswith("_token_id") or key.startswith("summary_") or default is None or callable(default):
        return None  # these may be null, a number or a list of them
    if isinstance(default, bool):
        return None if given is None or isinstance(given, bool) else "true or false"
    if isinstance(default, int):
        least = 1 if default > 0 else None
        fits = is_number and (isinstance(given, int) or default in (0, 1)) and (least is None or given >= least)
        return None if fits else f"a whole number{' above 0' if least else ''}, such as {default}"
    if isinstance(default, float):
        if key.endswith("eps"):
            return None if is_number and 0 < given < 1 else f"a number between 0 and 1, such as {default}"
        return None if is_number else f"a number, such as {default}"
    if isinstance(default, str):
        return None if isinstance(given, str) else f"a string, such as '{default}'"
    if isinstance(default, list | tuple):
        return None if isinstance(given, list | tuple | None) else "a list"
    if isinstance(default, dict):
        return None if isinstance(given, dict | None) else "an object"
    return None


MODULES_FILE = "modules.json"
STATIC = "StaticEmbedding"  # the module that is a table, as model2vec calls it, too
KNOWN_MODULES = ("Transformer", STATIC, "Pooling", "Normalize", "Dropout")  # the last does nothing in use
# As pooling names them: the flags of config.json, in the order in which results are concatenated, and its list.
POOLING_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
POOLING_MODES = {**{name: name for name in POOLING_FLAGS.values()}, "mean_sqrt_len_tokens": "mean_sqrt_len"}
WHOLE, FLAG, TEXT = "a whole number above 0", "true or false", "a string"  # what errors say that is expected
OBJECT, LIST = "an object of strings", "a list of strings"
FileT = TypeVar("FileT")


@dataclass(frozen=True)
class SentenceTransformersConfig:
    """What the folder of an encoder says beyond its weights, and what therefore travels with them.

    name: the name the encoder was asked for by.
    max_length: the most wordpieces a row may have, special tokens included; None where there is no limit.
    normalize: whether its authors scale vectors to unit length.
    pooling: the pooling its authors use, such as "mean" or "cls+mean", None where the folder does not say.
    lowercase: whether texts are lower-cased before the tokenizer sees them.
    unknown_modules: types of the folder's modules beside those that are known.
    prompts: what is put before a text, by name, such as {"query": "query: "}.
    default_prompt_name: the one that is used if nobody asks for another, "" for none.
    truncate_dim: how many dimensions of a vector its authors keep, 0 for all.
    """

    name: str = Field(default="", description=TEXT)
    max_length: PositiveInt | None = Field(default=None, description=WHOLE)
    normalize: bool = Field(default=False, description=FLAG)
    pooling: str | None = Field(default=None, description=TEXT)
    lowercase: bool = Field(default=False, description=FLAG)
    unknown_modules: tuple[str, ...] = Field(default=(), description=LIST)
    prompts: dict[str, str] = Field(default_factory=dict, description=OBJECT)
    default_prompt_name: str = Field(default="", description=TEXT)
    truncate_dim: NonNegativeInt = Field(default=0, description="a whole number")


class Limits(BaseModel):
    """The file beside the transformer."""

    max_seq_length: PositiveInt | None = Field(None, description=WHOLE)
    do_lower_case: bool | None = Field(None, description=FLAG)


class _SharedConfig(BaseModel):
    """config_sentence_transformers.json."""

    prompts: dict[str, str | None] | None = Field(None, description=OBJECT)
    default_prompt_name: str | None = Field(None, description=TEXT)
    truncate_dim: NonNegativeInt | None = Field(None, description="a whole number")


def read_settings(folder: Path, name: str) -> SentenceTransformersConfig:
    """Read modules.json and the files it points to; a folder without it is that of a plain encoder.

    folder (Path): the encoder's folder.
    name (str): the name it was asked for by.
    RETURNS (SentenceTransformersConfig): the settings, max_length as far as the folder limits it.
    RAISES (ValueError): if a path in modules.json leads out of the folder, or a file says what cannot be.
    """
    modules = [(module_kind(module["type"]), module["path"]) for module in read_modules(folder)]
    part = static_module(folder) or transformer_folder(folder)
    files = [*sorted(part.glob("sentence_*_config.json")), part / "sentence_bert_config.json"]
    limits, shared = read_file(files[0], Limits), read_file(folder / "config_sentence_transformers.json", _SharedConfig)
    pooling = next((read_pooling(folder, path) for kind, path in modules if kind == "Pooling"), None)
    return SentenceTransformersConfig(
        name=name,
        max_length=limits.max_seq_length,
        normalize="Normalize" in dict(modules),
        pooling=pooling.name if pooling else None,
        lowercase=bool(limits.do_lower_case),
        unknown_modules=tuple(kind for kind, _ in modules if kind not in KNOWN_MODULES),
        prompts={key: prompt or "" for key, prompt in (shared.prompts or {}).items()},
        default_prompt_name=shared.default_prompt_name or "",
        truncate_dim=shared.truncate_dim or 0,
    )


def read_file(file: Path, kind: type[FileT]) -> FileT:
    """Read a JSON file of an encoder's folder as a pydantic model, with its defaults for what is missing.

    RAISES (ValueError): if it holds something else; the description of a field says what is expected.
    """
    content = read_object(file)
    try:
        return TypeAdapter(kind).validate_json(json.dumps(content), strict=True)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        expected = kind.__pydantic_fields__[key].description  # type: ignore[attr-defined]
        raise unexpected(file, key, content.get(key), str(expected)) from error


def unexpected(file: Path, key: str, given: object, expected: str) -> ValueError:
    """Return the error that a value in a file of the encoder's folder is not what is expected."""
    shown = repr(given) if len(repr(given)) <= 60 else f"{repr(given)[:60]}..."
    return ValueError(
        f"The file {file}, a part of the encoder's folder, says {key} = {shown}: expected {expected}. Correct "
        "it, or get the encoder anew."
    )


def transformer_folder(folder: Path) -> Path:
    """Where config.json and the weights are: older folders keep them in a part of their own.

    RAISES (ValueError): if the first module, which reads the texts, is no Transformer.
    """
    for module in read_modules(folder):
        kind = module_kind(module["type"])
        if kind == "Transformer":
            return inside(folder, module["path"])
        if kind == STATIC:
            raise ValueError(
                f"The folder {folder} holds a static encoder, a table without a transformer: use "
                f"spacy-sbert.StaticSentenceEncoder.v1, or python -m spacy sbert import {folder} OUT."
            )
        other = (
            f"The file {folder / MODULES_FILE} names the module {module['type']}: expected "
            "sentence_transformers.models.Transformer. Other classes are not run, and a stock one in its place "
            "would give other vectors. Use another encoder."
        )
        raise foreign_module(folder, module["type"]) or ValueError(other)
    return folder


def static_module(folder: Path) -> Path | None:
    """Where the table of a static encoder is; None if the folder is that of another encoder."""
    paths = [module["path"] for module in read_modules(folder) if module_kind(module["type"]) == STATIC]
    return inside(folder, paths[0]) if paths else None


@dataclass(frozen=True)
class PoolingSettings:
    """Settings of a Pooling module.

    name: as make_pooling takes it, None if the folder asks for something else. include_prompt: whether the wordpieces
    of a prompt are pooled, too. width: of the states.
    """

    name: str | None
    include_prompt: bool = True
    width: int | None = None


class _PoolingConfig(BaseModel):
    """config.json of a Pooling module. Its flags stand in the order in which results are concatenated."""

    pooling_mode_cls_token: bool | None = Field(None, description=FLAG)
    pooling_mode_max_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_mean_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_mean_sqrt_len_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_weightedmean_tokens: bool | None = Field(None, description=FLAG)
    pooling_mode_lasttoken: bool | None = Field(None, description=FLAG)
    pooling_mode: str | list[str] | None = Field(None, description="a string, or a list of them")
    include_prompt: bool | None = Field(None, description=FLAG)
    embedding_dimension: PositiveInt | None = Field(None, description=WHOLE)  # in newer folders
    word_embedding_dimension: PositiveInt | None = Field(None, description=WHOLE)


def read_pooling(folder: Path, path: str) -> PoolingSettings | None:
    """Return what the config.json of a Pooling module says, None if there is none.

    folder (Path): of the encoder. path (str): of the module in it.
    """
    file = inside(folder, path) / "config.json"
    if not file.is_file():
        return None
    config = read_file(file, _PoolingConfig)
    modes = [mode for flag, mode in POOLING_FLAGS.items() if getattr(config, flag)]
    if config.pooling_mode is not None:
        named = [config.pooling_mode] if isinstance(config.pooling_mode, str) else config.pooling_mode
        modes = [POOLING_MODES[mode] for mode in named] if set(named) <= set(POOLING_MODES) else []
    width = config.embedding_dimension or config.word_embedding_dimension
    return PoolingSettings("+".join(modes) or None, config.include_prompt is not False, width)


def read_modules(folder: Path) -> list[dict[str, str]]:
    """Return the modules of a sentence encoder, each with its type and path; none for a plain encoder.

    RAISES (ValueError): if the file is not of that form.
    """
    file = folder / MODULES_FILE
    modules = read_json(file, [])
    expected = "a list of objects with 'type' and 'path'"
    if not isinstance(modules, list):
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=f"expected {expected}"))
    for module in modules:
        if not (isinstance(module, dict) and all(isinstance(module.get(key), str) for key in ("type", "path"))):
            raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=f"expected {expected}"))
    return modules


def read_json(file: Path, missing: Any) -> Any:  # noqa: ANN401 (JSON holds any type)
    """Return the content of a JSON file; `missing` if there is no such file.

    RAISES (ValueError): if it is not JSON.
    """
    if not file.is_file():
        return missing
    try:
        return json.loads(file.read_text(encoding="utf8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=error)) from error


def read_object(file: Path) -> dict[str, Any]:
    """Return the object in a JSON file; empty if there is no such file.

    RAISES (ValueError): if it is not JSON, or not an object.
    """
    content = read_json(file, {})
    if not isinstance(content, dict):
        reason = f"expected a JSON object, found {type(content).__name__}"
        raise ValueError(Errors.BAD_FOLDER_FILE.format(file=file, reason=reason))
    return content


def inside(folder: Path, path: str) -> Path:
    """Return a part of a folder.

    RAISES (ValueError): if the path leads out of it.
    """
    inner = (folder / path).resolve()
    if not inner.is_relative_to(folder.resolve()):
        raise ValueError(
            f"The file {folder / MODULES_FILE} names '{path}', which lies outside of its folder. Use an "
            "encoder that you trust."
        )
    return inner
