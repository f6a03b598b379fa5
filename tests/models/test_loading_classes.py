"""Encoder classes of Transformers, tiny and random: the vectors of sentence-transformers, or
refused with a remedy.
"""

import warnings
from dataclasses import dataclass, field

import numpy
import pytest
import spacy
import torch
import transformers
from helpers.pipelines import change_json, one_pipe, slow, warnings_with, write_modules
from packaging.version import Version
from sentence_transformers import SentenceTransformer
from spacy.training import Example
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    BertTokenizerFast,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from spacy_sbert import find_reranker, find_sbert
from spacy_sbert.hub.sentence_transformers import import_folder
from spacy_sbert.readers import pair_doc

TEXTS = [
    "a man is eating food",
    "the cat sat on the mat and he ran fast",
    "someone",
    "he is eating the food",
]
LONG = "word number " * 120
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
SIZES |= {"max_position_embeddings": 128, "pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3}
MASKED = ("input_ids", "attention_mask")
TYPED = ("input_ids", "token_type_ids", "attention_mask")
# What becomes of a class: the vectors of sentence-transformers; where padding changes them, those
# of a text by itself.
EQUAL = "equal"
ALONE = "equal alone"
OTHER_INPUT = "has no embeddings of wordpieces.* Use an encoder of plain text"
UNABLE = r"cannot encode a text by itself \({}.* Use an encoder of plain text"
DECODER = (
    r"is an encoder with a decoder \(is_encoder_decoder = true\)\. Use an encoder of plain text"
)


@dataclass(frozen=True)
class Case:
    """A class: the outcome, what its config has beside SIZES, those of SIZES that it does not take,
    its inputs.
    """

    outcome: str = EQUAL
    config: dict = field(default_factory=dict)
    without: tuple[str, ...] = ()
    inputs: tuple[str, ...] = MASKED


def _typed(outcome=EQUAL, **config):
    return Case(outcome, config, inputs=TYPED)


def _plain(outcome=EQUAL, **config):
    return Case(outcome, config)


GROUPED = {"num_key_value_heads": 1}
WIDE_HEADS = {"num_key_value_heads": 1, "head_dim": 16}
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 128}
T5 = {"d_model": 32, "d_kv": 16, "d_ff": 48, "num_layers": 2, "num_heads": 2}
XLM = {"emb_dim": 32, "n_layers": 2, "n_heads": 2}
BART = {
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
}
BART |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
FUNNEL = {
    "block_sizes": [1, 1],
    "block_repeats": [1, 1],
    "d_model": 32,
    "n_head": 2,
    "d_head": 16,
    "d_inner": 48,
}
GROUPS = ("q_groups", "k_groups", "v_groups", "intermediate_groups", "output_groups")
VISION = {"vision": 1, "cross_encoder": 1, "language": 1}

