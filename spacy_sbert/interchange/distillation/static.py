"""A static encoder from a teacher: one pass over its vocabulary, and one fit to its vectors of texts."""

import warnings
from collections.abc import Sequence
from typing import cast

import numpy
import spacy
from spacy.language import Language
from thinc.types import Floats2d

from ...component.sbert import find_sbert
from ...component.upstream import find_table, find_transformer
from ...encoder.table_source import without_special_tokens
from ...encoder.transformer import RowTransformer, load
from ...errors.checks import NonNegative, Width, validated
from ...errors.progress import ticking
from ...vectors.sentence_pooling import SentencePooling
from ...vectors.texts import TextEncoder
from ..errors import Errors, Warnings
from .fit import frequency_weights, least_squares, principal_axes, wordpiece_counts
from .teacher_vectors import Vocabulary
from .vocabulary import WORDPIECE, frequent_words, tokenizer_kind, with_words

N_FIT = 20_000  # texts that the table is fitted to: five times as many change nothing


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
    """A pipeline whose sentence encoder is a table, made from a teacher without training.

    E_w = a/(a + p(w)) v(w) R,   R = argmin_R sum_s || mean_(w in s) E_w - t(s) A ||^2

    v(w) is the teacher's vector of a wordpiece or a frequent word alone, p(w) its frequency among the texts, t(s) the
    teacher's vector of a text, and A its first principal axes, so that vectors of the table lie in the space of the
    teacher's; where size is the teacher's width, A is the identity, and they can be compared with the teacher's own.

    teacher (Language): with an `sbert` pipe whose transformer is of this package.
    texts (list[str]): plain sentences of the kind that will be encoded; up to 20,000 of them, evenly spread, are t(s).
    size (int): width of the table. words (int): the most words of the texts that get a vector of their own, beside the
        teacher's wordpieces; each is seen five times at least.
    name (str): of the teacher's pipe; by default the last. progress (bool): whether to show a progress bar.
    RETURNS (Language): with an `sbert` pipe, whose loss, if it is trained on, goes on towards the same teacher: its
        projection is A, and fixed.
    RAISES (ValueError): if size is above the teacher's width, or there are too few texts; what find_sbert and
        find_transformer raise.
    SOURCE: after model2vec (Tulkens and van Dongen 2024), whose principal components are those of the vocabulary;
        Arora et al. 2017 for the weights.
    """
    pipe = find_sbert(teacher, name)
    transformer = find_transformer(pipe.name, pipe.model)
    encoder = TextEncoder(transformer, cast(SentencePooling, pipe.model.get_ref("pooling")))
    if size > encoder.width:
        raise ValueError(Errors.STATIC_SIZE.format(given=size, width=encoder.width))
    n_pieces = len(transformer.wordpiece_tokenizer.strings)
    with ticking("Counting words", shown=progress):
        tokenizer, frequent = _tokenizer(transformer, texts, words, n_pieces)
        counts = wordpiece_counts(tokenizer, texts, n_pieces + len(frequent))
    held = numpy.flatnonzero(counts.sum(axis=1))
    if len(held) < size:
        raise ValueError(Errors.FEW_TEXTS.format(given=len(held), needed=size, size=size))
    vocabulary = Vocabulary(encoder, progress=progress)
    vectors = numpy.concatenate([vocabulary.wordpieces(), vocabulary.words(frequent)])
    fitted = held[numpy.linspace(0, len(held) - 1, min(len(held), N_FIT)).astype("int64")]
    said = pipe.encode([texts[number] for number in fitted], progress=progress)
    with ticking("Fitting", shown=progress):
        axes = principal_axes(said, size)
        weighted = vectors * frequency_weights(counts.sum(axis=0))[:, None]
        table = weighted @ least_squares(weighted, counts[fitted], said @ axes)
    return _pipeline(str(teacher.lang), str(transformer.attrs["name"]), tokenizer, table.astype("float32"), axes)


def _tokenizer(transformer: RowTransformer, texts: Sequence[str], n_words: int, n_pieces: int) -> tuple[str, list[str]]:
    """The teacher's tokenizer with the frequent words of the texts, and these; n_pieces (int): those that it has."""
    shim = load(transformer)
    if not shim.tokenizer.is_fast:
        raise ValueError(Errors.SLOW_TOKENIZER.format(name=shim.name))
    tokenizer = without_special_tokens(shim.tokenizer.backend_tokenizer.to_str(), lowercase=shim.load().lowercase)
    if n_words and tokenizer_kind(tokenizer) != WORDPIECE:
        warnings.warn(Warnings.NO_WORDS.format(given=tokenizer_kind(tokenizer)), stacklevel=4)
        n_words = 0
    words = frequent_words(tokenizer, texts, n_words) if n_words else []
    return with_words(tokenizer, words, n_pieces) if words else tokenizer, words


def _pipeline(lang: str, teacher: str, tokenizer: str, table: numpy.ndarray, axes: numpy.ndarray) -> Language:
    model = {"@architectures": "spacy-sbert.StaticSentenceEncoder.v1", "name": teacher, "width": table.shape[1]}
    loss = {"@layers": "spacy-sbert.ProjectedDistillationLoss.v1", "learn_rate_factor": 0.0}
    nlp = spacy.blank(lang)
    nlp.add_pipe("sbert", config={"model": {**model, "normalize": True}, "loss": loss})
    student = find_sbert(nlp).model
    encoder, projection = find_table(student), student.get_ref("loss")
    if encoder is not None:
        encoder.set_table(tokenizer, table)
    projection.set_dim("nO", axes.shape[0])
    projection.set_dim("nI", axes.shape[1])
    projection.set_param("W", projection.ops.asarray2f(cast(Floats2d, axes), dtype="float32"))
    return nlp
