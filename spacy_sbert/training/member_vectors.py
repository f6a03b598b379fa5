"""The vectors of the members of a batch, one after the other, and the way of their gradient back to the Docs."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

from spacy.training import Example
from thinc.api import Ops
from thinc.types import Floats2d, Ints1d

from ..spans import members
from ..vectors.encoded import EncodedDoc
from .members import member_rows
from .peers import Peers


class MemberVectors:
    """The members of all examples of a batch, of which this process has encoded its own.

    batch (Sequence[Example]): all of it. vectors: of all members, float32 (members of the batch, width), example by
        example. gradient: of the same shape, zeros to begin with.
    RAISES (ValueError): if the rows of an own example are not its members.
    """

    def __init__(
        self, ops: Ops, examples: Sequence[Example], scores: Sequence[EncodedDoc], spans_key: str, peers: Peers
    ):
        rows = [member_rows(eg.predicted, enc, spans_key) for eg, enc in zip(examples, scores, strict=True)]
        self._ops, self._peers = ops, peers
        self._borders = [0, *accumulate(len(encoded.vectors) for encoded in scores)]
        flat = ops.xp.concatenate([encoded.vectors for encoded in scores])  # (rows of the own Docs, width)
        starts = zip(self._borders, rows, strict=False)
        self._own = ops.asarray1i([start + row for start, of_doc in starts for row in of_doc])
        self.batch = peers.batch(examples)
        self._counts = [len(members(example.predicted, spans_key)) for example in self.batch]
        self._starts = [0, *accumulate(self._counts)]
        self.vectors = peers.gather(flat[self._own], self._counts)
        self.gradient = ops.alloc2f(*self.vectors.shape)

    def places(self, chosen: Sequence[int], member: int) -> Ints1d:
        """Where a member of some examples stands. chosen: their places in the batch. member (int): its number."""
        return self._ops.asarray1i([self._starts[i] + member for i in chosen])

    def of_docs(self) -> list[Floats2d]:
        """The gradient by the rows of each own Doc, zeros where a row is no member."""
        d_flat = self._ops.alloc2f(self._borders[-1], self.vectors.shape[1])
        d_flat[self._own] = self._peers.own(self.gradient, self._counts)
        return [d_flat[start:end] for start, end in pairwise(self._borders)]
