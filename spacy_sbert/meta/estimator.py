"""What every method of meta-embedding shares, and the two that learn nothing."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Self

import numpy
import srsly
from numpy.typing import ArrayLike

from ..arrays import Arrays, as_array
from ..errors import Warnings
from ..files.checksum import add_checksum
from ..similarity import unit_length
from ..validation import Width, short_repr, validated

EMPTY_CORPUS = (
    "There is no sentence to fit the meta-embedding on. Give a corpus, or a higher max_tokens."
)
ONE_MEMBER = (
    "A meta-embedding combines at least two members, given: {given}. Add another pipe or function "
    "before it."
)

Views = Sequence[numpy.ndarray]
# Sentences that are read at once
_BLOCK = 4096


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

    Example:
        estimator = GCCA(size=256).fit([views_of_one_encoder, views_of_another])
        estimator.transform([new_views_of_one, new_views_of_another])

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
        self._forget()

    def _forget(self) -> None:
        """Set what a fit learns to what it is before."""
        self.size_ = 0
        self.names_: tuple[str, ...] = ()
        self.widths_: tuple[int, ...] = ()
        # By SentenceMeta.made_of, when a pipe was fitted
        self.made_of_: dict[str, str] = {}

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        state = "not fitted yet"
        if self.is_fitted:
            state = f"{self.width} numbers" if self.width else "any width"
        return f"{type(self).__name__}({settings}: {state})"

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
    def arrays(self) -> Arrays:
        """Return the learned arrays by name; none before it is fitted."""
        if not self.widths_:
            return {}
        return {name: getattr(self, name) for name in self.learned}

    def set_arrays(self, arrays: Mapping[str, numpy.ndarray]) -> None:
        """Set the learned arrays by name, as `arrays` returned them; widths_ are set before."""
        for name, array in arrays.items():
            setattr(self, name, array)

    def to_bytes(self) -> bytes:
        """Return the estimator, settings and what it learned, as MessagePack with a checksum."""
        state = {
            "method": self.method,
            "settings": self.settings,
            "names": list(self.names_),
            "widths": list(self.widths_),
            "size": self.size_,
            "arrays": self.arrays,
            "made_of": self.made_of_,
        }
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
        names = _numbers(members) if names is None else tuple(names)
        if len(names) != len(members):
            raise ValueError(
                f"Given {len(names)} names for {len(members)} members: expected one for each."
            )
        if len(members) < 2:
            raise ValueError(ONE_MEMBER.format(given=", ".join(names) or "none"))
        views = _arrays(members, names)
        if not len(views[0]):
            raise ValueError(EMPTY_CORPUS)
        self._forget()
        self._fit(views, names, progress)
        self.names_ = names
        self.widths_ = _widths(views)
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
        names = self.names_ if len(self.names_) == len(members) else _numbers(members)
        views = _arrays(members, names)
        widths = _widths(views)
        if self.widths_ and widths != self.widths_:
            expected = dict(zip(self.names_, self.widths_, strict=True))
            raise ValueError(
                f"Members of widths {list(widths)}, but it was fitted on {expected}. Fit it again."
            )
        combined = [self._transform(block) for block in self._blocks(views, names)]
        if not combined:
            return numpy.zeros((0, self.width))
        return numpy.concatenate(combined)

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
        """Return views as float64, checked and of length 1.

        start (int): the number of the first sentence, for messages.
        """
        prepared = [numpy.asarray(rows, dtype="float64") for rows in views]
        for name, rows in zip(names, prepared, strict=True):
            finite = numpy.isfinite(rows).all(axis=1)
            if not finite.all():
                raise ValueError(
                    f"The member '{name}' of a meta-embedding has a number that is not finite in "
                    f"the vector of sentence {start + int(finite.argmin())} (from 0). Repair that "
                    "encoder, or leave one of them out."
                )
        if self.normalize:
            return [unit_length(rows) for rows in prepared]
        return prepared

    def _check_finite(self, views: Views, names: Sequence[str]) -> None:
        """Raise ValueError, which names the sentence, if a number is not finite."""
        for _ in self._blocks(views, names):
            pass

    @abstractmethod
    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        """Learn; the number of views is checked, what is in them is not."""

    @abstractmethod
    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        """Combine a block of prepared views, float64 (b, d_j) each: float64 (b, width)."""


def _members(views: object) -> list[ArrayLike]:
    if not isinstance(views, Iterable) or isinstance(views, str | bytes | Mapping):
        raise TypeError(
            f"Cannot combine views = {short_repr(views)}: expected a list of arrays, one for each "
            "member."
        )
    return list(views)


def _numbers(members: Sequence[object]) -> tuple[str, ...]:
    """Return the numbers of members, which stand for names in messages."""
    return tuple(str(number) for number in range(len(members)))


def _widths(views: Views) -> tuple[int, ...]:
    return tuple(view.shape[1] for view in views)


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
        self._check_finite(views, names)

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
