"""What is said of files that are read and written."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    FOLDER_EXISTS = "There is something at {path} already: give the name of a new folder, or remove it."
    NOT_A_FILE = "{path} is {kind}: expected a file. Write what is to be read to one, and give its name."
    NOT_TO_WRITE = (
        "{path} is {kind}: expected nothing there, or a file of its own. Nothing was written through it. Remove it, or "
        "give another name."
    )
    BAD_SEAL = "its SHA-256 is not the one that was saved with it: it was damaged or changed"
    DAMAGED_FILE = (
        "The file {file} of the saved pipeline is damaged: {reason}. It was changed after it was written, or writing "
        "or copying it was cut short. Save or copy the pipeline again{remedy}."
    )
    DAMAGED_BYTES = (
        "The saved model (the file 'model' in the folder of its component, or bytes of it) is damaged: {reason}. It "
        "was changed after it was written, or writing or copying it was cut short. Save or copy the pipeline again; "
        "if 'spacy train' was stopped while it wrote model-last, try model-best beside it."
    )
    BAD_SCORE = (
        "{path}, line {line}: expected a score from {low:g} to {high:g}, got '{given}' in the column '{column}'. "
        "Repair the line, or set min_score and max_score for a table of another range."
    )
    EMPTY_SENTENCE = "{path}, line {line}: {column} is empty. Every column that is read needs text."
    EQUAL_MEMBERS = (
        "{path}, line {line}: the members {columns} of a triplet are equal, so there is nothing to tell apart. Remove "
        "the line."
    )
    LONG_LINE = "{path}, line {line}: longer than {limit} bytes. Expected a text file with one example a line."
    BAD_GZIP = "{path}, line {line}: the compressed file is damaged ({reason}). Fetch it again."
    BAD_CSV = (
        "{path}, line {line}: not comma-separated as expected ({reason}). Check its quotes, or use .tsv or .jsonl."
    )
    BAD_WORD_COUNT = (
        "{path}, line {line}: expected a word, white space and how often it was counted (1 or more), got '{given}'. "
        "Repair or remove the line."
    )
    REPEATED_WORD = "{path}, line {line}: the word '{word}' was counted before. Keep one line for each word."
    NO_WORD_COUNTS = "{path} holds no word counts: expected a word and its count on each line."
