"""The `sbert_meta` component: several sentence encoders combined."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Unpack, overload

import numpy
import srsly
import torch
from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import get_current_ops

from ..errors import Warnings, WarnOnce, warn
from ..files.atomic import atomic_write
from ..files.checksum import add_checksum, digest_of_parts, digest_of_stream, verify_checksum
from ..files.serialization import check_parts, naming
from ..models import spans
from ..models.encoded_docs import TruncationCounter
from ..models.fingerprint import LENGTH, encoding_settings, vectors_digest
from ..pipeline import doc_vectors
from ..pipeline.call_options import EncodeCall, EncodeOptions
from ..pipeline.components import InPipeline, find_in
from ..pipeline.extensions import ExtensionNames
from ..progress import progress_of
from ..similarity import cos_sim, pairwise_cos_sim
from ..training.batch_loss import Scores, score_examples
from ..validation import (
    GetExamples,
    Name,
    NonNegative,
    Positive,
    TextOrTexts,
    check_docs,
    checked_texts,
    several_texts,
    validated,
    with_fields_of,
)
from .estimator import ONE_MEMBER, MetaEmbedding
from .fingerprint import OwnDigest
from .fit import MAX_TOKENS, ShortSentences, Texts, corpus_vectors, read_sentences
from .members import FunctionMember, Member, PipeMember
from .methods import estimator_from_bytes


class _EncodeOptions(EncodeOptions, total=False):
    prompt_name: str | None


class _DocSpans(NamedTuple):
    """The spans of a Doc that get a vector.

    places: int32 (spans, 2), the characters of each. has_text: bool (spans,), whether a span has
        text.
    truncated: whether a member cut one.
    """

    places: numpy.ndarray
    has_text: numpy.ndarray
    truncated: bool


class SentenceMeta(Pipe):
    """Combines the vectors that other pipes, and functions, give to each span of a Doc.

    The spans are those of the first pipe among the members, or the whole Doc if all members are
    functions.

    members (Sequence[Member]): whose vectors are combined, at least two, no two of one name.
    estimator (MetaEmbedding): how. name (str): the pipe's name, under which its vectors are stored.
    vocab, scorer, set_hooks, spans_key, nlp: see SentenceBert.
    RAISES (ValueError): if there are fewer than two members, or two of one name.
    SOURCE: Poerner et al. 2020.
    """

    # Its members are other pipes
    depends_on_pipeline = True
    similarity = staticmethod(cos_sim)
    similarity_pairwise = staticmethod(pairwise_cos_sim)

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
        spans_key: Name = spans.SPANS_KEY,
        nlp: Language | None = None,
    ):
        names = [member.name for member in members]
        if len(names) < 2:
            raise ValueError(ONE_MEMBER.format(given=", ".join(names) or "none"))
        if len(set(names)) < len(names):
            raise ValueError(
                f"Members of a meta-embedding need names of their own, given: {', '.join(names)}."
            )
        self.vocab = vocab
        self.members = list(members)
        self.estimator = estimator
        self.name = name
        self.scorer = scorer
        self.set_hooks = set_hooks
        self.spans_key = spans_key
        self._in_pipeline = InPipeline(nlp)
        self._notices = WarnOnce(TruncationCounter)
        self._own_digest = OwnDigest()
        # The fingerprint with which _check_members was called
        self._checked_members = ""
        self._extensions = ExtensionNames()
        self._extensions.install(name)

    def __repr__(self) -> str:
        members = ", ".join(member.name for member in self.members)
        width = f"{self.estimator.width} numbers" if self.estimator.width else "not fitted yet"
        return f"SentenceMeta('{self.name}': {self.estimator.method} of {members}, {width})"

    def notify(self, message: str) -> None:
        """Warn of something about the vectors of the pipe, once."""
        self._notices.once(message)

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of one Doc."""
        list(self.pipe([doc]))
        return doc

    @validated
    def pipe(self, stream: Iterable[Doc], *, batch_size: Positive = 1000) -> Iterator[Doc]:
        """Set the vectors of a stream of Docs, batch by batch; they come out in order."""
        hint = (
            f'Of a text, nlp(text) is a Doc, and find_meta(nlp, "{self.name}").encode(text) a '
            "vector."
        )
        for docs in util.minibatch(stream, batch_size):
            try:
                check_docs(docs, self.name, hint)
                self._set_vectors(docs)
            except Exception as error:
                # As every pipe of spaCy does
                self.get_error_handler()(self.name, self, docs, error)
            else:
                yield from docs

    def _set_vectors(self, docs: list[Doc]) -> None:
        spans_by_doc = [self._spans_of(doc) for doc in docs]
        texts: list[Doc | Span] = []
        for doc, doc_spans in zip(docs, spans_by_doc, strict=True):
            texts += _cut(doc, doc_spans.places)
        vectors = self._combine(texts) if texts else self._no_vectors(docs)
        # The pipe may have got another name since it was made
        self._extensions.install(self.name)
        self._look_at_static_vectors(docs)
        start = 0
        for doc, doc_spans in zip(docs, spans_by_doc, strict=True):
            end = start + len(doc_spans.places)
            self._store(doc, doc_spans, vectors[start:end])
            start = end

    def _spans_of(self, doc: Doc) -> _DocSpans:
        if self._pipes:
            records = self._pipes[0].records(doc)
            places, has_text = records.rows()
            return _DocSpans(places, has_text, any(record.data["truncated"] for record in records))
        start, end = spans.trimmed(doc.text, 0)
        ranges = [[start, end]] if start < end else []
        places = numpy.array(ranges, dtype="int32").reshape(-1, 2)
        return _DocSpans(places, numpy.ones(len(places), dtype=bool), truncated=False)

    def _no_vectors(self, docs: list[Doc]) -> numpy.ndarray:
        """Return the vectors of Docs without text: float32 (0, width)."""
        width = self.estimator.width
        if not width and not self._functions:
            width = self._combine(docs[:1]).shape[1]
        return numpy.zeros((0, width), dtype="float32")

    def _combine(self, texts: Sequence[Doc | Span]) -> numpy.ndarray:
        """Return the meta-embeddings of Docs and Spans, float32 (n, width)."""
        self._check_names(self.estimator)
        views = [member.vectors(texts) for member in self.members]
        if not self.estimator.needs_fit and not self.estimator.widths_:
            # Now their widths are known
            self.estimator.fit(views, [member.name for member in self.members])
        return self.estimator.transform(views).astype("float32")

    def _store(self, doc: Doc, doc_spans: _DocSpans, vectors: numpy.ndarray) -> None:
        """Store the vectors of a Doc's spans on it, float32 (spans, width)."""
        record: doc_vectors.Record = {
            "rows": doc_spans.places,
            "vectors": vectors,
            "has_text": doc_spans.has_text,
            "width": vectors.shape[1],
            "combined_by": self.name,
            "set_hooks": self.set_hooks,
            "truncated": doc_spans.truncated,
        }
        if len(vectors) and (fingerprint := self._fingerprint_of(doc)):
            record["fingerprint"] = fingerprint
            self._check_members(fingerprint, doc)
        doc_vectors.store(doc, self.name, record, self)

    def vector(self, obj: Doc | Span | Token) -> numpy.ndarray:
        """Return the meta-embedding of any Doc, Span or Token, also of one without a stored vector.

        RETURNS (float32 (width,)). RAISES (ValueError): if a member has no vector of it.
        """
        doc = doc_vectors.doc_of(obj)
        self._look_at_static_vectors([doc])
        if fingerprint := self._fingerprint_of(doc):
            self._check_members(fingerprint, doc)
        if isinstance(obj, Token):
            obj = doc[obj.i : obj.i + 1]
        return self._combine([obj])[0]

    @overload
    def encode(
        self,
        texts: TextOrTexts,
        *,
        convert_to_tensor: Literal[True],
        **options: Unpack[_EncodeOptions],
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        texts: TextOrTexts,
        *,
        convert_to_tensor: Literal[False] = ...,
        **options: Unpack[_EncodeOptions],
    ) -> numpy.ndarray: ...

    @validated
    @with_fields_of(EncodeCall, "call")
    def encode(
        self,
        texts: TextOrTexts,
        *,
        window: Positive = 1000,
        prompt_name: str | None = None,
        call: EncodeCall,
    ) -> Any:
        """Return the meta-embeddings of texts.

        Each is `nlp(text).vector` if this pipe answers it.

        texts (Iterable): n texts, or a single one, see SentenceBert.encode.
        window (int): texts that are worked on together. progress (bool): whether to show a progress
            bar.
        prompt_name (None): the members have their own. For the other arguments see
            SentenceBert.encode.
        RETURNS (float32 (n, width)): in the order of the texts; zeros for a text that has none. Of
            a single text its vector, (width,).
        RAISES (TypeError, ValueError): if a text is not text, a prompt is given, or the pipe is in
            no pipeline.

        Example:
            find_meta(nlp).encode(["A man eats.", "Food is eaten."])

        """
        call.check(get_current_ops())
        if prompt_name is not None:
            raise ValueError(
                f"Cannot use prompt_name = {prompt_name!r}: set default_prompt_name of the members."
            )
        nlp = self._in_pipeline.nlp
        if nlp is None or self.name not in nlp.pipe_names:
            raise ValueError(
                f"Cannot encode: '{self.name}' is in no pipeline, as a pipe of a copied one. Take "
                f"it with find_meta(nlp, '{self.name}')."
            )
        texts, is_single = several_texts(texts)
        total = len(texts) if isinstance(texts, Sized) else None
        needed = nlp.pipe_names[: nlp.pipe_names.index(self.name) + 1]
        with nlp.select_pipes(enable=needed):
            docs = nlp.pipe(checked_texts(texts), batch_size=call.n_together(window))
            docs = progress_of(docs, total=total, shown=call.shows_progress, unit="texts")
            rows = [doc_vectors.vector(doc, self.name) for doc in docs]
            if rows:
                vectors = numpy.array(rows, dtype="float32")
            else:
                width = len(doc_vectors.vector(nlp(""), self.name))
                vectors = numpy.zeros((0, width), dtype="float32")
        return call.returned(vectors, is_single=is_single)

    def fingerprint(self, *, load: bool = True) -> str:
        """Return a short fingerprint of the estimator and its members.

        "" if that of a member is not known.

        load (bool): whether to load encoders that are not loaded.
        """
        self._look_at_static_vectors()
        pipes = self._member_pipes()
        if len(pipes) < len(self._pipes):
            return ""
        encoders = [pipe.fingerprint(load=load) for pipe in pipes.values()]
        return self._combined_fingerprint(encoders, self.vocab)

    def _fingerprint_of(self, doc: Doc) -> str:
        """Return the fingerprint of what combined the members' vectors of a Doc."""
        records = [member.records(doc) for member in self._pipes]
        encoders = ["+".join(sorted(of_pipe.encoders)) for of_pipe in records]
        return self._combined_fingerprint(encoders, doc.vocab)

    def _combined_fingerprint(self, encoders: Sequence[str], vocab: Vocab) -> str:
        """Return the fingerprint with members of these fingerprints; "" if one is not known.

        vocab (Vocab): whose static vectors functions read.
        """
        if not all(encoders):
            return ""
        own = self._own_digest.of(self.estimator, self._functions, vocab)
        return digest_of_stream([own, *encoders])[:LENGTH]

    def _look_at_static_vectors(self, docs: Sequence[Doc] = ()) -> None:
        if self._functions:
            self._own_digest.look_at_static_vectors(self.vocab, docs)

    @property
    def _functions(self) -> list[FunctionMember]:
        return [member for member in self.members if isinstance(member, FunctionMember)]

    @property
    def _pipes(self) -> list[PipeMember]:
        return [member for member in self.members if isinstance(member, PipeMember)]

    def made_of(self) -> dict[str, str]:
        """Return a digest of each member, of all that its vectors depend on.

        Texts and arithmetic are left out.
        """
        digests = {}
        functions = self._functions
        table = vectors_digest(self.vocab) if functions else ""
        for member in functions:
            digests[member.name] = digest_of_stream([table, member.state()])
        for name, pipe in self._member_pipes().items():
            digests[name] = digest_of_parts(pipe.fingerprint(), encoding_settings(pipe.model))
        return digests

    def _member_pipes(self) -> dict[str, Any]:
        """Return the members that are pipes of the pipeline and know their encoder, by name."""
        if self._in_pipeline.nlp is None:
            return {}
        pipes = dict(self._in_pipeline.nlp.components)
        names = [member.name for member in self._pipes]
        return {name: pipes[name] for name in names if hasattr(pipes.get(name), "fingerprint")}

    def _check_members(self, fingerprint: str, doc: Doc) -> None:
        """Warn if the estimator was fitted on other encoders or settings than made a Doc's vectors.

        fingerprint (str): see _fingerprint_of. doc (Doc): maybe of another pipeline.
        """
        if not self.estimator.needs_fit or fingerprint == self._checked_members:
            return
        self._checked_members = fingerprint
        fitted_on = self.estimator.made_of_
        changed = [
            name for name, digest in self.made_of().items() if fitted_on.get(name, digest) != digest
        ]
        if changed:
            message = Warnings.META_OTHER_MEMBERS
            self.notify(message.format(name=self.name, members=", ".join(changed)))
        others = []
        for name, pipe in self._member_pipes().items():
            if {*doc_vectors.find(doc, name).encoders} != {pipe.fingerprint()}:
                others.append(name)
        if others:
            message = Warnings.META_OTHER_DOC
            self.notify(message.format(name=self.name, members=", ".join(others)))

    @validated
    def initialize(
        self,
        get_examples: GetExamples,
        *,
        nlp: Language | None = None,
        corpus: str | Path | None = None,
        column: Positive | None = None,
        max_tokens: NonNegative = MAX_TOKENS,
        cache: str | Path | None = None,
    ) -> None:
        """Fit on sentences, with the pipes before this one as they are then.

        corpus (str), column (int): a file of sentences, see read_sentences; by default the texts of
            the examples, or the members of their pairs.
        max_tokens (int): sentences of fewer tokens are used; 0 for all.
        cache (str): a folder for the members' vectors, see fit_meta.
        RAISES (ValueError): see fit_meta.
        """
        if nlp is None:
            raise ValueError(f"To fit '{self.name}', its pipes are needed: call nlp.initialize.")
        has_learner = any(hasattr(member.function, "fit") for member in self._functions)
        if not self.estimator.needs_fit and not has_learner:
            return
        texts: Texts = partial(self._texts_of, get_examples)
        if corpus is not None:
            texts = partial(read_sentences, Path(corpus), column)
        sentences = ShortSentences(nlp, texts, max_tokens)
        folder = Path(cache) if cache else None
        fit_meta(nlp, self.name, sentences, cache=folder, progress=sys.stderr.isatty())
        if sentences.n_left_out:
            warn(Warnings.META_LEFT_OUT.format(count=sentences.n_left_out, limit=max_tokens))

    def _texts_of(self, get_examples: GetExamples) -> Iterator[str]:
        """Yield the texts of examples, or of the members of their pairs."""
        for example in get_examples():
            members = spans.members(example.reference, self.spans_key)
            for text in members or (example.reference,):
                yield text.text

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:  # type: ignore[override]  # None: not defined
        """Score the pairs among the examples with the pipe's scorer."""
        return score_examples(self, list(examples), is_default=self.set_hooks, **kwargs)

    def _parts(self) -> dict[str, Any]:
        """Return what is saved, by name: the estimator, and functions that learned."""
        parts: dict[str, Any] = {"estimator": self.estimator}
        for number, member in enumerate(self.members):
            if hasattr(member.function, "to_bytes"):
                parts[f"function_{number}"] = member.function
        return parts

    def _dump(self, exclude: Iterable[str]) -> dict[str, bytes]:
        saved = {}
        for name, part in self._parts().items():
            if name in exclude:
                continue
            saved[name] = part.to_bytes()
            if name != "estimator":
                # An estimator adds its own
                saved[name] = add_checksum(saved[name])
        return saved

    def _load(self, name: str, data: bytes) -> None:
        if name == "estimator":
            self._set_estimator(data)
        else:
            self._parts()[name].from_bytes(bytes(verify_checksum(data)))

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return what the estimator and the functions learned."""
        return srsly.msgpack_dumps(self._dump(exclude))

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "SentenceMeta":
        """Load what `to_bytes` returned.

        RAISES (ValueError): if it was made of other members or settings.
        """
        parts = check_parts(data, self._parts(), exclude)
        for name in self._parts().keys() & parts.keys() - set(exclude):
            self._load(name, parts[name])
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write what the estimator and the functions learned to a folder, a file each."""
        Path(path).mkdir(parents=True, exist_ok=True)
        for name, data in self._dump(exclude).items():
            with atomic_write(Path(path) / name) as file:
                file.write(data)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SentenceMeta":
        """Load what `to_disk` wrote. RAISES (ValueError): see from_bytes."""
        for name in self._parts().keys() - set(exclude):
            with naming(Path(path) / name):
                self._load(name, (Path(path) / name).read_bytes())
        return self

    def _set_estimator(self, data: bytes) -> None:
        saved = estimator_from_bytes(data)
        self._check_names(saved)
        expected = {"method": self.estimator.method, **self.estimator.settings}
        actual = {"method": saved.method, **saved.settings}
        if expected != actual:
            raise ValueError(
                f"'{self.name}' was saved with {actual}, the config says {expected}. Restore it, "
                "or run sbert fit-meta."
            )
        self.estimator = saved

    def _check_names(self, estimator: MetaEmbedding) -> None:
        """Raise ValueError if an estimator was fitted on other members, or in another order."""
        names = tuple(member.name for member in self.members)
        if estimator.names_ and estimator.names_ != names:
            raise ValueError(
                f"The meta-embedding '{self.name}' was fitted on the members {estimator.names_}, "
                f"the pipeline gives it {names}. Restore the members, in this order, or fit again "
                "with python -m spacy sbert fit-meta."
            )


