"""Architectures that a config can name: sentence encoders, their transformers and listeners.

The entry points of setup.cfg register them, and all other functions that configs name. Each imports
what only it needs when it is built: spaCy imports this module for every pipeline.
"""

from collections.abc import Callable
from typing import Any, Literal

from spacy.tokens import Doc
from spacy.util import SimpleFrozenDict
from thinc.api import Model, chain
from thinc.types import Floats2d, Ragged

from .models.heads import Tok2VecModel, VectorLayer
from .models.pooling import SentencePooling
from .models.private_attributes import is_a, is_installed
from .models.prompts import Prompts
from .models.sbert_config import TransformerConfig
from .models.sentence_encoder import SentenceEncoder
from .models.transformer import SpanTransformer
from .validation import (
    Name,
    NonNegative,
    NonNegativeFloat,
    Width,
    WidthOrOff,
    validated,
    with_fields_of,
)

DEFAULT_NAME = "sentence-transformers/all-MiniLM-L6-v2"
SENTENCE_SPANS = SimpleFrozenDict({"@span_getters": "spacy-sbert.sentence_spans.v1"})
SENTENCE_LISTENER = SimpleFrozenDict({"@architectures": "spacy-sbert.SentenceListener.v1"})
TOKEN_POOLING = SimpleFrozenDict({"@layers": "reduce_mean.v1"})
NO_SETTINGS: dict[str, Any] = SimpleFrozenDict()


# A config can set the fields of TransformerConfig, which an architecture gets as `options`
_with_transformer_options = with_fields_of(TransformerConfig, "options", missing=NO_SETTINGS)


@validated
@_with_transformer_options
def sentence_encoder(
    name: Name = DEFAULT_NAME,
    *,
    pooling: str = "mean",
    normalize: bool | Literal["auto"] = "auto",
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
    max_batch_items: NonNegative = 0,
    dense: VectorLayer | None = None,
    truncate_dim: WidthOrOff = 0,
    prompts: dict[str, str] = NO_SETTINGS,
    default_prompt_name: str | None = None,
    include_prompt: bool | None = None,
    options: TransformerConfig,
) -> SentenceEncoder:
    """Return a sentence encoder with a transformer of its own.

    name (str): any Hugging Face encoder: a folder, or a name that is looked for in the hub's cache,
        in installed packages and on the hub.
    pooling (str): a name of models.poolings.POOLING, such as "mean", "max" or "cls"; several,
        joined with "+", are concatenated: "cls+mean".
    normalize (bool or "auto"): whether vectors get unit length; "auto" as the encoder's
        modules.json says.
    overflow (str): "truncate" cuts spans at the encoder's limit, "windows" averages over windows of
        them, weighted by the wordpieces in each; "cut" drops the end with the last special token,
        as spacy-transformers does.
    get_spans (Callable): which spans of a Doc are encoded: spacy-sbert.sentence_spans.v1.
    max_batch_items (int): the most wordpieces in a forward pass in use, padding included; 0 for
        what suits the device.
    dense (Model): from pooled vectors to others, before they are normalised: spacy-sbert.Dense.v1,
        or several in Thinc's chain.v1.
    truncate_dim (int): how many dimensions of the vectors are kept, after they were normalised, as
        sentence-transformers does it; 0 for all, or as many as the encoder's folder says.
    prompts (dict): what is put before texts, by name: {"query": "query: "}, beside those that the
        folder names.
    default_prompt_name (str): the prompt of texts for which nobody asks for another; "" for none,
        None for that of the folder, if it names one.
    include_prompt (bool): whether the wordpieces of a prompt are pooled with those of the text;
        None as the folder says. Without them "cls" is the first wordpiece of the text, and
        "weightedmean" keeps the text's weights.
    tokenizer_config to grad_scaler_config, the fields of TransformerConfig: see there.
    RETURNS (Model): from Docs to one EncodedDoc each. The weights are loaded on first use.
    RAISES (ValueError): for an unknown pooling or overflow, and for include_prompt = false with
        overflow = "windows".
    SOURCE: Reimers and Gurevych 2019, section 3.
    """
    own = Prompts(prompts, default_prompt_name, include_prompt)
    transformer = SpanTransformer(
        name, get_spans, options, max_batch_items=max_batch_items, prompts=own
    )
    return SentenceEncoder(transformer, _pooling(pooling, normalize, dense, truncate_dim))


