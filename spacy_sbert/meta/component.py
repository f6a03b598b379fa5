"""The `sbert_meta` component: several sentence encoders combined."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from pathlib import Path
from typing import Any, Literal, Unpack, overload

import numpy
import torch
from spacy import util
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from spacy.vocab import Vocab
from thinc.api import get_current_ops

from ..errors import Errors, Warnings, WarnOnce
from ..files.serialization import add_checksum, check_parts, naming, verify_checksum
from ..models.encoded_docs import EncodeOptions, TruncationCounter, check_device, check_form, unit_vectors
from ..models.spans import SPANS_KEY, members, trimmed
from ..pipeline import doc_vectors
from ..pipeline.doc_vectors import Record, encoders_of
from ..pipeline.extensions import install_extensions
from ..pipeline.find_pipe import InPipeline, find_in
from ..progress import progress_of
from ..similarity import cos_sim, pairwise_cos_sim
from ..validation import Name, NonNegative, Positive, Text, Width, checked_texts, validated
from .estimators import MetaEmbedding
from .fit import MAX_TOKENS, MetaFingerprint, ShortSentences, Texts, fit_pipe, read_sentences
from .members import Member, PipeMember, Rows, Saveable, learner
from .methods import estimator_from_bytes, estimator_to_bytes


class SentenceMeta(Pipe):
    """Combines the vectors that other pipes, and functions, give to each row of a Doc.

    The rows are those of the first pipe among the members, or the whole Doc if all members are functions.

    vocab (Vocab): the pipeline's.
    members (Sequence[Member]): whose vectors are combined, at least two, no two of one name.
    estimator (MetaEmbedding): how. name (str): the pipe's name, under which its vectors are stored.
    scorer (Callable): what to report of pairs.
    set_hooks (bool): whether `doc.vector` and `similarity` answer with this pipe's vectors.
    spans_key (str): where the members of a pair stand, doc.spans[spans_key].
    nlp (Language): the pipeline that the pipe is made for.
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
        spans_key: Name = SPANS_KEY,
        nlp: Language | None = None,
    ):
        names = [member.name for member in members]
        if len(names) < 2:
            raise ValueError(Errors.META_ONE_MEMBER.format(given=", ".join(names) or "none"))
        if len(set(names)) < len(names):
            raise ValueError(
                f"Members of a meta-embedding need names of their own, given: {', '.join(names)}. Rename one of them."
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
        self._fingerprint = MetaFingerprint()
        install_extensions(name)

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

    def notify(self, message: str) -> None:
        """Warn of something about the vectors of the pipe, once."""
        self._notices.once(message)

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
        install_extensions(self.name)  # the pipe may have got another name since it was made
        end = 0
        for doc, of_doc in zip(docs, rows, strict=True):
            start, end = end, end + len(of_doc.places)
            doc_vectors.store(doc, self.name, self._record(of_doc, vectors[start:end], self._fingerprint_of(doc)))
            if self.set_hooks:
                doc_vectors.install_hooks(doc, self.name, self)

    def _width(self, docs: list[Doc]) -> int:
        """Return the width of the meta-embeddings; 0 if it depends on a function that has not been called yet."""
        if not self.estimator.width and docs and all(isinstance(member, PipeMember) for member in self.members):
            return self._combine(self.member_vectors(docs[:1])).shape[1]
        return self.estimator.width

    def _rows(self, doc: Doc) -> Rows:
        for member in self.members:
            if isinstance(member, PipeMember):
                records = member.records(doc)
                places, has_text = doc_vectors.rows_of(doc, records)
                return Rows(places, has_text, any(record.data["truncated"] for record in records))
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

    @overload
    def encode(
        self,
        texts: Iterable[Text],
        *,
        convert_to_tensor: Literal[True],
        prompt_name: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> torch.Tensor: ...

    @overload
    def encode(
        self,
        texts: Iterable[Text],
        *,
        convert_to_tensor: Literal[False] = ...,
        prompt_name: str | None = ...,
        **options: Unpack[EncodeOptions],
    ) -> numpy.ndarray: ...

    @validated
    def encode(
        self,
        texts: Iterable[Text],
        *,
        window: Positive = 1000,
        progress: bool = False,
        prompt_name: str | None = None,
        batch_size: Positive | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool = False,
        convert_to_tensor: bool = False,
        convert_to_numpy: bool = True,
        output_value: Literal["sentence_embedding"] = "sentence_embedding",
        precision: Literal["float32"] = "float32",
        device: str | torch.device | None = None,
    ) -> Any:
        """Return the meta-embeddings of texts, each equal to `nlp(text).vector` if this pipe answers it.

        The members, which may be any functions of Docs, are given Docs that do not stay.

        texts (Iterable): n texts, see SentenceBert.encode.
        window (int): texts that are worked on together. progress (bool): whether to show a progress bar.
        prompt_name (None): the members have their own. For the other arguments see SentenceBert.encode.
        RETURNS (float32 (n, width)): in the order of the texts; zeros for a text that has none.
        RAISES (TypeError, ValueError): if a text is not text, a prompt is given, or the pipe is in no pipeline.
        """
        check_device(device, get_current_ops())
        check_form(convert_to_numpy=convert_to_numpy, convert_to_tensor=convert_to_tensor)
        if prompt_name is not None:
            raise ValueError(
                f"Cannot use prompt_name = {prompt_name!r}: the members of a meta-embedding have prompts of "
                "their own. Set default_prompt_name in their configs."
            )
        nlp = self._in_pipeline.nlp
        if nlp is None or self.name not in nlp.pipe_names:
            raise ValueError(
                f"Cannot encode texts: the meta-embedding '{self.name}' is in no pipeline, whose pipes are its "
                f"members. Use the pipe of a pipeline (nlp.get_pipe('{self.name}')), or nlp.pipe(texts)."
            )
        names, checked = nlp.pipe_names, checked_texts(texts)
        total = len(texts) if isinstance(texts, Sized) else None
        with nlp.select_pipes(enable=names[: names.index(self.name) + 1]):
            docs = nlp.pipe(checked, batch_size=min(window, batch_size or window))
            shown = progress or bool(show_progress_bar)
            docs = progress_of(docs, total=total, shown=shown, unit="texts")
            rows = [doc_vectors.vector(doc, self.name) for doc in docs]
            empty = [] if rows else [doc_vectors.vector(nlp(""), self.name)]  # for its width
        vectors = numpy.array(rows or empty, dtype="float32")[: len(rows)]
        if normalize_embeddings:
            vectors = unit_vectors(vectors)
        return torch.from_numpy(vectors) if convert_to_tensor else vectors

    def vector(self, obj: Doc | Span | Token) -> numpy.ndarray:
        """Return the meta-embedding of any Doc, Span or Token, also of one that is not a row.

        RETURNS (float32 (width,)). RAISES (ValueError): if a member has no vector of it.
        """
        doc = doc_vectors.doc_of(obj)
        return self._combine(self.member_vectors([doc[obj.i : obj.i + 1] if isinstance(obj, Token) else obj]))[0]

    def member_vectors(self, stretches: Sequence[Doc | Span]) -> list[numpy.ndarray]:
        """Return the members' vectors, not normalised: J arrays, float32 (n, d_j).

        RAISES (ValueError): if a member left none, or a number in one is not finite.
        """
        views = [member.vectors(stretches) for member in self.members]
        for member, view in zip(self.members, views, strict=True):
            bad = numpy.flatnonzero(~numpy.isfinite(view).all(axis=1))
            if len(bad):
                text = stretches[int(bad[0])].text[:50]
                raise ValueError(
                    f"The member '{member.name}' of a meta-embedding has a number that is not finite in its "
                    f"vector of '{text}'. Mend that encoder, or take the member out."
                )
        return views

    def _combine(self, views: list[numpy.ndarray]) -> numpy.ndarray:
        if not self.estimator.needs_fit and not self.estimator.widths_:
            self.estimator.fit(views, [member.name for member in self.members])  # now their widths are known
        return self.estimator.transform(views).astype("float32")

    def fingerprint(self, *, load: bool = True) -> str:
        """Return a short fingerprint of the estimator and its members; "" if that of a member is not known.

        load (bool): whether to load encoders that are not loaded.
        """
        nlp = self._in_pipeline.nlp
        pipes = {} if nlp is None else dict(nlp.components)
        encoders = {}
        for member in self.members:
            if isinstance(member, PipeMember):
                fingerprint = getattr(pipes.get(member.name), "fingerprint", None)
                encoders[member.name] = "" if fingerprint is None else fingerprint(load=load)
        return self._fingerprint.of(self.estimator, self.members, encoders)

    def _fingerprint_of(self, doc: Doc) -> str:
        """Return the fingerprint of what combined the members' vectors of a Doc."""
        pipes = [member for member in self.members if isinstance(member, PipeMember)]
        encoders = {member.name: "+".join(sorted(encoders_of(member.records(doc)))) for member in pipes}
        return self._fingerprint.of(self.estimator, self.members, encoders)

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
            raise ValueError(
                f"To fit '{self.name}', its pipes are needed: call nlp.initialize, or give initialize the nlp."
            )
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
        """Return what the estimator and the functions learned."""
        return util.to_bytes({name: partial(self._dump, name) for name in self._parts()}, exclude)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> "SentenceMeta":
        """Load what `to_bytes` returned. RAISES (ValueError): if it was made of other members or settings."""
        check_parts(data, self._parts(), exclude)
        util.from_bytes(data, {name: partial(self._load, name) for name in self._parts()}, exclude)
        return self

    def _write(self, name: str, file: Path) -> None:
        file.write_bytes(self._dump(name))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write what the estimator and the functions learned to a folder, a file each."""
        writers: dict[str, Callable[[Path], None]] = {name: partial(self._write, name) for name in self._parts()}
        util.to_disk(path, writers, exclude)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "SentenceMeta":
        """Load what `to_disk` wrote. RAISES (ValueError): see from_bytes."""

        def read(file: Path, name: str) -> None:
            with naming(file):
                self._load(name, file.read_bytes())

        util.from_disk(path, {name: partial(read, name=name) for name in self._parts()}, exclude)
        return self

    def _parts(self) -> dict[str, Saveable | None]:
        """Return the functions that are saved, by the name of their file; None for the estimator, which is replaced."""
        functions = {f"function_{i}": getattr(member, "function", None) for i, member in enumerate(self.members)}
        saved = {name: function for name, function in functions.items() if isinstance(function, Saveable)}
        return {"estimator": None, **saved}

    def _dump(self, name: str) -> bytes:
        function = self._parts()[name]
        return estimator_to_bytes(self.estimator) if function is None else add_checksum(function.to_bytes())

    def _load(self, name: str, data: bytes) -> None:
        function = self._parts()[name]
        if function is None:
            self._set_estimator(data)
        else:
            function.from_bytes(bytes(verify_checksum(data)))

    def _set_estimator(self, data: bytes) -> None:
        saved = estimator_from_bytes(data)
        names = tuple(member.name for member in self.members)
        if saved.names_ and saved.names_ != names:
            raise ValueError(
                f"The meta-embedding '{self.name}' was fitted on the members {saved.names_}, the pipeline "
                f"gives it {names}. Restore the members, in this order, or fit again with python -m spacy "
                "sbert fit-meta."
            )
        expected, actual = ({"method": each.method, **each.settings} for each in (self.estimator, saved))
        if expected != actual:
            raise ValueError(
                f"The meta-embedding '{self.name}' was saved with {actual}, the config says {expected}. Restore "
                "the config, or fit again with python -m spacy sbert fit-meta."
            )
        self.estimator = saved


def _texts_of(example: Example, spans_key: str) -> list[str]:
    spans = members(example.reference, spans_key)
    return [span.text for span in spans] if spans else [example.reference.text]


def fit_meta(
    nlp: Language, name: Name, texts: Texts, *, cache: Path | None = None, progress: bool = False
) -> list[numpy.ndarray]:
    """Fit an `sbert_meta` pipe, and the functions among its members, on sentences.

    nlp (Language): the pipeline; the pipes before the one to fit encode the sentences. name (str): the pipe.
    texts (Callable): the sentences, gone through several times.
    cache (Path): where the members' vectors are kept for another method or the next time; None to forget them.
    progress (bool): whether to show progress bars.
    RETURNS (J arrays, float32 (n, d_j)): the members' vectors, memory-mapped from the cache; none without one.
    RAISES (ValueError): if the pipe is not an `sbert_meta`, there is no sentence, a member's vectors are not what they
        should be, see MetaEmbedding.fit; and, before any sentence is encoded, if the size is more than any can give.
    """
    return fit_pipe(nlp, _find_meta(nlp, name), texts, cache=cache, progress=progress)


def set_method(nlp: Language, name: Name, method: Name | None, size: Width | None, options: dict[str, object]) -> None:
    """Put an `sbert_meta` pipe with another method into a pipeline, in place of the one of this name or at the end.

    method (str), size (int), options (dict): see make_estimator; None for what the config of the pipe says. Options
        are kept where the method is.
    RAISES (ValueError): if the pipe is not an `sbert_meta`, or the method has no such options.
    """
    if name not in nlp.component_names:
        nlp.add_pipe("sbert_meta", name=name, config={"method": method or "conc", "size": size, "options": options})
        return
    _find_meta(nlp, name)
    config = {key: value for key, value in nlp.config["components"][name].items() if key != "factory"}
    if method not in (None, config["method"]):
        config.update(method=method, size=size, options=options)
    else:
        config.update(options={**config["options"], **options}, size=config["size"] if size is None else size)
    place = nlp.component_names.index(name)
    nlp.remove_pipe(name)
    nlp.add_pipe("sbert_meta", name=name, config=config, before=place if place < len(nlp.component_names) else None)


def _find_meta(nlp: Language, name: str) -> SentenceMeta:
    pipe = nlp.get_pipe(name)
    if not isinstance(pipe, SentenceMeta):
        raise ValueError(f"The pipe '{name}' is not an 'sbert_meta' but a {type(pipe).__name__}: name the pipe to fit.")
    return pipe


def find_meta(nlp: Language, name: str | None = None) -> SentenceMeta:
    """Return the `sbert_meta` pipe of a pipeline: the one of this name, or the last.

    RAISES (ValueError): if there is none.
    """
    return find_in(nlp, SentenceMeta, "sbert_meta", name)
