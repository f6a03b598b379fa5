"""What is said of the command line."""

from .. import errors


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