@validated
def shared_sentence_encoder(
    pooling: str = "mean",
    normalize: bool | Literal["auto"] = "auto",
    tok2vec: Model = SENTENCE_LISTENER,  # type: ignore[assignment]
    dense: VectorLayer | None = None,
    truncate_dim: WidthOrOff = 0,
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
) -> SentenceEncoder:
    """Build a sentence encoder that listens to the transformer of another component.

    That is an `sbert_transformer`, or a transformer of another package.

    An `sbert_transformer` gives the vectors that an encoder of its own would give, if their span
    getters are the same.

    A `curated_transformer` reads whole Docs, in strides, and gives no states of special tokens:
    sentences, and the members of a pair, are read in the context of their Doc, a mean is one of the
    wordpieces of the text, and "cls" is the first of these. `normalize = "auto"` follows the folder
    in its [initialize] encoder_loader, if it is known.

    pooling, normalize, dense, truncate_dim, and what is returned: see
    spacy-sbert.SentenceEncoder.v1.
    tok2vec (Model): the listener, spacy-sbert.SentenceListener.v1 or that of
        spacy-curated-transformers to the last layer; after `nlp.replace_listeners` a transformer.
        spaCy looks for listeners under this name.
    get_spans (Callable): of a `curated_transformer`; others have their own.
    RAISES (ValueError): for a listener to more layers.
    """
    from .models.listener import with_own_listener

    if is_a(tok2vec, "TransformerModel"):
        # nlp.replace_listeners put a copy in place of the listener
        from spacy_transformers.layers import split_trf_batch

        source: Model = chain(tok2vec, split_trf_batch())
    else:
        source = with_own_listener(tok2vec)
    return SentenceEncoder(source, _pooling(pooling, normalize, dense, truncate_dim), get_spans)


@validated
def tok2vec_sentence_encoder(
    tok2vec: Model,
    *,
    pooling: str = "mean",
    normalize: bool = False,
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
    dense: VectorLayer | None = None,
    truncate_dim: WidthOrOff = 0,
) -> SentenceEncoder:
    """Return a sentence encoder over a token-to-vector model of spaCy.

    It pools the vectors of tokens, white space left out.

    tok2vec (Model): from Docs to float (tokens, width) each: spacy.Tok2Vec.v2,
        spacy.HashEmbedCNN.v2 and the like, of its own, or a listener: spacy.Tok2VecListener.v1, or
        to a `curated_transformer` the LastTransformerLayerListener or ScalarWeightingListener of
        spacy-curated-transformers. With a model of its own each span is read by itself; a listener
        reads whole Docs, so that sentences, and the members of a pair, are read in context.
    The other arguments, and what is returned: see spacy-sbert.SentenceEncoder.v1; "cls" is the
        first token.
    """
    from .models.token_encoder import Tok2VecEncoder

    return SentenceEncoder(
        Tok2VecEncoder(tok2vec, get_spans), _pooling(pooling, normalize, dense, truncate_dim)
    )


@validated
def static_sentence_encoder(
    name: Name = DEFAULT_NAME,
    *,
    width: Width = 256,
    pooling: str = "mean",
    normalize: bool | Literal["auto"] = "auto",
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
    dense: VectorLayer | None = None,
    truncate_dim: WidthOrOff = 0,
) -> SentenceEncoder:
    """Return a sentence encoder that is a table with a vector for each wordpiece.

    It has no transformer, no context and no limit.

    name (str): a static encoder of sentence-transformers or model2vec, or a transformer, of which
        the tokenizer alone is taken; looked for as spacy-sbert.SentenceEncoder.v1 does.
        nlp.initialize() draws the table that is missing then; `python -m spacy sbert
        distill-static` makes one of a teacher.
    width (int): of the vectors in the table.
    The other arguments, and what is returned: see spacy-sbert.SentenceEncoder.v1; there are no
        special tokens, "cls" is the first wordpiece.
    """
    from .models.static_embedding import StaticEmbedding

    return SentenceEncoder(
        StaticEmbedding(name, width, get_spans), _pooling(pooling, normalize, dense, truncate_dim)
    )


@validated
def sentence_listener(
    grad_factor: NonNegativeFloat = 1.0, upstream: Name = "*"
) -> Model[list[Doc], list[Any]]:
    """Build a listener to the transformer of a component that comes earlier in the pipeline.

    That is an `sbert_transformer`, a `transformer` or a `curated_transformer`.

    grad_factor (float): factor on the gradient that goes to the transformer. With 0 none does; what
        weight decay (L2) changes, it changes nonetheless, as in spaCy.
    upstream (str): the component's name, "*" for any.
    """
    if not is_installed():
        # It can listen to all but a component of spacy-transformers
        from .models.listener import SentenceListener

        return SentenceListener(upstream, grad_factor)
    from .models.spacy_transformers import TransformerSentenceListener

    return TransformerSentenceListener(upstream, grad_factor)


