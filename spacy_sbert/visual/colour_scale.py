"""The colours of similarities in a heat map, and their legend."""

from dataclasses import dataclass

import numpy

from .page import STEPS

# The least difference between similarities that the colours of a picture span
_MIN_RANGE = 0.01
# The least distance between two numbers at the legend, of its length
_MIN_GAP = 0.15


@dataclass(frozen=True)
class ColourScale:
    """Map from similarities to steps of the colours, -STEPS to STEPS.

    low, high (float): the similarities of the outermost colours.

    Example:
        scale = ColourScale.spanning(cosines)
        steps = [scale.step(value) for value in cosines.flat]

    """

    low: float
    high: float

    @classmethod
    def spanning(
        cls, cosines: numpy.ndarray, low: float | None = None, high: float | None = None
    ) -> "ColourScale":
        """Return the scale of a picture: of the given ends, or those of its cosines.

        The ends of the cosines are in whole hundredths; if only one is given, or the cosines hardly
        differ, the other is -1 or 1.

        RAISES (ValueError): unless low is below high, and high above 0.
        """
        is_wide = cosines.size > 0 and numpy.ptp(cosines) >= _MIN_RANGE
        if low is None and high is None and is_wide:
            lowest = numpy.floor(100 * cosines.min() + 1e-6)
            highest = numpy.ceil(100 * cosines.max() - 1e-6)
            return cls(float(lowest) / 100, float(highest) / 100)
        low = -1.0 if low is None else low
        high = 1.0 if high is None else high
        if not (low < high and high > 0):
            raise ValueError(
                f"Cannot give similarities from {low} to {high} colours: expected low below high, "
                "and high above 0."
            )
        return cls(low, high)

    @property
    def neutral(self) -> float:
        """The similarity that has the neutral colour: zero, or the end that is nearer to it."""
        if self.low >= 0:
            return self.low
        if self.high <= 0:
            return self.high
        return 0.0

    def step(self, value: float) -> int:
        """Return the step of the colour: 0 for the neutral one, STEPS for the end farther from it.

        STEPS or -STEPS is the outermost colour on its side.
        """
        value = min(self.high, max(self.low, value))
        span = max(self.neutral - self.low, self.high - self.neutral)
        return round(STEPS * (value - self.neutral) / span)

    def steps(self) -> list[int]:
        """Return the index of the colour of each similarity from -1 to 1, in steps of 0.01."""
        return [self.step(hundredths / 100) + STEPS for hundredths in range(-100, 101)]

    def legend(self) -> list[int]:
        """Return the steps of all colours from the lowest to the highest similarity."""
        return list(range(self.step(self.low), self.step(self.high) + 1))

    def marks(self) -> list[tuple[float, float]]:
        """Return the numbers at the legend, each with its place on it from 0 to 1."""
        inner = 0.0
        if not self.low < 0 < self.high:
            inner = (self.low + self.high) / 2
        place = (inner - self.low) / (self.high - self.low)
        marks = [(self.low, 0.0), (self.high, 1.0)]
        if _MIN_GAP <= place <= 1 - _MIN_GAP:
            marks.insert(1, (inner, place))
        return marks
