"""Warnings with the codes that filters name, and errors that several modules raise."""

import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType
from typing import Any


def _with_codes(messages: type) -> type:
    """Put a code before each message of a class, made of its name: [sbert-other-pooling]."""
    for name, text in list(vars(messages).items()):
        if name.isupper():
            setattr(messages, name, f"[sbert-{name.lower().replace('_', '-')}] {text}")
    return messages


class Errors:
    """Messages of errors that several modules raise."""

    WRONG_ROWS = (
        "The encoder's rows are not the members of the pair '{text}': it encoded {given}, but "
        "doc.spans['{key}'] says "
        '{expected}. Use the span getter spacy-sbert.sentence_spans.v1 (spans_key = "{key}") in '
        "the config of the encoder: [components.transformer.model.get_spans] when the transformer "
        "is shared."
    )
    BAD_FOLDER_FILE = (
        "Cannot read {file}, a part of the encoder's folder: {reason}. Correct the file, or copy "
        "or download the encoder again."
    )
    NO_WEIGHTS = (
        "The folder {folder} holds no encoder that can be loaded: {missing} is missing. Expected "
        "config.json, weights (model.safetensors or pytorch_model.bin) and the tokenizer's files, "
        "as save_pretrained writes them; or adapter_config.json and adapter_model.safetensors of "
        "an adapter of peft, whose pickle (adapter_model.bin) is not read."
    )
    BAD_STATE = (
        "The saved encoder is damaged: {reason}. Save the pipeline again, or load the encoder by "
        "its name."
    )
    BAD_TOKENIZER = (
        "Cannot load the tokenizer of {folder} ({reason}): a file is missing, damaged, or of "
        "another encoder. Copy or download the files of the tokenizer again, from the encoder that "
        "has these weights."
    )
    NOT_ENCODED = (
        "The shared transformer has not processed this Doc ('{text}'): it is disabled, excluded, "
        "or comes after the component that listens to it. Enable it, put it first, and if it is "
        "frozen in training list it in [training.annotating_components]."
    )
    OTHER_BATCH = (
        "The transformer (upstream = '{upstream}') gave the output of another batch of Docs. Put "
        "it directly into the pipeline that is trained, before the component that listens to it."
    )
    BAD_SETTING = (
        "Cannot load the encoder with this {setting}: {reason}. Correct it in the config of the "
        "model."
    )
    CHAT_TEMPLATE = (
        "The tokenizer in {folder} has a chat_template, into which sentence-transformers puts each "
        "text, as no modules.json says otherwise. It is not followed here: to encode texts as they "
        "are, set "
        'tokenizer_config = {{"chat_template": null}}.'
    )
    NOT_TO_WRITE = (
        "{path} is {kind}: expected nothing there, or a file of its own. Nothing was written "
        "through it. Remove it, or give another name."
    )
    NOT_A_TEXT = (
        "{path}, line {line}: expected a text in the column '{column}', got {given}. Repair the "
        "line."
    )
    BAD_ENCODING = "{path}, line {line}: not UTF-8 ({reason}). Convert the file to UTF-8."
    UNEQUAL_WIDTHS = (
        "Cannot compare vectors of unequal width: {ours} and {theirs}. Both sides must come from "
        "the same sentence encoder: process both texts with the same pipeline."
    )
    TOKEN_PROMPT = (
        "Cannot put the prompt '{prompt}' before Docs: a token-to-vector model, a table of "
        "wordpieces and a curated_transformer read them as they are. Put it before the texts, or "
        "use a transformer (spacy-sbert.SentenceEncoder.v1)."
    )
    SLOW_TOKENIZER = (
        "The tokenizer of '{name}' is a slow one, written in Python, which a static encoder cannot "
        "keep: expected an encoder with tokenizer.json, or of a family that Transformers has a "
        "fast tokenizer for."
    )
    DENSE_NOT_INITIALIZED = (
        "The dense layer of the sentence encoder has no weights yet: call nlp.initialize() to draw "
        "them and train, or load a pipeline that has them (python -m spacy sbert import)."
    )
    TRUNCATE_DIM = (
        "Cannot truncate vectors to {given} dimensions: they have {width}. Set truncate_dim to at "
        "most that."
    )
    REFERENCE_BATCH = (
        'max_batch_items = {given} and precision = "reference" do not go together: that encodes '
        "in the batches "
        'of sentence-transformers. Leave max_batch_items out, or set precision = "float32".'
    )
    BACKEND_IN_USE_ONLY = (
        "backend = '{backend}' encodes and cannot be trained. Set backend = 'torch' in the model "
        "of this component, train, and set it back for use; or freeze the component "
        "(frozen_components)."
    )
    NOT_ROWS = (
        "Cannot search {name} of shape {given}: expected a float array of shape (n, width), a "
        "vector a row, such as numpy.stack([doc.vector for doc in docs])."
    )
    SEARCH_EMPTY_QUERY = (
        "Cannot search for {query}, which has no vector: it has no text. Give it some."
    )
    SEARCH_BAD_ARRAYS = (
        "{path} holds no quantised vectors ({reason}). Quantise and save them again."
    )
    CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What was there before stays: free some space (or fix what "
        "keeps the file from being written), and run the same command again."
    )
    BAD_WEIGHTS = (
        "The file of weights {file} is damaged or not whole ({reason}). Copy or download it again."
    )
    NO_PAIRS = "{path} holds no pairs: expected {expected}."
    BULK_NO_PIPELINE = (
        "Cannot load '{given}': expected a folder or an installed package of a pipeline, or the "
        "name of an encoder that is on this machine. {near}spaCy says: {reason}"
    )
    UNKNOWN_LABEL = (
        "{path}, line {line}: unknown label '{given}', expected one of {expected}. Repair the line."
    )
    DIVERGED_WEIGHTS = (
        "Training had diverged before this was saved: {reason}. Load model-best or an earlier "
        "pipeline, or train again with a lower learning rate."
    )
    ACTIVE_MODE = (
        "Cannot compute while a mode of PyTorch replaces tensors: an empty one became {given}. "
        "Leave the block of FakeTensorMode, or of another such mode, before you load, use or train "
        "an encoder."
    )
    AUTOCAST = (
        "Cannot use the transformer upstream of '{name}' within torch.autocast, which lowers its "
        "precision. Leave that block, or use an encoder of its own "
        "(spacy-sbert.SentenceEncoder.v1)."
    )
    ALL_FROZEN = (
        "Cannot train '{name}': frozen names all weights that training would change. Name fewer, "
        "or put the component into frozen_components."
    )
    TWO_TEXTS = (
        "An example has the gold values of another text: predicted is '{predicted}', reference is "
        "'{gold}'. Make both of one text: Example(doc.copy(), doc)."
    )
    OTHER_LAYERS = (
        "Cannot load the pipe '{name}': its config makes other layers than were saved, such as "
        "another dense layer or loss. Leave the settings as in the saved config.cfg, or make a "
        "new pipe with nlp.add_pipe."
    )
    NO_GRADIENTS = (
        "Cannot train {what}: gradients are turned off by torch.no_grad(), torch.inference_mode() "
        "or torch.set_grad_enabled(False). Train outside of that block, or within "
        "torch.enable_grad()."
    )
    NO_DATA = (
        'The weights of {what} were made without numbers, on the device "meta". Load or build it '
        "outside of accelerate.init_empty_weights() and the like."
    )
    NOT_DRAWN = (
        "Cannot draw the weights of {what}: PyTorch's functions that draw them are replaced. Build "
        "it outside of transformers' no_init_weights() and the like."
    )
    MISSING_PACKAGE = (
        "The pipeline needs '{name}' of {package}, which is not installed. Install it: pip install "
        '"spacy-sbert[{extra}]".'
    )
    NOT_FINITE = (
        "A vector of the example '{text}' is not finite: training diverged. Lower the learning "
        "rate."
    )


