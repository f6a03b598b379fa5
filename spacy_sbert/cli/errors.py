"""What is said of the command line."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    BULK_BAD_GPU_IDS = "Cannot use --gpu-ids {given}: expected whole numbers with commas between, such as 0,1."


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    OLD_CALL = "'{old}' is now the command 'python -m spacy sbert {new}', with the same options. This call still works."
