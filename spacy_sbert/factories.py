"""Factories of the `sbert_meta` and `sbert_reranker` components, whose code is imported when one is built."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from spacy.language import Language
from thinc.api import Model

from .models.spans import SPANS_KEY
from .validation import Name, Width

if TYPE_CHECKING:
    from .meta.component import SentenceMeta
    from .reranker.component import SentenceReranker

# spaCy loads every entry point in spacy_factories when a pipe is added: so this module imports little.
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


@Language.factory(
    "sbert_meta",
    assigns=["doc.vector", "doc._.sbert_vector"],
    default_config=_META_CONFIG,
    default_score_weights={"sts_spearman": 1.0, "sts_pearson": 0.0},
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
    spans_key: Name,
) -> "SentenceMeta":
    """Build the `sbert_meta` pipe.

    pipes (list[str]): the names of pipes before this one that store sentence vectors; by default all `sbert` pipes.
    functions (dict): from a name to a registered function, of Docs or Spans to vectors, that is a member, too.
    method (str), size, normalize, options: see make_estimator.
    For the rest see SentenceMeta.
    """
    from .meta.component import SentenceMeta  # noqa: PLC0415 (thin)
    from .meta.members import FunctionMember, Member, PipeMember  # noqa: PLC0415 (thin)
    from .meta.methods import make_estimator  # noqa: PLC0415 (thin)

    others = [other for other in nlp.component_names if other != name]
    pipes = list(pipes) or [other for other in others if nlp.get_pipe_meta(other).factory == "sbert"]
    if missing := ", ".join(pipe for pipe in pipes if pipe not in others):
        raise ValueError(
            f"The meta-embedding '{name}' combines the pipe {missing}, which the pipeline does not have (it "
            f"has: {', '.join(others)}). Add it before '{name}', or do not exclude it when loading; to do "
            "without it, take it out of 'pipes' and fit again."
        )
    members: list[Member] = [PipeMember(pipe) for pipe in pipes]
    members += [FunctionMember(key, function) for key, function in functions.items()]
    estimator = make_estimator(method, **{"size": size, "normalize": normalize, **options})
    return SentenceMeta(
        nlp.vocab, members, estimator, name, scorer=scorer, set_hooks=set_hooks, spans_key=spans_key, nlp=nlp
    )


@Language.factory(
    "sbert_reranker",
    assigns=["doc._.sbert_reranker_score"],
    default_config=_RERANKER_CONFIG,
    default_score_weights={"sts_spearman": 1.0, "sts_pearson": 0.0},
)
def make_sbert_reranker(
    nlp: Language, name: str, model: Model, objective: str, scorer: Callable | None, spans_key: Name
) -> "SentenceReranker":
    """Build the `sbert_reranker` pipe, see SentenceReranker."""
    from .reranker.component import SentenceReranker  # noqa: PLC0415 (thin)

    return SentenceReranker(nlp.vocab, model, name, objective=objective, scorer=scorer, spans_key=spans_key, nlp=nlp)