def _cut(doc: Doc, places: numpy.ndarray) -> Iterator[Doc | Span]:
    """Yield the Span at each place, int32 (spans, 2).

    A span that is all of the text is the Doc itself.
    """
    if len(places) == 1 and tuple(places[0].tolist()) == spans.trimmed(doc.text, 0):
        yield doc
        return
    for start, end in places.tolist():
        # White space is the empty range at its end
        first = start - 1 if start == end else start
        span = doc.char_span(first, end, alignment_mode="expand")
        if span is None:
            raise ValueError(
                f"A row from {start} to {end} reaches beyond the Doc '{doc.text[:50]}', a part. "
                "Process its text again."
            )
        yield span


def fit_meta(
    nlp: Language, name: Name, texts: Texts, *, cache: Path | None = None, progress: bool = False
) -> list[numpy.ndarray]:
    """Fit an `sbert_meta` pipe, and the functions among its members, on sentences.

    nlp (Language): the pipeline; the pipes before the one to fit encode the sentences. name (str):
        the pipe.
    texts (Callable): the sentences, gone through several times.
    cache (Path): where the members' vectors are kept for another method or the next time; None to
        forget them.
    progress (bool): whether to show progress bars.
    RETURNS (J arrays, float32 (n, d_j)): the members' vectors, memory-mapped from the cache; none
        without one.
    RAISES (ValueError): if the pipe is not an `sbert_meta`, there is no sentence, a member's
        vectors are not what they should be, see MetaEmbedding.fit; and, before any sentence is
        encoded, if the size is more than any can give.

    Example:
        fit_meta(nlp, "sbert_meta", lambda: read_sentences(Path("sentences.txt")))

    """
    pipe = nlp.get_pipe(name)
    if not isinstance(pipe, SentenceMeta):
        raise ValueError(
            f"The pipe '{name}' is not an 'sbert_meta' but a {type(pipe).__name__}: name the pipe "
            "to fit."
        )
    if cache is None:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            # The vectors are mapped from it, and dropped here: Windows removes no file in use
            fit_meta(nlp, name, texts, cache=Path(folder), progress=progress)
        return []
    for member in pipe.members:
        if hasattr(member.function, "fit"):
            title = f"Learning {member.name}"
            member.function.fit(partial(_tokenized, nlp, texts, title, progress))
    estimator = pipe.estimator
    views = corpus_vectors(
        nlp, name, pipe.members, texts, cache, estimator=estimator, progress=progress
    )
    estimator.fit(views, [member.name for member in pipe.members], progress=progress)
    estimator.made_of_ = pipe.made_of()
    for note in estimator.notes(name):
        util.logger.warning(note)
    return views


def _tokenized(nlp: Language, texts: Texts, title: str, progress: bool) -> Iterator[Doc]:
    for text in progress_of(texts(), desc=title, unit="sentences", shown=progress):
        yield nlp.make_doc(text)


def find_meta(nlp: Language, name: str | None = None) -> SentenceMeta:
    """Return the `sbert_meta` pipe of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if none.
    """
    return find_in(nlp, SentenceMeta, "sbert_meta", name)
