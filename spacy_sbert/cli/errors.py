"""What is said of the command line."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    BULK_BAD_GPU_IDS = "Cannot use --gpu-ids {given}: expected whole numbers with commas between, such as 0,1."
    BULK_OF_FOLDERS = "{path} is a file, and {options} is for folders of files. Leave it out, or name a folder."
    BULK_OF_FILES = (
        "{path} is a folder, and {option} is for single files: parts that are done stay. --restart makes all anew."
    )
    BULK_OF_RAY = "Options of Ray were given without --engine ray: {options}. Add it, or leave them out."
    BULK_NO_ENGINE = "Unknown --engine '{given}': expected local or ray."
    SEARCH_OF_TEXTS = "{option} is of a file of texts, and {folder} has vectors: leave it out."
    INIT_NO_GOLD = (
        "{path} has no gold to score by, neither a score nor a label: with pairs alone nothing can be measured. Give a "
        "dev table with a column of scores, 0 for pairs that do not belong together and 1 for those that do."
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


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    OLD_CALL = "'{old}' is now the command 'python -m spacy sbert {new}', with the same options. This call still works."
