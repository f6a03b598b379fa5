"""Cutting and windows at the encoder's true limit."""

import json
from itertools import pairwise

import numpy
import pytest
import spacy
import torch
from helpers.pipelines import (
    MAX_LENGTH,
    MINILM,
    TRANSFORMERS,
    make_example,
    no_warnings,
    one_pipe,
)
from helpers.small_tokenizers import make_folder
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertTokenizer,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from spacy_sbert import find_sbert
from spacy_sbert.models.encoder_checks import position_limit
from spacy_sbert.models.ragged import borders_of
from spacy_sbert.models.resolve import resolve
from spacy_sbert.models.sbert_config import SentenceTransformersConfig
from spacy_sbert.models.span_batch import encode_spans
from spacy_sbert.models.spans import _get_sentence_spans
from spacy_sbert.models.token_vectors import _align_tokens
from spacy_sbert.models.tokenization import BatchTokenizer, TokenizedBatch

NLP = spacy.blank("en")
# 60 wordpieces
LONG = "the cat sat on a mat he is eating food " * 6


def rows(tokenizer, texts, overflow="truncate", lowercase=False):
    """The rows of texts before their states, the wordpieces of each window, and the indices of each
    token's.
    """
    docs = [NLP.make_doc(text) for text in texts]
    spans = _get_sentence_spans(docs, unit="doc", spans_key="sbert")
    settings = SentenceTransformersConfig("x", MAX_LENGTH, lowercase=lowercase)
    batched = BatchTokenizer(tokenizer, settings, overflow)
    wordpieces, batch = encode_spans(batched, spans, prompt="", with_pieces=True)
    strings = batched.strings[wordpieces.ids].tolist()
    windows = [strings[start:end] for start, end in pairwise(borders_of(batch.lengths.tolist()))]
    return batch, windows, _align_tokens(docs, batch)


both_tokenizers = pytest.mark.parametrize(
    "kind", [AutoTokenizer, BertTokenizer], ids=["fast", "slow"]
)


@both_tokenizers
def test_cut_rows(tiny_bert, kind):
    """A cut row keeps its final [SEP]."""
    batch, windows, _ = rows(kind.from_pretrained(tiny_bert), [LONG, "dog"])
    assert MAX_LENGTH == 24
    assert batch.lengths.tolist() == [24, 3]
    assert windows[0][0] == "[CLS]"
    assert windows[0][-1] == "[SEP]"
    assert batch.rows.window_weights.tolist() == [22, 1]
    assert batch.rows.n_cut.tolist() == [60 - 22, 0]
    assert batch.window_borders == [0, 1, 2]


@both_tokenizers
def test_windows(tiny_bert, kind):
    """They hold every wordpiece once."""
    tokenizer = kind.from_pretrained(tiny_bert)
    batch, windows, _ = rows(tokenizer, ["dog", LONG], "windows")
    assert batch.window_borders == [0, 1, 4]
    assert batch.rows.window_weights.tolist() == [1, 22, 22, 16]
    assert not batch.rows.n_cut.any()
    assert batch.rows.row_of.tolist() == [0, 1, 1, 1]
    assert all(window[0] == "[CLS]" for window in windows)
    assert all(window[-1] == "[SEP]" for window in windows)
    wordpieces = [wordpiece for window in windows[1:] for wordpiece in window[1:-1]]
    assert wordpieces == tokenizer.tokenize(LONG)


