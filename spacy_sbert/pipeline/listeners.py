"""Find, check and link the components upstream that `sbert` listens to."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, cast

from spacy.language import Language
from spacy.pipeline import TrainablePipe
from spacy.pipeline.tok2vec import Tok2Vec, Tok2VecListener
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Model

from ..errors import Errors, Warnings
from ..models.hub import find_local, known_names, nearest_name
from ..models.pooling import SentencePooling
from ..models.private import ALL_LAYERS, SENTINEL, is_a, is_curated, is_installed, upstream_name
from ..models.sbert_config import read_settings
from ..models.sentence_encoder import GET_SPANS, is_listener, is_static_embedding, is_token_encoder
from ..models.spans import SpanGetter, members, spans_key_of, wants_sentences
from ..models.transformer import SpanTransformer, is_transformer

if TYPE_CHECKING:  # these load what only their own architectures need
    from ..models.listener import SentenceListener, Tok2VecEncoder
    from ..models.static_embedding import StaticEmbedding


def find_listeners(model: Model) -> "list[SentenceListener]":
    """Return the listeners in the model tree of an `sbert` pipe; none if its encoder is its own."""
    return [node for node in model.walk() if is_listener(node) and upstream_name(node) is not None]


def names_of_encoders(model: Model) -> list[str]:
    """Return the names under which the encoders in the model tree of a pipe are looked for."""
    nodes = list(model.walk())
    own = [node.shim.name for node in nodes if isinstance(node, SpanTransformer)]
    return own + [node.source for node in nodes if is_static_embedding(node)]


def transformer_name(model: Model) -> str:
    """Return the name of the transformer of a pipe, its own or the one it shares, of whatever package."""
    upstream = [listener.transformer for listener in find_listeners(model) if listener.transformer is not None]
    return str(next(node for node in upstream or model.walk() if is_transformer(node)).attrs["name"])


def shares_encoder(model: Model) -> bool:
    """Return whether the encoder of a pipe listens to another component, which waits for the gradient of every Doc."""
    return any(upstream_name(node) is not None for node in model.walk())


def find_upstream(nlp: Language, name: str, listener: "SentenceListener") -> TrainablePipe:
    """Return the component that a listener listens to, of spacy-transformers or spacy-curated-transformers.

    RAISES (ValueError): if there is none.
    """
    found = _nearest(nlp, name, listener, _is_transformer)
    if found is None:
        given = {"upstream": listener.upstream_name, "pipes": nlp.component_names}
        install = "" if is_installed() else ' after pip install "spacy-sbert[transformers]"'
        raise ValueError(
            (
                "The 'sbert' pipe '{name}' listens to a transformer, but no 'transformer' component of "
                "spacy-transformers, and no 'curated_transformer', (upstream = \"{upstream}\") stands before it; "
                'the pipeline is {pipes}. Add one before it: nlp.add_pipe("transformer", before="{name}", '
                'config={{"model": {{"@architectures": "spacy-sbert.TransformerModel.v1"}}}}){install}, or use '
                "spacy-sbert.SentenceEncoder.v1, which has its own encoder."
            ).format(name=name, install=install, **given)
        )
    return found


def _is_transformer(pipe: object) -> bool:
    return is_a(pipe, "Transformer") or _is_curated_pipe(pipe)


def _is_curated_pipe(pipe: object) -> bool:
    return is_curated(getattr(pipe, "model", None))


def _is_tok2vec(pipe: object) -> bool:
    return isinstance(pipe, Tok2Vec)


def _nearest(nlp: Language, name: str, listener: Model, is_kind: Callable[[object], bool]) -> TrainablePipe | None:
    """Return the last component of a kind before the pipe `name` that its listener may listen to.

    Frozen and sourced components, which are disabled while a pipeline is initialized, count as well.
    """
    names = nlp.component_names
    for pipe_name in reversed(names[: names.index(name)] if name in names else names):
        pipe = nlp.get_pipe(pipe_name)
        if is_kind(pipe) and upstream_name(listener) in ("*", pipe_name):
            return cast(TrainablePipe, pipe)
    return None


def _find_tok2vec(nlp: Language, name: str, listener: Model) -> TrainablePipe:
    """Return the `tok2vec` or `curated_transformer` that a listener to token vectors listens to.

    RAISES (ValueError): if there is none, it is of another width, or does not give all the layers that are needed.
    """
    to_curated = not isinstance(listener, Tok2VecListener)
    pipe = _nearest(nlp, name, listener, _is_curated_pipe if to_curated else _is_tok2vec)
    if pipe is None:
        kind = "curated_transformer" if to_curated else "tok2vec"
        given = {"upstream": upstream_name(listener), "pipes": nlp.component_names}
        raise ValueError(
            (
                "The 'sbert' pipe '{name}' listens to a '{kind}' component (upstream = '{upstream}'), and none "
                "stands before it; the pipeline is {pipes}. Add one before it, nlp.add_pipe('{kind}', "
                "before='{name}'), correct upstream, or give the encoder a tok2vec of its own, such as "
                "spacy.HashEmbedCNN.v2."
            ).format(name=name, kind=kind, **given)
        )
    width, expected = listener.get_dim("nO"), pipe.model.maybe_get_dim("nO")
    if expected not in (None, width):
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens for vectors of {width} numbers, and the component "
            f"'{pipe.name}' makes {expected}: set width = {expected} in its [components.{name}.model.tok2vec]."
        )
    if to_curated and listener.attrs[ALL_LAYERS] and not getattr(pipe, "all_layer_outputs", True):
        raise ValueError(
            f"The 'sbert' pipe '{name}' listens to all layers of the component '{pipe.name}' "
            f"({listener.name}), which gives the last one alone: set all_layer_outputs = true in "
            f"[components.{pipe.name}]."
        )
    return pipe


def _listens_to_tokens(node: Model) -> bool:
    """Return whether a layer listens to vectors of tokens."""
    return isinstance(node, Tok2VecListener) or (SENTINEL in node.attrs and not is_listener(node))


def validate_upstream(nlp: Language, name: str, model: Model, examples: Iterable[Example], spans_key: str) -> None:
    """Check that the transformer's rows will be the members of pairs, and find out whether its folder normalises.

    RAISES (ValueError): if there is no transformer to share, or pairs would be trained wrongly on it.
    """
    for node in model.walk():
        if _listens_to_tokens(node):
            _find_tok2vec(nlp, name, node)
    for listener in find_listeners(model):
        upstream = find_upstream(nlp, name, listener)
        _connect(nlp, listener, upstream, model, model.maybe_get_ref("loss"))
        check_spans_key(name, model, spans_key)
        pair = next((eg.predicted for eg in examples if members(eg.predicted, spans_key)), None)
        if pair is not None:
            getter = upstream.model.attrs.get("get_spans") or _own_getter(model)
            from ..training.examples import check_rows  # noqa: PLC0415 (training)

            check_rows([(row.start, row.end) for row in getter([pair])[0]], pair, spans_key)


def _connect(
    nlp: Language, listener: "SentenceListener", upstream: TrainablePipe, model: Model, loss: Model | None
) -> None:
    """Connect a listener to a transformer, and follow the settings in the folder of that."""
    listener.transformer = upstream.model
    if is_curated(upstream.model):
        listener.set_dim("nO", upstream.model.get_dim("nO"), force=True)
    cache_transformers(upstream.model, loss)
    _follow_folder(nlp, upstream, model)


def _own_getter(model: Model) -> SpanGetter:
    """Return the span getter of an encoder that listens to a transformer which encodes whole Docs."""
    return cast(SpanGetter, next(node.attrs[GET_SPANS] for node in model.walk() if GET_SPANS in node.attrs))


def check_spans_key(name: str, model: Model, spans_key: str) -> None:
    """Check that a pipe and the span getters of its encoder take members from the same spans_key.

    RAISES (ValueError): if they do not.
    """
    for given in map(spans_key_of, span_getters(model)):
        if given not in (None, spans_key):
            raise ValueError(
                f"The 'sbert' pipe '{name}' has spans_key = '{spans_key}', but the span getter of its encoder "
                f"takes the members of an example from doc.spans['{given}']: pairs would not be trained, or "
                f"not scored. Set spans_key = '{spans_key}' in get_spans, spacy-sbert.sentence_spans.v1, too "
                f"([components.transformer.model.get_spans] when the transformer is shared), or '{given}' in "
                "the pipe."
            )


def span_getters(model: Model) -> list[object]:
    """Return the span getters of an encoder, and of a shared one that is known; None for other layers."""
    upstream = [listener.transformer for listener in find_listeners(model) if listener.transformer is not None]
    nodes = [*upstream, *model.walk()]
    getters = [node.attrs.get("get_spans") for node in nodes]
    if any(map(is_curated, nodes)) and find_token_encoder(model) is None:
        getters.append(_own_getter(model))
    return getters


def link_upstream(nlp: Language, model: Model, loss: Model | None) -> None:
    """Connect the listeners of a new pipe to a transformer that is in the pipeline already.

    A pipe that is added to a trained pipeline is never initialized.
    """
    for listener in find_listeners(model):
        for name, pipe in nlp.components:
            if _is_transformer(pipe) and listener.upstream_name in ("*", name):
                _connect(nlp, listener, cast(TrainablePipe, pipe), model, loss)


def find_transformer(name: str, model: Model) -> SpanTransformer:
    """Return the transformer of a pipe, its own or the one it shares.

    RAISES (ValueError): if it is not of this package, or the pipe is in no pipeline yet.
    """
    upstream = [listener.transformer for listener in find_listeners(model)]
    for node in upstream or model.walk():
        if isinstance(node, SpanTransformer):
            return node
    if find_static_embedding(model) is not None:
        raise ValueError(Errors.NOT_A_TRANSFORMER.format(name=name, kind="a table of wordpieces"))
    if find_token_encoder(model) is not None:
        raise ValueError(Errors.NOT_A_TRANSFORMER.format(name=name, kind="a token-to-vector model of spaCy"))
    if encodes_whole_docs(model):
        raise ValueError(
            f"The encoder of the 'sbert' pipe '{name}' is a curated_transformer, and this works with "
            "transformers of this package alone (spacy-sbert.SentenceEncoder.v1, "
            "spacy-sbert.TransformerModel.v1). To pass the pipeline on, save it or make a package of it: "
            "python -m spacy package."
        )
    raise ValueError(Errors.NO_TEXT_ENCODER.format(name=name))


def find_docs_reader(nlp: Language, name: str, model: Model) -> tuple[Model, Model | None]:
    """Return what reads the tokens of Docs in the encoder of a pipe, and the model of the component it listens to.

    RETURNS (Model, Model or None): None if it listens to none.
    RAISES (ValueError): if that component is missing, or of an unknown kind.
    """
    encoder = find_token_encoder(model)
    if encoder is None:
        heard = [find_upstream(nlp, name, listener).model for listener in find_listeners(model)]
        return model.get_ref("encoder").layers[0], next(iter(heard), None)
    listener = encoder.listener
    if listener is not None and not _listens_to_tokens(listener):
        raise ValueError(Errors.NO_TEXT_ENCODER.format(name=name))
    return encoder, None if listener is None else _find_tok2vec(nlp, name, listener).model


def encoding_models(nlp: Language | None, name: str, model: Model, settings: object = None) -> list[Model]:
    """Return the models that make the states for a pipe: its own encoder, and the component that it listens to.

    nlp (Language): the pipeline of the pipe, None if it is in none. settings (object): the configuration that the
        states came with, which tell whose they are; None if they came without.
    RETURNS (list[Model]): empty if the component is not known: a sourced pipe may listen to that of another pipeline.
    """
    encoder = model.get_ref("encoder")
    if encoder.has_ref("reader"):
        reader = encoder.get_ref("reader")
        listener = reader.listener if is_token_encoder(reader) else None
        if listener is None:
            return [reader]
        heard = None if nlp is None else _nearest(nlp, name, listener, _is_curated_pipe)
        heard = heard or (None if nlp is None else _nearest(nlp, name, listener, _is_tok2vec))
        return [] if heard is None else [reader, heard.model]
    source = encoder.layers[0]
    if not is_listener(source) or upstream_name(source) is None:
        return [source]
    pipe = None if nlp is None else _nearest(nlp, name, source, _is_transformer)
    found = [one for one in (None if pipe is None else pipe.model, source.transformer) if one is not None]
    if settings is not None:
        found = [one for one in found if isinstance(one, SpanTransformer) and one.shim.settings is settings]
    return found[:1]


def follow_replaced(nlp: Language, name: str, model: Model) -> None:
    """Listen to the transformer that now stands before a pipe, if another one was put in its place."""
    for listener in find_listeners(model):
        pipe = _nearest(nlp, name, listener, _is_transformer)
        if pipe is not None and listener.transformer is not None and pipe.model is not listener.transformer:
            _connect(nlp, listener, pipe, model, model.maybe_get_ref("loss"))


def takes_prompts(model: Model) -> bool:
    """Return whether a prompt can be put before what the encoder of a pipe reads."""
    return not encodes_whole_docs(model) and find_static_embedding(model) is None


def encodes_whole_docs(model: Model) -> bool:
    """Return whether the encoder of a pipe reads the tokens of Docs, not texts.

    These are token-to-vector models, and curated transformers, shared or its own.
    """
    upstream = [listener.transformer for listener in find_listeners(model)]
    return find_token_encoder(model) is not None or any(map(is_curated, [*upstream, *model.walk()]))


def find_token_encoder(model: Model) -> "Tok2VecEncoder | None":
    """Return the encoder of a pipe whose units are tokens; None if it is of another kind."""
    return next((node for node in model.walk() if is_token_encoder(node)), None)


def find_static_embedding(model: Model) -> "StaticEmbedding | None":
    """Return the table of a pipe; None if its encoder is of another kind."""
    return next((node for node in model.walk() if is_static_embedding(node)), None)


def cache_transformers(model: Model, loss: Model | None) -> None:
    """Let the encoders in a model tree train in mini-batches, if the loss is of a cached kind."""
    size = getattr(loss, "mini_batch_size", None)
    for node in model.walk():
        if size and isinstance(node, SpanTransformer):
            node.shim.mini_batch_size = min(size, node.shim.mini_batch_size or size)


def vector_width(nlp: Language | None, name: str, model: Model) -> int:
    """Return the width of the vectors of an initialized encoder, own or shared."""
    listeners = find_listeners(model)
    if nlp is not None and listeners:
        encoder: Model = find_upstream(nlp, name, listeners[0]).model
        if not encoder.has_dim("nO"):  # frozen: spaCy leaves it out when it initialises a pipeline
            encoder.initialize()
    else:
        encoder = next(node for node in model.walk() if _is_encoder(node))
    settings = encoder.shim.settings if isinstance(encoder, SpanTransformer) else None
    return cast(SentencePooling, model.get_ref("pooling")).width(encoder.get_dim("nO"), settings)


def _is_encoder(node: Model) -> bool:
    return is_token_encoder(node) or is_static_embedding(node) or is_transformer(node) or is_curated(node)


def _follow_folder(nlp: Language, upstream: TrainablePipe, model: Model) -> None:
    """Note whether the folder that another package's transformer came from normalizes."""
    source = str(upstream.model.attrs.get("name", ""))
    if is_curated(upstream.model):
        block = nlp.config.interpolate()["initialize"]["components"].get(upstream.name, {})
        source = str((block.get("encoder_loader") or {}).get("name", ""))
    if isinstance(upstream.model, SpanTransformer) or not source:
        return  # ours says so with its output
    folder = find_local(source)
    if folder is not None:  # else what was found out before, maybe on another machine, stays
        model.get_ref("pooling").attrs["upstream_normalize"] = read_settings(folder, source).normalize


