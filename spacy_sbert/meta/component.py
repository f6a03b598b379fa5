"""The `sbert_meta` component: several sentence encoders combined."""

import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal, Unpack, overload

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
from ..models.fingerprint import LENGTH, StaticVectorsWatch, encoding_settings, vectors_digest
from ..pipeline import doc_vectors
from ..pipeline.call_options import EncodeCall, EncodeOptions
from ..pipeline.components import InPipeline, find_in
from ..pipeline.extensions import ExtensionNames
from ..progress import progress_of
from ..similarity import cos_sim, pairwise_cos_sim
from ..training.batch_loss import Scores, score_examples
from ..validation import (
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
from .fit import MAX_TOKENS, ShortSentences, Texts, corpus_vectors, read_sentences
from .members import FunctionMember, Member, PipeMember
from .methods import ONE_MEMBER, MetaEmbedding, estimator_from_bytes


class _EncodeOptions(EncodeOptions, total=False):
    prompt_name: str | None


class SentenceMeta(Pipe):
    """Combines the vectors that other pipes, and functions, give to each row of a Doc.

    The rows are those of the first pipe among the members, or the whole Doc if all members are
    functions.

    members (Sequence[Member]): whose vectors are combined, at least two, no two of one name.
    estimator (MetaEmbedding): how. name (str): the pipe's name, under which its vectors are stored.
    vocab, scorer, set_hooks, spans_key, nlp: see SentenceBert.
    RAISES (ValueError): if there are fewer than two members, or two of one name.
    SOURCE: Poerner et al. 2020.
    """

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
        self._own_fingerprint: tuple[list[object], list[object], str] | None = (
            # What changes with it, and itself
            None
        )
        self._static = StaticVectorsWatch()
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
        rows = [self._rows(doc) for doc in docs]
        stretches = [
            stretch
            for doc, (places, *_) in zip(docs, rows, strict=True)
            for stretch in _cut(doc, places)
        ]
        if stretches:
            vectors = self._combine(stretches)
        else:
            width = self.estimator.width
            if not width and all(isinstance(member, PipeMember) for member in self.members):
                width = self._combine(docs[:1]).shape[1]
            vectors = numpy.zeros((0, width), dtype="float32")
        # The pipe may have got another name since it was made
        self._extensions.install(self.name)
        self._look_at_static_vectors(docs)
        end = 0
        for doc, (places, has_text, truncated) in zip(docs, rows, strict=True):
            start, end = end, end + len(places)
            record: doc_vectors.Record = {
                "rows": places,
                "vectors": vectors[start:end],
                "has_text": has_text,
                "width": vectors.shape[1],
                "combined_by": self.name,
                "set_hooks": self.set_hooks,
                "truncated": truncated,
            }
            if len(places) and (fingerprint := self._fingerprint_of(doc)):
                record["fingerprint"] = fingerprint
                self._check_members(fingerprint, doc)
            doc_vectors.store(doc, self.name, record, self)

    def _rows(self, doc: Doc) -> tuple[numpy.ndarray, numpy.ndarray, bool]:
        """Return the characters of each row, which rows have text, and whether a row was cut."""
        for member in self.members:
            if isinstance(member, PipeMember):
                records = member.records(doc)
                return *records.rows(), any(record.data["truncated"] for record in records)
        start, end = spans.trimmed(doc.text, 0)
        places = numpy.array([[start, end]] if start < end else [], dtype="int32").reshape(-1, 2)
        return places, numpy.ones(len(places), dtype=bool), False

    def _combine(self, stretches: Sequence[Doc | Span]) -> numpy.ndarray:
        self._check_names(self.estimator)
        views = [member.vectors(stretches) for member in self.members]
        if not self.estimator.needs_fit and not self.estimator.widths_:
            # Now their widths are known
            self.estimator.fit(views, [member.name for member in self.members])
        return self.estimator.transform(views).astype("float32")

    def vector(self, obj: Doc | Span | Token) -> numpy.ndarray:
        """Return the meta-embedding of any Doc, Span or Token, also of one that is not a row.

        RETURNS (float32 (width,)). RAISES (ValueError): if a member has no vector of it.
        """
        doc = doc_vectors.doc_of(obj)
        self._look_at_static_vectors([doc])
        if fingerprint := self._fingerprint_of(doc):
            self._check_members(fingerprint, doc)
        return self._combine([doc[obj.i : obj.i + 1] if isinstance(obj, Token) else obj])[0]

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
        """
        call.check(get_current_ops())
        if prompt_name is not None:
            raise ValueError(
                f"Cannot use prompt_name = {prompt_name!r}: set default_prompt_name of the members."
            )
        nlp = self._in_pipeline.nlp
        if nlp is None or self.name not in nlp.pipe_names:
            raise ValueError(
                f"Cannot encode: '{self.name}' is in no pipeline. Use nlp.get_pipe('{self.name}')."
            )
        texts, is_single = several_texts(texts)
        names, checked = nlp.pipe_names, checked_texts(texts)
        total = len(texts) if isinstance(texts, Sized) else None
        with nlp.select_pipes(enable=names[: names.index(self.name) + 1]):
            docs = nlp.pipe(checked, batch_size=call.n_together(window))
            docs = progress_of(docs, total=total, shown=call.shows_progress, unit="texts")
            rows = [doc_vectors.vector(doc, self.name) for doc in docs]
            # For its width
            empty = [] if rows else [doc_vectors.vector(nlp(""), self.name)]
        vectors = numpy.array(rows or empty, dtype="float32")[: len(rows)]
        return call.returned(vectors, is_single=is_single)

    def fingerprint(self, *, load: bool = True) -> str:
        """Return a short fingerprint of the estimator and its members.

        "" if that of a member is not known.

        load (bool): whether to load encoders that are not loaded.
        """
        self._look_at_static_vectors()
        nlp = self._in_pipeline.nlp
        pipes: dict[str, object] = {} if nlp is None else dict(nlp.components)
        encoders = [
            pipes.get(member.name) for member in self.members if isinstance(member, PipeMember)
        ]
        return self._combined_fingerprint(
            [
                pipe.fingerprint(load=load) if hasattr(pipe, "fingerprint") else ""
                for pipe in encoders
            ]
        )

    def _fingerprint_of(self, doc: Doc) -> str:
        """Return the fingerprint of what combined the members' vectors of a Doc."""
        records = [member.records(doc) for member in self.members if isinstance(member, PipeMember)]
        return self._combined_fingerprint(
            ["+".join(sorted(of_pipe.encoders)) for of_pipe in records]
        )

    def _look_at_static_vectors(self, docs: Sequence[Doc] = ()) -> None:
        """Forget the fingerprint if static vectors, which functions read, have changed.

        Call it once a batch.
        """
        if self._functions() and self._static.has_changed(self.vocab, docs):
            self._own_fingerprint = None

    def _functions(self) -> list[FunctionMember]:
        return [member for member in self.members if isinstance(member, FunctionMember)]

    def _combined_fingerprint(self, encoders: Sequence[str]) -> str:
        if not all(encoders):
            return ""
        estimator = self.estimator
        functions = self._functions()
        # Others after each fit
        objects: list[object] = [estimator, estimator.widths_]
        numbers: list[object] = []
        for member in functions:
            held, glance = member.learned()
            objects += held
            numbers += glance
        known = self._own_fingerprint
        if known is None or [*map(id, known[0])] != [*map(id, objects)] or known[1] != numbers:
            state = {
                "method": estimator.method,
                "settings": estimator.settings,
                "arrays": estimator.arrays,
            }
            parts = [part for member in functions for part in member.identity()]
            parts += [vectors_digest(self.vocab)] if functions else []
            known = objects, numbers, digest_of_stream([srsly.msgpack_dumps(state), *parts])
            self._own_fingerprint = known
        return digest_of_stream([known[2], *encoders])[:LENGTH]

    def made_of(self) -> dict[str, str]:
        """Return a digest of each member, of all that its vectors depend on.

        Texts and arithmetic are left out.
        """
        functions = self._functions()
        table = vectors_digest(self.vocab) if functions else ""
        return {
            **{member.name: digest_of_stream([table, member.state()]) for member in functions},
            **{
                name: digest_of_parts(pipe.fingerprint(), encoding_settings(pipe.model))
                for name, pipe in self._member_pipes().items()
            },
        }

    def _member_pipes(self) -> dict[str, Any]:
        """Return the members that are pipes of the pipeline and know their encoder, by name."""
        nlp = self._in_pipeline.nlp
        pipes = {} if nlp is None else dict(nlp.components)
        names = [member.name for member in self.members if isinstance(member, PipeMember)]
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
            self.notify(
                Warnings.META_OTHER_MEMBERS.format(name=self.name, members=", ".join(changed))
            )
        pipes = self._member_pipes().items()
        others = [
            name
            for name, pipe in pipes
            if {*doc_vectors.find(doc, name).encoders} != {pipe.fingerprint()}
        ]
        if others:
            self.notify(Warnings.META_OTHER_DOC.format(name=self.name, members=", ".join(others)))

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

        corpus (str), column (int): a file of sentences, see read_sentences; by default the texts of
            the examples, or the members of their pairs.
        max_tokens (int): sentences of fewer tokens are used; 0 for all.
        cache (str): a folder for the members' vectors, see fit_meta.
        RAISES (ValueError): see fit_meta.
        """
        if nlp is None:
            raise ValueError(f"To fit '{self.name}', its pipes are needed: call nlp.initialize.")
        if not self.estimator.needs_fit and not any(
            hasattr(member.function, "fit") for member in self.members
        ):
            return

        def texts() -> Iterable[str]:
            if corpus is not None:
                return read_sentences(Path(corpus), column)
            docs = (example.reference for example in get_examples())
            return (
                part.text for doc in docs for part in (spans.members(doc, self.spans_key) or (doc,))
            )

        sentences = ShortSentences(nlp, texts, max_tokens)
        fit_meta(
            nlp,
            self.name,
            sentences,
            cache=Path(cache) if cache else None,
            progress=sys.stderr.isatty(),
        )
        if sentences.n_left_out:
            warn(Warnings.META_LEFT_OUT.format(count=sentences.n_left_out, limit=max_tokens))

    def score(self, examples: Iterable[Example], **kwargs: object) -> Scores:  # type: ignore[override]  # None: not defined
        """Score the pairs among the examples with the pipe's scorer."""
        return score_examples(self, list(examples), is_default=self.set_hooks, **kwargs)

    def _parts(self) -> dict[str, Any]:
        """Return what is saved, by name: the estimator, and functions that learned."""
        functions = {f"function_{i}": member.function for i, member in enumerate(self.members)}
        learned = {
            name: function for name, function in functions.items() if hasattr(function, "to_bytes")
        }
        return {"estimator": self.estimator, **learned}

    def _dump(self, exclude: Iterable[str]) -> dict[str, bytes]:
        parts = {
            name: part.to_bytes() for name, part in self._parts().items() if name not in exclude
        }
        return {
            name: data if name == "estimator" else add_checksum(data)
            for name, data in parts.items()
        }

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
        expected, actual = (
            {"method": each.method, **each.settings} for each in (self.estimator, saved)
        )
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
    """Yield the row at each place, int32 (rows, 2), as a Span.

    If it is the only row, yield the Doc itself.
    """
    if len(places) == 1 and tuple(places[0].tolist()) == spans.trimmed(doc.text, 0):
        yield doc
        return
    for start, end in places.tolist():
        # A row of white space is the empty range at its end
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
    """
    pipe = nlp.get_pipe(name)
    if not isinstance(pipe, SentenceMeta):
        raise ValueError(
            f"The pipe '{name}' is not an 'sbert_meta' but a {type(pipe).__name__}: name the pipe "
            "to fit."
        )
    members, estimator = pipe.members, pipe.estimator
    for member in members:
        if hasattr(member.function, "fit"):

            def docs(title: str = f"Learning {member.name}") -> Iterator[Doc]:
                return map(
                    nlp.make_doc, progress_of(texts(), desc=title, unit="sentences", shown=progress)
                )

            member.function.fit(docs)
    with (
        nullcontext(cache)
        if cache
        else tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder
    ):
        views = corpus_vectors(
            nlp, name, members, texts, Path(folder), estimator=estimator, progress=progress
        )
        estimator.fit(views, [member.name for member in members], progress=progress)
        estimator.made_of_ = pipe.made_of()
        if cache is None:
            # Windows removes nothing that is mapped
            views = []
    for note in estimator.notes(name):
        util.logger.warning(note)
    return views


def find_meta(nlp: Language, name: str | None = None) -> SentenceMeta:
    """Return the `sbert_meta` pipe of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if none.
    """
    return find_in(nlp, SentenceMeta, "sbert_meta", name)
