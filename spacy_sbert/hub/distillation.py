"""Distill a transformer into static embeddings."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from math import ceil
from typing import cast

import numpy
import spacy
from scipy import sparse
from spacy.language import Language
from thinc.types import Floats2d
from tokenizers import Tokenizer

from ..errors import Errors, Warnings, warn
from ..models.encoded_docs import TruncationCounter
from ..models.static_embedding import StaticEmbedding, without_special_tokens
from ..models.text_encoders import TransformerTextEncoder, encode_all
from ..models.tokenization import TokenizedBatch
from ..models.transformer import SpanTransformer, load
from ..pipeline.sbert import find_sbert
from ..pipeline.sentence_model import find_static_embedding, find_transformer
from ..progress import progress_bar, ticking
from ..similarity import principal_components
from ..validation import NonNegative, Width, validated

# a of the formula: what the fit leaves of the teacher's vectors hardly changes above it, and grows
# below
_SMOOTHING = 1e-2
# Rounding of a teacher's vectors. After layer normalization they may be in a plane, and what leads
# out of it is rounding
_ROUNDING = numpy.finfo("float32").eps
# Wordpieces that are encoded at once
_BATCH = 4096
# The least number of times that a word occurs in the texts
_MIN_COUNT = 5
# Texts that the table is fitted to: five times as many change nothing
_N_FIT = 20_000


def _wordpiece_counts(tokenizer: str, texts: Sequence[str], n_wordpieces: int) -> sparse.csr_array:
    """Count each wordpiece in each text: int64 (texts, wordpieces).

    tokenizer (str): as JSON.
    """
    encodings = Tokenizer.from_str(tokenizer).encode_batch_fast(
        list(texts), add_special_tokens=False
    )
    lengths = numpy.array([len(encoding) for encoding in encodings], dtype="int64")
    ids = numpy.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), dtype="int64")
    rows = numpy.repeat(numpy.arange(len(texts)), lengths)
    return sparse.csr_array(
        (numpy.ones(len(ids), dtype="int64"), (rows, ids)), shape=(len(texts), n_wordpieces)
    )


def _least_squares(
    table: numpy.ndarray, counts: sparse.csr_array, targets: numpy.ndarray
) -> numpy.ndarray:
    """Fit the linear map that brings the mean vectors of texts nearest to their targets.

    R = argmin ||M R - T||^2,   M_s = sum_w c_sw E_w / sum_w c_sw

    table (float64 (wordpieces, width)): E. counts (int64 (texts, wordpieces)): c, without texts
        that have none.
    targets (float (texts, size)): T.
    RETURNS (float64 (width, size)): R, the solution of least norm if there are several.
    """
    means = (counts @ table) / counts.sum(axis=1)[:, None]
    return numpy.linalg.lstsq(means, targets, rcond=_ROUNDING * table.shape[1])[0]


def _encode_vocabulary(
    encoder: TransformerTextEncoder, words: Sequence[str], *, progress: bool
) -> numpy.ndarray:
    """Encode each wordpiece between the special tokens, and each word as a text.

    RETURNS (float32 (n, width)): vectors of any length, of the wordpieces and then of the words.
    """
    pooling = encoder.pooling.copy()
    pooling.normalize = False
    encoder = TransformerTextEncoder(encoder.model, pooling, encoder.settings)
    template = encoder.tokenize(["a"])
    count = len(encoder.model.wordpiece_tokenizer.strings)
    vectors = []
    with progress_bar(count, shown=progress, unit="wordpieces") as bar:
        for ids in numpy.array_split(numpy.arange(count), ceil(count / _BATCH)):
            vectors.append(encoder.encode(_in_place_of_text(ids, template))[0])
            bar.update(len(ids))
    of_words = encode_all(
        encoder,
        words,
        window=_BATCH,
        progress=progress,
        n_process=1,
        gpu_ids=(),
        cuts=TruncationCounter(),
    )
    return numpy.concatenate([*vectors, of_words])


def _in_place_of_text(ids: numpy.ndarray, template: TokenizedBatch) -> TokenizedBatch:
    """Build a window for each wordpiece: a template with the wordpiece in place of its text.

    The special tokens and the prompt of the template stay around it.
    """
    n = len(ids)
    place, *others = numpy.flatnonzero(~template.special)
    windows = numpy.tile(numpy.delete(template.ids, others), (n, 1))
    windows[:, place] = ids
    length = windows.shape[1]
    type_ids = None
    if template.type_ids is not None:
        type_ids = numpy.tile(numpy.delete(template.type_ids, others), n)
    return TokenizedBatch(
        text_of=numpy.arange(n),
        lengths=numpy.full(n, length),
        ids=windows.reshape(-1),
        type_ids=type_ids,
        special=numpy.tile(numpy.arange(length) != place, n),
        offsets=None,
        n_cut=numpy.zeros(n, dtype="int64"),
        n_lead=template.n_lead,
        has_type_ids=template.has_type_ids,
        pads_left=template.pads_left,
    )


def _frequent_words(tokenizer: str, texts: Iterable[str], count: int) -> list[str]:
    """Return words that a WordPiece tokenizer splits, most frequent first.

    They occur five times at least.
    """
    model = json.loads(tokenizer)["model"]
    counts = _count_words(Tokenizer.from_str(tokenizer), texts)
    frequent = [word for word, seen in counts.most_common() if seen >= _MIN_COUNT]
    longest = model["max_input_chars_per_word"]
    split = [word for word in frequent if word not in model["vocab"] and len(word) <= longest]
    return split[:count]


def _count_words(tokenizer: Tokenizer, texts: Iterable[str]) -> Counter[str]:
    """Count the words of texts, as a tokenizer sees them before it splits them."""
    counts: Counter[str] = Counter()
    for text in texts:
        if tokenizer.normalizer:
            text = tokenizer.normalizer.normalize_str(text)
        if tokenizer.pre_tokenizer:
            counts.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
        else:
            counts[text] += 1
    return counts


@validated
def distill_static(
    teacher: Language,
    texts: Sequence[str],
    *,
    size: Width = 256,
    words: NonNegative = 20000,
    name: str | None = None,
    progress: bool = False,
) -> Language:
    """Make a pipeline whose sentence encoder is a table, computed from a teacher without training.

    E_w = a/(a + p(w)) v(w) R,  a = 0.01,  R = argmin_R sum_s || mean_(w in s) E_w - t(s) A ||^2

    v(w) is the teacher's vector of a wordpiece or a frequent word alone, p(w) its frequency among
    the texts, t(s) the teacher's vector of a text, and A its first principal axes, so that vectors
    of the table lie in the space of the teacher's; where size is the teacher's width, A is the
    identity, and they can be compared with the teacher's own.

    teacher (Language): with an `sbert` pipe whose transformer is of this package.
    texts (list[str]): plain sentences of the kind that will be encoded; up to 20,000 of them,
        evenly spread, are t(s).
    size (int): width of the table. words (int): the most words of the texts that get a vector of
        their own, beside the teacher's wordpieces; each is seen five times at least.
    name (str): of the teacher's pipe; by default the last. progress (bool): whether to show a
        progress bar.
    RETURNS (Language): with an `sbert` pipe, whose loss, if it is trained on, goes on towards the
        same teacher: its projection is A, and fixed.
    RAISES (ValueError): if size is above the teacher's width, or there are too few texts; what
        find_sbert and find_transformer raise.
    SOURCE: after model2vec (Tulkens and van Dongen 2024), whose principal components are those of
        the vocabulary; Arora et al. 2017 for the weights.

    Example:
        distill_static(spacy.load("teacher"), sentences).to_disk("static")

    """
    pipe = find_sbert(teacher, name)
    transformer = find_transformer(pipe.name, pipe.model)
    encoder = TransformerTextEncoder(transformer, pipe.model.pooling)
    if size > encoder.width:
        raise ValueError(
            f"Cannot take {size} numbers from the teacher, whose vectors have {encoder.width}: set "
            "size to at most it."
        )
    n_wordpieces = len(transformer.wordpiece_tokenizer.strings)
    with ticking("Counting words", shown=progress):
        tokenizer, frequent = _tokenizer(transformer, texts, words, n_wordpieces)
        counts = _wordpiece_counts(tokenizer, texts, n_wordpieces + len(frequent))
    nonempty = numpy.flatnonzero(counts.sum(axis=1))
    if len(nonempty) < size:
        raise ValueError(
            f"The vocabulary has {len(nonempty)} texts with words, and {size} are needed to fit a "
            f"table of {size}."
        )
    vectors = _encode_vocabulary(encoder, frequent, progress=progress)
    n_fitted = min(len(nonempty), _N_FIT)
    fitted = nonempty[numpy.linspace(0, len(nonempty) - 1, n_fitted).astype("int64")]
    targets = pipe.encode([texts[number] for number in fitted], progress=progress)
    with ticking("Fitting", shown=progress):
        axes = numpy.eye(size)
        if size < encoder.width:
            _, components = principal_components(targets)
            axes = components.axes[:size].T
        table = _fit_table(vectors, counts, fitted, targets @ axes)
    name_of_teacher = str(transformer.attrs["name"])
    return _pipeline(str(teacher.lang), name_of_teacher, tokenizer, table, axes)


def _fit_table(
    vectors: numpy.ndarray, counts: sparse.csr_array, fitted: numpy.ndarray, targets: numpy.ndarray
) -> numpy.ndarray:
    """Return the table E of distill_static, float32 (wordpieces, size).

    vectors (float32 (wordpieces, width)): v(w). counts (int64 (texts, wordpieces)).
    fitted (int64 (n,)): the texts of the targets (float (n, size)), t(s) A.
    """
    frequencies = counts.sum(axis=0)
    weights = _SMOOTHING / (_SMOOTHING + frequencies / frequencies.sum())
    weighted = vectors * weights[:, None]
    table = weighted @ _least_squares(weighted, counts[fitted], targets)
    return table.astype("float32")


def _tokenizer(
    transformer: SpanTransformer, texts: Sequence[str], n_words: int, n_wordpieces: int
) -> tuple[str, list[str]]:
    """Return the teacher's tokenizer with the frequent words of the texts, and these words."""
    shim = load(transformer)
    if not shim.tokenizer.is_fast:
        raise ValueError(Errors.SLOW_TOKENIZER.format(name=shim.name))
    tokenizer = without_special_tokens(
        shim.tokenizer.backend_tokenizer.to_str(), lowercase=shim.load().lowercase
    )
    if not n_words:
        return tokenizer, []
    content = json.loads(tokenizer)
    kind = content["model"]["type"]
    if kind != "WordPiece":
        warn(Warnings.NO_WORDS.format(given=kind))
        return tokenizer, []
    words = _frequent_words(tokenizer, texts, n_words)
    if not words:
        return tokenizer, []
    # The tokenizer keeps words of its vocabulary whole
    content["model"]["vocab"] |= {word: n_wordpieces + i for i, word in enumerate(words)}
    return json.dumps(content, ensure_ascii=False), words


def _pipeline(
    lang: str, teacher: str, tokenizer: str, table: numpy.ndarray, axes: numpy.ndarray
) -> Language:
    """Make a pipeline with a table, whose loss compares with the teacher through fixed axes."""
    model = {
        "@architectures": "spacy-sbert.StaticSentenceEncoder.v1",
        "name": teacher,
        "width": table.shape[1],
    }
    loss = {"@layers": "spacy-sbert.ProjectedDistillationLoss.v1", "learn_rate_factor": 0.0}
    nlp = spacy.blank(lang)
    nlp.add_pipe("sbert", config={"model": {**model, "normalize": True}, "loss": loss})
    student = find_sbert(nlp).model
    cast(StaticEmbedding, find_static_embedding(student)).set_table(tokenizer, table)
    projection = student.get_ref("loss")
    projection.set_dim("nO", axes.shape[0])
    projection.set_dim("nI", axes.shape[1])
    projection.set_param("W", projection.ops.asarray2f(cast(Floats2d, axes), dtype="float32"))
    return nlp