def nearest_encoder(name: str, others: Iterable[str]) -> str | None:
    """Return the encoder on this machine, or one of some other names, that a misspelt name probably means."""
    here = [one for one in known_names() if find_local(one) is not None]
    return nearest_name(name, [*here, *others])


def is_encoder(name: str) -> bool:
    """Return whether there is an encoder of this name, or in this folder, on this machine."""
    try:
        return find_local(name) is not None
    except OSError:  # a folder of something else
        return False


_BOUNDARIES = {"doc.sents", "token.is_sent_start"}  # which components declare to assign


def missing_boundaries_warning(
    nlp: Language, name: str, model: Model, docs: Iterable[Doc], spans_key: str
) -> str | None:
    """Return a warning if the sentence boundaries of Docs are set too late for the encoder, or by a disabled component.

    docs (Iterable[Doc]): Docs that the pipe encoded. spans_key (str): of examples, whose members are their rows.
    RETURNS (str): the warning; None if boundaries are set in time, or never, or no row is a sentence.
    """
    pipes = nlp.pipeline  # without those that are disabled
    names = nlp.pipe_names
    upstream = [listener.transformer for listener in find_listeners(model)]
    shared = [node for node in upstream if isinstance(node, SpanTransformer)]  # others encode whole Docs
    encoder = next((given for given, pipe in pipes if getattr(pipe, "model", None) in shared), name)
    if name not in names or not any(map(wants_sentences, span_getters(model))):
        return None
    setters = [given for given in nlp.component_names if _BOUNDARIES & set(nlp.get_pipe_meta(given).assigns)]
    in_time = nlp.component_names[: nlp.component_names.index(encoder)]
    if not setters or any(given in names for given in setters if given in in_time):
        return None
    late = [given for given in setters if given in names]
    disabled = [given for given in setters if given in in_time]
    if not late and not disabled:  # but one that is disabled, and would be late
        return None
    is_between = bool(late) and names.index(late[0]) < names.index(name)  # boundaries were not there for the encoder
    for doc in docs:
        has_boundaries = doc.has_annotation("SENT_START") and not is_between
        if len(doc) > 1 and not has_boundaries and not members(doc, spans_key):
            said, setter = (Warnings.LATE_SENTENCES, late[0]) if late else (Warnings.NO_SENTENCES, disabled[0])
            return said.format(name=name, encoder=encoder, setter=setter)
    return None
