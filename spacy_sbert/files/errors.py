"""What is said of files that are read and written."""

from .. import errors


class Errors(errors.Errors):
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
    EMPTY_SENTENCE = "{path}, line {line}: {column} is empty. Every column that is read needs text."
    LONG_LINE = "{path}, line {line}: longer than {limit} bytes. Expected a text file with one example a line."
    BAD_GZIP = "{path}, line {line}: the compressed file is damaged ({reason}). Fetch it again."
    BAD_CSV = "{path}, line {line}: not {kind}-separated as expected ({reason}). Check its quotes, or write .jsonl."
    DRAWN_TABLE = (
        "{path}, line {line}: a table in Markdown, or one that is drawn with hyphens and pipes. Save it as .csv, .tsv "
        "or .jsonl."
    )
    TWO_SEPARATORS = (
        "{path}, line {line}: {given} may both be the separator. Make the first line sep={first} (or the other "
        "one), or write .jsonl."
    )
    DOUBTFUL_QUOTES = (
        "{path}, line {line}: cannot tell whether the quotes are part of the text ({reason}). Write the table as .csv "
        "or .jsonl."
    )
    WRONG_WIDTH = (
        "{path}, line {line}: {given} columns, but the first line has {expected}. Quote a text that has the separator "
        "or a line end in it, or repair the line."
    )
    SECOND_HEADER = "{path}, line {line}: the header comes again. Remove the line, or rename the columns in the header."
    ROW_NAMES = (
        "{path}, line {line}: {given} columns as in all rows, but the header has {expected}. Name the first column in "
        "the header, or remove the separators at the ends of the rows."
    )
    REPEATED_COLUMN = "{path}, line {line}: two columns are named '{column}'. Rename one of them."
    FIRST_ROW_IS_DATA = (
        "{path}, line {line}: the first row ({given}) looks like data. Read a table without a header with --no-header "
        "(header = false in Python and configs); if it is the header, name its columns: --members or --column."
    )
    NUL = "{path}, line {line}: has a NUL character. Save the file as UTF-8 again, or remove the line."
    NO_MARK = (
        "{path}, line {line}: not UTF-8 (it has NUL characters, as UTF-16 has). Save the file as UTF-8, or as UTF-16 "
        "with a byte order mark."
    )
    BAD_WORD_COUNT = (
        "{path}, line {line}: expected a word, white space and how often it was counted (1 or more), got '{given}'. "
        "Repair or remove the line."
    )
    REPEATED_WORD = "{path}, line {line}: the word '{word}' was counted before. Keep one line for each word."
    NO_WORD_COUNTS = "{path} holds no word counts: expected a word and its count on each line."
    NO_PYARROW = "Reading {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
    BAD_PARQUET = "{path}, record {line}: cannot be read as .parquet ({reason}). Write the file again."
    UNKNOWN_TEXTS = (
        "Cannot read texts from {path}: expected a name that ends in one of {expected}, all but .parquet also .gz."
    )
    CONFIG_VARIABLE = (
        "Cannot write {given!r} to a config, where '${{' begins a variable. Rename the file, folder or column."
    )
    SETTING_IGNORED = (
        "Cannot load '{name}' with {setting} = {given!r}: by {file} its weights were saved with another value, that of "
        "the saved config.cfg. Leave the setting as it is there; to use another encoder, make a new pipe with "
        "nlp.add_pipe."
    )
    VECTORS_NOT_TEXTS = (
        "{path} is a file of vectors: expected a file of texts here. Give the texts that the vectors are of; search, "
        "mine, cluster and visualize take the vectors, too: --vectors {path}."
    )
    NO_ID_IN_TEXT = "{path} has no column '{column}': a .txt file has a text a line, and no ids. Leave --id-column out."
    BAD_ID = (
        "{path}, line {line}: expected a string or a whole number of 64 bits in the column '{column}', got {given!r}. "
        "Repair the line, or leave --id-column out."
    )
    NOT_A_NUMBER = (
        "{path} is read without a header, but a column was named '{given}': expected a number counted from 0, such as "
        '--column 1 or members = ["1", "2"]. To go by names, leave --no-header out, or set header = true.'
    )
    NO_COLUMN = "{path}, line {line}: expected a column '{column}', got {given}. Check the names and the format{hint}."
    NOT_A_TEXT = "{path}, line {line}: expected a text in the column '{column}', got {given!r}. Repair the line."
    BAD_ENCODING = "{path}, line {line}: not UTF-8 ({reason}). Convert the file to UTF-8."
    BAD_JSON = "{path}, line {line}: expected a JSON object, got {reason}. Repair the line{hint}."
    LOCKED = (
        "Another process (number {pid}) writes the same output: it has locked {path}. Wait until it is done, or stop "
        "it."
    )
    SEARCH_BAD_OUTPUT = "Cannot write to {path}: expected a name that ends in .tsv or .jsonl."
