"""Whether the values of a transformer's config are of the types that its class expects."""

from collections.abc import Callable, Mapping
from typing import Any

Unexpected = Callable[[str, Any, str], ValueError]
MOST_LAYERS = 1000  # no encoder has so many, and to make them would take until memory is full


def check_config(values: Mapping[str, Any], config: Any, unexpected: Unexpected) -> None:
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


def _expected(key: str, given: Any, default: Any) -> str | None:
    """What was expected in place of a value; None if the value may be."""
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
