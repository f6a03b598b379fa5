"""Sums of word and bigram vectors, trained without labels: Sent2Vec, as a token-to-vector
architecture and its training.

Pipelines that have it are loaded after this file is imported, or packaged with it: `python -m spacy
package PIPELINE OUT --code benchmarks/papers/sent2vec.py`. encoders.py trains one.

SOURCE: Pagliardini, Gupta and Jaggi 2018, Unsupervised Learning of Sentence Embeddings using
    Compositional n-Gram Features, section 2.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy
import spacy
import torch
from spacy.attrs import LOWER
from spacy.tokens import Doc
from thinc.api import Model
from thinc.types import Floats2d
from torch.nn.functional import softplus
from tqdm import tqdm

Tok2Vec = Model[list[Doc], list[Floats2d]]
# Odd, so that words in another order have another bigram
_MIX = numpy.uint64(0x9E3779B97F4A7C15)
# How many words that are not there a batch shares
_N_WRONG = 128


@spacy.registry.architectures("sent2vec.v1")
def sent2vec(width: int = 300, word_rows: int = 50_000, bigram_rows: int = 150_000) -> Tok2Vec:
    """Embed each token, and the bigram that begins with it, in lower case.

    y_t = E(w_t) + F(w_t, w_(t+1)), and E(w_t) for the last token

    The mean of y has the direction of the sum of all n-grams of a text.

    width (int): of y. word_rows, bigram_rows (int): of E and F; words and bigrams whose hashes are
        equal, modulo the rows, share one.
    Input: Docs. Output: y, float (tokens, width) each.
    """
    return Model(
        "sent2vec",
        _forward,
        init=_init,
        dims={"nO": width},
        params={"E": None, "F": None},
        attrs={"word_rows": word_rows, "bigram_rows": bigram_rows},
    )


def _forward(
    model: Tok2Vec, docs: list[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Doc]]]:
    xp = model.ops.xp
    words: Any = model.get_param("E")
    bigrams: Any = model.get_param("F")
    rows = [rows_of(doc, len(words), len(bigrams)) for doc in docs]
    states = []
    for word_rows, bigram_rows in rows:
        own = words[xp.asarray(word_rows)]
        own[:-1] += bigrams[xp.asarray(bigram_rows)]
        states.append(own)

    def backprop(d_states: list[Floats2d]) -> list[Doc]:
        d_words = xp.zeros_like(words)
        d_bigrams = xp.zeros_like(bigrams)
        for (word_rows, bigram_rows), d_own in zip(rows, d_states, strict=True):
            model.ops.scatter_add(d_words, xp.asarray(word_rows), d_own)
            model.ops.scatter_add(d_bigrams, xp.asarray(bigram_rows), d_own[:-1])
        model.inc_grad("E", d_words)
        model.inc_grad("F", d_bigrams)
        return docs

    return states, backprop


def rows_of(doc: Doc, n_words: int, n_bigrams: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return the row of each token in E, int (tokens,), and of each bigram in F, (tokens - 1,)."""
    keys = doc.to_array([LOWER]).reshape(-1).astype("uint64")
    pairs = keys[:-1] * _MIX + keys[1:]
    return (keys % n_words).astype("int64"), (pairs % n_bigrams).astype("int64")


def _init(model: Tok2Vec, X: object = None, Y: object = None) -> None:
    """Draw E from a uniform distribution, as the source does, and set F to 0."""
    if model.has_param("E"):
        return
    width = model.get_dim("nO")
    rng = numpy.random.default_rng(0)
    drawn: Any = rng.uniform(-1 / width, 1 / width, (model.attrs["word_rows"], width))
    model.set_param("E", model.ops.asarray2f(drawn, dtype="float32"))
    model.set_param("F", model.ops.alloc2f(model.attrs["bigram_rows"], width))


