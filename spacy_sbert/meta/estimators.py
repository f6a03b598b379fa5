"""Meta-embedding estimators: the base class, concatenation and average."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Self

import numpy

from ..errors import Errors, Warnings
from ..similarity import unit_length
from ..validation import Width, validated

Views = Sequence[numpy.ndarray]
_BLOCK = 4096  # sentences worked on at once


class MetaEmbedding(ABC):
    """Combines the vectors of several sentence encoders.

    size (int): the width d of what comes out; None for that of the widest member, or for as many directions as there
        are to learn, if these are fewer.
    normalize (bool): whether each member's vectors are brought to length 1 first. size_: d, once it is fitted.

    Views are J arrays, float (n, d_j), one for each member, the rows of all being the same n sentences. They may be
    memory-mapped: they are read a block of rows at a time.
    SOURCE: Poerner et al. 2020, Sentence Meta-Embeddings for Unsupervised Semantic Textual Similarity, section 3.
    """

    method: ClassVar[str]
    needs_fit: ClassVar[bool] = True
    learned: ClassVar[tuple[str, ...]] = ()  # attributes that are arrays

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True):
        self.size = size
        self.normalize = normalize
        self.size_ = 0
        self.names_: tuple[str, ...] = ()
        self.widths_: tuple[int, ...] = ()

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        width = f"{self.width} numbers" if self.width else "any width"
        state = width if self.is_fitted else "not fitted yet"
        return f"{type(self).__name__}({settings}: {state})"

    @property
    def settings(self) -> dict[str, object]:
        """What makes an equal estimator that is not fitted."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    @property
    def is_fitted(self) -> bool:
        return bool(self.widths_) or not self.needs_fit

    @property
    def width(self) -> int:
        """The width of what comes out, once it is known."""
        return self.size_ or self.size or 0

    def check_size(self, widths: Sequence[int], names: Sequence[str], n: int) -> None:
        """Refuse a size that no vectors of these members can meet, before there are any.

        widths (J ints): d_j. names (J strings): of the members. n (int): how many sentences there are.
        RAISES (ValueError): if there are fewer directions to learn.
        """
        most = self.most_directions(widths, n)
        if self.size is not None and most is not None and self.size > most:
            each = ", ".join(f"{name} is {width} wide" for name, width in zip(names, widths, strict=True))
            raise ValueError(
                f"size = {self.size}, but by the method '{self.method}' the members have at most {most} "
                f"directions to give on {n} sentences: {each}. Leave size out to take as many as there are."
            )

    def most_directions(self, widths: Sequence[int], n: int) -> int | None:
        """Return the largest number of directions to learn, see check_size; None for no limit."""
        return None

    def notes(self, name: str) -> Iterator[str]:
        """Yield what users should know about the fit.

        name (str): of the pipe, for the messages.
        """
        widest = max(self.widths_, default=0)
        if self.size is None and self.needs_fit and self.width < widest:
            yield Warnings.META_FEWER_DIRECTIONS.format(name=name, method=self.method, size=self.width, widest=widest)

    def fit(self, views: Views, names: Sequence[str] | None = None, *, progress: bool = False) -> Self:
        """Learn from the vectors of a corpus of sentences.

        views (J arrays, float (n, d_j)): see the class.
        names (J strings): of the members, for messages; by default their numbers.
        progress (bool): whether to show progress bars.
        RETURNS (Self): itself.
        RAISES (ValueError): if there is but one member or no sentence, numbers of sentences differ, a number is not
            finite, or the members do not span enough directions.
        """
        self.names_, self.widths_, self.size_ = (), (), 0
        names = tuple(names or map(str, range(len(views))))
        if len(views) < 2:
            raise ValueError(Errors.META_ONE_MEMBER.format(given=", ".join(names) or "none"))
        if not len(views[0]):
            raise ValueError(Errors.META_EMPTY_CORPUS)
        self._fit(views, names, progress)
        self.names_, self.widths_ = names, tuple(view.shape[1] for view in views)
        return self

    def transform(self, views: Views) -> numpy.ndarray:
        """Combine the members' vectors of sentences.

        views (J arrays, float (n, d_j)): see the class.
        RETURNS (float64 (n, width)): the meta-embeddings.
        RAISES (ValueError): if it is not fitted, the members are not those it was fitted on, or a number is not finite.
        """
        if not self.is_fitted:
            raise ValueError(Errors.META_NOT_FITTED.format(method=self.method))
        if self.widths_ and tuple(view.shape[1] for view in views) != self.widths_:
            widths, expected = [view.shape[1] for view in views], dict(zip(self.names_, self.widths_, strict=True))
            raise ValueError(
                f"Members of widths {widths}, but the meta-embedding was fitted on {expected}. Fit it again."
            )
        names = self.names_ or tuple(map(str, range(len(views))))
        parts = [self._transform(block) for block in self._blocks(views, names)]
        return numpy.concatenate(parts) if parts else numpy.zeros((0, self.width))

    def _blocks(self, views: Views, names: Sequence[str]) -> Iterator[list[numpy.ndarray]]:
        """Yield the views as float64, checked and brought to length 1, a block of sentences at a time."""
        n, named = len(views[0]), list(zip(names, views, strict=True))
        for name, view in named:
            if len(view) != n:
                raise ValueError(
                    f"The member '{name}' of a meta-embedding has {len(view)} vectors, '{names[0]}' has {n}: "
                    "expected those of the same sentences."
                )
        for start in range(0, n, _BLOCK):
            yield [self._prepared(view[start : start + _BLOCK], name, start) for name, view in named]

    def _prepared(self, rows: numpy.ndarray, name: str, start: int) -> numpy.ndarray:
        rows = numpy.asarray(rows, dtype="float64")
        bad = numpy.flatnonzero(~numpy.isfinite(rows).all(axis=1))
        if len(bad):
            raise ValueError(
                f"The member '{name}' of a meta-embedding has a number that is not finite in the vector of "
                f"sentence {start + int(bad[0])} (from 0). Repair that encoder, or take the member or the "
                "sentence out."
            )
        return unit_length(rows) if self.normalize else rows

    @abstractmethod
    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        """Learn; the number of views is checked, what is in them is not."""

    @abstractmethod
    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        """Combine a block of prepared views, float64 (b, d_j) each: float64 (b, width)."""

    def state(self) -> dict[str, object]:
        """Return all that was learned: strings, numbers and arrays."""
        arrays = {name: getattr(self, name) for name in self.learned} if self.widths_ else {}
        return {"names": list(self.names_), "widths": list(self.widths_), "size": self.size_, "arrays": arrays}

    def set_state(self, state: Mapping[str, object]) -> Self:
        """Restore what `state` returned.

        RAISES (ValueError): if something is missing in it, or an array is not of the shape that the members ask for.
        """
        names, widths, arrays = (state.get(key) for key in ("names", "widths", "arrays"))
        if not (isinstance(names, list | tuple) and isinstance(widths, list | tuple) and isinstance(arrays, dict)):
            raise ValueError(Errors.META_BAD_STATE.format(what="names, widths and arrays", given=sorted(state)))
        self.names_, self.widths_ = tuple(map(str, names)), tuple(map(int, widths))
        if not self.widths_:
            return self
        size = state.get("size")
        if not isinstance(size, int):
            raise ValueError(Errors.META_BAD_STATE.format(what="a whole number as size", given=repr(size)))
        self.size_ = size
        expected = self._shapes()
        shapes = {key: _shape(arrays.get(key)) for key in expected}
        if shapes != expected:
            raise ValueError(Errors.META_BAD_STATE.format(what=f"arrays of shapes {expected}", given=shapes))
        self._set_arrays({key: numpy.array(arrays[key]) for key in expected})
        return self

    def _set_arrays(self, arrays: Mapping[str, numpy.ndarray]) -> None:
        for key, array in arrays.items():
            setattr(self, key, array)

    @abstractmethod
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the learned arrays, from the members' widths and the settings."""


