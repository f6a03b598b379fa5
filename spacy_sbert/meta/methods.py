"""The methods of meta-embedding: concatenation, average, SVD, GCCA and cross-view autoencoders."""

import inspect
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, Self

import numpy
import srsly
import torch
from numpy.typing import ArrayLike
from pydantic import Field
from scipy import linalg
from torch.nn import functional

from ..errors import DivergedError, Errors, Warnings
from ..files.checksum import add_checksum, verify_checksum
from ..progress import progress_bar, progress_of, ticking
from ..similarity import as_array, components_of_covariance, flip_signs, unit_length
from ..validation import (
    NonNegativeFloat,
    Positive,
    PositiveFloat,
    Seed,
    Width,
    check_weights,
    short_repr,
    validated,
)

EMPTY_CORPUS = (
    "There is no sentence to fit the meta-embedding on. Give a corpus, or a higher max_tokens."
)
ONE_MEMBER = (
    "A meta-embedding combines at least two members, given: {given}. Add another pipe or function "
    "before it."
)

Views = Sequence[numpy.ndarray]
# Of each member, its name and its numbers in the concatenation
_Columns = list[tuple[str, slice]]
# See _Linear._solve
_Solution = tuple[numpy.ndarray, numpy.ndarray, int]
# Sentences worked on at once
_BLOCK = 4096
# Variance of a member, as a share of its mean square, that counts as 0
_MIN_VARIANCE = 1e-12
# Of rho, as a share of the largest
_ROUNDING = 1e-10
_SINGULAR = (
    # Smallest eigenvalue of a matrix, as a share of the largest, that cannot be told from 0
    1e-12
)


def _members(views: object) -> list[ArrayLike]:
    if not isinstance(views, Iterable) or isinstance(views, str | bytes | Mapping):
        raise TypeError(
            f"Cannot combine views = {short_repr(views)}: expected a list of arrays, one for each "
            "member."
        )
    return list(views)


def _arrays(views: Sequence[ArrayLike], names: Sequence[str]) -> list[numpy.ndarray]:
    """Return the members' vectors as arrays, maybe memory-mapped.

    RAISES (TypeError, ValueError): if they are none.
    """
    arrays = []
    for name, view in zip(names, views, strict=True):
        array = as_array(
            view, f"vectors of the member '{name}'", "a float array of shape (n, width)"
        )
        if array.ndim != 2 or not array.shape[1]:
            raise ValueError(
                f"The member '{name}' of a meta-embedding has shape {array.shape}: expected (n, "
                "width)."
            )
        arrays.append(array)
    return arrays


