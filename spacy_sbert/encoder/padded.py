"""The padded batch that components of spacy-transformers know: the contract of a transformer that several listen to.

Here, and nowhere else but in what a Hugging Face model takes, states have padding.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy
import torch
from spacy.tokens import Span
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData, WordpieceBatch
from thinc.api import torch2xp, xp2torch
from thinc.types import Ragged
from transformers.utils import ModelOutput

from .align import align_wordpieces
from .engine.windows import spread
from .rows import Rows, borders_of, doc_characters, row_text, rows_of_spans
from .settings import FolderSettings
from .states import Array, States
from .wordpieces import Wordpieces, WordpieceTokenizer

Arrays = list[torch.Tensor] | torch.Tensor


@dataclass
class RowBatch(WordpieceBatch):
    """A WordpieceBatch that knows what its rows are; one row a window, several windows for a Span that was too long.

    spans: int64 (windows, 3), for each window the number of its Span in the batch and the Span's start and end token.
    n_text: int64 (windows,), wordpieces without special tokens.
    n_cut: int64 (windows,), wordpieces of the text that were cut off.
    row_characters: int64 (windows, 2), where each window's Span begins and ends in its Doc, white space left out.
    characters: int32 (windows, wordpieces, 2), those of each wordpiece in its Doc; None for a slow tokenizer.
    settings: of the encoder that made the batch.
    """

    spans: numpy.ndarray
    n_text: numpy.ndarray
    n_cut: numpy.ndarray
    row_characters: numpy.ndarray
    characters: numpy.ndarray | None
    settings: FolderSettings

    def __getitem__(self, index: int | slice) -> "RowBatch":
        part = slice(index, index + 1) if isinstance(index, int) else index
        base = super().__getitem__(part)
        ours = {name: getattr(self, name)[part] for name in ("spans", "n_text", "n_cut", "row_characters")}
        characters = None if self.characters is None else self.characters[part]
        return RowBatch(**vars(base), **ours, characters=characters, settings=self.settings)


class PaddedRows(FullTransformerBatch):
    """A FullTransformerBatch whose rows need not cover their Docs.

    The members of a pair may leave out tokens before, between and behind them. The alignment that each Doc gets speaks
    of all its tokens all the same, as components that work on tokens (ner, textcat) expect.
    """

    def split_by_doc(self) -> list[TransformerData]:
        tokens = borders_of(len(spans[0].doc) if spans else 0 for spans in self.spans)
        batch = cast(RowBatch, self.wordpieces)
        return split(batch, self.model_output, self.align, borders_of(map(len, self.spans)), tokens)


@dataclass
class SharedRows:
    """The rows of a batch of Docs in wordpieces, N in all. No Doc is in it: it may stand on one.

    rows: of all Docs, one after another. borders: where the rows of each Doc begin, and where the last end;
    window_borders: the same of the windows, token_borders: of the tokens of Docs with rows.
    characters: int32 (N, 2), of each wordpiece in its Doc; None for a slow tokenizer.
    align: of each token the indices of its wordpieces.
    """

    wordpieces: Wordpieces
    rows: Rows
    borders: list[int]
    window_borders: list[int]
    token_borders: list[int]
    characters: numpy.ndarray | None
    align: Ragged

    def padded(self, tokenizer: WordpieceTokenizer) -> tuple[RowBatch, Ragged]:
        """The same in a padded batch; tokenizer: that made it."""
        lengths = self.wordpieces.lengths
        places = spread(numpy.arange(len(lengths)) * int(lengths.max()), lengths)
        align = Ragged(places[self.align.dataXd].astype("int32"), self.align.lengths)
        return _pad(tokenizer, self, places), align


def read_shared(
    tokenizer: WordpieceTokenizer, spans: list[list[Span]], prompt: str = ""
) -> tuple[list[list[Span]], SharedRows]:
    """Tokenise the rows of a batch of Docs.

    tokenizer (WordpieceTokenizer): of the encoder.
    spans (list[list[Span]]): the rows of each Doc, in the order of the text.
    prompt (str): what is put before each.
    RETURNS (list[list[Span]], SharedRows): the rows once for each of their windows, and their wordpieces.
    """
    flat = [span for doc_spans in spans for span in doc_spans]
    texts = [row_text(span) for span in flat]
    wordpieces = tokenizer(texts, offsets=True, prompt=prompt)
    rows = rows_of_spans(flat, texts, wordpieces, tokenizer.settings)
    doc_of = [number for number, doc_spans in enumerate(spans) for _ in doc_spans]
    align = align_wordpieces(tokenizer, wordpieces, flat, doc_of, texts)
    counts = iter(numpy.bincount(wordpieces.text_of, minlength=len(flat)).tolist())
    nested = [[same for span in doc_spans for same in [span] * next(counts)] for doc_spans in spans]
    return nested, SharedRows(
        wordpieces,
        rows,
        borders=borders_of(map(len, spans)),
        window_borders=borders_of(map(len, nested)),
        token_borders=borders_of(len(doc_spans[0].doc) if doc_spans else 0 for doc_spans in spans),
        characters=doc_characters(wordpieces, flat),
        align=align,
    )


def split(
    batch: RowBatch, output: ModelOutput, align: Ragged, windows: list[int], tokens: list[int]
) -> list[TransformerData]:
    """What each Doc gets of a padded batch; windows, tokens (list[int]): see SharedRows."""
    arrays = {key: _to_arrays(value) for key, value in output.items() if _has_rows(value)}
    row_width = batch.input_ids.shape[1]
    pieces = numpy.append(0, numpy.cumsum(numpy.asarray(align.lengths)))[tokens].tolist()
    found = []
    for row, token, piece in zip(pairwise(windows), pairwise(tokens), pairwise(pieces), strict=True):
        if row[0] == row[1]:
            found.append(TransformerData.empty())
            continue
        own = Ragged(align.dataXd[slice(*piece)] - row[0] * row_width, align.lengths[slice(*token)])
        model_output = ModelOutput({key: _part(value, slice(*row)) for key, value in arrays.items()})
        found.append(TransformerData(batch[slice(*row)], model_output, own))
    return found


def pad_states(
    wordpieces: Wordpieces, parts: Iterable[States], width: int, device: torch.device
) -> tuple[torch.Tensor, Callable[[torch.Tensor], list[Array]]]:
    """The states of windows in a padded batch, and from its gradient to those of the values.

    width (int): of the states.
    RETURNS (float32 (windows, wordpieces, width), Callable): a row a window, zeros at padding.
    """
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    padded = torch.zeros(shape[0] * shape[1], width, device=device)
    places = []
    for part in parts:
        places.append(torch.from_numpy(spread(part.windows * shape[1], part.lengths)).to(device))
        padded[places[-1]] = xp2torch(part.values, device=device)

    def backprop(d_padded: torch.Tensor) -> list[Array]:
        flat = d_padded.reshape(-1, width).to(device)  # a thread that does not know of the GPU makes it on the CPU
        return [torch2xp(flat[of_part]) for of_part in places]

    return padded.view(*shape, width), backprop


def _pad(tokenizer: WordpieceTokenizer, shared: SharedRows, places: numpy.ndarray) -> RowBatch:
    wordpieces, rows = shared.wordpieces, shared.rows
    shape = (len(wordpieces.lengths), int(wordpieces.lengths.max()))
    ids = numpy.full(shape, tokenizer.pad_id, dtype="int64")
    ids.reshape(-1)[places] = wordpieces.ids
    mask = numpy.zeros(shape, dtype="float32")
    mask.reshape(-1)[places] = 1
    type_ids = numpy.full(shape, tokenizer.pad_type_id, dtype="int64") if tokenizer.has_type_ids else None
    if type_ids is not None:
        type_ids.reshape(-1)[places] = 0 if wordpieces.type_ids is None else wordpieces.type_ids
    characters = None
    if shared.characters is not None:
        characters = numpy.zeros((*shape, 2), dtype="int32")
        characters.reshape(-1, 2)[places] = shared.characters
    return RowBatch(
        strings=tokenizer.strings[ids].tolist(),
        input_ids=ids,  # type: ignore[arg-type]
        attention_mask=mask,  # type: ignore[arg-type]
        lengths=wordpieces.lengths.tolist(),
        token_type_ids=type_ids,  # type: ignore[arg-type]
        spans=numpy.column_stack([wordpieces.text_of, rows.spans[rows.row_of]]),
        n_text=rows.window_weights,
        n_cut=wordpieces.n_cut,
        row_characters=cast(numpy.ndarray, rows.characters)[rows.row_of],
        characters=characters,
        settings=tokenizer.settings,
    )


def _has_rows(value: object) -> bool:
    return torch.is_tensor(value) or (isinstance(value, tuple) and all(map(torch.is_tensor, value)))


def _to_arrays(value: Arrays) -> Array:
    return torch2xp(value) if isinstance(value, torch.Tensor) else [torch2xp(part) for part in value]


def _part(value: Array, rows: slice) -> Array:
    return [array[rows] for array in value] if isinstance(value, list) else value[rows]
