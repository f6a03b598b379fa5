"""Small random models of each family, and windows in rows for them."""

import numpy
import torch
import transformers

from spacy_sbert.models.tokenization import TokenizedBatch

SIZES = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "max_position_embeddings": 40,
    "type_vocab_size": 3,
    # So that it shows
    "layer_norm_eps": 0.01,
    # So that it shows if there were any
    "hidden_dropout_prob": 0.5,
}


def _family(name, **settings):
    return getattr(transformers, f"{name}Model"), getattr(transformers, f"{name}Config"), settings


# The class, that of its config, and what the config has beside SIZES
MODELS = {
    "bert": _family("Bert", hidden_act="gelu"),
    "bert_tanh": _family("Bert", hidden_act="gelu_new"),
    "bert_tanh_of_pytorch": _family("Bert", hidden_act="gelu_pytorch_tanh"),
    "bert_relu": _family("Bert", hidden_act="relu"),
    "bert_odd_heads": _family("Bert", hidden_size=21, num_attention_heads=3),
    "bert_one_head": _family("Bert", num_attention_heads=1, num_hidden_layers=1),
    "bert_eager": _family("Bert", attn_implementation="eager"),
    "roberta": _family("Roberta"),
    "roberta_padding_7": _family("Roberta", pad_token_id=7),
    "xlm_roberta": _family("XLMRoberta", hidden_act="gelu_new"),
    "camembert": _family("Camembert", type_vocab_size=1),
    "electra": _family("Electra", embedding_size=16),
    "electra_narrow": _family("Electra", embedding_size=12),
    "mpnet": _family("MPNet"),
    "mpnet_relu": _family("MPNet", hidden_act="relu"),
    "mpnet_odd_heads": _family("MPNet", hidden_size=21, num_attention_heads=3),
    "distilbert": _family("DistilBert", hidden_dim=40, dropout=0.5),
    "distilbert_relu": _family("DistilBert", hidden_dim=40, activation="relu"),
    "distilbert_waves": _family("DistilBert", hidden_dim=40, sinusoidal_pos_embds=True),
}
_TRAINED = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
_BERT = {**_TRAINED, "intermediate_size": 24, "max_position_embeddings": 210}
# As they are made for training, without what MODELS changes
TRAINED = {
    "bert": _family("Bert", **_BERT),
    "roberta": _family("Roberta", **_BERT),
    "electra": _family("Electra", **_BERT, embedding_size=12),
    "mpnet": _family("MPNet", **_BERT),
    "distilbert": _family("DistilBert", **_TRAINED, hidden_dim=24, max_position_embeddings=210),
}
PACKED = ("bert", "roberta", "electra_narrow", "mpnet", "distilbert")


def make_model(name, **changes):
    """All parameters random, biases and those of layer norm among them."""
    kind, config, settings = MODELS[name]
    model = kind(config(**{**SIZES, **settings, **changes})).eval()
    generator = torch.Generator().manual_seed(3)
    # Their order is that of a version of transformers
    for _, parameter in sorted(model.named_parameters()):
        torch.nn.init.normal_(parameter, std=0.5, generator=generator)
    return model


MODERNBERT_SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "num_hidden_layers": 6,
    "num_attention_heads": 2,
    "intermediate_size": 40,
    "global_attn_every_n_layers": 3,
    "local_attention": 16,
    "norm_eps": 0.01,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "cls_token_id": 1,
    "eos_token_id": 2,
    "sep_token_id": 2,
}


def make_modernbert(**changes):
    """A ModernBERT with all parameters random; factors of norms are about 1."""
    config = transformers.ModernBertConfig(**{**MODERNBERT_SIZES, **changes})
    model = transformers.ModernBertModel(config).eval()
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for name, parameter in sorted(model.named_parameters()):
            torch.nn.init.normal_(parameter, std=0.15, generator=generator)
            if name.endswith("norm.weight"):
                parameter += 1
    return model


def make_window(length, n_types, seed):
    rng = numpy.random.default_rng(seed)
    return rng.integers(8, 50, length).tolist(), rng.integers(0, n_types, length).tolist()


def batch_of(lengths, ids, type_ids=None):
    """A TokenizedBatch of windows of these lengths, one for each text."""
    n = len(lengths)
    lengths = numpy.asarray(lengths, dtype="int64")
    ids = numpy.asarray(ids, dtype="int64")
    nothing_cut = numpy.zeros(n, dtype="int64")
    special = numpy.zeros(len(ids), dtype=bool)
    has_types = type_ids is not None
    return TokenizedBatch(
        numpy.arange(n), lengths, ids, type_ids, special, None, nothing_cut, has_type_ids=has_types
    )


@torch.no_grad()
def states_alone(model, windows, types=None):
    """The states of each window by itself, of Hugging Face's model."""
    found = []
    for number, window in enumerate(windows):
        mask = torch.ones(1, len(window), dtype=torch.long)
        takes_types = types is not None and model.config.model_type not in ("mpnet", "distilbert")
        inputs = {"token_type_ids": torch.tensor([types[number]])} if takes_types else {}
        found.append(
            model(
                input_ids=torch.tensor([window]), attention_mask=mask, **inputs
            ).last_hidden_state[0]
        )
    return found


def largest_difference(given, expected):
    """Of the states of windows, which have the same shapes."""
    assert [states.shape for states in given] == [states.shape for states in expected]
    return max(float((a - b).abs().max()) for a, b in zip(given, expected, strict=True))


def cosine(given, expected):
    """Of all numbers of some tensors with those of others."""
    flat, others = (
        torch.cat([part.float().flatten() for part in parts]) for parts in (given, expected)
    )
    return float(torch.cosine_similarity(flat, others, dim=0))


def make_rows(n_types=1):
    """Three rows of windows: two and padding, one alone, four without padding. 20 places each."""
    lengths = [[9, 5], [20], [3, 8, 1, 8]]
    return [
        [make_window(n, n_types, seed=10 * i + j) for j, n in enumerate(row)]
        for i, row in enumerate(lengths)
    ]


def lay_out(rows, width=20, padding=0):
    shape = (len(rows), width)
    ids = torch.full(shape, padding)
    types = torch.zeros(shape, dtype=torch.long)
    columns = torch.zeros(shape, dtype=torch.long)
    owners = torch.full(shape, -1)
    number = 0
    for row, windows in enumerate(rows):
        at = 0
        for window, window_types in windows:
            place = (row, slice(at, at + len(window)))
            ids[place], types[place] = torch.tensor(window), torch.tensor(window_types)
            columns[place], owners[place] = torch.arange(len(window)), number
            at = at + len(window)
            number = number + 1
    return ids, columns, types, owners


def by_window(encoder, rows, **layout):
    """The states of each window."""
    ids, columns, types, owners = lay_out(rows, **layout)
    with torch.inference_mode():
        states = encoder(ids, columns, types if types.any() else None, owners)
    owners = owners.flatten()
    return [states[owners == number] for number in range(int(owners.max()) + 1)]


# Families that a transformer is shared of: the kind of their tokenizer, and settings of their
# config
SHARED_FAMILIES = {
    "bert": ("wordpiece", {}),
    "roberta": ("byte-level BPE", {}),
    "mpnet": ("wordpiece", {}),
    "distilbert": ("wordpiece", {"hidden_dim": 24}),
    "xlm-roberta": ("unigram", {}),
    "albert": ("unigram", {"embedding_size": 8}),
}
