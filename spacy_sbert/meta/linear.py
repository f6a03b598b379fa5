"""Meta-embeddings by a linear projection of the concatenation: SVD and GCCA."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import numpy
from scipy import linalg

from ..errors import Warnings
from ..progress import progress_bar, ticking
from ..similarity import components_of_covariance, flip_signs
from ..validation import NonNegativeFloat, Width, validated
from .estimator import MetaEmbedding, Views

# Of each member, its name and its numbers in the concatenation
_Columns = list[tuple[str, slice]]
# Variance of a member, as a share of its mean square, that counts as 0
_MIN_VARIANCE = 1e-12
# Rounding of rho, as a share of the largest
_ROUNDING = 1e-10
# Smallest eigenvalue of a matrix, as a share of the largest, that cannot be told from 0
_SINGULAR = 1e-12


class Moments:
    """Accumulates the mean and the scatter of rows, so that a corpus need not fit into memory.

    Of blocks a and b: n = n_a + n_b, mean = mean_a + n_b / n delta and S = S_a + S_b + n_a n_b / n
    delta delta', where delta = mean_b - mean_a and S = sum_i (x_i - mean)(x_i - mean)'.

    width (int): of the rows.
    SOURCE: Chan, Golub and LeVeque 1983, Algorithms for Computing the Sample Variance, equation
        2.1.
    """

    def __init__(self, width: int):
        self.n = 0
        self.mean = numpy.zeros(width)
        self.scatter = numpy.zeros((width, width))

    def update(self, rows: numpy.ndarray) -> Self:
        """Add a block of rows, float (b, width). RETURNS (Self): itself."""
        b = len(rows)
        if not b:
            return self
        n = self.n + b
        rows = rows.astype("float64", copy=False)
        mean = rows.mean(axis=0)
        centred = rows - mean
        delta = mean - self.mean
        self.scatter += centred.T @ centred
        self.scatter += numpy.outer(delta, delta) * (self.n * b / n)
        self.mean += delta * (b / n)
        self.n = n
        return self

    @property
    def covariance(self) -> numpy.ndarray:
        """Return the scatter over n - 1, or over 1 if there is one row: float64 (width, width)."""
        return self.scatter / max(self.n - 1, 1)


class _Solution(NamedTuple):
    """The directions that a method finds, the best first.

    values: (size,), what each is worth. components: (size, D). rank: how many there can be at any
        size.
    """

    values: numpy.ndarray
    components: numpy.ndarray
    rank: int


class _Linear(MetaEmbedding):
    """A projection of the centred concatenation, learned from streamed moments.

    F(s) = C ([F_1(s); ...; F_J(s)] - mean)

    mean_: float64 (D,), of the concatenation, D = sum_j d_j. components_: float64 (d, D), the
        projection C.
    values_: float64 (d,), what each component is worth, the best first: see the method.
    """

    learned = ("mean_", "components_", "values_")
    mean_: numpy.ndarray
    components_: numpy.ndarray
    values_: numpy.ndarray

    def check_size(self, widths: Sequence[int], n: int) -> None:
        self._check_directions(_most_directions(widths, n), n)

    def _check_directions(self, most: int, n: int) -> None:
        if self.size is not None and self.size > most:
            raise ValueError(
                f"Cannot use size = {self.size}: by the method '{self.method}' the members have "
                f"only {most} directions to give on {n} sentences. Set size to at most that, or "
                "leave it out to take as many as there are."
            )

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        widths = [view.shape[1] for view in views]
        moments = Moments(sum(widths))
        with progress_bar(len(views[0]), desc="Fitting", unit="sentences", shown=progress) as bar:
            for block in self._blocks(views, names):
                # fit_moments refuses what overflows
                with numpy.errstate(over="ignore", invalid="ignore"):
                    moments.update(numpy.hstack(block))
                bar.update(len(block[0]))
        with ticking(f"Solving for {sum(widths)} numbers", shown=progress):
            self.fit_moments(moments, widths, names)

    def fit_moments(self, moments: Moments, widths: Sequence[int], names: Sequence[str]) -> Self:
        """Learn from moments alone: those of the concatenation of the members' vectors.

        moments (Moments): of width D. widths (J ints): d_j. names (J strings): of the members.
        RETURNS (Self): itself.
        RAISES (ValueError): if a member is the same for every sentence, or there are fewer than d
            directions.
        """
        covariance = moments.covariance
        if not numpy.isfinite(covariance).all():
            raise ValueError(
                "The members' vectors are too large for their squares. Set normalize = true."
            )
        columns = _columns(widths, names)
        _check_variances(moments, covariance, columns)
        most = _most_directions(widths, moments.n)
        size = min(self.size or max(widths), most)
        solution = self._solve(covariance, columns, size, moments.n)
        # Rounding may look like one direction more
        rank = min(solution.rank, most)
        self._check_directions(rank, moments.n)
        self.mean_ = moments.mean.copy()
        self.components_ = flip_signs(solution.components[:rank])
        self.values_ = solution.values[:rank]
        self.size_ = len(self.values_)
        self.names_ = tuple(names)
        self.widths_ = tuple(widths)
        return self

    @abstractmethod
    def _solve(self, covariance: numpy.ndarray, columns: _Columns, size: int, n: int) -> _Solution:
        """Find the best `size` directions from a covariance, float64 (D, D), of n sentences."""

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return (numpy.hstack(views) - self.mean_) @ self.components_.T


def _most_directions(widths: Sequence[int], n: int) -> int:
    """Return how many directions n centred concatenations can have."""
    return min(sum(widths), n - 1)


def _columns(widths: Sequence[int], names: Sequence[str]) -> _Columns:
    columns = []
    start = 0
    for name, width in zip(names, widths, strict=True):
        columns.append((name, slice(start, start + width)))
        start += width
    return columns


def _check_variances(moments: Moments, covariance: numpy.ndarray, columns: _Columns) -> None:
    """Raise ValueError if a member is the same for every sentence."""
    tiny = numpy.finfo("float64").tiny
    for name, part in columns:
        variance = covariance.diagonal()[part].sum()
        square = (moments.mean[part] ** 2).sum()
        if not variance > _MIN_VARIANCE * max(square, tiny):
            raise ValueError(
                f"The member '{name}' has the same vector for all {moments.n} sentences. Take "
                "it out, or fit on sentences that it tells apart."
            )


class SVD(_Linear):
    """The directions in which the centred concatenation varies most.

    X - mean = U S V', F(s) = V_d' ([F_1(s); ...; F_J(s)] - mean), with X the n normalised
    concatenations; V is found as the eigenvectors of their covariance. values_ are the singular
    values S_d over sqrt(n - 1).

    SOURCE: Poerner et al. 2020, section 3.2; Yin and Schuetze 2016, Learning Word Meta-Embeddings.
    """

    method = "svd"

    def _solve(self, covariance: numpy.ndarray, columns: _Columns, size: int, n: int) -> _Solution:
        axes, variances, rank = components_of_covariance(covariance)
        values = numpy.sqrt(numpy.maximum(variances[:size], 0.0))
        return _Solution(values, axes[:size], rank)


class GCCA(_Linear):
    """Projections of the members that correlate with one another as much as can be, summed.

    F(s) = sum_j Theta_j (F_j(s) - mean_j), where the columns of [Theta_1, ..., Theta_J]' are the
    eigenvectors of the d largest rho in

        A theta = rho B theta,  A = blocks Sigma_jk for j != k, 0 for j = k,
                                B = blocks Sigma_jj + tau tr(Sigma_jj) / d_j I for j = k, 0 for j !=
                                k,

    with Sigma_jk the covariance of the members j and k, and scaled so that theta' B theta = 1.
    values_ are rho, whatever their sign: there are as many as the members have numbers in all, and
    they add up to 0. Of two members, the positive ones are the canonical correlations if tau is 0,
    the negative ones are the same with the other sign, and the rest is 0. Where several rho are
    equal, their theta are some basis of one space.

    tau (float): regularisation, as a share of the mean variance of a member's numbers; at least 0.
    SOURCE: Poerner et al. 2020, section 3.3; Bach and Jordan 2002, Kernel Independent Component
        Analysis, section 3.2; Rastogi et al. 2015, Multiview LSA, for the regularisation.
    """

    method = "gcca"

    @validated
    def __init__(
        self, *, size: Width | None = None, normalize: bool = True, tau: NonNegativeFloat = 10.0
    ):
        super().__init__(size=size, normalize=normalize)
        self.tau = tau
        # How many of values_ are above 0 by more than rounding. It is for notes of a fit, and not
        # saved.
        self._n_positive: int | None = None

    def notes(self, name: str) -> Iterator[str]:
        yield from super().notes(name)
        if self._n_positive is not None and self._n_positive < self.width:
            yield Warnings.META_NOT_POSITIVE.format(
                name=name,
                size=self.width,
                count=self.width - self._n_positive,
                positive=self._n_positive,
            )

    def _solve(self, covariance: numpy.ndarray, columns: _Columns, size: int, n: int) -> _Solution:
        """Solve the eigenvalue problem. RAISES (ValueError): if B is singular, or A is 0."""
        between = covariance.copy()
        within = numpy.zeros_like(covariance)
        conditions = []
        for name, part in columns:
            block = covariance[part, part]
            ridge = self.tau * numpy.trace(block) / len(block) * numpy.eye(len(block))
            within[part, part] = block + ridge
            between[part, part] = 0.0
            lowest, highest = linalg.eigvalsh(within[part, part])[[0, -1]]
            if lowest <= _SINGULAR * highest:
                raise self._singular(name, block)
            conditions.append(highest / lowest)
        total = len(covariance)
        rho, theta = linalg.eigh(between, within, subset_by_index=[total - size, total - 1])
        # What is rounding in Sigma_jk is divided by the roots of the smallest eigenvalues of B_jj
        # and B_kk.
        of_pair = numpy.prod(sorted(conditions)[-2:]) ** 0.5
        rounding = max(_ROUNDING * abs(rho).max(), total * numpy.finfo("float64").eps * of_pair)
        self._n_positive = int((rho > rounding).sum())
        # Rho add up to 0, so all of them are 0
        if not self._n_positive:
            members = ", ".join(name for name, _ in columns)
            raise ValueError(
                f"The members ({members}) have no direction to give by the method '{self.method}': "
                f"on these {n} sentences no number of one correlates with any of another. Use the "
                "method svd, or other members."
            )
        return _Solution(rho[::-1], theta.T[::-1], total)

    def _singular(self, name: str, block: numpy.ndarray) -> ValueError:
        """Return the error for a member whose covariance, `block`, cannot be inverted."""
        rank = components_of_covariance(block).rank
        return ValueError(
            f"The covariance of the member '{name}' cannot be inverted with tau = {self.tau}: its "
            f"vectors have {rank} directions, of the {len(block)} of their width. Set tau higher, "
            "such as 0.1."
        )