def train(
    model: Tok2Vec,
    docs: Iterable[Doc],
    *,
    epochs: int = 5,
    batch_size: int = 128,
    negatives: int = 10,
    subsample: float = 1e-4,
    learn_rate: float = 0.5,
    seed: int = 0,
) -> list[float]:
    """Learn to predict a word of a sentence from the mean of the other n-grams of it.

    loss = sum_t q_t (log(1 + exp(-c_t . V(w_t))) + k/|N| sum_(n in N) log(1 + exp(c_t . V(n))))

    c_t is the mean of the word and bigram vectors without w_t, V another table of words, N words
    that are drawn with a probability that grows as the square root of their frequency f, and q_t is
    1 with the probability sqrt(s / f(w_t)) + s / f(w_t), otherwise 0.

    docs (iterable of Doc): sentences; those of fewer than three words are left out.
    negatives (int): k. subsample (float): s.
    RETURNS (list): the mean loss of each epoch.
    SOURCE: Pagliardini et al. 2018, equation 3. Unlike there, vectors are learned by Adagrad, with
        rates that fall to 0, the words of a batch share N, and no bigram with w_t is in c_t.
    """
    rng = numpy.random.default_rng(seed)
    words, bigrams = (_Table(torch.tensor(model.get_param(name))) for name in ("E", "F"))
    answers = _Table(torch.zeros_like(words.vectors))
    n_words = len(words.vectors)
    sentences = [rows_of(doc, n_words, len(bigrams.vectors)) for doc in docs if len(doc) > 2]
    counts = numpy.bincount(numpy.concatenate([own for own, _ in sentences]), minlength=n_words)
    ratio = subsample * counts.sum() / counts.clip(1)
    is_target = numpy.minimum(1.0, numpy.sqrt(ratio) + ratio)
    cumulative = numpy.cumsum(numpy.sqrt(counts))
    n_steps = epochs * -(-len(sentences) // batch_size)
    step = 0
    losses = []
    for epoch in range(epochs):
        values = []
        for batch in tqdm(_batches(sentences, batch_size, rng), f"epoch {epoch}", leave=False):
            word_rows, bigram_rows = map(numpy.concatenate, zip(*batch, strict=True))
            of_words, of_bigrams = words[word_rows], bigrams[bigram_rows]
            contexts = _contexts(of_words, of_bigrams, [len(own) for own, _ in batch])
            (chosen,) = numpy.nonzero(rng.random(len(word_rows)) < is_target[word_rows])
            contexts = contexts[chosen]
            others = numpy.searchsorted(cumulative, rng.random(_N_WRONG) * cumulative[-1], "right")
            right: Any = answers[word_rows[chosen]]
            wrong: Any = answers[others]
            loss = _negative_sampling(contexts, right, wrong, negatives)
            loss.backward()
            rate = learn_rate * (1 - step / n_steps)
            words.update(word_rows, of_words.grad, rate)
            bigrams.update(bigram_rows, of_bigrams.grad, rate)
            d_answers = torch.cat([right.grad, wrong.grad])
            answers.update(numpy.concatenate([word_rows[chosen], others]), d_answers, rate)
            step += 1
            values.append([float(loss.detach()), len(chosen)])
        total, count = numpy.sum(values, axis=0)
        losses.append(float(total / count))
    for name, table in (("E", words), ("F", bigrams)):
        learned: Any = table.vectors.numpy()
        model.set_param(name, model.ops.asarray2f(learned))
    return losses


def _negative_sampling(
    contexts: torch.Tensor, right: torch.Tensor, wrong: torch.Tensor, negatives: int
) -> torch.Tensor:
    """Return the sum of the loss over contexts, see train.

    contexts, right (float (n, width)): c, and V of their words. wrong (float (|N|, width)): V of N.
    """
    of_right = softplus(-(contexts * right).sum(dim=1)).sum()
    of_wrong = softplus(contexts @ wrong.T).sum()
    return of_right + of_wrong * (negatives / len(wrong))


class _Table:
    """Vectors that are learned by Adagrad with a rate for each row."""

    def __init__(self, vectors: torch.Tensor):
        self.vectors = vectors
        self.squares = torch.zeros(len(vectors))

    def __getitem__(self, rows: numpy.ndarray) -> torch.Tensor:
        return self.vectors[torch.from_numpy(rows)].requires_grad_()

    def update(self, rows: numpy.ndarray, gradient: Any, rate: float) -> None:
        """Make a step by the gradient of the vectors of rows, which may occur several times.

        gradient (Tensor): float (rows, width).
        """
        unique, places = torch.unique(torch.from_numpy(rows), return_inverse=True)
        # A product, as torch.index_add adds row by row, which takes many times as long
        ones = torch.ones(len(rows))
        shape = (len(unique), len(rows))
        sums = torch.sparse_coo_tensor(
            torch.stack([places, torch.arange(len(rows))]), ones, shape, check_invariants=True
        )
        total = torch.sparse.mm(sums, gradient)
        self.squares[unique] += total.square().mean(dim=1)
        scale = rate / (self.squares[unique] + 1e-10).sqrt()
        self.vectors[unique] -= scale[:, None] * total


_Rows = tuple[numpy.ndarray, numpy.ndarray]


def _batches(
    sentences: Sequence[_Rows], size: int, rng: numpy.random.Generator
) -> list[list[_Rows]]:
    order = rng.permutation(len(sentences)).tolist()
    return [
        [sentences[i] for i in order[start : start + size]] for start in range(0, len(order), size)
    ]


def _contexts(
    of_words: torch.Tensor, of_bigrams: torch.Tensor, n_words: Sequence[int]
) -> torch.Tensor:
    """Return the mean of the other n-grams of its sentence for each word, (words, width).

    The bigrams that the word is in are not among the others.

    n_words (sequence of int): of each sentence.
    """
    entries: list[list[numpy.ndarray]] = [[], []]
    first_word = 0
    first_bigram = 0
    for n in n_words:
        for own, others, begin in zip(entries, _others(n), (first_word, first_bigram), strict=True):
            own.append(numpy.add(others, [[first_word], [begin]]))
        first_word += n
        first_bigram += n - 1
    means = []
    for own, of_ngrams in zip(entries, (of_words, of_bigrams), strict=True):
        places = torch.from_numpy(numpy.concatenate(own, axis=1))
        ones = torch.ones(places.shape[1])
        shape = (len(of_words), len(of_ngrams))
        matrix = torch.sparse_coo_tensor(places, ones, shape, check_invariants=True)
        means.append((torch.sparse.mm(matrix, of_ngrams), torch.bincount(places[0])))
    (words, word_counts), (bigrams, bigram_counts) = means
    return (words + bigrams) / (word_counts + bigram_counts)[:, None]


@lru_cache(maxsize=1000)
def _others(n: int) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Return which words, and which bigrams, are others for each of n words: two of int (2, m)."""
    words = ~numpy.eye(n, dtype=bool)
    bigrams = words[:, :-1] & words[:, 1:]
    return numpy.stack(words.nonzero()), numpy.stack(bigrams.nonzero())
