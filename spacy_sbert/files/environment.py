"""What scores may depend on beside model, data and settings: versions, and the device."""

import platform
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from thinc.api import get_current_ops

PACKAGES = ["spacy-sbert", "spacy", "spacy-transformers", "thinc", "torch", "transformers", "tokenizers", "numpy"]
PACKAGES += ["scipy", "scikit-learn"]


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that scores may depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def device() -> str:
    """Where vectors are computed: "cpu" or "gpu"."""
    return get_current_ops().device_type