class MetaEmbedding(ABC):
    """Combines the vectors of several sentence encoders.

    size (int): the width d of what comes out; None for that of the widest member, or for as many
        directions as there are to learn, if these are fewer.
    normalize (bool): whether each member's vectors are brought to length 1 first. size_: d, once it
        is fitted.

    Views are J arrays, float (n, d_j), one for each member, the rows of all being the same n
    sentences. They may be memory-mapped: they are read a block of rows at a time.
    SOURCE: Poerner et al. 2020, Sentence Meta-Embeddings for Unsupervised Semantic Textual
        Similarity, section 3.
    """

    method: ClassVar[str]
    needs_fit: ClassVar[bool] = True
    # Attributes that are arrays
    learned: ClassVar[tuple[str, ...]] = ()

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True):
        if size is not None and not self.needs_fit:
            raise ValueError(
                f"size = {size}, but the width of the method '{self.method}' is that of its "
                "members. Leave size out."
            )
        self.size = size
        self.normalize = normalize
        self.size_ = 0
        self.names_: tuple[str, ...] = ()
        self.widths_: tuple[int, ...] = ()
        # By SentenceMeta.made_of, when a pipe was fitted
        self.made_of_: dict[str, str] = {}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        width = f"{self.width} numbers" if self.width else "any width"
        return f"{type(self).__name__}({settings}: {width if self.is_fitted else 'not fitted yet'})"

    @property
    def settings(self) -> dict[str, object]:
        """Return the arguments that make an equal estimator that is not fitted."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @property
    def is_fitted(self) -> bool:
        return bool(self.widths_) or not self.needs_fit

    @property
    def width(self) -> int:
        """Return the width of what comes out, once it is known, else 0."""
        return self.size_ or self.size or 0

    @property
    def arrays(self) -> dict[str, numpy.ndarray]:
        """Return the learned arrays by name; none before it is fitted."""
        return {name: getattr(self, name) for name in self.learned} if self.widths_ else {}

    def _set_arrays(self, arrays: Mapping[str, numpy.ndarray]) -> None:
        for name, array in arrays.items():
            setattr(self, name, array)

    def to_bytes(self) -> bytes:
        """Return the estimator, settings and what it learned, as MessagePack with a checksum."""
        state: dict[str, object] = {
            "method": self.method,
            "settings": self.settings,
            "names": list(self.names_),
        }
        state |= {"widths": list(self.widths_), "size": self.size_, "arrays": self.arrays}
        state["made_of"] = self.made_of_
        return add_checksum(srsly.msgpack_dumps(state))

    def check_size(self, widths: Sequence[int], n: int) -> None:  # noqa: B027 (conc and avg have none)
        """Raise ValueError if members of widths d_j cannot give the size on n sentences.

        It is called before there are vectors.
        """

    def notes(self, name: str) -> Iterator[str]:
        """Yield what users should know about the fit; name (str): of the pipe, for the messages."""
        widest = max(self.widths_, default=0)
        if self.size is None and self.needs_fit and self.width < widest:
            yield Warnings.META_FEWER_DIRECTIONS.format(
                name=name, method=self.method, size=self.width, widest=widest
            )

    def fit(
        self, views: Views, names: Sequence[str] | None = None, *, progress: bool = False
    ) -> Self:
        """Learn from the vectors of a corpus of sentences.

        views (J arrays, float (n, d_j)): see the class.
        names (J strings): of the members, for messages; by default their numbers.
        progress (bool): whether to show progress bars.
        RETURNS (Self): itself.
        RAISES (ValueError): if there is but one member or no sentence, numbers of sentences differ,
            a number is not finite, or the members do not span enough directions.
        """
        members = _members(views)
        names = tuple(map(str, range(len(members))) if names is None else names)
        if len(names) != len(members):
            raise ValueError(
                f"Given {len(names)} names for {len(members)} members: expected one for each."
            )
        if len(members) < 2:
            raise ValueError(ONE_MEMBER.format(given=", ".join(names) or "none"))
        views = _arrays(members, names)
        if not len(views[0]):
            raise ValueError(EMPTY_CORPUS)
        self.names_, self.widths_, self.size_, self.made_of_ = (), (), 0, {}
        self._fit(views, names, progress)
        self.names_, self.widths_ = names, tuple(view.shape[1] for view in views)
        return self

    def transform(self, views: Views) -> numpy.ndarray:
        """Combine the members' vectors of sentences.

        views (J arrays, float (n, d_j)): see the class.
        RETURNS (float64 (n, width)): the meta-embeddings.
        RAISES (ValueError): if it is not fitted, the members are not those it was fitted on, or a
            number is not finite.
        """
        if not self.is_fitted:
            raise ValueError(
                f"The method '{self.method}' has not been fitted. Call nlp.initialize, or sbert "
                "fit-meta."
            )
        members = _members(views)
        if not members:
            raise ValueError(ONE_MEMBER.format(given="none"))
        names = (
            self.names_
            if len(self.names_) == len(members)
            else tuple(map(str, range(len(members))))
        )
        views = _arrays(members, names)
        widths = tuple(view.shape[1] for view in views)
        if self.widths_ and widths != self.widths_:
            expected = dict(zip(self.names_, self.widths_, strict=True))
            raise ValueError(
                f"Members of widths {list(widths)}, but it was fitted on {expected}. Fit it again."
            )
        parts = [self._transform(block) for block in self._blocks(views, names)]
        return numpy.concatenate(parts) if parts else numpy.zeros((0, self.width))

    def _blocks(self, views: Views, names: Sequence[str]) -> Iterator[list[numpy.ndarray]]:
        """Yield the views as float64, checked and of length 1, a block of sentences at a time."""
        n = len(views[0])
        for name, view in zip(names, views, strict=True):
            if len(view) != n:
                raise ValueError(
                    f"The member '{name}' of a meta-embedding has {len(view)} vectors, "
                    f"'{names[0]}' has {n}."
                )
        for start in range(0, n, _BLOCK):
            yield self._prepared([view[start : start + _BLOCK] for view in views], names, start)

    def _prepared(self, views: Views, names: Sequence[str], start: int = 0) -> list[numpy.ndarray]:
        prepared = [numpy.asarray(rows, dtype="float64") for rows in views]
        for name, rows in zip(names, prepared, strict=True):
            finite = numpy.isfinite(rows).all(axis=1)
            if not finite.all():
                raise ValueError(
                    f"The member '{name}' of a meta-embedding has a number that is not finite in "
                    f"the vector of sentence {start + int(finite.argmin())} (from 0). Repair that "
                    "encoder, or leave one of them out."
                )
        return [unit_length(rows) for rows in prepared] if self.normalize else prepared

    @abstractmethod
    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        """Learn; the number of views is checked, what is in them is not."""

    @abstractmethod
    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        """Combine a block of prepared views, float64 (b, d_j) each: float64 (b, width)."""


class Concatenation(MetaEmbedding):
    """Concatenation of the members' vectors.

    F(s) = [F_1(s); ...; F_J(s)]

    SOURCE: Poerner et al. 2020, section 3.1.
    """

    method = "conc"
    needs_fit = False

    @property
    def width(self) -> int:
        return sum(self.widths_)

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        # Raises if a number is not finite, as the other methods do
        for _ in self._blocks(
            views,
            names,
        ):
            pass

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return numpy.hstack(views)


class Average(Concatenation):
    """The mean of the members' vectors, shorter ones followed by zeros.

    F(s) = 1 / J sum_j [F_j(s); 0]

    SOURCE: Poerner et al. 2020, section 3.1; Coates and Bollegala 2018, Frustratingly Easy
        Meta-Embedding.
    """

    method = "avg"

    @property
    def width(self) -> int:
        return max(self.widths_, default=0)

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        total = numpy.zeros((len(views[0]), max(view.shape[1] for view in views)))
        for view in views:
            total[:, : view.shape[1]] += view
        return total / len(views)


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
        if b := len(rows):
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
        """Return the scatter over n - 1, or over 1 if there is one row: float64 (width, width)."""
        return self.scatter / max(self.n - 1, 1)


class _Linear(MetaEmbedding):
    """F(s) = C ([F_1(s).

    ...; F_J(s)] - mean), with a mean and a projection C learned from streamed moments.

    mean_: float64 (D,), of the concatenation, D = sum_j d_j. components_: float64 (d, D), the
        projection C.
    values_: float64 (d,), what each component is worth, the best first: see the method.
    """

    learned = ("mean_", "components_", "values_")
    mean_: numpy.ndarray
    components_: numpy.ndarray
    values_: numpy.ndarray

    def check_size(self, widths: Sequence[int], n: int) -> None:
        # Of centred concatenations
        self._check_directions(min(sum(widths), n - 1), n)

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
                # Checked in fit_moments
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
        ends = list(itertools.accumulate(widths))
        columns = [
            (name, slice(end - width, end))
            for name, end, width in zip(names, ends, widths, strict=True)
        ]
        for name, part in columns:
            variance, square = covariance.diagonal()[part].sum(), (moments.mean[part] ** 2).sum()
            if not variance > _MIN_VARIANCE * max(square, numpy.finfo("float64").tiny):
                raise ValueError(
                    f"The member '{name}' has the same vector for all {moments.n} sentences. Take "
                    "it out, or fit on sentences that it tells apart."
                )
        most = min(sum(widths), moments.n - 1)
        values, components, rank = self._solve(
            covariance, columns, min(self.size or max(widths), most), moments.n
        )
        # Rounding may look like one more
        rank = min(rank, most)
        self._check_directions(rank, moments.n)
        self.mean_, self.components_, self.values_ = (
            moments.mean.copy(),
            flip_signs(components[:rank]),
            values[:rank],
        )
        self.names_, self.widths_, self.size_ = tuple(names), tuple(widths), len(self.values_)
        return self

    @abstractmethod
    def _solve(self, covariance: numpy.ndarray, columns: _Columns, size: int, n: int) -> _Solution:
        """Return values (size,), components (size, D), and how many there can be.

        The best come first; the number is that at any size.
        """

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return (numpy.hstack(views) - self.mean_) @ self.components_.T


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
        return numpy.sqrt(numpy.maximum(variances[:size], 0.0)), axes[:size], rank


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
        self._n_positive: int | None = (
            # Of values_, but for rounding; what is loaded has no notes
            None
        )

    def notes(self, name: str) -> Iterator[str]:
        yield from super().notes(name)
        if self._n_positive is not None and self._n_positive < self.width:
            counts = {
                "size": self.width,
                "count": self.width - self._n_positive,
                "positive": self._n_positive,
            }
            yield Warnings.META_NOT_POSITIVE.format(name=name, **counts)

    def _solve(self, covariance: numpy.ndarray, columns: _Columns, size: int, n: int) -> _Solution:
        """Solve the eigenvalue problem. RAISES (ValueError): if B is singular, or A is 0."""
        between, within, conditions = covariance.copy(), numpy.zeros_like(covariance), []
        for name, part in columns:
            block = covariance[part, part]
            ridge = self.tau * numpy.trace(block) / len(block) * numpy.eye(len(block))
            within[part, part] = block + ridge
            between[part, part] = 0.0
            lowest, highest = linalg.eigvalsh(within[part, part])[[0, -1]]
            if lowest <= _SINGULAR * highest:
                raise ValueError(
                    f"The covariance of the member '{name}' cannot be inverted with tau = "
                    f"{self.tau}: its vectors have {components_of_covariance(block).rank} "
                    f"directions, of the {len(block)} of their width. Set tau higher, such as 0.1."
                )
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
        return rho[::-1], theta.T[::-1], total


def _kl_divergence(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    logs = functional.log_softmax(x, dim=1), functional.log_softmax(y, dim=1)
    return functional.kl_div(*logs, reduction="batchmean", log_target=True)


# Of reconstructions x and members' vectors y, (n, d) each.
# Of (1 - cos(x_i, y_i))^2
LOSSES: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    # 1 / (n d) sum_i |x_i - y_i|^2
    "mse": functional.mse_loss,
    # 1 / (n d) sum_i |x_i - y_i|_1
    "mae": functional.l1_loss,
    # 1 / n sum_i KL(softmax(y_i) || softmax(x_i))
    "kld": _kl_divergence,
    "cosine": lambda x, y: (1 - functional.cosine_similarity(x, y, dim=1)).square().mean(),
}
LAYERS = (0, 1, 2)
# The loss of each is saved
_MAX_EPOCHS = 1_000_000


class _CrossViewNetwork(torch.nn.Module):
    """Encoders E_j and decoders D_j of J members.

    Each is a linear map, or a feed-forward network with ReLU behind each of its hidden layers of
    width d.

    widths (J ints): d_j. size (int): d. hidden_layers (int): of each encoder and decoder.
    """

    def __init__(self, widths: Sequence[int], size: int, hidden_layers: int):
        super().__init__()
        hidden = [size] * hidden_layers
        self.encoders = torch.nn.ModuleList(
            _feed_forward([width, *hidden, size]) for width in widths
        )
        self.decoders = torch.nn.ModuleList(
            _feed_forward([size, *hidden, width]) for width in widths
        )

    def forward(self, views: Sequence[torch.Tensor]) -> torch.Tensor:
        """Return the code: sum_j E_j(x_j), (n, d), of J views (n, d_j)."""
        return torch.stack(self._codes(views)).sum(dim=0)

    def loss(self, views: Sequence[torch.Tensor], loss: str) -> torch.Tensor:
        """Return sum_j sum_k l(D_k(E_j(x_j)), x_k), over all J x J pairs of J views (n, d_j)."""
        compare, pairs = LOSSES[loss], list(zip(self.decoders, views, strict=True))
        parts = [
            compare(decode(code), view) for code in self._codes(views) for decode, view in pairs
        ]
        return torch.stack(parts).sum()

    def _codes(self, views: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [encode(view) for encode, view in zip(self.encoders, views, strict=True)]


def _feed_forward(widths: Sequence[int]) -> torch.nn.Sequential:
    """Return linear layers of these widths, with ReLU between them."""
    layers: list[torch.nn.Module] = []
    for n_in, n_out in itertools.pairwise(widths):
        layers += [torch.nn.Linear(n_in, n_out), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


class CrossViewAutoencoder(MetaEmbedding):
    """Sum of the codes of the members.

    Their autoencoders reconstruct every member from the code of every member.

    F(s) = sum_j E_j(F_j(s)), with E and D trained to minimise sum_s sum_j sum_k l(D_k(E_j(F_j(s))),
    F_k(s)) by Adam with beta 0.9 and 0.999. See _CrossViewNetwork for E and D, LOSSES for l.

    hidden_layers (int): of each encoder and decoder, 0, 1 or 2, each of width d.
    loss (str): "mse", "mae", "kld" or "cosine".
    epochs, batch_size (int), learn_rate (float): of the training.
    seed (int): of the weights at the start and of the order of the sentences.
    dtype (str): of the arithmetic, "float32" or "float64".
    parameters_: arrays by name, the weights. losses_: float64 (epochs,), the mean loss of the
        batches of each epoch.
    SOURCE: Poerner et al. 2020, section 3.4; Bollegala and Bao 2018, Learning Word Meta-Embeddings
        by Autoencoding.
    """

    method = "ae"

    @validated
    def __init__(
        self,
        *,
        size: Width | None = None,
        normalize: bool = True,
        hidden_layers: Annotated[int, Field(ge=0, le=LAYERS[-1])] = 0,
        loss: Literal["mse", "mae", "kld", "cosine"] = "mse",
        epochs: Annotated[int, Field(ge=1, le=_MAX_EPOCHS)] = 500,
        batch_size: Positive = 10_000,
        learn_rate: PositiveFloat = 0.001,
        seed: Seed = 0,
        dtype: Literal["float32", "float64"] = "float32",
    ):
        super().__init__(size=size, normalize=normalize)
        self.hidden_layers = hidden_layers
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.learn_rate = learn_rate
        self.seed = seed
        self.dtype = dtype
        self.losses_ = numpy.zeros(0)
        self._network: _CrossViewNetwork | None = None

    @property
    def parameters_(self) -> dict[str, numpy.ndarray]:
        """Return the weights by name."""
        network = self._network
        return (
            {}
            if network is None
            else {name: value.numpy() for name, value in network.state_dict().items()}
        )

    @property
    def arrays(self) -> dict[str, numpy.ndarray]:
        return {**self.parameters_, "losses_": self.losses_} if self.widths_ else {}

    def _set_arrays(self, arrays: Mapping[str, numpy.ndarray]) -> None:
        self.losses_ = arrays["losses_"]
        network = self._new_network(self.widths_)
        network.load_state_dict(
            {name: torch.from_numpy(arrays[name]) for name in network.state_dict()}
        )
        self._network = network.eval().requires_grad_(False)

    def check_size(self, widths: Sequence[int], n: int) -> None:
        size = self.size or max(widths)
        check_weights("size", size, size, max(*widths, size if self.hidden_layers else 0))

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        widths = [view.shape[1] for view in views]
        self.check_size(widths, len(views[0]))
        # Names the sentence if a number is not finite
        for _ in self._blocks(views, names):
            pass
        network = self._new_network(widths)
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learn_rate, betas=(0.9, 0.999))
        rng = numpy.random.default_rng(self.seed)
        losses = []
        for epoch in progress_of(
            range(self.epochs), desc="Training", unit="epochs", shown=progress
        ):
            batch_losses = []
            order = rng.permutation(len(views[0]))
            for start in range(0, len(order), self.batch_size):
                # Read in the order on disk
                rows = numpy.sort(order[start : start + self.batch_size])
                optimizer.zero_grad()
                loss = network.loss(
                    self._tensors(self._prepared([view[rows] for view in views], names)), self.loss
                )
                loss.backward()
                optimizer.step()
                batch_losses.append(loss.detach())
            losses.append(float(torch.stack(batch_losses).mean()))
            if not numpy.isfinite(losses[-1]):
                raise ValueError(
                    f"The loss is not finite in epoch {epoch + 1}. Lower learn_rate = "
                    f"{self.learn_rate}."
                )
        self.losses_, self.size_ = numpy.array(losses), self.size or max(widths)
        self._network = network.eval().requires_grad_(False)

    def _new_network(self, widths: Sequence[int]) -> _CrossViewNetwork:
        # The caller's random numbers stay
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = _CrossViewNetwork(widths, self.size or max(widths), self.hidden_layers)
        return network.to(getattr(torch, self.dtype))

    def _tensors(self, views: Sequence[numpy.ndarray]) -> list[torch.Tensor]:
        return [torch.from_numpy(view).to(getattr(torch, self.dtype)) for view in views]

    @torch.no_grad()
    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        assert self._network is not None
        return self._network(self._tensors(views)).double().numpy()


METHODS: dict[str, type[MetaEmbedding]] = {
    estimator.method: estimator
    for estimator in (Concatenation, Average, SVD, GCCA, CrossViewAutoencoder)
}


def make_estimator(method: str, **settings: object) -> MetaEmbedding:
    """Make a meta-embedding that is not fitted.

    method (str): one of METHODS. settings: arguments of its class.
    RAISES (ValueError): for an unknown method, or a setting that the method does not have.
    """
    if method not in METHODS:
        raise ValueError(
            f"Unknown method '{method}' of meta-embedding: expected one of {', '.join(METHODS)}."
        )
    kind: Callable[..., MetaEmbedding] = METHODS[method]
    known = inspect.signature(kind).parameters
    if unknown := sorted(settings.keys() - known.keys()):
        expected = ", ".join(known)
        raise ValueError(
            f"The method '{method}' has no setting {', '.join(unknown)}: expected some of "
            f"{expected}."
        )
    return kind(**settings)


def estimator_from_bytes(data: bytes) -> MetaEmbedding:
    """Load an estimator from the bytes of its `to_bytes`.

    A saved pipe has them in the file `estimator`.

    RAISES (ValueError): if the bytes are damaged, or those of something else.
    """
    state = srsly.msgpack_loads(verify_checksum(data))
    if not (isinstance(state, dict) and "method" in state):
        raise ValueError("These bytes are not a saved meta-embedding. Save it again.")
    estimator = make_estimator(state["method"], **state["settings"])
    estimator.names_, estimator.widths_, estimator.size_ = (
        tuple(state["names"]),
        tuple(state["widths"]),
        state["size"],
    )
    # Fits of before have none
    estimator.made_of_ = state.get("made_of", {})
    if estimator.widths_:
        arrays = {name: numpy.array(array) for name, array in state["arrays"].items()}
        for name, array in arrays.items():
            if not numpy.isfinite(array).all():
                raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason=f"{name} is not finite"))
        estimator._set_arrays(arrays)  # noqa: SLF001 (of this module)
    return estimator
