"""What is said of files of texts that are encoded."""

from .. import errors


class Errors(errors.Errors):
    BULK_NO_PIPE = "The pipeline has no {kinds} pipe named '{name}'. Pipes of this kind: {expected}."
    BULK_COMBINED = (
        "The vectors of this pipeline are combined by '{name}' from those of: {members}. Files are encoded by a single "
        "encoder: expected the name of one of them (--pipe, name=). In Python, "
        "spacy_sbert.find_meta(nlp).encode(texts) makes an array of the combined vectors."
    )
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
    BULK_NO_PLACE = (
        "Cannot read the folder {given}: {reason}. Expected a folder of this machine, or an address such as "
        "s3://bucket/folder, gs://bucket/folder or hdfs://host/folder, with the rights to read it."
    )
    BULK_NO_PARTS = "{given} has no files of texts: expected some whose names end in one of {expected}."
    BULK_UNKNOWN_PART = (
        "{path} is no file of texts: expected names that end in one of {expected}, all but .parquet also .gz. Move it "
        "away, or begin its name with a dot."
    )
    BULK_NO_RAY = "The engine 'ray' needs Ray. Install it: pip install 'spacy-sbert[ray]'."
    BULK_NO_BATCH_COLUMN = "A batch has no column '{column}', but {given}. Name the column of the texts: column=..."
    BULK_NO_SCRATCH = "There is no folder scratch = {given} on this machine to work in. Make it, or leave scratch out."
    BULK_BAD_SHARD = "Cannot do the shard '{given}': expected I/N, the I-th of N, such as 2/8 for the second of eight."
    BULK_OTHER_JOB = (
        "{folder} holds vectors that were made otherwise: {differing}. Go on with the encoder and the options of then, "
        "or take another folder. --restart makes all of them anew."
    )
    BULK_OTHER_PART = (
        "{path} was changed since its vectors were made (it has {given} bytes, then {known}). Take another folder for "
        "the new data, or make all vectors anew with --restart."
    )
    BULK_NO_INDEX = (
        "{folder} is no folder of vectors that is whole: index.json is missing, or has no row. Encode a folder of "
        "texts to it, until all parts are done."
    )
    BULK_OTHER_VECTORS = (
        "{path} in {folder} is not the file that was written ({reason}). Remove it, and encode the folder of texts "
        "again."
    )
    BULK_NO_VECTORS = (
        "There are no vectors at {path}: {reason}. Give a .npy or .parquet file that was written by: python -m spacy "
        "sbert encode TEXTS {expected}."
    )
    BULK_NO_RECORD = (
        "{path} does not say what it was made of: {record} beside it cannot be read ({reason}). Encode the texts to "
        "another file: python -m spacy sbert encode."
    )
    BULK_NOT_WRITTEN = (
        "{path} is not the file that was written: its SHA-256 is {given}, of that it was {known}. Encode the texts "
        "again, with --overwrite."
    )
    BULK_OTHER_TEXTS = (
        "The {rows} vectors in {path} are of other texts than the {count} of {corpus}: {differing}. Give the file and "
        "the column that were encoded, or encode these."
    )
    BULK_NOT_FINITE = (
        "The vector of row {row} (from 0) is not finite in {dtype}. Write float32, or encode in another precision "
        "(--precision float32)."
    )


class Warnings(errors.Warnings):
    """Of warnings."""

    BULK_CUT = (
        '{cut} of {rows} texts were longer than the encoder\'s limit and were cut. Set overflow = "windows" in the '
        "encoder's config to average over windows instead."
    )
