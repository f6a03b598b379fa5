"""Factories of the components, and scorers.

What they need is imported when one is built or called.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from spacy.language import Language
from spacy.pipeline import Pipe
from thinc.api import Model

from .models.spans import CHUNKS_KEY, SPANS_KEY
from .validation import NonNegativeFloat, SpansKey, Width

# spaCy loads every entry point in spacy_factories when a pipe is added: so this module imports
# little.
_SBERT_CONFIG: dict[str, object] = {
    "model": {
        "@architectures": "spacy-sbert.SentenceEncoder.v1",
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "pooling": "mean",
        "normalize": "auto",
        "overflow": "truncate",
        "get_spans": {
            "@span_getters": "spacy-sbert.sentence_spans.v1",
            "unit": "doc+sent",
            "spans_key": SPANS_KEY,
        },
    },
    "loss": {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"},
    "loss_weight": 1.0,
    "scorer": {"@scorers": "spacy-sbert.pair_scorer.v1"},
    "set_hooks": True,
    "token_vectors": True,
    "spans_key": SPANS_KEY,
}
_TRANSFORMER_CONFIG: dict[str, object] = {
    "model": {
        "@architectures": "spacy-sbert.TransformerTok2Vec.v1",
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "overflow": "truncate",
        "get_spans": {
            "@span_getters": "spacy-sbert.sentence_spans.v1",
            "unit": "doc",
            "spans_key": SPANS_KEY,
        },
    },
}
_META_CONFIG: dict[str, object] = {
    "pipes": [],
    "functions": {},
    "method": "conc",
    "size": None,
    "normalize": True,
    "options": {},
    "scorer": {"@scorers": "spacy-sbert.pair_scorer.v1"},
    "set_hooks": True,
    "spans_key": SPANS_KEY,
}
_RERANKER_CONFIG: dict[str, object] = {
    "model": {
        "@architectures": "spacy-sbert.CrossEncoder.v1",
        "name": "sentence-transformers/all-MiniLM-L6-v2",
        "n_outputs": 0,
        "activation": "auto",
        "max_length": 0,
    },
    "objective": "regression",
    "scorer": {"@scorers": "spacy-sbert.pair_scorer.v1"},
    "spans_key": SPANS_KEY,
}
_TEXTCAT_CONFIG: dict[str, object] = {
    "examples": {},
    "none_examples": [],
    "labels": [],
    "multi_label": False,
    "threshold": None,
    "unit": "doc",
    "spans_key": "sbert_textcat",
    "upstream": "*",
    "scorer": {"@scorers": "spacy-sbert.class_scorer.v1"},
}
_CHUNKS_CONFIG: dict[str, object] = {
    "max_length": 128,
    "min_length": 32,
    "threshold": None,
    "spans_key": CHUNKS_KEY,
}
_ASSIGNS = [
    "doc.vector",
    "doc._.sbert_vector",
    "doc._.sbert_truncated",
    "span._.sbert_vector",
    "token._.sbert_vector",
]
_SCORE_WEIGHTS: dict[str, float | None] = {"sts_spearman": 1.0, "sts_pearson": 0.0}


@Language.factory(
    "sbert", assigns=_ASSIGNS, default_config=_SBERT_CONFIG, default_score_weights=_SCORE_WEIGHTS
)
def make_sbert(
    nlp: Language,
    name: str,
    model: Model,
    # Checked with a message of its own
    loss: object,
    loss_weight: NonNegativeFloat,
    scorer: Callable | None,
    set_hooks: bool,
    token_vectors: bool,
    spans_key: SpansKey,
) -> Pipe:
    """Build the `sbert` pipe, see SentenceBert."""
    from .pipeline.sbert import SentenceBert  # noqa: PLC0415 (thin)

    return SentenceBert(
        nlp.vocab,
        model,
        name,
        loss=loss,
        loss_weight=loss_weight,
        scorer=scorer,
        set_hooks=set_hooks,
        token_vectors=token_vectors,
        spans_key=spans_key,
        nlp=nlp,
    )


@Language.factory("sbert_transformer", assigns=["doc.tensor"], default_config=_TRANSFORMER_CONFIG)
def make_sbert_transformer(nlp: Language, name: str, model: Model) -> Pipe:
    """Build the `sbert_transformer` pipe, see SharedTransformer."""
    from .pipeline.shared_transformer import SharedTransformer  # noqa: PLC0415 (thin)

    return SharedTransformer(nlp.vocab, model, name, nlp=nlp)


def make_pair_scorer() -> Callable[..., dict[str, float | None]]:
    """Return the scorer of all that the gold values of examples allow, see scorer.score_pairs."""
    return partial(_score, "score_pairs")


def make_class_scorer() -> Callable[..., dict[str, Any]]:
    """Return the scorer of classes, see textcat.component.score_classes."""
    return _score_classes


def _score_classes(*args: Any, **options: Any) -> dict[str, Any]:
    from .textcat.component import score_classes  # noqa: PLC0415 (not needed for a first vector)

    return score_classes(*args, **options)


def make_sts_scorer() -> Callable[..., dict[str, float | None]]:
    """Return the scorer of the correlation of cosines with gold scores, see scorer.score_sts."""
    return partial(_score, "score_sts")


def _score(measure: str, /, *args: Any, **options: Any) -> dict[str, float | None]:
    from .pipeline import scorer  # noqa: PLC0415 (not needed for a first vector)

    return getattr(scorer, measure)(*args, **options)


@Language.factory(
    "sbert_meta",
    assigns=_ASSIGNS[:2],
    default_config=_META_CONFIG,
    default_score_weights=_SCORE_WEIGHTS,
)
def make_sbert_meta(
    nlp: Language,
    name: str,
    pipes: list[str],
    functions: dict[str, object],
    method: str,
    size: Width | None,
    normalize: bool,
    options: dict[str, object],
    scorer: Callable | None,
    set_hooks: bool,
    spans_key: SpansKey,
) -> Pipe:
    """Build the `sbert_meta` pipe, see SentenceMeta.

    pipes (list[str]): the names of pipes before this one that store sentence vectors; by default
        all `sbert` pipes.
    functions (dict): from a name to a registered function, of Docs or Spans to vectors, that is a
        member, too.
    method, size, normalize, options: see make_estimator.
    """
    from .meta.component import SentenceMeta  # noqa: PLC0415 (thin)
    from .meta.members import FunctionMember, Member, PipeMember  # noqa: PLC0415 (thin)
    from .meta.methods import make_estimator  # noqa: PLC0415 (thin)

    others = [other for other in nlp.component_names if other != name]
    if not pipes:
        pipes = [other for other in others if nlp.get_pipe_meta(other).factory == "sbert"]
    missing = [pipe for pipe in pipes if pipe not in others]
    if missing:
        raise ValueError(
            f"The meta-embedding '{name}' combines the pipe {', '.join(missing)}, which the "
            f"pipeline does not have (it has: {', '.join(others)}). Add it before '{name}', or "
            "take it out of 'pipes' and fit again."
        )
    members: list[Member] = [PipeMember(pipe) for pipe in pipes]
    members += [FunctionMember(key, function) for key, function in functions.items()]
    estimator = make_estimator(method, **{"size": size, "normalize": normalize, **options})
    return SentenceMeta(
        nlp.vocab,
        members,
        estimator,
        name,
        scorer=scorer,
        set_hooks=set_hooks,
        spans_key=spans_key,
        nlp=nlp,
    )


@Language.factory(
    "sbert_reranker",
    assigns=["doc._.sbert_reranker_score"],
    default_config=_RERANKER_CONFIG,
    default_score_weights=_SCORE_WEIGHTS,
)
def make_sbert_reranker(
    nlp: Language,
    name: str,
    model: Model,
    objective: str,
    scorer: Callable | None,
    spans_key: SpansKey,
) -> Pipe:
    """Build the `sbert_reranker` pipe, see SentenceReranker."""
    from .reranker.component import SentenceReranker  # noqa: PLC0415 (thin)

    return SentenceReranker(
        nlp.vocab,
        model,
        name,
        # Checked there
        objective=cast(Any, objective),
        scorer=scorer,
        spans_key=spans_key,
        nlp=nlp,
    )


@Language.factory(
    "sbert_textcat",
    assigns=["doc.cats", "doc._.sbert_label", "span._.sbert_cats"],
    requires=["doc.vector"],
    default_config=_TEXTCAT_CONFIG,
    default_score_weights={"cats_acc": 1.0},
)
def make_sbert_textcat(
    nlp: Language,
    name: str,
    examples: dict[str, list[str]],
    none_examples: list[str],
    labels: list[str],
    multi_label: bool,
    threshold: float | str | None,
    unit: str,
    spans_key: SpansKey,
    upstream: str,
    scorer: Callable | None,
) -> Pipe:
    """Build the `sbert_textcat` pipe, see SentenceTextCategorizer."""
    from .textcat.component import SentenceTextCategorizer  # noqa: PLC0415 (thin)
    from .textcat.examples import check_in_config  # noqa: PLC0415 (thin)

    check_in_config(examples, none_examples)
    return SentenceTextCategorizer(
        nlp.vocab,
        name,
        examples=examples,
        none_examples=none_examples,
        labels=labels,
        multi_label=multi_label,
        # Checked there
        threshold=cast(Any, threshold),
        unit=unit,
        spans_key=spans_key,
        upstream=upstream,
        scorer=scorer,
        nlp=nlp,
    )


@Language.factory(
    "sbert_chunks", assigns=["doc.spans"], requires=["doc.sents"], default_config=_CHUNKS_CONFIG
)
def make_sbert_chunks(
    nlp: Language,
    name: str,
    max_length: int,
    min_length: int,
    threshold: float | None,
    spans_key: str,
) -> Pipe:
    """Build the `sbert_chunks` pipe, see SentenceChunker."""
    from .chunks import SentenceChunker  # noqa: PLC0415 (thin)

    return SentenceChunker(
        nlp.vocab,
        name,
        max_length=max_length,
        min_length=min_length,
        threshold=threshold,
        spans_key=spans_key,
        nlp=nlp,
    )