class DivergedError(ValueError):
    """Training has diverged: a loss, a vector or a weight is not finite."""


@_with_codes
class Warnings:
    """Messages of warnings, each with a code that filters name."""

    TRUNCATED = (
        "{count} of {total} rows were longer than the encoder's limit{limit} and were cut. In the "
        "encoder's config (of "
        'a shared one, that of the transformer) set overflow = "windows", or unit = "sent" to '
        "encode sentences."
    )
    UNKNOWN_EVALUATE_LABELS = (
        "{count} examples of {path} have labels that the pipeline does not know ({given}; known "
        "are {known}). They count as wrong: correct or remove them."
    )
    LOST_HOOKS = (
        "Docs from bytes, a DocBin, nlp.pipe(n_process=2) or Doc.from_docs come without hooks, or "
        "yours were changed: doc.vector is not the stored one until spacy_sbert.restore(docs) sets "
        "them, for a Doc, a list or a stream. doc._.sbert_vector needs none."
    )
    RESTORE_UNUSED = (
        "Nothing was restored: the result of spacy_sbert.restore(stream) was not read. Loop over "
        "it, or restore a list: spacy_sbert.restore(list(docs))."
    )
    POOLED_IN_CONTEXT = (
        "A Span is pooled in the context of its Doc. For its text alone: find_sbert(nlp, "
        '"{name}").encode(spans); for sentences: [components.{name}.model.get_spans] (or that of '
        'the shared transformer) unit = "doc+sent". If that is what you want: find_sbert(nlp, '
        '"{name}").vector(span, context=True).'
    )
    LONG_SENTENCE = (
        "A sentence of {size} wordpieces is longer than max_length of '{name}', and was broken "
        "between tokens ('{text!s:.50}'). Raise max_length, or set sentence boundaries also where "
        "list items and headings end."
    )
    OTHER_ENCODER = (
        "Compared vectors of two encoders, which have no common meaning ({ours}; {theirs}). "
        "Process both texts with the same pipeline."
    )
    BEHIND_LIMIT = (
        "A Span or Token lies behind the encoder's limit: its vector is missing or incomplete. "
        "Set overflow = "
        "\"windows\" in the config of the encoder of '{name}', or encode its text: "
        'find_sbert(nlp, "{name}").encode('
        'spans); for sentences, set unit = "doc+sent".'
    )
    SPANS_LEFT_OUT = (
        "{count} of {total} Spans have no vector and are left out, the first '{text}': they lie "
        "behind the encoder's "
        'limit, or have no word that is known. For a long text set overflow = "windows", or '
        "search the sentences."
    )
    UNKNOWN_DEV_LABELS = (
        "{count} examples of [{corpus}] have labels that no training example has ({given}; known "
        "are {known}). They count as wrong: correct or remove them."
    )
    UNKNOWN_SETTINGS = (
        "{file} was written by transformers {written} and has settings that {installed} does not "
        "know: {names}. The vectors may be others; install transformers {written} or later."
    )
    UNKNOWN_FOLDER_KEYS = (
        "{file} has keys that are unknown here: {names}. If they change vectors, those of the "
        "pipeline differ from sentence-transformers'."
    )
    UNKNOWN_TOKENIZER_KEYS = (
        "{file} has keys that are unknown here, and are not read: {names}. If they change "
        "wordpieces, so do vectors: correct them, or leave them out."
    )
    TOKENS_WITHOUT_EMBEDDING = (
        "The tokenizer in {folder} has {count} wordpieces that its encoder has no embedding of "
        "({names}): a text with one of them is refused."
    )
    IN_TWO_PIPELINES = (
        "'{name}' is in two pipelines, as it was sourced: it takes tokenizer, members and upstream "
        "components of the one in which it was found last. Save and load one of them to part them."
    )
    OTHER_TOKENIZER = (
        "'{name}' got Docs of another pipeline than it was made in, whose tokenizer `encode` "
        "uses: texts may have other vectors than their Docs. If it was sourced, get it by "
        "find_sbert(nlp) of the pipeline that it is in now, or save and load that."
    )
    PADDING = (
        "Padding changes the states of '{name}' ({cause}), so that sentence-transformers gives a "
        "text other vectors beside other texts. Here each text is encoded as by itself{remedy}."
    )
    SPARSE_ATTENTION = (
        "'{name}' reads long texts by block_sparse attention, here always; sentence-transformers "
        "only until it has "
        'read a short text. Set transformer_config = {{"attention_type": "original_full"}} for '
        "full attention."
    )
    HALF_PRECISION = (
        "The weights of '{name}' are {dtype}, in which sentence-transformers computes with "
        "transformers 5. Here they "
        'are read as float32: vectors differ by rounding. For speed set precision = "bfloat16" or '
        '"auto".'
    )
    STATIC_HALF_PRECISION = (
        "The table of '{name}' is {dtype}, in which sentence-transformers computes. Here it is "
        "read as float32: vectors differ by rounding."
    )
    SLOW_BFLOAT16 = (
        'precision = "bfloat16" is several times slower than "float32" on this CPU, which has no '
        "arithmetic "
        'for it (AVX-512 BF16 or AMX). Set precision = "auto", which chooses by the device.'
    )
    ENCODER_MISSING = (
        "The encoder '{name}' of the pipe '{pipe}' cannot be found: {reason}. {near}Correct the "
        "name, or the first text fails; nlp.initialize() and the pipe's load() tell where it was "
        "looked for."
    )
    ENCODER_LANGUAGE = (
        "The encoder '{name}' of the pipe '{pipe}' was made for the language '{theirs}', and this "
        "pipeline is for "
        "'{ours}': its vectors mean little. Use a multilingual encoder: config={{\"model\": "
        '{{"name": '
        '"sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"}}}}.'
    )
    BULK_CUT = (
        "{cut} of {rows} texts were longer than the encoder's limit and were cut. Set overflow = "
        '"windows" '
        "in the encoder's config to average over windows instead."
    )
    KEPT_OF_OWN_CODE = (
        "The pipeline runs {names}: code of no package, or a component that is not saved. What is "
        "kept in {cache} is used again unless the file that defines it changes. If anything else "
        "that it reads has changed, delete the folder."
    )
    NOTHING_LEARNED = (
        "No evaluation was better than the one at step 0: model-best is the encoder before "
        "training. Try a lower learning rate, more examples, or patience = 0 and more epochs; "
        "model-last has the last weights."
    )
    SCORES_UNCHANGED = (
        "All evaluations gave the score of step 0. Either no weight was trained (frozen parts, "
        "grad_factor = 0, a learning rate near 0), or the dev examples do not tell encoders apart."
    )
    TEXT_CHANGED = (
        "The tokenizer of the pipeline changes texts ({text!r} becomes {changed!r}), and '{name}' "
        "encodes them as they are: nlp(text).vector may be another than that of encode(text). Use "
        "nlp.pipe(texts), or give encode the text of make_doc(text)."
    )
    TOKENS_CHANGED = (
        "'{name}' encodes a text by its tokens alone, and {pipes} before it may change them: "
        "nlp(text).vector may be another. Use nlp.pipe(texts), or put '{name}' before {pipes}."
    )
    UNREAD_TEXTS = (
        "{path} has other columns of texts, which are not read: {names}. Only '{column}' is; name "
        "another column by --column, or --column {column} to read it without this warning."
    )
    SCORES_INVERTED = (
        "{path}: the scores look inverted, as distances are: the mean is {alike:.2f} of 0 to 1 for "
        "{n_alike} pairs of near-identical texts, and {unlike:.2f} for {n_unlike} pairs of unlike "
        "ones. Give similarities."
    )
    GOLD_CONTRADICTS = (
        "{path}: {found} of {count} rows have the texts of a row before them, and another score or "
        "label ({lines}). Case, spaces and marks around words do not count. Keep one of them."
    )
    ROWS_REPEATED = (
        "{path}: {found} of {count} rows repeat a row before them ({lines}), up to case, spaces "
        "and marks around words. Remove them, or they count twice."
    )
    BATCHES_WITHOUT_TRIPLETS = (
        "{count} of {total} batches have no two texts of a label beside one of another, so "
        "batch-hard losses learn nothing from them. Set a larger size in [training.batcher], or "
        "add texts of the rare labels."
    )
    CLASSES_CONTRADICT = (
        "{count} examples have the text of one before them and another label, such as {text!r}. "
        "Their first label counts as their class: keep one of them."
    )
    LABELS_ONCE = (
        "knn_acc is of {counted} of {total} texts: no other text has the label of the rest "
        "({labels}). Add texts with these labels, or mind it when you compare."
    )
    INT8_CLIPPED = (
        "{percent:.0f} % of the numbers are outside of the ranges of the sample, and are clipped. "
        "Fit on more vectors, such as those that are stored."
    )
    LABELS_ALIKE = (
        "{path}: the labels {labels} are read as different ones, and differ only in case, spaces, "
        "hyphens or underscores. If they mean the same, write them alike."
    )
    DIVERGED = (
        "{name} is not finite: training has diverged, and what is saved now cannot be loaded. Keep "
        "model-best or an earlier pipeline, or train again with a lower learning rate."
    )
    DEV_IN_TRAIN = (
        "{path}: {found} of {count} rows also stand in {train} ({lines}), up to case, spaces and "
        "marks around words. Scores on them show what was learned by heart: remove them from one "
        "of the files."
    )
    TORN_RECORDS = (
        "{path}: left out records that do not have {expected} columns ({lines}). A line break or a "
        "tab in a question splits them: quote the question, or join the lines."
    )
    RERANKER_TRUNCATED = (
        "{count} of {total} pairs were longer than the cross-encoder's limit of {limit} "
        "wordpieces; of these the longer text was cut. Score shorter texts, such as sentences or "
        "paragraphs."
    )
    RERANKER_TRAINING_CUT = (
        "While training '{name}': in this batch, and maybe in later ones, pairs were longer than "
        "the limit of {limit} wordpieces; of these the longer text was cut."
    )
    RERANKER_NEW_HEAD = (
        "The cross-encoder of '{name}' has a new head, drawn at random: its scores mean nothing "
        "before it is trained (configs/reranker.cfg). To use one that is trained, set its name in "
        "the config of the model."
    )
    RERANKER_NOTHING_TO_LEARN = (
        "'{name}' got a training batch without pairs: example.predicted has no two members in "
        "doc.spans['{key}']{found}. Read pairs with spacy-sbert.PairCorpus.v1, or list the pipe in "
        "[training] frozen_components."
    )
    FOREIGN_ROWS = (
        "The shared transformer encodes overlapping windows: vectors are pooled over the Doc's "
        "wordpieces, each token once, and differ from those of the encoder on its own. Set "
        "[components.transformer.model.get_spans] "
        '@span_getters = "spacy-sbert.sentence_spans.v1".'
    )
    NO_SENTENCES = (
        "The pipe '{name}' encodes sentences, but '{setter}', which sets their boundaries, is "
        "disabled, so Docs are "
        'encoded whole. Enable it, add a sentencizer (nlp.add_pipe("sentencizer", '
        'before="{encoder}")), or set unit = "doc" in get_spans.'
    )
    LATE_SENTENCES = (
        "The pipe '{name}' encodes sentences, but '{setter}', which sets their boundaries, runs "
        "after '{encoder}', so "
        'Docs are encoded whole. Move it, add a sentencizer (nlp.add_pipe("sentencizer", '
        'before="{encoder}")), or set unit = "doc" in get_spans.'
    )
    SHARED_DEFAULT_PROMPT = (
        "The authors of '{name}' put the prompt '{prompt}' before texts, which the component of "
        "spacy-transformers cannot do: vectors differ from theirs. Use sbert_transformer, or "
        "spacy-sbert.SentenceEncoder.v1, which has an encoder of its own."
    )
    TRAINING_CUT = (
        "While training the 'sbert' pipe '{name}': in this batch, and maybe in later ones, "
    )
    OTHER_POOLING = (
        "The encoder '{name}' was made for {expected} pooling, this pipeline uses {given} pooling: "
        "vectors "
        'differ from those its authors publish. Set pooling = "{expected}" unless that is what '
        "you want."
    )
    PART_OF_BATCH = (
        "The loss '{loss}' compares all examples of a batch, but training.accumulate_gradient "
        "splits it. Set accumulate_gradient = 1; for large batches use mini_batch_size in the "
        "encoder's config, or spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
    )
    UNKNOWN_BATCH = (
        "training.accumulate_gradient splits batches, and the 'sbert' pipe '{name}' is not told of "
        "the size of the whole: mean losses are added up. Set [training.batcher] @batchers = "
        '"spacy-sbert.batch_by_objective.v1", or "spacy-sbert.batch_mixed.v1".'
    )
    SCORES_IGNORED = (
        "{loss} does not read scores: it pulls the texts of all pairs together, also of '{text}', "
        "whose score is {score:g} (of 0 to 1). Leave such pairs out, or take a loss that reads "
        "scores, such as CosineSimilarityLoss."
    )
    MEMBERS_LOST = (
        "{count} of {total} examples have members in doc.spans['{key}'] of the reference alone: "
        "nothing is learned from them, and they are not scored. Make the predicted Doc by "
        "reference.copy()."
    )
    NO_GRADIENTS = (
        "The encoder '{name}' is trained, but none of its parameters requires a gradient, so it "
        "stays as it is. Set requires_grad_(True) on its network, or name what is frozen in the "
        "config (frozen)."
    )
    NOTHING_TO_LEARN = (
        "The 'sbert' pipe '{name}' got a training batch without pairs: example.predicted has no "
        "members in doc.spans['{key}']{found}. Read pairs with spacy-sbert.PairCorpus.v1, or list "
        "the pipe in [training] frozen_components."
    )
    META_FEWER_DIRECTIONS = (
        "By the method '{method}' the members of '{name}' have {size} directions to give, fewer "
        "than the {widest} of the widest member: its vectors are {size} wide. Set size for "
        "narrower ones."
    )
    META_NOT_POSITIVE = (
        "Of the {size} rho of '{name}' by the method 'gcca', {count} are not positive: what its "
        "members have in common ends after {positive}. Set size to {positive} to take no more than "
        "that."
    )
    UNKNOWN_INIT_LABELS = (
        "{count} examples of {dev} have labels that {train} does not have: {given}. They count as "
        "wrong: correct or remove them."
    )
    META_OTHER_MEMBERS = (
        "'{name}' was fitted on other encoders, or other settings, than its members have now "
        "({members}): they were trained, replaced or set since. Fit it again: nlp.initialize(), or "
        "python -m spacy sbert fit-meta."
    )
    META_OTHER_DOC = (
        "The vectors of {members} on a Doc are not by the encoders that '{name}' combines: another "
        "pipeline made them, or they were trained since. Process the text again: nlp(doc.text)."
    )
    META_LEFT_OUT = (
        "{count} sentences of {limit} tokens or more were left out; set max_tokens to take longer "
        "ones."
    )
    EXPORT_WINDOWS = (
        "The pipe '{name}' averages over windows of long texts (overflow = \"windows\"), which "
        "sentence-transformers cannot: it will cut texts at {limit} wordpieces."
    )
    EXPORT_CUT = (
        "The pipe '{name}' drops the last special token of a text longer than {limit} wordpieces "
        '(overflow = "cut"), '
        "and sentence-transformers keeps it: the vectors of such texts will differ."
    )
    EXPORT_PRECISION = (
        "The pipe '{name}' computes in precision = \"{precision}\". The exported folder has "
        "float32 weights, and its vectors are those of float32."
    )
    IMPORT_STATIC_PROMPTS = (
        "The prompts of {name} are left out ({given}): a table of wordpieces takes none. Put them "
        "before your texts."
    )
    IMPORT_STATIC_UNCUT = (
        "The tokenizer of {name} cuts texts at {limit} wordpieces, which the pipeline does not: "
        "vectors of longer texts are those of the whole text, and differ from "
        "sentence-transformers'."
    )
    NO_WORDS = (
        "The teacher's tokenizer is of the kind {given}, into which no words can be put: the table "
        "has the teacher's wordpieces alone."
    )


