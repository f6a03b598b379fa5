"""Texts to vectors where each wordpiece is looked up in a table."""

from dataclasses import dataclass

from thinc.util import to_numpy

from ..encoder.rows import RowStates, rows_of_texts
from ..encoder.wordpiece_table import WordpieceTable
from ..encoder.wordpieces import Wordpieces
from .call import Call
from .identity import layers_digest
from .sentence_pooling import SentencePooling, pool_rows
from .texts_encoder import Encoded, Moved, unmoved


@dataclass
class StaticTextEncoder:
    """From texts to vectors, see TextsEncoder.

    table: what wordpieces are looked up in. pooling: what makes a vector of theirs.
    call: what is not as the config says.
    """

    table: WordpieceTable
    pooling: SentencePooling
    call: Call

    max_length = None  # of texts: none is cut

    @property
    def width(self) -> int:
        """Of the vectors."""
        return self.pooling.width(self.table.get_dim("nO"), truncate_dim=self.call.truncate_dim)

    @property
    def name(self) -> str:
        """Of the encoder."""
        return self.table.name

    def digest(self) -> str:
        """Of what vectors depend on."""
        self.load()
        return layers_digest([self.table], self.table.get_dim("nO"), self.pooling)

    def load(self) -> None:
        """Read the table, unless it is there."""
        self.table.load()

    def tokenize(self, texts: list[str]) -> Wordpieces:
        """The wordpieces of texts."""
        return self.table.wordpiece_tokenizer(texts, offsets=False)

    def encode(self, wordpieces: Wordpieces, moved: Moved = unmoved) -> Encoded:
        """The vectors of texts, on the CPU, and how many were cut: none."""
        rows = rows_of_texts(wordpieces, self.table.wordpiece_tokenizer.settings)
        batch = RowStates(rows, [], wordpieces.lengths)
        batch.states, batch.backprop = self.table.states(wordpieces, False)
        (vectors, _), _ = pool_rows(self.pooling, batch, False, call=self.call)
        moved(len(vectors))
        return to_numpy(vectors), 0

    def check_calibrated(self) -> None:
        """Nothing is rounded."""

    def to_gpu(self, gpu_id: int) -> None:
        """Work on a GPU."""
        self.table.to_gpu(gpu_id)
        self.pooling.to_gpu(gpu_id)
