"""Load an encoder whole: its tokenizer, its weights and its backend, checked on a text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy
import torch
from transformers import PretrainedConfig

from ..errors import DivergedError, Errors, Warnings, warn
from .encoder_checks import check_encoder, ignores_padding, reset_rope, rope_by_length
from .engine.backend import BackendCache
from .engine.bert_families import BertParameters, is_packable, load_parameters
from .engine.huggingface import call
from .engine.packing import single_batch
from .finite_weights import tensors_not_finite
from .folder_files import ADAPTER_CONFIG
from .folder_keys import SENTENCE_TRANSFORMER
from .folder_modules import transformer_folder
from .load_tokenizer import load_tokenizer
from .load_weights import SPARSE, load_weights, merge_adapter
from .loading import Network, Source, Tokenizer, load_config
from .resolve import base_folder
from .sbert_config import REFERENCE, SentenceTransformersConfig, TransformerConfig
from .surroundings import check_data
from .tokenization import TokenizedBatch
from .transformers_versions import half_precision

WeightsLoader = Callable[[Source, PretrainedConfig], Network | BertParameters]


@dataclass
class LoadedEncoder:
    """An encoder on the CPU.

    settings: of its folder, with the limit of wordpieces that tokenizer and weights lead to.
    vocab_file (bytes): what a slow tokenizer copies when it is saved; None if it has no such file.
    """

    settings: SentenceTransformersConfig
    tokenizer: Tokenizer
    weights: Network | BertParameters
    backends: BackendCache
    vocab_file: bytes | None


def parameters_or_network(
    source: Source, config: PretrainedConfig, options: TransformerConfig, *, needs_network: bool
) -> Network | BertParameters:
    """Return the parameters alone if they are enough, else the Hugging Face model."""
    parameters = None
    if not (needs_network or options.frozen or options.gradient_checkpointing):
        parameters = load_parameters(source, config)
    return parameters or load_weights(source, "AutoModel", config)[0]


def load_encoder(
    source: Source,
    settings: SentenceTransformersConfig,
    backends: BackendCache,
    read_weights: WeightsLoader,
    *,
    precision: str,
    model_type: str,
    texts: tuple[str, ...],
    is_plain: bool,
) -> LoadedEncoder:
    """Return the encoder in a folder.

    settings: of the folder. backends: what its backend is made by.
    read_weights (Callable): from the source and its config to the weights.
    precision (str): in which it is about to encode.
    model_type (str): as in config_sentence_transformers.json: "SentenceTransformer", or
        "CrossEncoder".
    texts (tuple): what is encoded to try it: a text, or a pair.
    is_plain (bool): whether no modules.json lists its parts.
    RAISES (ValueError): if the folder is damaged, or its parts do not fit one another.
    """
    # Where config and weights are, if the folder holds an adapter
    base = replace(source, folder=transformer_folder(base_folder(source.folder)))
    # Before the tokenizer, with which version 5 of Transformers reads the config, too
    config = load_config(base)
    # An adapter may have a tokenizer of its own
    has_tokenizer = (source.folder / "tokenizer_config.json").is_file()
    tokenizer = load_tokenizer(source if has_tokenizer else base)
    if is_plain and tokenizer.chat_template:
        raise ValueError(Errors.CHAT_TEMPLATE.format(folder=source.folder))
    weights = read_weights(base, config)
    check_data(weights, f"the encoder '{source.name}'")
    if (source.folder / ADAPTER_CONFIG).is_file():
        settings = replace(settings, adapter=merge_adapter(weights, source.folder))
    _check_saved(source, weights)
    backends.load_files(source.folder, weights, is_saved=source.is_saved)

    encode = partial(_encode_row, weights, backends)
    limit = check_encoder(source, tokenizer, weights, encode, texts, settings.max_length)
    padding = _Padding(source.name, precision, model_type, tokenizer)
    padding.warn_without_mask()
    if not is_packable(weights):
        backends.pads = padding.is_allowed(weights, limit)
    padding.warn_at_the_left(weights, texts)
    _warn_of_half_precision(source, config)
    weights.config.name_or_path = settings.name
    tokenizer.name_or_path = settings.name
    return LoadedEncoder(
        settings=replace(settings, max_length=limit),
        tokenizer=tokenizer,
        weights=weights,
        backends=backends,
        vocab_file=_read_vocabulary(tokenizer),
    )


def _check_saved(source: Source, weights: Network | BertParameters) -> None:
    """Check that the weights of a saved encoder are finite.

    RAISES (DivergedError): if they are not.
    """
    if not source.is_saved:
        return
    name = tensors_not_finite(weights.state_dict().items())
    if name is not None:
        raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason=f"{name} is not finite"))


def _encode_row(
    weights: Network | BertParameters, backends: BackendCache, inputs: Mapping[str, torch.Tensor]
) -> torch.Tensor:
    """Return the states of a row, (1, wordpieces, hidden), or its logits."""
    wordpieces = _single_row(inputs)
    if isinstance(weights, BertParameters):
        # The backend is kept for use
        backend = backends.backend_of(weights, "float32")
        (batch,) = backend.batches(wordpieces, numpy.arange(1), len(wordpieces.ids))
        return backend.encode(wordpieces, batch)[None, : len(wordpieces.ids)]
    output = call(weights, wordpieces, single_batch(wordpieces.lengths, numpy.arange(1)))
    return output.logits if "logits" in output else output.last_hidden_state


@dataclass
class _Padding:
    """Whether padding changes the states of an encoder, and the warnings if it does.

    sentence-transformers pads its batches, as precision = "reference" does.
    """

    name: str
    precision: str
    model_type: str
    tokenizer: Tokenizer

    @property
    def is_reference(self) -> bool:
        return self.precision == REFERENCE

    @property
    def has_mask(self) -> bool:
        """Whether the encoder is told which wordpieces are padding."""
        return "attention_mask" in self.tokenizer.model_input_names

    def warn_without_mask(self) -> None:
        if not self.has_mask:
            self._warn(f"model_input_names = {self.tokenizer.model_input_names}", remedy=False)

    def is_allowed(self, network: Network, limit: int | None) -> bool:
        """Return whether rows may be padded; warn if not, as vectors differ then.

        limit (int): the most wordpieces of a row, None for no limit.
        """
        follows_padding = self.is_reference and self.has_mask
        if getattr(network.config, "attention_type", None) == SPARSE:
            warn(Warnings.SPARSE_ATTENTION.format(name=self.name))
            return follows_padding
        rope = rope_by_length(network, limit)
        if rope and not follows_padding:
            self._warn(f"rope_type = {rope}", remedy=self.has_mask)
            network.register_forward_pre_hook(reset_rope)
            return False
        if follows_padding or ignores_padding(network, self.tokenizer, limit):
            return True
        # An encoder without a mask has its warning already
        if self.has_mask:
            self._warn(network.config.model_type, remedy=True)
        return False

    def warn_at_the_left(self, weights: Network | BertParameters, texts: tuple[str, ...]) -> None:
        if self.tokenizer.padding_side != "left" or self.is_reference:
            return
        if _counts_padding(weights, self.tokenizer, texts):
            self._warn("padding_side = left", remedy=True)

    def _warn(self, cause: str, *, remedy: bool) -> None:
        """Warn that the padding of a batch changes the vectors of sentence-transformers.

        remedy (bool): whether precision = "reference" gives the same; cross-encoders have none.
        """
        advice = ""
        if remedy and self.model_type == SENTENCE_TRANSFORMER:
            advice = '; for its batches set precision = "reference"'
        warn(Warnings.PADDING.format(name=self.name, cause=cause, remedy=advice))


def _warn_of_half_precision(source: Source, config: PretrainedConfig) -> None:
    dtype = half_precision(config)
    if dtype and not source.is_saved:
        warn(Warnings.HALF_PRECISION.format(name=source.name, dtype=dtype))


def _single_row(inputs: Mapping[str, torch.Tensor]) -> TokenizedBatch:
    """Return the only row, (1, wordpieces), of what a tokenizer returns."""
    ids = inputs["input_ids"][0].numpy()
    types = inputs.get("token_type_ids")
    if types is None:
        return TokenizedBatch.of_window(ids, None, has_type_ids=False)
    return TokenizedBatch.of_window(ids, types[0].numpy(), has_type_ids=True)


def _read_vocabulary(tokenizer: Tokenizer) -> bytes | None:
    file = getattr(tokenizer, "vocab_file", None)
    return Path(file).read_bytes() if file and Path(file).is_file() else None


@torch.no_grad()
def _counts_padding(
    weights: Network | BertParameters, tokenizer: Tokenizer, texts: tuple[str, ...]
) -> bool:
    """Return whether padding before a text changes its states, as by absolute positions."""
    if isinstance(weights, BertParameters):
        return getattr(weights.embeddings, "padding_idx", None) is None
    if tokenizer.pad_token_id is None:
        return False
    alone = tokenizer(*texts, return_tensors="pt")
    length = alone["input_ids"].shape[1]
    padded = tokenizer(*texts, return_tensors="pt", padding="max_length", max_length=length + 2)
    states = weights(input_ids=alone["input_ids"], attention_mask=alone["attention_mask"])[0]
    beside = weights(input_ids=padded["input_ids"], attention_mask=padded["attention_mask"])[0]
    # States of wordpieces; a classifier returns logits (rows, outputs)
    if states.dim() == 3:
        beside = beside[:, -length:]
    return not torch.allclose(states, beside, atol=1e-4)
