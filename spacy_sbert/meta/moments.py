"""Mean and covariance of rows that come in blocks."""

import numpy


class Moments:
    """Accumulates the mean and the scatter of rows, so that a corpus need not fit into memory.

    Of blocks a and b: n = n_a + n_b, mean = mean_a + n_b / n delta and S = S_a + S_b + n_a n_b / n delta delta',
    where delta = mean_b - mean_a and S = sum_i (x_i - mean)(x_i - mean)'.

    width (int): of the rows.
    SOURCE: Chan, Golub and LeVeque 1983, Algorithms for Computing the Sample Variance, equation 2.1.
    """

    def __init__(self, width: int):
        self.n = 0
        self.mean = numpy.zeros(width)
        self.scatter = numpy.zeros((width, width))

    def update(self, rows: numpy.ndarray) -> "Moments":
        """Take a block of rows into account, float (b, width). RETURNS (Moments): self."""
        b = len(rows)
        if not b:
            return self
        rows = rows.astype("float64", copy=False)
        mean = rows.mean(axis=0)
        centred = rows - mean
        delta, n = mean - self.mean, self.n + b
        self.scatter += centred.T @ centred
        self.scatter += numpy.outer(delta, delta) * (self.n * b / n)
        self.mean += delta * (b / n)
        self.n = n
        return self

    @property
    def covariance(self) -> numpy.ndarray:
        """float64 (width, width): the scatter over n - 1, or over 1 where there is one row."""
        return self.scatter / max(self.n - 1, 1)
