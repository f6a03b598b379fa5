"""What is said of the command line."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    BULK_BAD_GPU_IDS = "Cannot use --gpu-ids {given}: expected whole numbers with commas between, such as 0,1."
    OUTPUT_EXISTS = "{path} is there already. Give the output another name, or replace it with --overwrite."
    OUTPUT_NOT_RESULTS = (
        "{path} is there already, and holds no results of `benchmark`, which could be brought up to date. Give the "
        "output another name, or replace it with --overwrite."
    )
    ENCODE_MISSING = (
        "There is no OUTPUT beside {given}: expected `encode INPUT OUTPUT` or `encode PIPELINE INPUT OUTPUT`, where "
        "OUTPUT ends in .npy or .parquet, or is the folder for the vectors of a folder."
    )
    ENCODE_NO_INPUT = (
        "There is no file or folder {path}: expected texts, as `encode INPUT OUTPUT` or `encode PIPELINE INPUT OUTPUT`."
    )
    BAD_MEMBERS = (
        "Cannot read --members {given} ({reason}): expected names with commas between. Put a name that has a comma in "
        """quotes: --members '"q,r",text2'."""
    )
    NO_COLUMNS_IN_TEXT = (
        "{path} has a text a line, and no columns: leave {options} out. If it is a table, give it a name that ends in "
        ".csv or .tsv."
    )
    ENCODE_PATHS = (
        "Cannot tell what {given} is: expected `encode INPUT OUTPUT --pipeline PIPELINE` or `encode PIPELINE INPUT "
        "OUTPUT`, with the pipeline once."
    )
    GPU_TWICE = "--gpu-id and --gpu-ids were both given: expected one of them. --gpu-ids 0,1 takes several GPUs."
    NO_QUERY = "There is nothing to search for: give queries behind the texts, or --queries with a file that has some."
    MINE_GROUPS = (
        "--groups needs --min-score, the cosine similarity from which two texts belong together, and takes no -k. Give "
        "such as --groups --min-score 0.9."
    )
    SEARCH_NO_COLUMN = (
        "{folder} is a folder: --id-column is for a file of texts. Leave it out: ids that were saved are shown."
    )
    EVALUATE_FOLDER = (
        "{path} is a folder: give a file of examples, or score the pipeline on the data sets in a folder with "
        "'python -m spacy sbert benchmark'."
    )
    BULK_OF_FOLDERS = "{path} is a file, and {options} is for folders of files. Leave it out, or name a folder."
    BULK_OF_FILES = (
        "{path} is a folder, and {option} is for single files: parts that are done stay. --restart makes all anew."
    )
    BULK_OF_RAY = "Options of Ray were given without --engine ray: {options}. Add it, or leave them out."
    BULK_CODE_ON_RAY = (
        "--code is not imported by workers on Ray: install a package of the pipeline there that has the code."
    )
    BULK_NO_ENGINE = "Unknown --engine '{given}': expected local or ray."
    SEARCH_OF_TEXTS = (
        "{option} is of a file of texts, and the folder {folder} is {what}, which is searched as it is: leave it out. "
        "For another index give the texts that it is of: search PIPELINE TEXTS QUERY --kind flat --index FOLDER."
    )
    EVALUATE_NO_GOLD = (
        "{path} has two texts a row ({members}) and no gold to score by, neither a score nor a label. Name its column "
        "by --score or --label, or give a table that has one."
    )
    EVALUATE_NO_HEADER = (
        "The pipeline was trained on tables without a header, and {path} has one, or other columns. If its columns are "
        "the same, give {options}; otherwise name them with --members and --score or --label."
    )
    EVALUATE_NO_SCORE = (
        "Nothing can be measured on {path}: {reasons}. Give a file whose gold the pipeline can be scored by."
    )
    INIT_STS = (
        "{path} has the layout of the STS benchmark, which needs no config of its own: train with configs/sts.cfg. For "
        "one of the columns' own, name them: --no-header --members 5,6 --score 4."
    )
    INIT_NO_GOLD = (
        "{path} has no gold to score by, neither a score nor a label: with pairs alone nothing can be measured. Give a "
        "dev table with a column 'score', 0 for pairs that do not belong together and 1 for those that do."
    )
    INIT_OTHER_GOLD = (
        "{train} has scores of 0 and 1 alone, {dev} has others, too: average precision, which is measured in training "
        "on pairs of 0 and 1, is not defined for them. Give a dev table with scores of 0 and 1."
    )
    INIT_ONE_VALUE = (
        "Nothing can be {what} {path}: {reason}. Give a table with several values, or one without this column."
    )
    INIT_OTHER_LABELS = (
        "{dev} has the labels {given}, and {train} has none of them: {known}. Spell them alike, or give another dev "
        "table."
    )
    CONVERT_RANGE = (
        "The scores of {path} (column '{column}') are in the range {low:g} to {high:g}, and are stored from 0 to 1. "
        "Give the range of the whole data set: --min-score {low:g} --max-score {high:g}."
    )
    SEARCH_OF_VECTORS = (
        "{corpus} has vectors of its own, so --vectors {vectors} cannot be searched, too. Leave them out, or give the "
        "texts that they are of, or an index that the command `index` built."
    )
    INDEX_OF_FILE = (
        "{given} is a file: expected a folder of vectors, which `encode` made of a folder of texts. The index of one "
        "file is built by its first search: search PIPELINE TEXTS QUERY --vectors {given} --index FOLDER."
    )
    BULK_BAD_WORKERS = "Cannot use --workers {given}: expected the fewest and the most, such as 1,64."
    TRAIN_OPTION = (
        "There is no option {given}: expected one that `spacy sbert train --help` lists, or a setting of the config "
        "with its section, such as --training.max_epochs 4."
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    UNKNOWN_INIT_LABELS = (
        "{count} examples of {dev} have labels that {train} does not have: {given}. They count as wrong: correct or "
        "remove them."
    )


class Notes(errors.Messages):
    """Of what a command was doing."""

    STOPPED = (
        "What was saved is whole. There is no checkpoint to go on from: with --checkpoint-every 50, a training "
        "keeps one every 50 steps, and the same command with --resume goes on from it."
    )
    STOPPED_BEFORE = (
        "What was saved is whole. There is no checkpoint to go on from: the first is kept after step {every}. Give a "
        "smaller --checkpoint-every to have one sooner."
    )
    STOPPED_AT = "What was saved is whole. The same command with --resume goes on from {checkpoint}."