def test_very_long_texts_and_lower_case(tiny_bert):
    """Alignment takes linear time, and characters stay in place that get longer: İ."""
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    batch, _, align = rows(tokenizer, ["a man ran " * 5_000], "windows")
    assert batch.window_borders == [0, -(-15_000 // 22)]
    assert (align.lengths == 1).all()
    assert len(align.lengths) == 15_000
    _, windows, align = rows(tokenizer, ["İİİİ a MAN", "the dog"], lowercase=True)
    pieces = [piece for window in windows for piece in window]
    starts = numpy.cumsum(align.lengths) - align.lengths
    assert [pieces[align.dataXd[starts[i]]] for i in (1, 2, 3, 4)] == ["a", "man", "the", "dog"]


def by_hand(folder, pieces):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    ids = torch.tensor(
        [[tokenizer.cls_token_id, *tokenizer.convert_tokens_to_ids(pieces), tokenizer.sep_token_id]]
    )
    with torch.no_grad():
        return model(ids).last_hidden_state[0].mean(0).numpy()


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_truncate_and_windows_by_hand(make_nlp, tiny_bert, encoder):
    pieces = AutoTokenizer.from_pretrained(tiny_bert).tokenize(LONG)
    with pytest.warns(UserWarning, match="were cut"):
        cut = make_nlp(encoder)(LONG)
    assert numpy.allclose(cut.vector, by_hand(tiny_bert, pieces[:22]), atol=1e-5)
    assert cut._.sbert_truncated is True
    assert not cut[-3:].has_vector and not cut[-3:].vector.any(), "what was cut has no vector"
    assert cut[:3].has_vector

    nlp = make_nlp(encoder, transformer={"overflow": "windows"})
    with no_warnings():
        whole = nlp(LONG)
    expected = [by_hand(tiny_bert, pieces[at : at + 22]) for at in (0, 22, 44)]
    assert numpy.allclose(
        whole.vector, numpy.average(expected, axis=0, weights=[22, 22, 16]), atol=1e-5
    )
    assert whole._.sbert_truncated is False
    assert whole[-3:].has_vector


def test_a_token_over_two_windows_keeps_all_its_wordpieces(make_nlp, tiny_bert):
    doc = make_nlp(model={"overflow": "windows"})("a " + "bcdfghij" * 4 + " dog")
    assert len(doc) == 3
    (record,) = doc.user_data.values()
    first = record["characters"][:, 0]
    assert [
        int(((token.idx <= first) & (first < token.idx + len(token))).sum()) for token in doc
    ] == [1, 32, 1]
    states = record["states"]
    assert numpy.allclose(doc[1].vector, states[1:33].mean(0), atol=1e-6)


@pytest.mark.parametrize("encoder", TRANSFORMERS)
def test_one_warning_with_the_count(make_nlp, encoder):
    nlp = make_nlp(encoder)
    texts = [LONG, "dog", LONG, LONG, "the cat"] * 3
    with pytest.warns(UserWarning) as caught:
        docs = list(nlp.pipe(texts, batch_size=2))
    (message,) = [str(w.message) for w in caught]
    assert message.startswith(
        "[sbert-truncated] 9 of 15 rows were longer than the encoder's limit of 24"
    )
    assert [doc._.sbert_truncated for doc in docs] == [len(text) > 10 for text in texts]
    if encoder == "shared":
        return
    nlp.initialize()
    batch = [make_example(nlp, LONG, "a dog"), make_example(nlp, "the cat", "a dog")]
    with pytest.warns(UserWarning, match=r"While training .* 1 of 4 rows were longer") as caught:
        for _ in range(3):
            nlp.update(batch, sgd=False)
    assert len(caught) == 1


def test_limit_of_minilm_is_256_not_the_tokenizers_512(minilm):
    with pytest.warns(UserWarning, match="limit of 256 wordpieces"):
        doc = minilm("the cat sat on a mat he is eating food " * 40)
    assert AutoTokenizer.from_pretrained(resolve(MINILM)).model_max_length == 512
    # [CLS] and [SEP] take two places
    assert not doc[254].has_vector
    assert doc[253].has_vector


def test_roberta_positions():
    """RoBERTa counts positions from padding_idx + 1: 514 of them are room for 512 wordpieces."""
    sizes = {
        "hidden_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
    }
    model = RobertaModel(
        RobertaConfig(vocab_size=30, max_position_embeddings=34, pad_token_id=1, **sizes)
    ).eval()
    limit = position_limit(model)
    assert limit == 32
    model(torch.full((1, limit), 5))
    with pytest.raises((IndexError, RuntimeError), match=r"out of (bounds|range)"):
        model(torch.full((1, limit + 1), 5))


AWKWARD = [
    "",
    " ",
    "dog",
    "It can't be: naïve café, Ångström — İstanbul, straße!",
    "e\u0301 combining, \u200b zero width, \ufeff mark, a\x00b",
    "日本語のテキスト and 한국어 😀👍🏽 عربي",
    "[CLS] spelt [SEP] out [PAD] [MASK] [UNK]",
    "\ttabs\nand  spaces   ",
    "x" * 300,
    "word " * 254,
    "word " * 255,
    "the cat sat on a mat, he is eating food. " * 60,
]


@pytest.fixture(scope="module")
def minilm_tokenizer():
    return AutoTokenizer.from_pretrained(resolve(MINILM))


def own_call(tokenizer, overflow):
    """The windows as the tokenizer cuts them when it is called itself."""
    wanted = ("special_tokens_mask", "offsets_mapping", "token_type_ids")
    given = {f"return_{name}": True for name in wanted} | {
        "return_overflowing_tokens": overflow == "windows"
    }
    return tokenizer(AWKWARD, truncation=True, max_length=256, **given)


def flat(windows):
    return [value for window in windows for value in window]


def of_minilm(tokenizer, overflow, offsets=True) -> TokenizedBatch:
    settings = SentenceTransformersConfig("x", 256)
    return BatchTokenizer(tokenizer, settings, overflow)(AWKWARD, offsets=offsets)


both_overflows = pytest.mark.parametrize("overflow", ["truncate", "windows"])


@both_overflows
def test_wordpieces_are_those_of_the_tokenizers_own_call(minilm_tokenizer, overflow):
    expected = own_call(minilm_tokenizer, overflow)
    given = of_minilm(minilm_tokenizer, overflow)
    assert given.ids.tolist() == flat(expected["input_ids"])
    assert given.ids.dtype == numpy.int64
    special = [bool(mask) for mask in flat(expected["special_tokens_mask"])]
    assert given.special.tolist() == special
    assert given.offsets.tolist() == [list(offsets) for offsets in flat(expected["offset_mapping"])]
    assert given.type_ids is None
    assert not any(flat(expected["token_type_ids"]))


@both_overflows
def test_windows_are_those_of_the_tokenizers_own_call(minilm_tokenizer, overflow):
    expected = own_call(minilm_tokenizer, overflow)
    given = of_minilm(minilm_tokenizer, overflow)
    assert given.lengths.tolist() == list(map(len, expected["input_ids"]))
    assert given.lengths.max() == 256
    assert given.lengths.min() == 2
    assert given.starts.tolist() == [sum(given.lengths[:i]) for i in range(len(given.lengths))]
    assert given.n_text.tolist() == [mask.count(0) for mask in expected["special_tokens_mask"]]
    texts = range(len(AWKWARD))
    if overflow == "windows":
        texts = expected["overflow_to_sample_mapping"]
    assert given.text_of.tolist() == list(texts)


@both_overflows
def test_wordpieces_without_offsets(minilm_tokenizer, overflow):
    given = of_minilm(minilm_tokenizer, overflow)
    without = of_minilm(minilm_tokenizer, overflow, offsets=False)
    assert without.offsets is None
    for field in ("text_of", "lengths", "ids", "special", "n_cut"):
        assert numpy.array_equal(getattr(given, field), getattr(without, field)), field


def test_what_is_cut_is_counted(minilm_tokenizer):
    whole = [
        len(ids)
        for ids in minilm_tokenizer(AWKWARD, add_special_tokens=False, verbose=False)["input_ids"]
    ]
    assert whole[-3:] == [254, 255, 720]
    assert of_minilm(minilm_tokenizer, "truncate").n_cut.tolist() == [
        max(0, n - 254) for n in whole
    ]
    windows = of_minilm(minilm_tokenizer, "windows")
    assert not windows.n_cut.any()
    found = numpy.bincount(windows.text_of, weights=windows.n_text).tolist()
    spelt = AWKWARD.index("[CLS] spelt [SEP] out [PAD] [MASK] [UNK]")
    del found[spelt], whole[spelt]
    assert found == whole


def test_the_tokenizer_and_its_copy_do_not_disturb_each_other(minilm_tokenizer):
    backend = minilm_tokenizer.backend_tokenizer
    backend.enable_truncation(7, stride=2)
    backend.enable_padding(length=9)
    try:
        state = backend.truncation, backend.padding
        ours = BatchTokenizer(minilm_tokenizer, SentenceTransformersConfig("x", 256), "truncate")
        before = ours(AWKWARD, offsets=True)
        assert (backend.truncation, backend.padding) == state
    finally:
        backend.no_truncation(), backend.no_padding()
    assert before.lengths.max() == 256
    assert before.lengths.min() == 2
    minilm_tokenizer(AWKWARD, truncation=True, max_length=5, padding=True)
    assert numpy.array_equal(ours(AWKWARD, offsets=True).ids, before.ids)


def test_windows_without_any_wordpiece():
    """Of a tokenizer without special tokens."""
    special = numpy.array([True, False, False])
    nothing = numpy.zeros(4, dtype="int64")
    given = TokenizedBatch(
        numpy.arange(4), numpy.array([0, 2, 0, 1]), numpy.arange(3), None, special, None, nothing
    )
    assert given.n_text.tolist() == [0, 1, 0, 1]


def test_a_vocabulary_with_holes():
    backend = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1, "dog": 9}, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="[UNK]", pad_token="[UNK]"
    )
    ours = BatchTokenizer(tokenizer, SentenceTransformersConfig("x", 10), "truncate")
    ids = ours(["a dog cat"], offsets=False).ids
    assert ids.tolist() == [1, 9, 0]
    assert ours.strings[ids].tolist() == ["a", "dog", "[UNK]"]


def test_a_tokenizer_without_a_token_for_unknown_characters(tmp_path):
    folder = make_folder(tmp_path / "encoder", "characters")
    content = json.loads((folder / "tokenizer.json").read_text())
    content["model"]["unk_token"] = "none"
    (folder / "tokenizer.json").write_text(json.dumps(content))
    sbert = find_sbert(one_pipe(folder, pooling="mean"))
    expected = SentenceTransformer(str(folder), device="cpu").encode(["a man"])
    numpy.testing.assert_allclose(sbert.encode(["a man"]), expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"cannot split a text .*Missing"):
        sbert.encode(["a man", "\u4e2d"])
