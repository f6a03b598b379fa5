"""Which encoder made vectors, so that those of another one are never searched."""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy

from ..component.sbert import SentenceBert
from ..component.upstream import find_encoder
from ..encoder.transformer import EncoderModel, load
from ..similarity import as_numpy
from ..vectors.identity import encoder_state
from ..vectors.sentence_pooling import SentencePooling

CONFIG = ("model_type", "hidden_act", "num_attention_heads", "layer_norm_eps")  # what shapes of weights do not tell


@dataclass(frozen=True)
class EncoderIdentity:
    """What tells the vectors of one encoder from those of another.

    name (str): that of the transformer, for messages. width (int): of the vectors. digest (str): SHA-256 of all that
        the vectors depend on but the arithmetic: weights, tokenizer, configuration, and how they are pooled, cut and
        normalised; "" for indexes that were saved before there was this one.
    former (str): what the digest was then: it knows the vocabulary, but not the normaliser, of the tokenizer.
    """

    name: str
    width: int
    digest: str
    former: str = ""

    def is_same(self, other: "EncoderIdentity") -> bool:
        """Whether the vectors of another can be compared, which is of this version; as far as digests tell."""
        if not self.digest:
            return self.former in (other.former, other.digest)
        return self.digest == other.digest


def identify(pipe: SentenceBert) -> EncoderIdentity:
    """The identity of the encoder of an `sbert` pipe; it changes with training, not with use or saving.

    RAISES (OSError, ValueError): if the encoder is not found, or the transformer is not of this package.
    """
    encoder = find_encoder(pipe.name, pipe.model)
    pooling: Any = pipe.model.get_ref("pooling")
    settings = load(encoder).settings
    width = len(pipe.encode(["a"])[0])
    former = _former_digest(encoder, pooling)
    return EncoderIdentity(settings.name if settings else pipe.name, width, _digest(encoder, pooling, former), former)


def _digest(encoder: EncoderModel, pooling: SentencePooling, former: str) -> str:
    """Of what the former one is of, and of what it left out; so the weights are gone through once."""
    found = hashlib.sha256(json.dumps([former, encoder_state(encoder, pooling)], sort_keys=True).encode("utf8"))
    parameters = dict(encoder.shim._model.named_parameters())
    for name, buffer in sorted(encoder.shim._model.state_dict().items()):
        if name not in parameters:
            _add(found, name, buffer.detach().cpu().numpy())
    return found.hexdigest()


def _former_digest(encoder: EncoderModel, pooling: SentencePooling) -> str:
    shim = encoder.shim
    settings = shim.load()
    tokenizer = shim._hfmodel.tokenizer
    how = {
        "pooling": pooling.pooling_name,
        "normalize": pooling.normalizes(settings),
        "overflow": encoder.overflow,
        "prompt": encoder.prompt(),
        "include_prompt": encoder.prompts.include,
        "truncate_dim": pooling.width(encoder.get_dim("nO"), settings),
        "max_length": settings.max_length,
        "lowercase": settings.lowercase,
        "config": {key: getattr(shim._model.config, key, None) for key in CONFIG},
        "vocabulary": sorted(tokenizer.get_vocab().items()),
    }
    found = hashlib.sha256(json.dumps(how, sort_keys=True).encode("utf8"))
    for name, parameter in sorted(shim._model.named_parameters()):
        _add(found, name, parameter.detach().float().cpu().numpy())
    for number, node in enumerate(pooling.walk()):
        for name in node.param_names:
            if node.has_param(name):
                _add(found, f"{number} {name}", as_numpy(node.get_param(name)))
    return found.hexdigest()


def _add(found: Any, name: str, array: numpy.ndarray) -> None:
    found.update(f"{name} {array.dtype.str} {array.shape};".encode())
    found.update(numpy.ascontiguousarray(array).data)
