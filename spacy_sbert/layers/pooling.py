"""The poolings by their names, one or several."""

from .cls_pooling import cls_pooling
from .concatenated_pooling import concatenated_pooling
from .errors import Errors
from .last_token_pooling import last_token_pooling
from .max_pooling import max_pooling
from .mean_pooling import Pooling, mean_pooling
from .mean_sqrt_len_pooling import mean_sqrt_len_pooling
from .weighted_mean_pooling import weighted_mean_pooling

POOLING = {
    "cls": cls_pooling,
    "max": max_pooling,
    "mean": mean_pooling,
    "mean_sqrt_len": mean_sqrt_len_pooling,
    "weightedmean": weighted_mean_pooling,
    "lasttoken": last_token_pooling,
}


def make_pooling(name: str) -> Pooling:
    """The pooling of a name.

    name (str): a name of POOLING, or several joined with "+", such as "cls+mean", whose results are concatenated.
    RAISES (ValueError): for an unknown name.
    """
    names = name.split("+")
    if any(one not in POOLING for one in names):
        raise ValueError(Errors.UNKNOWN_POOLING.format(given=name, expected=", ".join(POOLING)))
    return POOLING[name]() if len(names) == 1 else concatenated_pooling([POOLING[one]() for one in names])


def stretch_pooling(name: str) -> Pooling:
    """The pooling of stretches of text that are not rows, and so have no special tokens of their own: the mean in place
    of "cls" and "lasttoken", else that of rows.

    name (str): see make_pooling.
    """
    return make_pooling("+".join("mean" if one in ("cls", "lasttoken") else one for one in name.split("+")))