# By the model_type of config.json; a class that the installed version of Transformers does not have
# is skipped. One of each kind
FIRST = {
    "bert": _typed(),
    "distilbert": _plain(dim=32, hidden_dim=48, n_layers=2, n_heads=2),
    "convbert": _typed(ALONE, embedding_size=32),
    "fnet": Case(ALONE, {}, (), ("input_ids", "token_type_ids")),
    "longformer": _plain(attention_window=8),
    "big_bird": _typed(ALONE, block_size=4),
    "xlnet": Case(
        EQUAL,
        {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 48},
        ("max_position_embeddings",),
        TYPED,
    ),
    "xlm": _typed(**XLM),
    "gpt2": _plain(**GPT),
    "llama": _plain(**GROUPED),
    "t5": _plain(**T5),
    "bart": _plain(DECODER, **BART),
    "canine": _typed(OTHER_INPUT, downsampling_rate=4, local_transformer_stride=8),
    "bros": _typed(UNABLE.format("ValueError: You have to specify bbox"), dim_bbox=8),
    "reformer": Case(
        "draws hashes at random.* Use an encoder of plain text", {"axial_pos_embds_dim": [16, 16]}
    ),
}
OTHERS = {
    "roberta": _plain(),
    "xlm-roberta": _plain(),
    "camembert": _plain(),
    "electra": _typed(embedding_size=16),
    "mpnet": _plain(),
    "albert": _typed(embedding_size=16),
    "deberta": _typed(),
    "deberta-v2": _typed(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8),
    "mobilebert": _typed(
        ALONE,
        embedding_size=16,
        true_hidden_size=16,
        intra_bottleneck_size=16,
        intermediate_size=32,
    ),
    "squeezebert": _typed(embedding_size=32, **dict.fromkeys(GROUPS, 2)),
    "funnel": Case(
        ALONE, {**FUNNEL, "architectures": ["FunnelModel"]}, ("num_hidden_layers",), TYPED
    ),
    "nystromformer": _typed(ALONE),
    "yoso": _typed(ALONE),
    "mra": _typed(),
    "roformer": _typed(embedding_size=32),
    "flaubert": _typed(**XLM),
    "ctrl": _plain(n_embd=32, dff=48, n_layer=2, n_head=2, n_positions=128),
    "gpt_neo": _plain(num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]]),
    "gpt_neox": _plain(),
    "gptj": _plain(**GPT, rotary_dim=8),
    "gpt_bigcode": _plain(**GPT),
    "openai-gpt": _plain(**GPT),
    "opt": _plain(ffn_dim=48, word_embed_proj_dim=32),
    "bloom": _plain(n_layer=2, n_head=2),
    "mpt": _plain(d_model=32, n_heads=2, n_layers=2, max_seq_len=128),
    "falcon": _plain(),
    "mistral": _plain(**WIDE_HEADS),
    "mixtral": _plain(**GROUPED, num_local_experts=2),
    "qwen2": _plain(**GROUPED),
    "qwen3": _plain(**WIDE_HEADS),
    "gemma": _plain(**WIDE_HEADS),
    "gemma2": _plain(**WIDE_HEADS),
    "gemma3_text": _plain(**WIDE_HEADS),
    "phi": _plain(**GROUPED),
    "phi3": _plain(**GROUPED),
    "granite": _plain(**GROUPED),
    "olmo2": _plain(**GROUPED),
    "stablelm": _plain(**GROUPED),
    "cohere": _plain(**GROUPED),
    "smollm3": _plain(**GROUPED),
    "modernbert": _plain(),
    "modernbert-decoder": _plain(),
    "nomic_bert": _typed(),
    "eurobert": _plain(**WIDE_HEADS),
    "gte": _typed(),
    "jina_embeddings_v3": _plain(),
    "ultrabert": _plain(),
    "embedding_gemma2_text": _plain(**WIDE_HEADS),
    "mt5": _plain(**T5),
    "umt5": _plain(**T5),
    "longt5": _plain(**T5, local_radius=4),
    "mbart": _plain(DECODER, **BART),
    "marian": _plain(DECODER, **BART, decoder_start_token_id=2),
    "led": _plain(DECODER, **BART, max_encoder_position_embeddings=128, attention_window=8),
    "m2m_100": _plain(DECODER, **BART),
    "perceiver": _plain(
        OTHER_INPUT,
        d_latents=32,
        d_model=32,
        num_latents=8,
        num_self_attention_heads=2,
        num_cross_attention_heads=2,
    ),
    "esm": _plain(mask_token_id=4),
    "ernie": _typed(task_type_vocab_size=3, use_task_id=True),
    "ernie_m": _plain(pad_token_id=1),
    "rembert": _typed(input_embedding_size=16, output_embedding_size=16),
    "layoutlm": _typed(),
    "lilt": _plain(channel_shrink_ratio=2, hidden_size=48),
    "lxmert": _typed(
        UNABLE.format("ValueError: `visual_feats` cannot be"),
        num_hidden_layers=VISION,
        l_layers=1,
        x_layers=1,
        r_layers=1,
        visual_feat_dim=8,
    ),
    "splinter": _typed(),
    "ibert": _plain(),
    "mega": _plain(),
    "xmod": _plain(languages=["en_XX"], default_language="en_XX"),
    "xlm-roberta-xl": _plain(),
    "roberta-prelayernorm": _plain(),
    "megatron-bert": _typed(),
    "bert-generation": _plain(),
    "data2vec-text": _plain(),
    "roc_bert": _typed(
        pronunciation_vocab_size=200,
        shape_vocab_size=200,
        pronunciation_embed_dim=8,
        shape_embed_dim=8,
    ),
    "luke": _plain(entity_vocab_size=8, entity_emb_size=16),
    "tapas": _typed(UNABLE.format("IndexError: too many indices")),
    "nezha": _typed(),
    "dpr": _typed(UNABLE.format("AttributeError: .* no attribute 'last_hidden_state'")),
    "clip_text_model": _plain(),
    "visual_bert": _typed(visual_embedding_dim=8),
    "biogpt": _plain(),
    "xglm": _plain(d_model=32, num_layers=2, attention_heads=2, ffn_dim=48),
    "mamba": Case(EQUAL, {"state_size": 4}),
    "rwkv": Case(EQUAL, {"attention_hidden_size": 32}),
}
CASES = FIRST | OTHERS


