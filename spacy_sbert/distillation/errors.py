"""Messages about what is made from a teacher."""

from .. import errors


class Errors(errors.Errors):
    STATIC_SIZE = (
        "Cannot make a table of {given} numbers from the teacher, whose vectors have {width}: set size to at most that."
    )
    FEW_TEXTS = (
        "The vocabulary has {given} texts with words, and {needed} are needed to fit a table of {size} numbers to the "
        "teacher: give more texts, one a line, or a smaller size."
    )


class Warnings(errors.Warnings):
    NO_WORDS = (
        "The teacher's tokenizer is of the kind {given}, into which no words can be put: the table has the teacher's "
        "wordpieces alone."
    )
