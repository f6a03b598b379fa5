"""What is said of correlation."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    UNEQUAL_LENGTHS = "Cannot correlate arrays of shapes {predicted} and {gold}: expected two of shape (n,)."
    NOT_A_FINITE_NUMBER = (
        "Cannot correlate: {name} value {place} is {given}. Expected finite numbers: look for texts whose vectors are "
        "not finite."
    )