@pytest.fixture
def make_folder(tiny_bert, tmp_path):
    """Write a random encoder of a model_type in the layout of sentence-transformers, with mean
    pooling.
    """

    def make(kind, max_length=None, **changes):
        if kind not in MODEL_MAPPING_NAMES:
            pytest.skip("not in this version of Transformers")
        case = CASES[kind]
        folder = tmp_path / "encoder"
        words = BertTokenizerFast.from_pretrained(tiny_bert)
        sizes = {key: value for key, value in SIZES.items() if key not in case.without}
        torch.manual_seed(0)
        config = AutoConfig.for_model(
            kind, **{**sizes, "vocab_size": len(words), **case.config, **changes}
        )
        model = AutoModel.from_config(config)
        with torch.no_grad():
            for weight in model.parameters():
                if weight.dim() > 1:
                    weight.normal_(std=0.3)
        model.save_pretrained(folder)
        special = {
            f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")
        }
        PreTrainedTokenizerFast(
            tokenizer_object=words.backend_tokenizer,
            model_input_names=list(case.inputs),
            model_max_length=512,
            **special,
        ).save_pretrained(folder)
        write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
        width = getattr(config, "hidden_size", None)
        change_json(
            folder / "1_Pooling" / "config.json",
            word_embedding_dimension=width,
            pooling_mode_mean_tokens=True,
        )
        change_json(folder / "sentence_bert_config.json", max_seq_length=max_length or ...)
        return folder

    return make


