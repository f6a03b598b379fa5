"""How an evaluation is done: everything a score depends on beside the model and the data, and part of the result."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, cast

from pydantic import Field

from ..errors.checks import Seed, check_fields
from .errors import Errors
from .results import SettingsFacts
from .variants import NORMALIZATIONS, Variant, parse_size

CLASSIFIERS = ("lr", "mlp")
MOST_RESAMPLES = 1_000_000  # a limit of an interval is then known to a thousandth of its width


@dataclass(frozen=True)
class Settings:
    """What is computed of the vectors.

    normalizations: scalings of the input, each reported: "none", "zscore", "unit", "zscore_unit", see variants.py.
        The first is the one that tables show.
    sizes: widths at which vectors are compared, each reported: "own", "pca-128" (principal components) or "up-1024"
        (random up-projection).
    seeds: of whatever is random: up-projections, MLPs, learned similarities. Scores are means over them.
    bootstrap: resamples of the 95 % intervals; 0 for no intervals.
    classifiers: of transfer and probing tasks: "lr", logistic regression, and "mlp".
    trained_on: data sets that the encoder was trained on, such as "stsb"; scores that they touch are marked.
    any_count: whether data sets may have another number of examples than the official ones.
    """

    normalizations: tuple[str, ...] = ("none",)
    sizes: tuple[str, ...] = ("own",)
    seeds: tuple[Seed, ...] = tuple(range(1, 11))
    bootstrap: Annotated[int, Field(ge=0, le=MOST_RESAMPLES)] = 1000
    classifiers: tuple[str, ...] = CLASSIFIERS
    trained_on: tuple[str, ...] = ()
    any_count: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name, expected in (("normalizations", NORMALIZATIONS), ("classifiers", CLASSIFIERS)):
            for given in getattr(self, name):
                if given not in expected:
                    message = Errors.UNKNOWN_SETTING.format(name=name, given=given, expected=", ".join(expected))
                    raise ValueError(message)
        for size in self.sizes:
            parse_size(size)
        for name in ("normalizations", "sizes", "seeds", "classifiers"):
            given = getattr(self, name)
            if not given or len(set(given)) < len(given):
                raise ValueError(Errors.REPEATED_SETTING.format(name=name, given=", ".join(map(str, given))))

    @property
    def variants(self) -> list[Variant]:
        """Every size with every normalisation; the first is the one that tables show."""
        return [Variant(normalization, size) for size in self.sizes for normalization in self.normalizations]

    def touched(self, note: str, *beginnings: str) -> list[str]:
        """The note with the data sets that the encoder was trained on whose names begin so; none without any."""
        names = ", ".join(name for name in self.trained_on if name.lower().startswith(beginnings))
        return [note.format(names)] if names else []

    def that_fit(self, rows: int, width: int) -> tuple["Settings", list[str]]:
        """The settings without the sizes that so many vectors of this width cannot be brought to, and a note on them.

        RAISES (ValueError): if no size is left.
        """
        left = tuple(size for size in self.sizes if Variant(size=size).fits(rows, width))
        gone = [size for size in self.sizes if size not in left]
        if not left:
            raise ValueError(Errors.NO_SIZE_FITS.format(sizes=", ".join(gone), rows=rows, width=width))
        note = f"Not measured, of {rows} vectors of width {width}: {', '.join(gone)}."
        return replace(self, sizes=left), [note] if gone else []

    def to_json(self) -> SettingsFacts:
        """The settings as results hold them."""
        facts = {key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()}
        return cast(SettingsFacts, facts)
