"""What the package raises or warns with: what was given, what was expected, and the remedy.

The messages of one room stand in its own errors.py, what several say here. Each begins with a code in brackets, made of
its name, by which filters of warnings and users' searches know it: TRUNCATED is [sbert-truncated].
"""

import re


class Messages:
    """Messages by names that say what went wrong; a subclass puts the code of each before it."""

    def __init_subclass__(cls) -> None:
        for name, text in list(vars(cls).items()):
            if name.isupper():
                setattr(cls, name, f"[sbert-{name.lower().replace('_', '-')}] {text}")


def reason_of(error: Exception) -> str:
    """What an exception says, without its code: for a message around it."""
    return re.sub(r"^\[sbert-[a-z0-9-]+\] ", "", str(error))


class Errors(Messages):
    """Of exceptions."""

    NO_VECTORS = (
        "This {kind} carries no sentence vectors{which}: its Doc was not processed by an 'sbert' pipe, or its user "
        "data did not travel with it. Process the text with the pipeline (nlp or nlp.pipe), or transport the Doc with "
        "its user data (DocBin(store_user_data=True), Span.as_doc(copy_user_data=True))."
    )
    UNEQUAL_WIDTHS = (
        "Cannot compare vectors of unequal width: {ours} and {theirs}. Both sides must come from the same sentence "
        "encoder; process both texts with the same pipeline."
    )
    TOKEN_PROMPT = (
        "Cannot put the prompt '{prompt}' before Docs: a token-to-vector model, a table of wordpieces and a "
        "curated_transformer read them as they are. Put it before the texts, or use a transformer "
        "(spacy-sbert.SentenceEncoder.v1)."
    )
    SLOW_TOKENIZER = (
        "The tokenizer of '{name}' is a slow one, written in Python, which a static encoder cannot keep: expected an "
        "encoder with tokenizer.json, or of a family that Transformers has a fast tokenizer for."
    )
    META_BAD_OPTION = "Bad value {given!r} for {name}: expected {expected}."
    DENSE_NOT_INITIALIZED = (
        "The dense layer of the sentence encoder has no weights yet: call nlp.initialize() to draw them and train, or "
        "load a pipeline that has them (python -m spacy sbert import)."
    )
    TRUNCATE_DIM = "Cannot truncate vectors to {given} dimensions: they have {width}. Set truncate_dim to at most that."
    PROMPT_POOLING = (
        "include_prompt = false leaves the first wordpieces out, which has no one meaning with pooling = '{given}': "
        "expected {expected}."
    )
    NO_BOUNDARIES = (
        "The Doc '{text}' has no sentence boundaries, and the rows of the encoder are to be sentences: "
        'unit = "sent" in get_spans. What sets boundaries (a parser, a senter, a sentencizer) must be enabled, and '
        'stand before what encodes: nlp.add_pipe("sentencizer", before="sbert"), or before="transformer" where that is '
        'shared. With unit = "doc+sent" Docs without boundaries are encoded whole.'
    )
    REFERENCE_BATCH = (
        'max_batch_items = {given} and precision = "reference" do not go together: that encodes in the batches of '
        'sentence-transformers. Leave max_batch_items out, or set precision = "float32".'
    )
    OTHER_DEVICE = (
        "Cannot use device = {given}: the pipeline is on {expected}. Call spacy.require_gpu() or spacy.require_cpu() "
        "before it is loaded, or give gpu_ids to encode."
    )
    NO_FORM = "Cannot use convert_to_numpy = False without a tensor. Set convert_to_tensor = True."
    WRONG_SETTING = "Cannot use {name} = {given}: expected {expected}."
    HALF_CHARACTER = (
        "Cannot encode {what}, {given}: it has half a character (a lone surrogate, U+D800 to U+DFFF) at "
        "position {position}. Decode the bytes it comes from as UTF-8, or replace it: "
        "text.encode('utf-16', 'surrogatepass').decode('utf-16', 'replace')."
    )
    NOT_TEXTS = (
        "Cannot encode {given}: expected several texts in an order, such as a list of str. Put a single text into a "
        "list; of a dict give list(texts.values())."
    )
    NOT_STR = "Cannot encode text number {number}, {given}: expected str, got {kind}."
    MISSING_TEXT = (
        "Cannot encode text number {number}{label}: it is missing ({given}). Leave it out, or fill it: "
        'df["text"].dropna() or df["text"].fillna("") of pandas.'
    )
    SEVERAL_COLUMNS = (
        'Cannot encode a table of {given}: expected one column of texts. Choose it by its name, such as df["text"].'
    )
    SEVERAL_DIMENSIONS = (
        "Cannot encode an array of shape {given}: expected shape (n,) or (n, 1). Choose one column of texts, such as "
        'array[:, 0], or df["text"] of a table.'
    )
    NOT_ROWS = (
        "Cannot search {name} of shape {given}: expected a float array of shape (n, width), a vector a row, such as "
        "numpy.stack([doc.vector for doc in docs])."
    )
    SEARCH_EMPTY_QUERY = "Cannot search for {query}, which has no vector: it has no text. Give it some."
    SEARCH_BAD_ARRAYS = "{path} holds no quantised vectors ({reason}). Quantise and save them again."
    CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What was there before stays: make room (or mend what keeps the file from being "
        "written), and run the same command again."
    )
    BAD_WEIGHTS = "The file of weights {file} is damaged or not whole ({reason}). Copy or download it again."
    SINGLE_CLASS = (
        "The loss '{loss}' learns to tell labels apart, but all examples have the same: {given}. Train on data with "
        "two labels or more, or give all of them in [initialize.components.sbert] labels, if the first examples do not "
        "show them."
    )
    LOSS_NOT_FINITE = (
        "The loss '{loss}' is not finite in the batch that begins with '{text}': training has diverged. Lower the "
        "learning rate, clip the gradient, or use float32 or bfloat16 in place of float16."
    )
    UNKNOWN_TABLE = (
        "Cannot read {path} as a table: expected a name that ends in one of {expected}, all but .parquet also .gz."
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
        "A vector of the example '{text}' is not finite: training has diverged. Lower the learning rate or clip "
        "the gradient."
    )


class Warnings(Messages):
    """Of warnings and the log."""

    META_LEFT_OUT = "{count} sentences of {limit} tokens or more were left out; set max_tokens to take longer ones."
