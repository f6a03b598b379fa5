"""The transformer component that an `sbert` pipe listens to."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from spacy.language import Language
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.training import Example
from spacy_transformers.layers import TransformerModel
from spacy_transformers.pipeline_component import Transformer
from thinc.api import Model

from ..encoder.listener import SentenceListener
from ..encoder.resolve import find_local
from ..encoder.settings import read_settings
from ..encoder.token_encoder import TokenEncoder
from ..encoder.transformer import RowTransformer
from ..encoder.wordpiece_table import WordpieceTable
from ..spans import members
from ..spans.sentence_spans import spans_key_of
from ..training.members import check_rows
from ..vectors.sentence_pooling import SentencePooling
from .errors import Errors


@dataclass
class InPipeline:
    """The pipeline that a pipe is in; a copy is in none."""

    nlp: Language | None = None

    def __reduce__(self) -> tuple[type, tuple]:
        return InPipeline, ()


def find_listeners(model: Model) -> list[SentenceListener]:
    """The listeners in the model tree of an `sbert` pipe; none if its encoder is its own."""
    return [node for node in model.walk() if isinstance(node, SentenceListener)]


def shares_encoder(model: Model) -> bool:
    """Whether the encoder of a pipe hears another component, which waits for the gradient of every Doc."""
    return any(hasattr(node, "upstream_name") for node in model.walk())


def find_upstream(nlp: Language, name: str, listener: SentenceListener) -> Transformer:
    """The transformer before a pipe that its listener hears. While a pipeline is initialised, frozen and sourced pipes
    are disabled, and count all the same.

    RAISES (ValueError): if there is none, or it is of a kind that cannot be shared.
    """
    before = _names_before(nlp, name)
    for pipe_name in reversed(before):
        pipe = nlp.get_pipe(pipe_name)
        if isinstance(pipe, Transformer) and listener.upstream_name in ("*", pipe_name):
            return pipe
    if any(nlp.get_pipe_meta(pipe_name).factory == "curated_transformer" for pipe_name in before):
        raise ValueError(Errors.CURATED_UPSTREAM.format(name=f" '{name}'"))
    raise ValueError(Errors.NO_UPSTREAM.format(name=name, upstream=listener.upstream_name, pipes=nlp.component_names))


def _names_before(nlp: Language, name: str) -> list[str]:
    names = nlp.component_names
    return names[: names.index(name)] if name in names else names


def find_tok2vec(nlp: Language, name: str, listener: Tok2VecListener) -> Tok2Vec:
    """The `tok2vec` before a pipe that its listener hears.

    RAISES (ValueError): if there is none, or it is of another width.
    """
    for pipe_name in reversed(_names_before(nlp, name)):
        pipe = nlp.get_pipe(pipe_name)
        if isinstance(pipe, Tok2Vec) and listener.upstream_name in ("*", pipe_name):
            given, expected = listener.get_dim("nO"), pipe.model.maybe_get_dim("nO")
            if expected not in (None, given):
                widths = {"given": given, "upstream": pipe_name, "expected": expected}
                raise ValueError(Errors.TOK2VEC_WIDTH.format(name=name, **widths))
            return pipe
    raise ValueError(Errors.NO_TOK2VEC.format(name=name, upstream=listener.upstream_name, pipes=nlp.component_names))


def prepare_upstream(nlp: Language, name: str, model: Model, examples: Iterable[Example], spans_key: str) -> None:
    """Check that the transformer's rows will be the members of pairs, and find out whether its folder normalises.

    RAISES (ValueError): if there is no transformer to share, or pairs would be trained wrongly on it.
    """
    for node in model.walk():
        if isinstance(node, Tok2VecListener):
            find_tok2vec(nlp, name, node)
    for listener in find_listeners(model):
        upstream = find_upstream(nlp, name, listener)
        listener.transformer = upstream.model
        check_spans_key(name, model, spans_key)
        cache_transformers(upstream.model, model.maybe_get_ref("loss"))
        pair = next((eg.predicted for eg in examples if members(eg.predicted, spans_key)), None)
        if pair is not None:
            rows = upstream.model.attrs["get_spans"]([pair])[0]
            check_rows([(row.start, row.end) for row in rows], pair, spans_key)
        _follow_stock_model(upstream.model, model)


def check_spans_key(name: str, model: Model, spans_key: str) -> None:
    """Check that a pipe and the span getter of its encoder, own or as far as it is known shared, take members from one
    place.

    RAISES (ValueError): if they do not.
    """
    heard = [listener.transformer for listener in find_listeners(model) if listener.transformer is not None]
    for node in [*heard, *model.walk()]:
        given = spans_key_of(node.attrs.get("get_spans"))
        if given not in (None, spans_key):
            raise ValueError(Errors.OTHER_SPANS_KEY.format(name=name, key=spans_key, given=given))


def follow_upstream(nlp: Language, model: Model, loss: Model | None) -> None:
    """Find out, as far as a pipe's transformer is there already, whether the folder of a stock one normalises, and
    tell it of a loss that wants mini-batches.

    For a pipe that is added to a trained pipeline and never initialised.
    """
    for listener in find_listeners(model):
        for name, pipe in nlp.components:
            if isinstance(pipe, Transformer) and listener.upstream_name in ("*", name):
                _follow_stock_model(pipe.model, model)
                cache_transformers(pipe.model, loss)
                listener.transformer = pipe.model


def find_transformer(name: str, model: Model) -> RowTransformer:
    """The transformer of a pipe, its own or the one it shares.

    RAISES (ValueError): if it is not of this package, or the pipe is in no pipeline yet.
    """
    heard = [listener.transformer for listener in find_listeners(model)]
    for node in heard or model.walk():
        if isinstance(node, RowTransformer):
            return node
    if find_token_encoder(model) is not None or find_table(model) is not None:
        raise ValueError(Errors.NOT_A_TRANSFORMER.format(name=name))
    raise ValueError(Errors.NO_TEXT_ENCODER.format(name=name))


def find_heard(nlp: Language, name: str, encoder: TokenEncoder) -> Model | None:
    """The model of the component that a pipe's encoder hears; None if it hears none.

    RAISES (ValueError): if there is none to hear, or it is not a `tok2vec`.
    """
    listener = encoder.listener
    if listener is None:
        return None
    if not isinstance(listener, Tok2VecListener):
        raise ValueError(Errors.NO_TEXT_ENCODER.format(name=name))
    return find_tok2vec(nlp, name, listener).model


def find_token_encoder(model: Model) -> TokenEncoder | None:
    """The encoder of a pipe whose units are tokens; None if it is of another kind."""
    return next((node for node in model.walk() if isinstance(node, TokenEncoder)), None)


def find_table(model: Model) -> WordpieceTable | None:
    """The table of a pipe; None if its encoder is of another kind."""
    return next((node for node in model.walk() if isinstance(node, WordpieceTable)), None)


def cache_transformers(model: Model, loss: Model | None) -> None:
    """Have the encoders in a model tree train in mini-batches, if the loss is of a cached kind."""
    size = getattr(loss, "mini_batch_size", None)
    for node in model.walk():
        if size and isinstance(node, RowTransformer):
            node.shim.mini_batch_size = min(size, node.shim.mini_batch_size or size)


def vector_width(nlp: Language | None, name: str, model: Model) -> int:
    """The width of the vectors that an initialised encoder, own or shared, makes."""
    listeners = find_listeners(model)
    if nlp is not None and listeners:
        encoder: Model = find_upstream(nlp, name, listeners[0]).model
        if not encoder.has_dim("nO"):  # frozen: spaCy leaves it out when it initialises a pipeline
            encoder.initialize()
    else:
        kinds = TransformerModel, TokenEncoder, WordpieceTable
        encoder = cast(Model, next(node for node in model.walk() if isinstance(node, kinds)))
    settings = encoder.shim.settings if isinstance(encoder, RowTransformer) else None
    return cast(SentencePooling, model.get_ref("pooling")).width(encoder.get_dim("nO"), settings)


def _follow_stock_model(upstream: Model, model: Model) -> None:
    source = str(upstream.attrs.get("name", ""))
    if isinstance(upstream, RowTransformer) or not source:
        return  # ours says so with its output
    folder = find_local(source)
    if folder is not None:  # else what was found out before, maybe on another machine, stays
        model.get_ref("pooling").attrs["upstream_normalize"] = read_settings(folder, source).normalize
