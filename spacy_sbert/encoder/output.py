"""The transformer's output for a batch of Docs, split by Doc."""

from itertools import pairwise
from typing import Any, cast

import numpy
from spacy_transformers.data_classes import FullTransformerBatch, TransformerData
from thinc.api import torch2xp
from thinc.types import Ragged
from torch import is_tensor
from transformers.file_utils import ModelOutput


class RowsOutput(FullTransformerBatch):
    """A FullTransformerBatch whose rows need not cover their Docs.

    The members of a pair may leave out tokens before, between and behind them. The alignment that each Doc gets speaks
    of all its tokens all the same, as components that work on tokens (ner, textcat) expect.
    """

    def split_by_doc(self) -> list[TransformerData]:
        arrays = {key: _to_arrays(value) for key, value in self.model_output.items() if _has_rows(value)}
        row_width = self.wordpieces.input_ids.shape[1]
        lengths, pieces = cast(Any, self.align.lengths), cast(Any, self.align.dataXd)
        row_borders = numpy.cumsum([0, *map(len, self.spans)]).tolist()
        token_borders = numpy.cumsum([0, *(len(spans[0].doc) if spans else 0 for spans in self.spans)]).tolist()
        piece_borders = numpy.append(0, numpy.cumsum(lengths))[token_borders].tolist()
        outputs = []
        borders = (pairwise(of_all) for of_all in (row_borders, token_borders, piece_borders))
        for row, token, piece in zip(*borders, strict=True):
            if row[0] == row[1]:
                outputs.append(TransformerData.empty())
                continue
            align = Ragged(cast(Any, pieces[slice(*piece)] - row[0] * row_width), lengths[slice(*token)])
            model_output = ModelOutput({key: _part(value, slice(*row)) for key, value in arrays.items()})
            outputs.append(TransformerData(self.wordpieces[slice(*row)], model_output, align))
        return outputs


def _has_rows(value: Any) -> bool:
    return is_tensor(value) or (isinstance(value, tuple) and all(map(is_tensor, value)))


def _to_arrays(value: Any) -> Any:
    return torch2xp(value) if is_tensor(value) else [torch2xp(part) for part in value]


def _part(value: Any, rows: slice) -> Any:
    return [array[rows] for array in value] if isinstance(value, list) else value[rows]
