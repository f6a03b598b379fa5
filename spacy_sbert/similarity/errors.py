"""What is said of correlation, and of arrays of vectors."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    UNEQUAL_LENGTHS = "Cannot correlate arrays of shapes {predicted} and {gold}: expected two of shape (n,)."
    NOT_A_FINITE_NUMBER = (
        "Cannot correlate: {name} value {place} is {given}. Expected finite numbers: look for texts whose vectors are "
        "not finite."
    )
    UNPAIRED_ROWS = (
        "Cannot compare {ours} vectors with {theirs} pairwise: expected as many of both. similarity compares each with "
        "each."
    )
    NOT_NUMBERS = (
        "Cannot compare {name} = {given}: expected vectors, a float array of shape (n, width). Those of texts are "
        "encode(texts); Docs and Spans compare themselves: doc.similarity(other)."
    )
    ROW_NOT_FINITE = (
        "Row {row} of the {name} is not finite: it has NaN or infinity, which is similar to nothing. Leave it out, or "
        "look for why the pipeline gives such a vector."
    )
    BAD_COUNT = (
        "Cannot find {given} {what}: expected a whole number, at least 1 and at most {most}, as {name}. Ask for fewer, "
        "or give more vectors."
    )