def _import(folder, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return find_sbert(import_folder(str(folder), **settings))


def _theirs(folder):
    return SentenceTransformer(str(folder), device="cpu")


@pytest.mark.parametrize("kind", [*FIRST, *slow(*OTHERS)])
def test_as_sentence_transformers_or_refused(make_folder, kind):
    folder = make_folder(kind)
    outcome = CASES[kind].outcome
    inputs = CASES[kind].inputs
    if outcome not in (EQUAL, ALONE):
        with pytest.raises(ValueError, match=outcome) as caught:
            import_folder(str(folder))
        assert kind in str(caught.value)
        assert "download" not in str(caught.value)
        return
    theirs = _theirs(folder)
    with warnings_with("[sbert-") as told:
        ours = find_sbert(import_folder(str(folder), precision="float32"))
    # The tokenizer of Qwen2 adds a token, of which the small encoder has no embedding.
    told = [text for text in told if "tokens-without-embedding" not in text]
    assert [("padding" in text or "sparse" in text) for text in told] == [True] * (outcome == ALONE)
    long = ours.encode([LONG])[0]
    cut = theirs.max_seq_length != ours.text_encoder().max_length
    # RoBERTa and its like have fewer positions than sentence-transformers believes, and fail there
    if not cut:
        assert numpy.allclose(long, theirs.encode([LONG])[0], atol=2e-6 * abs(long).max())
    assert numpy.isfinite(long).all()
    assert ours.text_encoder().max_length >= 120
    alone = numpy.stack([theirs.encode([text])[0] for text in TEXTS])
    size = max(1.0, float(abs(alone).max()))
    assert abs(ours.encode(TEXTS) - alone).max() < 5e-6 * size
    # Without a mask it would pool padding
    expected = theirs.encode(TEXTS) if "attention_mask" in inputs else alone
    assert abs(_import(folder, precision="reference").encode(TEXTS) - expected).max() < 1e-6 * size


@pytest.mark.parametrize(
    "kind", ["convbert", "longformer", "t5", *slow("bert", "big_bird", "llama", "fnet", "mt5")]
)
def test_training_and_saving(make_folder, kind):
    nlp = import_folder(str(make_folder(kind)), precision="float32")
    sbert = find_sbert(nlp)
    before = sbert.encode(TEXTS)
    again = find_sbert(spacy.blank("en").from_config(nlp.config).from_bytes(nlp.to_bytes()))
    assert numpy.array_equal(again.encode(TEXTS), before)
    pairs = [
        pair_doc(nlp, TEXTS[0], TEXTS[2], score=0.9),
        pair_doc(nlp, TEXTS[1], TEXTS[3], score=0.1),
    ]
    examples = [Example(doc.copy(), doc) for doc in pairs]
    sgd = nlp.initialize(lambda: examples)
    assert nlp.update(examples, sgd=sgd)["sbert"] > 0
    assert abs(sbert.encode(TEXTS) - before).max() > 1e-4


TABLES = (
    "bert",
    "longformer",
    "gpt2",
    *slow("roberta", "gptj", "roformer", "opt", "xlm", "yoso", "clip_text_model"),
)
NO_TABLE = (
    "llama",
    "t5",
    "xlnet",
    *slow("modernbert", "bloom", "falcon", "gpt_neox", "xglm", "funnel", "mega"),
)


@pytest.mark.parametrize("kind", TABLES)
def test_tables_of_positions_are_a_limit(make_folder, kind):
    sbert = _import(make_folder(kind, max_length=200), precision="float32")
    limit = sbert.text_encoder().max_length
    assert limit in (126, 127, 128)
    assert numpy.isfinite(sbert.encode([LONG])).all()


@pytest.mark.parametrize("kind", NO_TABLE)
def test_other_positions_are_none(make_folder, kind):
    folder = make_folder(kind, max_length=200)
    sbert = _import(folder, precision="float32")
    assert sbert.text_encoder().max_length == 200
    expected = _theirs(folder).encode([LONG])
    assert numpy.allclose(sbert.encode([LONG]), expected, atol=2e-6 * abs(expected).max())


@pytest.mark.slow
def test_a_text_that_is_too_long_for_positions_that_are_no_table(make_folder):
    sbert = _import(
        make_folder("mpt", max_length=200, max_position_embeddings=128), precision="float32"
    )
    with pytest.raises(ValueError, match=r"\(mpt\) .* 200 wordpieces.*'model_max_length': 128"):
        sbert.encode([LONG])


_ROPES = {
    "dynamic": {"rope_type": "dynamic", "factor": 4.0, "rope_theta": 10000.0},
    "longrope": {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "factor": 4.0,
        "short_factor": [1.0] * 8,
        "long_factor": [4.0] * 8,
        "original_max_position_embeddings": 32,
    },
}


@pytest.fixture
def rotary(tiny_bert, tmp_path):
    """Makes the folder of an encoder with rotary positions for rows of up to 64 wordpieces, made
    for 32 at first.
    """

    def make(rope, kind="llama", auto=AutoModel, limit=64, **config):
        tokenizer = BertTokenizerFast.from_pretrained(tiny_bert)
        sizes = {**SIZES, "vocab_size": len(tokenizer), "num_key_value_heads": 2, "head_dim": 16}
        positions = {"max_position_embeddings": 32 if rope == "dynamic" else 128}
        if Version(transformers.__version__) < Version("5"):
            config = {
                "rope_scaling": _ROPES[rope],
                "original_max_position_embeddings": 32,
                **config,
            }
        else:
            config = {"rope_parameters": _ROPES[rope], **config}
        torch.manual_seed(0)
        settings = AutoConfig.for_model(
            kind, **{**sizes, **positions, "initializer_range": 0.5}, **config
        )
        folder = tmp_path / f"{rope}-{kind}-{limit}"
        auto.from_config(settings).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        if auto is AutoModel:
            write_modules(folder, ("Transformer", ""), ("Pooling", "1_Pooling"))
            change_json(
                folder / "1_Pooling" / "config.json",
                pooling_mode_mean_tokens=True,
                word_embedding_dimension=32,
            )
        change_json(folder / "sentence_bert_config.json", max_seq_length=limit)
        return folder

    return make


ROTATED = [
    "the cat sat on a mat " * 9,
    "he ran",
    "the dog ran fast " * 9,
    "a man is eating food " * 8,
    "a cat",
]


@pytest.mark.parametrize("rope", _ROPES)
def test_rotary_positions_that_depend_on_the_longest_text(rotary, rope):
    """Each text has the vector of a text by itself, whatever was encoded before or is encoded
    beside it.
    """
    folder = rotary(rope)
    expected = numpy.concatenate([_theirs(folder).encode([text]) for text in ROTATED])
    with warnings_with("[sbert-padding]") as told:
        given = [find_sbert(one_pipe(folder)).encode(texts) for texts in (ROTATED, ROTATED[::-1])]
    assert f"rope_type = {rope}" in told[0]
    numpy.testing.assert_allclose(given[0], expected, atol=2e-5)
    numpy.testing.assert_allclose(given[1], expected[::-1], atol=2e-5)
    nlp = one_pipe(folder)
    docs = list(nlp.pipe(ROTATED))
    numpy.testing.assert_allclose([doc.vector for doc in docs], expected, atol=2e-5)


@pytest.mark.parametrize("rope", _ROPES)
def test_rotary_positions_within_their_first_length(rotary, rope):
    with warnings.catch_warnings():
        warnings.filterwarnings("error", r"\[sbert-padding\]")
        find_sbert(one_pipe(rotary(rope, limit=32))).load()


def test_rotary_positions_of_a_cross_encoder(rotary):
    folder = rotary("longrope", auto=AutoModelForSequenceClassification, num_labels=1)
    change_json(folder / "tokenizer_config.json", model_max_length=64)
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(folder)}})
    reranker = find_reranker(nlp)
    pairs = [("the dog ran " * n, "a dog") for n in (7, 8, 9, 10)]
    alone = [reranker.score_pairs([pair])[0] for pair in pairs]
    numpy.testing.assert_allclose(reranker.score_pairs(pairs), alone, atol=1e-5)
