"""Warnings with the codes that filters name, and errors that several modules raise."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Generic, Protocol, TypeVar


class _Messages:
    """Messages by names that say what went wrong; a subclass puts the code of each before it."""

    def __init_subclass__(cls) -> None:
        for name, text in list(vars(cls).items()):
            if name.isupper():
                setattr(cls, name, f"[sbert-{name.lower().replace('_', '-')}] {text}")


def reason_of(error: Exception) -> str:
    """Return the message of an exception without its code, to quote it in another message."""
    return re.sub(r"^\[sbert-[a-z0-9-]+\] ", "", str(error))


class Errors:
    """Messages of errors that several modules raise."""

    MISSING_DATA = "{names} not found below {root}. Get it from {source}"
    UNKNOWN_SUITE = "Unknown suite '{given}': expected some of {expected}."
    NOT_CLASSIFYING = (
        "The pipeline has no trained classification head: to label pairs, train an 'sbert' pipe with "
        "spacy-sbert.SoftmaxLoss.v1 (configs/nli.cfg)."
    )
    BAD_CACHE = "{path} does not hold saved vectors of an evaluation: {reason}. Delete it."
    UNREADABLE_RESULTS = (
        "{path} cannot be read as results of an evaluation: {reason}. Expected the JSON file that 'python -m "
        "spacy sbert benchmark --output' saves."
    )
    BAD_POWER = "Cannot take the power mean with p = {given}: expected whole numbers above 0, -inf and inf."
    JOINED_DOC = (
        "This Doc was joined from others, and '{text}' in it is not a whole text that the pipe '{name}' "
        "encoded. Call nlp on its text: nlp(doc.text)."
    )
    RESTORE_NOT_DOCS = (
        "Cannot restore {given}: expected a Doc, a list of Docs, or a stream of them such as nlp.pipe(texts, "
        "n_process=2) or doc_bin.get_docs(nlp.vocab). With as_tuples=True each Doc has its context."
    )
    WRONG_ROWS = (
        "The encoder's rows are not the members of the pair '{text}': it encoded {given}, but "
        "doc.spans['{key}'] says {expected}. The pair would be trained or scored wrongly. Use the span getter "
        'spacy-sbert.sentence_spans.v1 (spans_key = "{key}") in the config of the encoder: '
        "[components.transformer.model.get_spans] when the transformer is shared."
    )
    EMPTY_MEMBER = (
        "The example '{text}' has an empty member (number {number}) in doc.spans['{key}'], which has no vector "
        "to learn from. Remove the example."
    )
    NO_GOLD = (
        "The example '{text}' has no gold value '{gold}': expected {kind} in "
        "example.reference.spans['{key}'].attrs['{gold}']. spacy-sbert.PairCorpus.v1 and 'python -m spacy "
        "sbert convert' set it where the data have it; else the data are not those of this objective: choose "
        "another loss."
    )
    CHECKPOINT_DAMAGED = (
        "{path} cannot be gone on with ({reason}): expected a checkpoint as it was saved. Remove the folder; "
        "an older one beside it is used then, or else training begins anew."
    )
    NO_SUCH_SETTING = (
        "[{section}] has no setting '{given}', which would be ignored: expected {expected}. Correct its name."
    )
    OUTPUT_NOT_WRITABLE = (
        "Cannot save to --output {path}: {there} {reason}. Expected a folder that can be written to, or a new "
        "one: give --output another name."
    )
    VISUAL_TOO_FEW = (
        "Cannot draw {given} texts: expected at least {least}. Give more; for the sentences of one Doc give "
        "the Doc itself, not a list of it."
    )
    VISUAL_TOO_MANY_POINTS = (
        "Cannot draw a map of more than {most} texts, which is what a browser can hold. Draw a random sample "
        "of them, such as random.sample(texts, {most})."
    )
    BAD_FOLDER_FILE = "Cannot read {file}, a part of the encoder's folder: {reason}. Get the encoder anew."
    NO_WEIGHTS = (
        "The folder {folder} holds no encoder that can be loaded: {missing} is missing. Expected a Hugging "
        "Face folder with config.json, weights (model.safetensors or pytorch_model.bin) and the tokenizer's "
        "files, as save_pretrained writes them."
    )
    BAD_STATE = "The saved encoder is damaged: {reason}. Save the pipeline again, or load the encoder by its name."
    BAD_TOKENIZER = (
        "Cannot load the tokenizer of {folder} ({reason}): tokenizer.json, tokenizer_config.json or the "
        "vocabulary is damaged, or not whole. Get the encoder anew."
    )
    BAD_SETTING = "Cannot load the encoder with this {setting}: {reason}. Correct it in the config of the model."
    BULK_NO_PYARROW = "Writing {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
    BULK_INPUT_CHANGED = (
        "{path} was changed while it was read. Run the same command again; if the change is to stay, with --restart."
    )
    BULK_CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What is done is kept: make room (or mend what keeps the file from "
        "being written), and run the same command again to go on."
    )
    BULK_NO_VECTORS = (
        "There are no vectors at {path}: {reason}. Give a .npy or .parquet file that was written by: python -m "
        "spacy sbert encode TEXTS {expected}."
    )
    SEARCH_ROW_COUNT = "Given {given} texts or ids for {expected} vectors: expected one for each."
    SEARCH_BAD_INDEX = "The index is damaged: {path}: {reason}. Build it again."
    BAD_LOSS_SETTING = "The loss '{loss}' cannot work with {setting} = {given}: expected {expected}."
    NO_HEAD = (
        "The loss '{loss}' has a classifier that was not initialized. Call nlp.initialize with examples that "
        "carry labels, or load a trained pipeline."
    )
    NO_NEGATIVES = (
        "The loss '{loss}' got a batch of one pair, which has no negatives to rank. Set training.batcher.size "
        "to at least 2, or give each example a third member, its hard negative."
    )
    UNKNOWN_FORMAT = (
        "Cannot read {path}: its name does not tell its layout, as .spacy (made by 'python -m spacy sbert "
        "convert') or .csv and .tsv do (the STS benchmark's, or a table if `members` names its columns). Set "
        "format to one of {expected}."
    )
    BAD_FORMAT = "Unknown format '{given}': expected one of {expected}."
    RERANKER_SOFTMAX_OF_ONE = (
        'Softmax of a single output is always 1. Leave apply_softmax out, set activation = "sigmoid" or '
        '"identity" in the config of the cross-encoder, or n_outputs to 2 or more.'
    )
    RERANKER_MAX_LENGTH = "Cannot read pairs of max_length = {given} wordpieces: expected {expected}."
    RERANKER_NOT_INITIALIZED = (
        'The cross-encoder has {given} outputs, which do not fit the objective "{objective}". Call '
        'nlp.initialize before training, with examples that carry labels for "classification", or set '
        "n_outputs."
    )
    NOT_TO_WRITE = (
        "{path} is {kind}: expected nothing there, or a file of its own. Nothing was written through it. "
        "Remove it, or give another name."
    )
    NO_COLUMN = "{path}, line {line}: expected a column '{column}', got {given}. Check the names and the format{hint}."
    NOT_A_TEXT = "{path}, line {line}: expected a text in the column '{column}', got {given!r}. Repair the line."
    BAD_ENCODING = "{path}, line {line}: not UTF-8 ({reason}). Convert the file to UTF-8."
    CARD_NO_ENCODER = (
        "Nothing to write a card about: none of the pipes makes sentence vectors (given: {given}). Expected a "
        "pipeline with an 'sbert' or 'sbert_meta' pipe."
    )
    NO_TEXT_ENCODER = (
        "Cannot encode texts without Docs: the 'sbert' pipe '{name}' listens to a transformer that is not of "
        "this package, or is in no pipeline. Give the 'transformer' pipe the architecture "
        "spacy-sbert.TransformerModel.v1, or use nlp.pipe(texts)."
    )
    NOT_A_TRANSFORMER = (
        "The encoder of the 'sbert' pipe '{name}' is {kind}, and this works with transformers alone. To pass "
        "the pipeline on, save it or make a package of it: python -m spacy package."
    )
    META_ONE_MEMBER = (
        "A meta-embedding combines at least two members, given: {given}. Add another 'sbert' pipe of another "
        "name, model or pooling before it, or a function to its functions; do not exclude one when loading."
    )
    META_EMPTY_CORPUS = (
        "There is no sentence to fit the meta-embedding on: the corpus is empty, or all its sentences are too "
        "long. Give one with sentences, or a higher max_tokens."
    )
    META_ZERO_VARIANCE = (
        "The member '{name}' of a meta-embedding has the same vector for all {n} sentences. Take it out, or "
        "fit on sentences that it tells apart."
    )
    META_NOT_FITTED = (
        "The meta-embedding by '{method}' has not been fitted: fit it on plain sentences with nlp.initialize, "
        "python -m spacy sbert fit-meta, or fit of the estimator."
    )
    META_BAD_STATE = "This is not a saved meta-embedding: expected {what}, found {given}. Save it again."
    ENCODE_MISSING = (
        "There is no OUTPUT beside {given}: expected `encode INPUT OUTPUT` or `encode PIPELINE INPUT OUTPUT`, "
        "where OUTPUT ends in .npy or .parquet, or is the folder for the vectors of a folder."
    )
    NO_VECTORS = (
        "This {kind} carries no sentence vectors{which}: its Doc was not processed by an 'sbert' pipe, or its "
        "user data did not travel with it. Process the text with the pipeline (nlp or nlp.pipe), or transport "
        "the Doc with its user data (DocBin(store_user_data=True), Span.as_doc(copy_user_data=True))."
    )
    UNEQUAL_WIDTHS = (
        "Cannot compare vectors of unequal width: {ours} and {theirs}. Both sides must come from the same "
        "sentence encoder; process both texts with the same pipeline."
    )
    TOKEN_PROMPT = (
        "Cannot put the prompt '{prompt}' before Docs: a token-to-vector model, a table of wordpieces and a "
        "curated_transformer read them as they are. Put it before the texts, or use a transformer "
        "(spacy-sbert.SentenceEncoder.v1)."
    )
    SLOW_TOKENIZER = (
        "The tokenizer of '{name}' is a slow one, written in Python, which a static encoder cannot keep: "
        "expected an encoder with tokenizer.json, or of a family that Transformers has a fast tokenizer for."
    )
    META_BAD_OPTION = "Bad value {given!r} for {name}: expected {expected}."
    DENSE_NOT_INITIALIZED = (
        "The dense layer of the sentence encoder has no weights yet: call nlp.initialize() to draw them and "
        "train, or load a pipeline that has them (python -m spacy sbert import)."
    )
    TRUNCATE_DIM = "Cannot truncate vectors to {given} dimensions: they have {width}. Set truncate_dim to at most that."
    REFERENCE_BATCH = (
        'max_batch_items = {given} and precision = "reference" do not go together: that encodes in the batches '
        'of sentence-transformers. Leave max_batch_items out, or set precision = "float32".'
    )
    NOT_TEXTS = (
        "Cannot encode {given}: expected several texts in an order, such as a list of str. Put a single text "
        "into a list; of a dict give list(texts.values())."
    )
    NOT_ROWS = (
        "Cannot search {name} of shape {given}: expected a float array of shape (n, width), a vector a row, "
        "such as numpy.stack([doc.vector for doc in docs])."
    )
    SEARCH_EMPTY_QUERY = "Cannot search for {query}, which has no vector: it has no text. Give it some."
    SEARCH_BAD_ARRAYS = "{path} holds no quantised vectors ({reason}). Quantise and save them again."
    CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What was there before stays: make room (or mend what keeps the file "
        "from being written), and run the same command again."
    )
    BAD_WEIGHTS = "The file of weights {file} is damaged or not whole ({reason}). Copy or download it again."
    SINGLE_CLASS = (
        "The loss '{loss}' learns to tell labels apart, but all examples have the same: {given}. Train on data "
        "with two labels or more, or give all of them in [initialize.components.sbert] labels, if the first "
        "examples do not show them."
    )
    LOSS_NOT_FINITE = (
        "The loss '{loss}' is not finite in the batch that begins with '{text}': training has diverged. Lower "
        "the learning rate, clip the gradient, or use float32 or bfloat16 in place of float16."
    )
    NO_PAIRS = "{path} holds no pairs: expected {expected}."
    SHORT_LINE = (
        "{path}, line {line}: no column '{column}', the line has only {given} columns. Repair or remove the line."
    )
    BULK_NO_PIPELINE = (
        "Cannot load '{given}': expected a folder or an installed package of a pipeline, or the name of an "
        "encoder that is on this machine, such as all-MiniLM-L6-v2. {near}spaCy says: {reason}"
    )
    UNKNOWN_LABEL = "{path}, line {line}: unknown label '{given}', expected one of {expected}. Repair the line."
    NOT_FINITE = (
        "A vector of the example '{text}' is not finite: training has diverged. Lower the learning rate or "
        "clip the gradient."
    )


class Warnings(_Messages):
    """Messages of warnings, each with a code that filters name."""

    TRUNCATED = (
        "{count} of {total} rows were longer than the encoder's limit of {limit} wordpieces and were cut; "
        'doc._.sbert_truncated is True for their Docs. Set overflow = "windows" in the encoder\'s config to '
        'average over windows instead, or unit = "sent" to encode sentences.'
    )
    UNKNOWN_EVALUATE_LABELS = (
        "{count} examples of {path} have labels that the pipeline does not know ({given}; known are {known}). "
        "They count as wrong: correct or remove them."
    )
    ARRIVED = (
        "A Doc has lost its hooks on its way (bytes, DocBin, n_process, from_docs): doc.vector and similarity "
        "are spaCy's own. Call spacy_sbert.restore(doc), restore(list_of_docs), or loop over "
        "restore(nlp.pipe(...))."
    )
    RESTORE_UNUSED = (
        "Nothing was restored: the result of spacy_sbert.restore(stream) was not read. Loop over it, or "
        "restore a list: spacy_sbert.restore(list(docs))."
    )
    POOLED_IN_CONTEXT = (
        "A Span is pooled in the context of its Doc. For its text alone: find_sbert(nlp, "
        '"{name}").encode(spans); for sentences: [components.{name}.model.get_spans] (or that of the shared '
        'transformer) unit = "doc+sent".'
    )
    OTHER_ENCODER = (
        "Compared vectors of two encoders, which have no common meaning ({ours}; {theirs}). Process both texts "
        "with the same pipeline."
    )
    BEHIND_LIMIT = (
        "A Span or Token lies behind the encoder's limit, where its Doc was cut: its vector is missing or "
        'incomplete. Set overflow = "windows" or unit = "doc+sent" in the config of the encoder of '
        "'{name}'."
    )
    UNKNOWN_DEV_LABELS = (
        "{count} examples of [{corpus}] have labels that no training example has ({given}; known are {known}). "
        "They count as wrong: correct or remove them."
    )
    UNKNOWN_SETTINGS = (
        "{file} was written by transformers {written} and has settings that {installed} does not know: "
        "{names}. The vectors may be others; install transformers {written} or later."
    )
    SLOW_BFLOAT16 = (
        'precision = "bfloat16" is several times slower than "float32" on this CPU, which has no arithmetic '
        'for it (AVX-512 BF16 or AMX). Set precision = "auto", which chooses by the device.'
    )
    ENCODER_MISSING = (
        "The encoder '{name}' of the pipe '{pipe}' cannot be found: {reason}. {near}Correct the name, or the "
        "first text fails; nlp.initialize() and the pipe's load() tell where it was looked for."
    )
    BULK_CUT = (
        '{cut} of {rows} texts were longer than the encoder\'s limit and were cut. Set overflow = "windows" '
        "in the encoder's config to average over windows instead."
    )
    TORN_RECORDS = (
        "{path}: left out records that do not have {expected} columns ({lines}). A line break or a tab in a "
        "question splits them: quote the question, or join the lines."
    )
    RERANKER_TRUNCATED = (
        "{count} of {total} pairs were longer than the cross-encoder's limit of {limit} wordpieces; of these "
        "the longer text was cut. Score shorter texts, such as sentences or paragraphs."
    )
    RERANKER_TRAINING_CUT = (
        "While training '{name}': in this batch, and maybe in later ones, pairs were longer than the limit of "
        "{limit} wordpieces; of these the longer text was cut."
    )
    RERANKER_NEW_HEAD = (
        "The cross-encoder of '{name}' has a new head, drawn at random: its scores mean nothing before it is "
        "trained (configs/reranker.cfg). To use one that is trained, set its name in the config of the model."
    )
    RERANKER_NOTHING_TO_LEARN = (
        "'{name}' got a training batch without pairs and learned nothing from it: example.predicted has no two "
        "members in doc.spans['{key}']{found}. Read pairs with spacy-sbert.PairCorpus.v1. If the pipe should "
        "not learn, list it in [training] frozen_components, or in exclude of nlp.update."
    )
    FOREIGN_ROWS = (
        "The shared transformer encodes overlapping windows, not whole Docs or sentences: vectors are pooled "
        "over the Doc's wordpieces instead, each token once, and differ from those of the encoder on its own. "
        'Set [components.transformer.model.get_spans] @span_getters = "spacy-sbert.sentence_spans.v1".'
    )
    NO_SENTENCES = (
        "The pipe '{name}' makes vectors of Docs and of their sentences, but '{setter}', which sets their "
        "boundaries, is disabled. So Docs are encoded whole, and have no sentences. Enable it and what it "
        'needs, or add a sentencizer: nlp.add_pipe("sentencizer", before="{encoder}"). If you need no vectors '
        'of sentences, set unit = "doc" in get_spans.'
    )
    LATE_SENTENCES = (
        "The 'sbert' pipe '{name}' makes vectors of sentences, but '{setter}', which sets their boundaries, "
        "stands behind '{encoder}', which encodes. So Docs are encoded whole, and their sentences have vectors "
        "in context, which are more alike. Add '{encoder}' behind it (after=\"{setter}\"), or a sentencizer "
        'before it: nlp.add_pipe("sentencizer", before="{encoder}"). If you need no vectors of sentences, set '
        'unit = "doc" in get_spans.'
    )
    SHARED_DEFAULT_PROMPT = (
        "The authors of '{name}' put the prompt '{prompt}' before texts, which a shared transformer cannot do: "
        "vectors differ from theirs. Use spacy-sbert.SentenceEncoder.v1, which has an encoder of its own."
    )
    TRAINING_CUT = "While training the 'sbert' pipe '{name}': in this batch, and maybe in later ones, "
    OTHER_POOLING = (
        "The encoder '{name}' was made for {expected} pooling, this pipeline uses {given} pooling: vectors "
        'differ from those its authors publish. Set pooling = "{expected}" unless that is what you want.'
    )
    PART_OF_BATCH = (
        "The loss '{loss}' compares all examples of a batch with one another, but training.accumulate_gradient "
        "shows it the batch in parts: the step is not that of the whole batch. Set accumulate_gradient = 1, "
        "and for batches larger than memory use mini_batch_size in the encoder's config, or "
        "spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
    )
    UNKNOWN_BATCH = (
        "training.accumulate_gradient splits batches, and the 'sbert' pipe '{name}' is not told of the size of "
        "the whole: its mean losses are added up, not averaged, and the step is larger than that of the whole "
        'batch. Set [training.batcher] @batchers = "spacy-sbert.batch_by_objective.v1", or '
        '"spacy-sbert.batch_mixed.v1".'
    )
    SCORES_IGNORED = (
        "{loss} does not read scores: it takes every pair of the training data as one whose texts belong "
        "together, also '{text}', whose score is {score:g} (of 0 to 1). Leave pairs of low scores out, or take "
        "a loss that reads scores: CosineSimilarityLoss, CoSENTLoss, AnglELoss, or of scores 0 and 1 "
        "OnlineContrastiveLoss."
    )
    NOTHING_TO_LEARN = (
        "The 'sbert' pipe '{name}' got a training batch without pairs and learned nothing from it: "
        "example.predicted has no members in doc.spans['{key}']{found}. Read pairs with "
        "spacy-sbert.PairCorpus.v1. If the pipe should not learn, list it in [training] frozen_components, or "
        "in exclude of nlp.update."
    )
    META_FEWER_DIRECTIONS = (
        "By the method '{method}' the members of '{name}' have {size} directions to give, fewer than the "
        "{widest} of the widest member: its vectors are {size} wide. Set size for narrower ones."
    )
    META_NOT_POSITIVE = (
        "Of the {size} rho of '{name}' by the method 'gcca', {count} are not positive: what its members have "
        "in common ends after {positive}. Set size to {positive} to take no more than that."
    )
    UNKNOWN_INIT_LABELS = (
        "{count} examples of {dev} have labels that {train} does not have: {given}. They count as wrong: "
        "correct or remove them."
    )
    META_LEFT_OUT = "{count} sentences of {limit} tokens or more were left out; set max_tokens to take longer ones."
    EXPORT_WINDOWS = (
        "The pipe '{name}' averages over windows of long texts (overflow = \"windows\"), which "
        "sentence-transformers cannot: it will cut texts at {limit} wordpieces."
    )
    IMPORT_STATIC_PROMPTS = (
        "The prompts of {name} are left out ({given}): a table of wordpieces takes none. Put them before your texts."
    )
    IMPORT_STATIC_UNCUT = (
        "The tokenizer of {name} cuts texts at {limit} wordpieces, which the imported pipeline does not: "
        "vectors of longer texts are those of the whole text, and differ from sentence-transformers'."
    )
    NO_WORDS = (
        "The teacher's tokenizer is of the kind {given}, into which no words can be put: the table has the "
        "teacher's wordpieces alone."
    )


# Warnings skip the frames of these packages: this one, and those that call it.
INNER = ("spacy_sbert", "spacy", "spacy_transformers", "spacy_curated_transformers", "thinc", "srsly", "contextlib")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called into this package or spaCy, however deep below it the warning is raised."""
    level = 1
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 (documented, but CPython only)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


class _Cuts(Protocol):
    """Counts the texts that were longer than a limit. message: the warning about them."""

    count: int

    @property
    def message(self) -> str: ...


CutsT = TypeVar("CutsT", bound=_Cuts)


class WarnOnce(Generic[CutsT]):
    """The warnings of one pipe.

    new_cuts (Callable): makes what counts cut texts. cuts: the one in use.
    """

    def __init__(self, new_cuts: Callable[[], CutsT]):
        self._new_cuts = new_cuts
        self.cuts = new_cuts()
        self._said: set[str] = set()

    def is_new(self, what: str) -> bool:
        """Return whether a message is new, and remember it."""
        is_new = what not in self._said
        self._said.add(what)
        return is_new

    def once(self, message: str) -> None:
        """Warn, unless the same message was given before."""
        if self.is_new(message):
            warn(message)

    @contextmanager
    def one_for_cuts(self) -> Iterator[None]:
        """Collect the cut texts of many Docs for one warning."""
        try:
            yield
        finally:
            cuts, self.cuts = self.cuts, self._new_cuts()
            if cuts.count:
                warn(cuts.message)