def _shape(array: object) -> tuple[int, ...] | None:
    return array.shape if isinstance(array, numpy.ndarray) and array.dtype.kind == "f" else None


class Concatenation(MetaEmbedding):
    """Concatenation of the members' vectors.

    F(s) = [F_1(s); ...; F_J(s)]

    SOURCE: Poerner et al. 2020, section 3.1.
    """

    method = "conc"
    needs_fit = False

    @validated
    def __init__(self, *, size: Width | None = None, normalize: bool = True):
        super().__init__(size=size, normalize=normalize)
        if size is not None:
            raise ValueError(
                f"size = {size}, but the width of the method '{self.method}' follows from the members. Leave "
                "size out, or use svd, gcca or ae."
            )

    @property
    def width(self) -> int:
        return sum(self.widths_)

    def _fit(self, views: Views, names: Sequence[str], progress: bool) -> None:
        for _ in self._blocks(views, names):  # raises if a number is not finite, as the other methods do
            pass

    def _transform(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        return numpy.hstack(views)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {}


class Average(Concatenation):
    """The mean of the members' vectors, shorter ones followed by zeros.

    F(s) = 1 / J sum_j [F_j(s); 0]

    SOURCE: Poerner et al. 2020, section 3.1; Coates and Bollegala 2018, Frustratingly Easy Meta-Embedding.
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