@validated
@_with_transformer_options
def transformer_tok2vec(
    name: Name = DEFAULT_NAME,
    *,
    pooling: Model[Ragged, Floats2d] = TOKEN_POOLING,  # type: ignore[assignment]
    grad_factor: NonNegativeFloat = 1.0,
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
    max_batch_items: NonNegative = 0,
    prompts: dict[str, str] = NO_SETTINGS,
    default_prompt_name: str | None = None,
    include_prompt: bool | None = None,
    options: TransformerConfig,
) -> Tok2VecModel:
    """Return a transformer as a token-to-vector model, for several components or for one.

    pooling (Model): from the wordpieces of each token to its vector; of those in all spans that the
        token is in.
    grad_factor (float): factor on the gradient that goes to the transformer, in a single component.
    get_spans (Callable): which spans of a Doc are read: spacy-sbert.sentence_spans.v1 or
        strided_spans.v1.
    The other arguments: see spacy-sbert.SentenceEncoder.v1.
    RETURNS (Model): from Docs to float32 (tokens, width) each, zeros for tokens in no span.
    """
    from .models.shared_transformer import TransformerTok2Vec

    own = Prompts(prompts, default_prompt_name, include_prompt)
    transformer = SpanTransformer(
        name, get_spans, options, max_batch_items=max_batch_items, prompts=own
    )
    return TransformerTok2Vec(transformer, pooling, grad_factor)


@validated
def transformer_listener(
    pooling: Model[Ragged, Floats2d] = TOKEN_POOLING,  # type: ignore[assignment]
    grad_factor: NonNegativeFloat = 1.0,
    upstream: Name = "*",
) -> Tok2VecModel:
    """Build a listener to the vectors of tokens of an `sbert_transformer` earlier in the pipeline.

    pooling (Model): from the wordpieces of each token to its vector.
    grad_factor (float): factor on the gradient that goes to the transformer. With 0 none does; what
        weight decay (L2) changes, it changes nonetheless, as in spaCy.
    upstream (str): the component's name, "*" for any.
    """
    from .models.listener import TransformerListener

    return TransformerListener(upstream, pooling, grad_factor)


def _shared_transformer(
    needed_by: str, name: str, get_spans: Callable, options: TransformerConfig
) -> Model:
    if not is_installed():
        raise ImportError(
            f"spacy-sbert.{needed_by}.v1 needs the package spacy-transformers, which is not "
            'installed. Install it: pip install "spacy-sbert[transformers]", or use '
            'spacy-sbert.TransformerTok2Vec.v1 in an "sbert_transformer".'
        )
    from .models.spacy_transformers import SpacyTransformersModel

    return SpacyTransformersModel(name, get_spans, options)


@validated
@_with_transformer_options
def transformer_model(
    name: Name = DEFAULT_NAME,
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
    *,
    options: TransformerConfig,
) -> Model[list[Doc], Any]:
    """Return the model of a `transformer` component whose output a sentence encoder can share.

    It replaces spacy-transformers.TransformerModel.v3, with the same output.

    name, overflow, trust_remote_code, precision, gradient_checkpointing, mini_batch_size, frozen,
        max_grad_norm: see spacy-sbert.SentenceEncoder.v1.
    get_spans (Callable): which spans of a Doc are read; spacy-sbert.sentence_spans.v1 for sentence
        vectors.
    tokenizer_config, transformer_config, mixed_precision, grad_scaler_config: as in
        spacy-transformers.
    RETURNS (Model): from Docs to a FullTransformerBatch.
    RAISES (ImportError): if spacy-transformers is not installed.
    """
    return _shared_transformer("TransformerModel", name, get_spans, options)


@validated
@_with_transformer_options
def tok2vec_transformer(
    pooling: Model[Ragged, Floats2d],
    grad_factor: NonNegativeFloat = 1.0,
    name: Name = DEFAULT_NAME,
    get_spans: Callable = SENTENCE_SPANS,  # type: ignore[assignment]
    *,
    options: TransformerConfig,
) -> Tok2VecModel:
    """Build a transformer as the token-to-vector layer of one component.

    `nlp.replace_listeners` leaves it in a ner or textcat that listened to
    spacy-sbert.TransformerModel.v1.

    pooling (Model): from the wordpieces of each token to its vector.
    grad_factor (float): factor on the gradient that goes to the transformer.
    The other arguments, and errors: see spacy-sbert.TransformerModel.v1.
    """
    transformer = _shared_transformer("Tok2VecTransformer", name, get_spans, options)
    from spacy_transformers.layers import split_trf_batch, trfs2arrays

    # A chain in a chain, as replacing the listener leaves it: saved weights are matched by
    # position.
    return chain(chain(transformer, split_trf_batch()), trfs2arrays(pooling, grad_factor))


def _pooling(
    pooling: str, normalize: bool | str, dense: VectorLayer | None, truncate_dim: int
) -> SentencePooling:
    unit = None if normalize == "auto" else bool(normalize)
    return SentencePooling(pooling, unit, dense=dense, truncate_dim=truncate_dim)