def import_extra(module: str, need: str, extra: str) -> ModuleType:
    """Return a module of an optional package.

    need (str): what needs which package, for the message.
    extra (str): the extra of this package that installs it.
    RAISES (ImportError): if it is not installed.
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{need}. Install it: pip install 'spacy-sbert[{extra}]'.") from error


# Names in a config, and the package and the extra of this package that provide them.
_PROVIDED = (
    (
        re.compile(r"'(transformer|spacy-transformers\.[^']*)'"),
        "spacy-transformers",
        "transformers",
    ),
    (
        re.compile(r"'(curated_transformer|spacy-curated-transformers\.[^']*)'"),
        "spacy-curated-transformers",
        "curated",
    ),
)


@contextmanager
def missing_packages() -> Iterator[None]:
    """Name the package to install if spaCy cannot find a factory or a function of it.

    RAISES (ImportError): then.
    """
    try:
        yield
    except ValueError as error:
        text = re.split("Available (?:factories|names)", str(error))[0]
        if not re.match(r"\[E002\]|\[E893\]", text):
            raise
        for names, package, extra in _PROVIDED:
            if found := names.search(text):
                message = Errors.MISSING_PACKAGE.format(name=found[1], package=package, extra=extra)
                raise ImportError(message) from error
        raise


# Warnings skip the frames of these packages: this one, and those that call it.
INNER = {
    "spacy_sbert",
    "spacy_sbert_msgpack",
    "spacy",
    "spacy_transformers",
    "spacy_curated_transformers",
    "thinc",
}
INNER |= {"confection", "catalogue", "srsly", "contextlib", "numpy", "typer", "click"}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called into this package or spaCy, however deep it is below."""
    level = 1
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 (documented, but CPython only)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in INNER:
        level += 1
        frame = frame.f_back
    warnings.warn(message, category, stacklevel=level)


class WarnOnce:
    """The warnings of one pipe.

    new_cuts makes a counter of cut texts, with their count and the message about them.
    """

    def __init__(self, new_cuts: Callable[[], Any]):
        self._new_cuts = new_cuts
        self.cuts = new_cuts()
        self._seen: set[str] = set()

    def is_new(self, message: str) -> bool:
        """Return whether a message is new, and remember it."""
        is_new = message not in self._seen
        self._seen.add(message)
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
            cuts = self.cuts
            self.cuts = self._new_cuts()
            if cuts.count:
                warn(cuts.message)
