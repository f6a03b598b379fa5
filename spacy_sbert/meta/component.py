"""The `sbert_meta` pipe: several members' vectors of a Doc become one, which `doc.vector` answers with."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

import numpy
from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc
from spacy.training import Example
from spacy.vocab import Vocab

from ..errors.checks import Name, NonNegative, Positive, Width, validated
from ..errors.notices import Notices
from ..files.sealed_states import check_parts
from ..hooks import doc_vectors, extensions, hooks
from ..hooks.doc_vectors import Record
from ..hooks.encoders import encoders_of
from ..hooks.in_pipeline import InPipeline
from ..spans import SPANS_KEY, members, trimmed
from ..vectors.cuts import CutCounter
from .corpus import MAX_TOKENS, ShortSentences, read_sentences
from .errors import Errors, Warnings
from .estimator import MetaEmbedding
from .fingerprint import MetaFingerprint
from .fit_pipe import fit_pipe
from .members import Function, FunctionMember, Member, PipeMember, Rows, Saveable, learner
from .methods import estimator_from_bytes, estimator_to_bytes, make_estimator
from .parts import Part
from .texts import MetaTexts

DEFAULT_CONFIG: dict[str, object] = {
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


@Language.factory(
    "sbert_meta",
    assigns=["doc.vector", "doc._.sbert_vector"],
    default_config=DEFAULT_CONFIG,
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
    there = [other for other in nlp.component_names if other != name]
    pipes = list(pipes) or [other for other in there if nlp.get_pipe_meta(other).factory == "sbert"]
    if missing := ", ".join(other for other in pipes if other not in there):
        raise ValueError(Errors.META_MISSING_PIPE.format(missing=missing, name=name, expected=", ".join(there)))
    found: list[Member] = [PipeMember(other) for other in pipes]
    found += [FunctionMember(key, cast(Function, function)) for key, function in functions.items()]
    estimator = make_estimator(method, **{"size": size, "normalize": normalize, **options})
    pipe = SentenceMeta(nlp.vocab, found, estimator, name, scorer=scorer, set_hooks=set_hooks, spans_key=spans_key)
    pipe._in_pipeline.nlp = nlp
    return pipe


class SentenceMeta(MetaTexts, Pipe):
    """Combines the vectors that other pipes, and functions, give to each row of a Doc.

    The rows are those of the first pipe among the members, or the whole Doc if all members are functions.

    vocab (Vocab): the pipeline's.
    members (Sequence[Member]): whose vectors are combined, at least two, no two of one name.
    estimator (MetaEmbedding): how. name (str): the pipe's name, under which its vectors are stored.
    scorer (Callable): what to report of pairs.
    set_hooks (bool): whether `doc.vector` and `similarity` answer with this pipe's vectors.
    spans_key (str): where the members of a pair stand, doc.spans[spans_key].
    RAISES (ValueError): if there are fewer than two members, or two of one name.
    SOURCE: Poerner et al. 2020.
    """

    @validated
    def __init__(
        self,
        vocab: Vocab,
        members: Sequence[Member],
        estimator: MetaEmbedding,
        name: str = "sbert_meta",
        *,
        scorer: Callable | None = None,
        set_hooks: bool = True,
        spans_key: Name = SPANS_KEY,
    ):
        names = [member.name for member in members]
        if len(names) < 2:
            raise ValueError(Errors.META_ONE_MEMBER.format(given=", ".join(names) or "none"))
        if len(set(names)) < len(names):
            raise ValueError(Errors.META_TWICE.format(given=", ".join(names)))
        self.vocab = vocab
        self.members = list(members)
        self.estimator = estimator
        self.name = name
        self.scorer = scorer
        self.set_hooks = set_hooks
        self.spans_key = spans_key
        self._in_pipeline = InPipeline()
        self._notices = Notices(CutCounter)
        self._fingerprint = MetaFingerprint()
        extensions.install(name)

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of one Doc."""
        self._annotate([doc])
        return doc

    @validated
    def pipe(self, stream: Iterable[Doc], *, batch_size: Positive = 1000) -> Iterator[Doc]:
        """Set the vectors of a stream of Docs, batch by batch; they come out in order."""
        for batch in util.minibatch(stream, batch_size):
            docs = list(batch)
            if self._annotate(docs):
                yield from docs

    def __repr__(self) -> str:
        members = ", ".join(member.name for member in self.members)
        width = f"{self.estimator.width} numbers" if self.estimator.width else "not fitted yet"
        return f"SentenceMeta('{self.name}': {self.estimator.method} of {members}, {width})"

    def _annotate(self, docs: list[Doc]) -> bool:
        """Set the vectors of a batch; False if the pipe's error handler was given it instead, and did not raise."""
        try:
            self._set_vectors(docs)
        except Exception as error:  # as every pipe of spaCy does
            self.get_error_handler()(self.name, self, docs, error)
            return False
        return True

    def _set_vectors(self, docs: list[Doc]) -> None:
        rows = [self._rows(doc) for doc in docs]
        stretches = [stretch for doc, of_doc in zip(docs, rows, strict=True) for stretch in of_doc.cut(doc)]
        if stretches:
            vectors = self._combine(self.member_vectors(stretches))
        else:
            vectors = numpy.zeros((0, self._width(docs)), dtype="float32")
        extensions.install(self.name)  # the pipe may have got another name since it was made
        end = 0
        for doc, of_doc in zip(docs, rows, strict=True):
            start, end = end, end + len(of_doc.places)
            doc_vectors.store(doc, self.name, self._record(of_doc, vectors[start:end], self._fingerprint_of(doc)))
            if self.set_hooks:
                hooks.install(doc, self)

    def _width(self, docs: list[Doc]) -> int:
        """The width of the meta-embeddings; 0 where functions, which get no empty Doc, have yet to show theirs."""
        if not self.estimator.width and docs and all(isinstance(member, PipeMember) for member in self.members):
            return self._combine(self.member_vectors(docs[:1])).shape[1]
        return self.estimator.width

    def _rows(self, doc: Doc) -> Rows:
        for member in self.members:
            if isinstance(member, PipeMember):
                found = member.found(doc)
                places, has_text = doc_vectors.rows_of(doc, found)
                return Rows(places, has_text, any(record.data["truncated"] for record in found))
        start, end = trimmed(doc.text, 0)
        places = numpy.array([[start, end]] if start < end else [], dtype="int32").reshape(-1, 2)
        return Rows(places, numpy.ones(len(places), dtype=bool), False)

    def _record(self, rows: Rows, vectors: numpy.ndarray, fingerprint: str) -> Record:
        record: Record = {
            "rows": rows.places,
            "vectors": vectors,
            "has_text": rows.has_text,
            "width": vectors.shape[1],
            "combined_by": self.name,
            "set_hooks": self.set_hooks,
            "truncated": rows.truncated,
        }
        if fingerprint and len(vectors):
            record["fingerprint"] = fingerprint
        return record

    def fingerprint(self, *, load: bool = True) -> str:
        """Return a short fingerprint of the estimator and its members; "" if that of a member is not known.

        load (bool): whether to load encoders that are not loaded.
        """
        nlp = self._in_pipeline.nlp
        pipes = {} if nlp is None else dict(nlp.components)
        found = {}
        for member in self.members:
            if isinstance(member, PipeMember):
                pipe = pipes.get(member.name)
                found[member.name] = pipe.fingerprint(load=load) if hasattr(pipe, "fingerprint") else ""
        return self._fingerprint.of(self.estimator, self.members, found)

    def _fingerprint_of(self, doc: Doc) -> str:
        """Return the fingerprint of what combined the members' vectors of a Doc."""
        pipes = [member for member in self.members if isinstance(member, PipeMember)]
        found = {member.name: "+".join(sorted(encoders_of(member.found(doc)))) for member in pipes}
        return self._fingerprint.of(self.estimator, self.members, found)

    @validated
    def initialize(
        self,
        get_examples: Callable[[], Iterable[Example]],
        *,
        nlp: Language | None = None,
        corpus: str | Path | None = None,
        column: Positive | None = None,
        max_tokens: NonNegative = MAX_TOKENS,
        cache: str | Path | None = None,
    ) -> None:
        """Fit on sentences, with the pipes before this one as they are then.

        corpus (str), column (int): a file of sentences, see read_sentences; by default the texts of the examples, or
            the members of their pairs.
        max_tokens (int): sentences of fewer tokens are used; 0 for all.
        cache (str): a folder for the members' vectors, see fitting.fit_meta.
        RAISES (ValueError): see fitting.fit_meta.
        """
        if nlp is None:
            raise ValueError(Errors.META_NO_PIPELINE.format(name=self.name))
        if not self.estimator.needs_fit and not any(map(learner, self.members)):
            return

        def texts() -> Iterable[str]:
            if corpus is not None:
                return read_sentences(Path(corpus), column)
            return (text for example in get_examples() for text in _texts_of(example, self.spans_key))

        sentences = ShortSentences(nlp, texts, max_tokens)
        fit_pipe(nlp, self, sentences, cache=Path(cache) if cache else None, progress=sys.stderr.isatty())
        if sentences.n_left_out:
            warnings.warn(Warnings.META_LEFT_OUT.format(count=sentences.n_left_out, limit=max_tokens), stacklevel=2)

    def score(self, examples: Iterable[Example], **kwargs: object) -> dict[str, float | dict[str, float]]:
        """Score the pairs among the examples with the pipe's scorer."""
        if self.scorer is None:
            return {}
        scores = self.scorer(list(examples), name=self.name, spans_key=self.spans_key, **kwargs)
        return scores if self.set_hooks else {f"{self.name}_{key}": value for key, value in scores.items()}

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """What the estimator and the functions learned."""
        return util.to_bytes({key: part.to_bytes for key, part in self._parts().items()}, exclude)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "SentenceMeta":
        """Take what `to_bytes` gave. RAISES (ValueError): if it was made of other members or settings."""
        check_parts(data, self._parts(), exclude)
        util.from_bytes(data, {key: part.from_bytes for key, part in self._parts().items()}, exclude)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the same to a folder."""
        util.to_disk(path, {key: part.to_file for key, part in self._parts().items()}, exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SentenceMeta":
        """Take what `to_disk` wrote. RAISES (ValueError): see from_bytes."""
        util.from_disk(path, {key: part.from_file for key, part in self._parts().items()}, exclude)
        return self

    def _parts(self) -> dict[str, Part]:
        parts = {"estimator": Part(lambda: estimator_to_bytes(self.estimator), self._set_estimator)}
        for i, member in enumerate(self.members):
            if isinstance(member, FunctionMember) and isinstance(member.function, Saveable):
                parts[f"function_{i}"] = Part.of(member.function.to_bytes, member.function.from_bytes)
        return parts

    def _set_estimator(self, data: bytes) -> None:
        found = estimator_from_bytes(data)
        names = tuple(member.name for member in self.members)
        if found.names_ and found.names_ != names:
            raise ValueError(Errors.META_OTHER_MEMBERS.format(name=self.name, given=names, expected=found.names_))
        ours, theirs = ({"method": one.method, **one.settings} for one in (self.estimator, found))
        if ours != theirs:
            raise ValueError(Errors.META_OTHER_SETTINGS.format(name=self.name, given=ours, expected=theirs))
        self.estimator = found


def _texts_of(example: Example, spans_key: str) -> list[str]:
    spans = members(example.reference, spans_key)
    return [span.text for span in spans] if spans else [example.reference.text]
