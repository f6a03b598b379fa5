"""What is said of files of texts that are encoded."""

from .. import errors


class Errors(errors.Errors):
    BULK_UNKNOWN_OUTPUT = "Cannot write vectors to {path}: expected a name that ends in one of {expected}."
    BULK_NO_COLUMNS = (
        "Cannot write ids or texts to {path}: an array has none. Give the output a name that ends in .parquet, or "
        "leave --id-column and --with-text out."
    )
    BULK_NO_PYARROW = "Writing {path} needs pyarrow. Install it: pip install 'spacy-sbert[parquet]'."
    BULK_UNKNOWN_DTYPE = "Unknown dtype '{given}' of the output: expected one of {expected}."
    BULK_MIXED_IDS = (
        "{path}: the column '{column}' has strings and whole numbers. Make all ids of one type, or leave --id-column "
        "out."
    )
    BULK_SAME_FILE = "{path} is the input, and was given as the output, too. Give the output another name."
    BULK_OUTPUT_EXISTS = "{path} is there already. Give the output another name, or replace the file with --overwrite."
    BULK_INPUT_CHANGED = (
        "{path} was changed while it was read. Run the same command again; if the change is to stay, with --restart."
    )
    BULK_OTHER_RUN = (
        "{folder} holds an interrupted run that was begun otherwise: {differing}. Go on with the input and the options "
        "of that run, or begin anew with --restart."
    )
    BULK_DAMAGED = (
        "{folder} holds an interrupted run whose run.json cannot be read ({reason}). Begin anew with --restart."
    )
    BULK_CANNOT_WRITE = (
        "Cannot write {path}: {reason}. What is done is kept: make room (or mend what keeps the file from being "
        "written), and run the same command again to go on."
    )
    BULK_NOT_FINITE = (
        "The vector of row {row} (from 0) is not finite in {dtype}. Write float32, or encode in another precision "
        "(--precision float32)."
    )
