"""Linear meta-embeddings: SVD and GCCA."""

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence

import numpy
from scipy import linalg

from ..errors import Errors, Warnings
from ..progress import progress_bar, ticking
from ..similarity import components_of_covariance, flip_signs
from ..validation import NonNegativeFloat, Width, validated
from .estimators import MetaEmbedding, Views


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
        """Add a block of rows, float (b, width). RETURNS (Moments): self."""
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


MIN_VARIANCE = 1e-12  # variance of a member, as a share of its mean square, that counts as 0


class _Linear(MetaEmbedding):
    """F(s) = C ([F_1(s); ...; F_J(s)] - mean), with a mean and a projection C learned from streamed moments.

    mean_: float64 (D,), of the concatenation, D = sum_j d_j. components_: float64 (d, D), the projection C.
    values_: float64 (d,), what each component is worth, the best first: see the method.
    """

    learned = ("mean_", "components_", "values_")
    mean_: numpy.ndarray
    components_: numpy.ndarray
    values_: numpy.ndarray

    def most_directions(self, widths: Sequence[int], n: int) -> int:
        """Return the largest number of directions of centred concatenations, see check_size."""
        return min(sum(widths), max(n - 1, 0))

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        widths = [view.shape[1] for view in views]
        moments = Moments(sum(widths))
        with progress_bar(len(views[0]), desc="Fitting", unit="sentences", shown=progress) as bar:
            for block in self._blocks(views, names):
                with numpy.errstate(over="ignore", invalid="ignore"):  # checked in fit_moments
                    moments.update(numpy.hstack(block))
                bar.update(len(block[0]))
        with ticking(f"Solving for {sum(widths)} numbers", shown=progress):
            self.fit_moments(moments, widths, names)

    def fit_moments(self, moments: Moments, widths: Sequence[int], names: Sequence[str]) -> "_Linear":
        """Learn from moments alone: those of the concatenation of the members' vectors.

        moments (Moments): of width D. widths (J ints): d_j. names (J strings): of the members.
        RETURNS (_Linear): self.
        RAISES (ValueError): if a member is the same for every sentence, or there are fewer than d directions.
        """
        covariance = moments.covariance
        for name, part in zip(names, _slices(widths), strict=True):
            with numpy.errstate(over="ignore"):  # checked below
                variance, square = covariance.diagonal()[part].sum(), (moments.mean[part] ** 2).sum()
            if not numpy.isfinite(variance + square):
                raise ValueError(
                    f"The numbers in the vectors of the member '{name}' of a meta-embedding are too large for "
                    "their squares. Set normalize = true, or scale them down."
                )
            if not variance > MIN_VARIANCE * max(square, numpy.finfo("float64").tiny):
                raise ValueError(Errors.META_ZERO_VARIANCE.format(name=name, n=moments.n))
        most = self.most_directions(widths, moments.n)
        size = min(self.size or max(widths), most)
        values, components, available = self._solve(moments, list(widths), size, names)
        rank = min(available, most)  # rounding may look like one more
        if self.size is not None and rank < self.size:
            raise ValueError(self._too_few(rank, covariance, widths, names, moments.n))
        size = min(size, rank)
        self.mean_, self.components_, self.values_ = moments.mean.copy(), flip_signs(components[:size]), values[:size]
        self.names_, self.widths_, self.size_ = tuple(names), tuple(widths), size
        return self

    def _too_few(
        self, rank: int, covariance: numpy.ndarray, widths: Sequence[int], names: Sequence[str], n: int
    ) -> str:
        ranks = [_rank(covariance[part, part]) for part in _slices(widths)]
        each = ", ".join(f"{name} {own} of {width}" for name, own, width in zip(names, ranks, widths, strict=True))
        more = " More sentences may give more directions." if n - 1 in (*ranks, rank) else ""
        return (
            f"Asked for size {self.size}, but by the method '{self.method}' the members ({', '.join(names)}) have "
            f"only {rank} directions to give on {n} sentences. Set size to at most that, or leave it out to take as "
            f"many as there are. The directions of each member, of the numbers in its vectors: {each}.{more}"
        )

    @abstractmethod
    def _solve(
        self, moments: Moments, widths: list[int], size: int, names: Sequence[str]
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        """Return values (size,), components (size, D), best first, and how many there can be at any size."""

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return (numpy.hstack(views) - self.mean_) @ self.components_.T

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        total, size = sum(self.widths_), self.width
        return {"mean_": (total,), "components_": (size, total), "values_": (size,)}


def _slices(widths: Sequence[int]) -> list[slice]:
    """Return the columns of each member in the concatenation; widths (J ints): d_j."""
    return [slice(start, end) for start, end in itertools.pairwise([0, *itertools.accumulate(widths)])]


def _rank(covariance: numpy.ndarray) -> int:
    """Return the rank of a covariance, float64 (D, D), except for rounding."""
    return components_of_covariance(covariance).rank


class SVD(_Linear):
    """The directions in which the centred concatenation varies most.

    X - mean = U S V', F(s) = V_d' ([F_1(s); ...; F_J(s)] - mean), with X the n normalised concatenations; V is found
    as the eigenvectors of their covariance. values_ are the singular values S_d over sqrt(n - 1).

    SOURCE: Poerner et al. 2020, section 3.2; Yin and Schuetze 2016, Learning Word Meta-Embeddings.
    """

    method = "svd"

    def _solve(
        self, moments: Moments, widths: list[int], size: int, names: Sequence[str]
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        pca = components_of_covariance(moments.covariance)
        return numpy.sqrt(numpy.maximum(pca.variances[:size], 0.0)), pca.axes[:size], pca.rank


_TAU = 10.0
_ROUNDING = 1e-10
_SINGULAR = 1e-12  # smallest eigenvalue of a matrix, as a share of the largest, that cannot be told from 0


class GCCA(_Linear):
    """Projections of the members that correlate with one another as much as can be, summed.

    F(s) = sum_j Theta_j (F_j(s) - mean_j), where the columns of [Theta_1, ..., Theta_J]' are the eigenvectors of the
    d largest rho in

        A theta = rho B theta,  A = blocks Sigma_jk for j != k, 0 for j = k,
                                B = blocks Sigma_jj + tau tr(Sigma_jj) / d_j I for j = k, 0 for j != k,

    with Sigma_jk the covariance of the members j and k, and scaled so that theta' B theta = 1. values_ are rho,
    whatever their sign: there are as many as the members have numbers in all, and they add up to 0. Of two members, the
    positive ones are the canonical correlations if tau is 0, the negative ones are the same with the other sign, and
    the rest is 0. Where several rho are equal, their theta are some basis of one space.

    tau (float): regularisation, as a share of the mean variance of a member's numbers; at least 0.
    SOURCE: Poerner et al. 2020, section 3.3; Bach and Jordan 2002, Kernel Independent Component Analysis, section 3.2;
        Rastogi et al. 2015, Multiview LSA, for the regularisation.
    """

    method = "gcca"

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True, tau: NonNegativeFloat = _TAU):
        super().__init__(size=size, normalize=normalize)
        self.tau = tau
        self._n_positive: int | None = None  # of values_, but for rounding; what is loaded has no notes

    def matrices(self, covariance: numpy.ndarray, widths: list[int]) -> tuple[numpy.ndarray, numpy.ndarray]:
        """Return A and B of the eigenvalue problem.

        covariance: float64 (D, D), of the concatenation. widths (J ints): d_j.
        RETURNS (float64 (D, D), float64 (D, D)).
        """
        between, within = covariance.copy(), numpy.zeros_like(covariance)
        for part, width in zip(_slices(widths), widths, strict=True):
            block = covariance[part, part]
            within[part, part] = block + self.tau * numpy.trace(block) / width * numpy.eye(width)
            between[part, part] = 0.0
        return between, within

    def notes(self, name: str) -> Iterator[str]:
        yield from super().notes(name)
        if self._n_positive is not None and self._n_positive < self.width:
            counts = {"size": self.width, "count": self.width - self._n_positive, "positive": self._n_positive}
            yield Warnings.META_NOT_POSITIVE.format(name=name, **counts)

    def _solve(
        self, moments: Moments, widths: list[int], size: int, names: Sequence[str]
    ) -> tuple[numpy.ndarray, numpy.ndarray, int]:
        """Solve the eigenvalue problem. RAISES (ValueError): if B is singular, or A is 0."""
        covariance, conditions = moments.covariance, []
        between, within = self.matrices(covariance, widths)
        total = len(covariance)
        for name, part, width in zip(names, _slices(widths), widths, strict=True):
            lowest, highest = linalg.eigvalsh(within[part, part])[[0, -1]]
            if lowest <= _SINGULAR * highest:
                rank = _rank(covariance[part, part])
                raise ValueError(
                    f"The covariance of the member '{name}' cannot be inverted with tau = {self.tau}: its "
                    f"vectors lie in {rank} directions, of the {width} that they are wide. Set tau higher, "
                    "such as 0.1."
                )
            conditions.append(highest / lowest)
        rho, theta = linalg.eigh(between, within, subset_by_index=[total - size, total - 1])
        # What is rounding in Sigma_jk is divided by the roots of the smallest eigenvalues of B_jj and B_kk.
        of_pair = numpy.prod(sorted(conditions)[-2:]) ** 0.5
        rounding = max(_ROUNDING * abs(rho).max(), total * numpy.finfo("float64").eps * of_pair)
        self._n_positive = int((rho > rounding).sum())
        if not self._n_positive:  # rho add up to 0, so all of them are 0
            joined = ", ".join(names)
            raise ValueError(
                f"The members ({joined}) have no direction to give by the method '{self.method}': on these "
                f"{moments.n} sentences no number of one correlates with any of another. Use the method svd, "
                "or other members."
            )
        return rho[::-1], theta.T[::-1], total
