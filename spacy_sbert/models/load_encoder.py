"""Load an encoder whole: its tokenizer, its weights and its backend, checked on a text."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
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
from .folder_keys import SENTENCE_TRANSFORMER
from .load_tokenizer import load_tokenizer
from .load_weights import SPARSE, load_weights
from .loading import Network, Source, Tokenizer, load_config
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


class EncoderLoader:
    """Load the encoder in a folder.

    settings: of the folder, which name the encoder in messages.
    precision (str): in which it is about to encode.
    model_type (str): as in config_sentence_transformers.json: "SentenceTransformer", or
        "CrossEncoder".
    texts (tuple): what is encoded to try it: a text, or a pair.
    """

    def __init__(
        self,
        source: Source,
        settings: SentenceTransformersConfig,
        *,
        precision: str,
        model_type: str,
        texts: tuple[str, ...],
    ):
        self.source, self.settings = source, settings
        self.precision = precision
        self.is_cross_encoder = model_type != SENTENCE_TRANSFORMER
        self.texts = texts

    def load(
        self, read_weights: WeightsLoader, backends: BackendCache, *, is_plain: bool
    ) -> LoadedEncoder:
        """Return the encoder.

        backends: what its backend is made by. is_plain (bool): whether no modules.json lists its
            parts.
        RAISES (ValueError): if the folder is damaged, or its parts do not fit one another.
        """
        source, settings = self.source, self.settings
        # Which version 5 reads with the tokenizer, too
        config = load_config(source)
        tokenizer = self._load_tokenizer(is_plain=is_plain)
        weights = read_weights(source, config)
        check_data(weights, f"the encoder '{settings.name}'")
        if source.is_saved and (name := tensors_not_finite(weights.state_dict().items())):
            raise DivergedError(Errors.DIVERGED_WEIGHTS.format(reason=f"{name} is not finite"))
        backends.load_files(source.folder, weights, is_saved=source.is_saved)
        encode = self._trial(weights, backends)
        limit = check_encoder(source, tokenizer, weights, encode, self.texts, settings.max_length)
        if not is_packable(weights):
            backends.pads = self._may_pad(tokenizer, weights, limit)
        self._warn_of_left_padding(tokenizer, weights)
        self._warn_of_half_precision(config)
        weights.config.name_or_path = tokenizer.name_or_path = settings.name
        return LoadedEncoder(
            settings=replace(settings, max_length=limit),
            tokenizer=tokenizer,
            weights=weights,
            backends=backends,
            vocab_file=_read_vocabulary(tokenizer),
        )

    def _load_tokenizer(self, *, is_plain: bool) -> Tokenizer:
        tokenizer = load_tokenizer(self.source)
        if not _has_mask(tokenizer):
            self._warn_of_padding(f"model_input_names = {tokenizer.model_input_names}")
        if is_plain and tokenizer.chat_template:
            raise ValueError(Errors.CHAT_TEMPLATE.format(folder=self.source.folder))
        return tokenizer

    def _trial(
        self, weights: Network | BertParameters, backends: BackendCache
    ) -> Callable[[Mapping[str, torch.Tensor]], torch.Tensor]:
        """Return what encodes a row, to states (1, wordpieces, hidden) or logits."""

        def encode(inputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
            wordpieces = _single_row(inputs)
            batch = single_batch(wordpieces.lengths, numpy.arange(1))
            if isinstance(weights, BertParameters):
                # Which is kept for use
                backend = backends.backend_of(weights, "float32")
                (batch,) = backend.batches(wordpieces, numpy.arange(1), len(wordpieces.ids))
                return backend.encode(wordpieces, batch)[None, : len(wordpieces.ids)]
            output = call(weights, wordpieces, batch)
            return output.logits if "logits" in output else output.last_hidden_state

        return encode

    def _may_pad(self, tokenizer: Tokenizer, network: Network, limit: int | None) -> bool:
        """Return whether rows may be padded.

        Warn if not: sentence-transformers pads them, and vectors differ.
        """
        follows_padding = self.precision == REFERENCE and _has_mask(tokenizer)
        if getattr(network.config, "attention_type", None) == SPARSE:
            warn(Warnings.SPARSE_ATTENTION.format(name=self.settings.name))
            return follows_padding
        rope = rope_by_length(network, limit)
        if rope and not follows_padding:
            self._warn_of_padding(f"rope_type = {rope}", has_reference=_has_mask(tokenizer))
            network.register_forward_pre_hook(reset_rope)
            return False
        if follows_padding or ignores_padding(network, tokenizer, limit):
            return True
        # Without a mask there is a warning already
        if _has_mask(tokenizer):
            self._warn_of_padding(network.config.model_type, has_reference=True)
        return False

    def _warn_of_left_padding(
        self, tokenizer: Tokenizer, weights: Network | BertParameters
    ) -> None:
        if tokenizer.padding_side != "left" or self.precision == REFERENCE:
            return
        if _counts_padding(weights, tokenizer, self.texts):
            self._warn_of_padding("padding_side = left", has_reference=True)

    def _warn_of_padding(self, cause: str, *, has_reference: bool = False) -> None:
        """Warn that the padding of a batch changes the vectors of sentence-transformers.

        has_reference (bool): whether precision = "reference" gives the same.
        """
        remedy = ""
        if has_reference and not self.is_cross_encoder:
            remedy = '; for its batches set precision = "reference"'
        warn(Warnings.PADDING.format(name=self.settings.name, cause=cause, remedy=remedy))

    def _warn_of_half_precision(self, config: PretrainedConfig) -> None:
        dtype = half_precision(config)
        if dtype and not self.source.is_saved:
            warn(Warnings.HALF_PRECISION.format(name=self.settings.name, dtype=dtype))


def _has_mask(tokenizer: Tokenizer) -> bool:
    return "attention_mask" in tokenizer.model_input_names


def _single_row(inputs: Mapping[str, torch.Tensor]) -> TokenizedBatch:
    """Return the only row, (1, wordpieces), of what a tokenizer returns."""
    ids = inputs["input_ids"][0].numpy()
    types = inputs.get("token_type_ids")
    return TokenizedBatch(
        text_of=numpy.zeros(1, dtype="int64"),
        lengths=numpy.array([len(ids)]),
        ids=ids,
        type_ids=None if types is None else types[0].numpy(),
        special=numpy.zeros(len(ids), dtype=bool),
        offsets=None,
        n_cut=numpy.zeros(1, dtype="int64"),
        has_type_ids=types is not None,
    )


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
    states, beside = (
        weights(input_ids=each["input_ids"], attention_mask=each["attention_mask"])[0]
        for each in (alone, padded)
    )
    # Else logits
    if states.dim() == 3:
        beside = beside[:, -length:]
    return not torch.allclose(states, beside, atol=1e-4)
