"""The network of configs/infersent.cfg in plain PyTorch: hash embeddings, maxout, BiLSTM, maximum,
classifier.

Its units are spaCy's tokens, and the rows of a token are hashed as Thinc does it; the rest is
PyTorch's own.
"""

import math
from itertools import accumulate, pairwise

import numpy
import torch
from spacy.attrs import IS_SPACE, NORM, PREFIX, SUFFIX
from spacy.language import Language
from thinc.api import NumpyOps
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence

FEATURES = [NORM, PREFIX, SUFFIX]
ROWS = [5000, 1000, 1000]
# Of the hashes
SEEDS = [8, 9, 10]
PIECES = 3
LABELS = ["contradiction", "entailment", "neutral"]


class InferSent(nn.Module):
    """Texts, each the rows of its tokens, to vectors; pairs of these to scores of labels.

    width (int): of embeddings, states and vectors. dropout (float): of columns of the embeddings,
        and of what is mixed.
    """

    def __init__(self, width: int = 256, dropout: float = 0.1):
        super().__init__()
        self.width, self.dropout = width, dropout
        self.embed = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for rows in ROWS)
        self.mix = nn.Linear(len(ROWS) * width, PIECES * width)
        self.norm = nn.LayerNorm(width, eps=1e-8)
        self.lstm = nn.LSTM(width, width // 2, bidirectional=True)
        self.head = nn.Linear(4 * width, len(LABELS))
        for table in self.embed:
            nn.init.uniform_(table.weight, -0.1, 0.1)
        # Thinc draws (width, pieces, inputs) by Glorot's rule over its first two axes.
        bound = math.sqrt(6 / (width + PIECES))
        nn.init.uniform_(self.mix.weight, -bound, bound)
        nn.init.zeros_(self.mix.bias)

    def forward(self, texts: list[torch.Tensor]) -> torch.Tensor:
        """float (texts, width), of the rows of each text's tokens, int64 (tokens, features, 4)."""
        rows = torch.cat(texts)
        columns = [
            table(rows[:, i]) * self._dropped(1, self.width) for i, table in enumerate(self.embed)
        ]
        pieces = self.mix(torch.cat(columns, dim=1)).view(len(rows), self.width, PIECES)
        mixed = self.norm(pieces.max(dim=2).values)
        mixed = mixed * self._dropped(*mixed.shape)
        packed = pack_sequence(mixed.split([len(text) for text in texts]), enforce_sorted=False)
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, padding_value=-math.inf
        )
        return states.max(dim=1).values

    def _dropped(self, *shape: int) -> torch.Tensor:
        return functional.dropout(torch.ones(shape), self.dropout, self.training)

    def scores(self, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return self.head(torch.cat([u, v, (u - v).abs(), u * v], dim=1))

    def loss(
        self, first: list[torch.Tensor], second: list[torch.Tensor], labels: list[str]
    ) -> torch.Tensor:
        u, v = self([*first, *second]).split(len(first))
        return functional.cross_entropy(
            self.scores(u, v), torch.tensor([LABELS.index(label) for label in labels])
        )

    def encode(self, texts: list[torch.Tensor], batch_size: int = 128) -> numpy.ndarray:
        """float32 (texts, width), in the order of the texts."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        found = numpy.zeros((len(texts), self.width), dtype="float32")
        self.eval()
        with torch.no_grad():
            for start in range(0, len(order), batch_size):
                batch = order[start : start + batch_size]
                found[batch] = self([texts[i] for i in batch]).numpy()
        return found


def hashed_rows(nlp: Language, texts: list[str]) -> list[torch.Tensor]:
    """The rows of each text in the tables, int64 (tokens, features, 4)."""
    ops, features = (
        NumpyOps(),
        [nlp.make_doc(text).to_array([*FEATURES, IS_SPACE]) for text in texts],
    )
    keys = [of_text[of_text[:, -1] == 0, :-1] for of_text in features]
    flat = numpy.concatenate(keys)
    columns = [
        ops.hash(numpy.ascontiguousarray(flat[:, i]), seed).astype("int64") % rows
        for i, (seed, rows) in enumerate(zip(SEEDS, ROWS, strict=True))
    ]
    hashed = torch.from_numpy(numpy.stack(columns, axis=1))
    borders = [0, *accumulate(map(len, keys))]
    return [hashed[start:end] for start, end in pairwise(borders)]


def step(model: InferSent, optimizer: torch.optim.Optimizer, rate: float) -> None:
    """One step of Adam at a rate, each parameter's gradient clipped to norm 1, as Thinc does it."""
    for parameter in model.parameters():
        nn.utils.clip_grad_norm_(parameter, 1.0)
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
    optimizer.zero_grad()
