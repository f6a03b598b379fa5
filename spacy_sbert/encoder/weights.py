"""Whether the weights in a folder are those that its config describes: no layer is random, and none left out."""

import inspect
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import transformers

from .errors import Errors
from .settings import unexpected

# Of buffers that are computed, and that some versions of Transformers saved with the weights.
BUFFERS = ("position_ids", "token_type_ids", "inv_freq", "masked_bias", ".attn.bias", "relative_position_index")


def check_architecture(model: Any, config: Any, folder: Path) -> None:
    """Whether config.json names a class of the encoder's own family, such as BertForMaskedLM where BertModel is loaded.

    model: of Hugging Face. config: as config.json says it. folder (Path): of the encoder.
    RAISES (ValueError): if it names another one, of which Transformers' stock class would make other states.
    """
    family = type(model).__name__.removesuffix("Model").removesuffix("ForSequenceClassification")
    names = config.architectures or []
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise unexpected(folder / "config.json", "architectures", names, "a list of strings")
    for name in names:
        stock = getattr(transformers, name, None)
        is_same = stock is not None and getattr(stock, "config_class", None) is type(model.config)
        if not is_same and not name.startswith(family):
            expected = f"{family}Model or the like"
            raise ValueError(Errors.FOREIGN_CLASS.format(file=folder / "config.json", given=name, expected=expected))


def check_weights(model: Any, loading: Mapping[str, Any], folder: Path, *, head: bool, cut: bool) -> None:
    """Compare the names of the weights in a folder with those that the model has.

    A pooler without weights is removed. A head that the model does not have, or whose classifier is still to be
    trained, is not a part of the encoder.

    model: of Hugging Face. loading (dict): what Transformers says of its loading. folder (Path): of the encoder.
    head (bool): whether the folder is to have the classifier's head. cut (bool): whether settings ask for fewer layers.
    RAISES (ValueError): if weights are missing, or there are some that the encoder has no place for.
    """
    encoder = model.base_model
    prefix = f"{encoder.base_model_prefix}."
    parts = {name.split(".")[0] for name, _ in chain(encoder.named_children(), encoder.named_parameters())}

    def part_of(key: str) -> str | None:
        """None for what is none of the encoder."""
        part = key.removeprefix(prefix).split(".")[0]
        return part if part in parts or key.startswith(prefix) else None

    missing = [key for key in loading["missing_keys"] if head or encoder is model or part_of(key)]
    if not head and encoder is not model:  # with the new head a new pooler is trained
        missing = [key for key in missing if part_of(key) != "pooler"]
    elif not head and "add_pooling_layer" in inspect.signature(type(model).__init__).parameters:
        if any(part_of(key) == "pooler" for key in missing):
            model.pooler = None
        missing = [key for key in missing if part_of(key) != "pooler"]
    left = [] if cut else [key for key in loading["unexpected_keys"] if part_of(key) not in (None, "pooler")]
    left = [key for key in left if not key.endswith(BUFFERS)]
    for keys, message in ((missing, Errors.MISSING_WEIGHTS), (left, Errors.UNEXPECTED_WEIGHTS)):
        if keys:
            shown = ", ".join(sorted(keys)[:3]) + (" and others" if len(keys) > 3 else "")
            raise ValueError(message.format(folder=folder, names=shown))
