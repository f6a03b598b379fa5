"""What is said of losses."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    UNKNOWN_LOSS_SETTING = "Unknown {setting} '{given}' of the loss '{loss}': expected one of {expected}."
    BAD_LOSS_SETTING = "The loss '{loss}' cannot work with {setting} = {given}: expected {expected}."
    LOSS_MEMBER_COUNT = "The loss '{loss}' takes examples of {expected} members, got {given}."
    UNEQUAL_ROWS = "The loss '{loss}' expects as many rows of every member as of gold values, got {given}."
    NO_HEAD = (
        "The loss '{loss}' has a classifier that was not initialized. Call nlp.initialize with examples that carry "
        "labels, or load a trained pipeline."
    )
    TOO_FEW_LABELS = (
        "The loss '{loss}' needs at least two labels to tell apart, got {given}. Give it more examples, or name the "
        "labels in [initialize.components.sbert] labels."
    )
    OTHER_LABELS = (
        "The classifier of the loss '{loss}' was made for the labels {known}, and cannot be initialized for {given}. "
        "Build the pipe anew to train a classifier for other labels."
    )
    LABEL_WITHOUT_HEAD = (
        "The label '{given}' is unknown to the loss '{loss}', whose classifier was made and saved for the labels "
        "{known}. Correct the example, or initialize the pipe anew with all labels, from the examples or from "
        "[initialize.components.sbert] labels."
    )
    WRONG_HEAD_WIDTH = (
        "The classifier of the loss '{loss}' was made for {expected} features an example, got {given}: the encoder's "
        "width has changed since. Use the encoder it was trained with, or build the pipe anew."
    )
    OTHER_CONCATENATION = (
        "The classifier of the loss '{loss}' was trained and saved with the concatenation {saved}, but the config says "
        "{given}. Restore it in the config, or build the pipe anew."
    )
    NO_NEGATIVES = (
        "The loss '{loss}' got a batch of one pair, which has no negatives to rank. Set training.batcher.size to at "
        "least 2, or give each example a third member, its hard negative."
    )
    GOLD_NOT_BINARY = "The loss '{loss}' expects gold scores of 0 (unlike) or 1 (alike), got {given}."
    ODD_WIDTH = (
        "The loss '{loss}' reads a vector as complex numbers, the first half real and the second imaginary: expected "
        "an even width, got {given}. Use another encoder, or spacy-sbert.CoSENTLoss.v1."
    )
    TOO_NARROW = (
        "The loss '{loss}' is to cut vectors to {given} dimensions, but they are {width} wide. Lower its dims to at "
        "most {width}."
    )
    TEACHER_WIDTH = (
        "The vectors to learn are {width} wide, the teacher's are {teacher} wide. Choose a teacher of the same width "
        "for the loss '{loss}', or spacy-sbert.ProjectedDistillationLoss.v1, which takes any."
    )
    PROJECTION_WIDTHS = (
        "The projection of the loss '{loss}' has the widths {known} (teacher, encoder), and the batch {given}. Call "
        "nlp.initialize with examples of the teacher, or build the pipe anew for another teacher."
    )
    NO_OBJECTIVES = "The loss '{loss}' has no objectives: expected at least one in [components.sbert.loss.objectives]."
    NO_SUCH_OBJECTIVE = "The loss '{loss}' has no objective '{given}' ({where}): expected one of {expected}."
    OTHER_OBJECTIVES = (
        "The loss '{loss}' was saved with the objectives {saved}, but the config names {given}. Name them as they were "
        "saved."
    )
    NOT_A_LOSS = (
        "The loss '{loss}' is built of loss layers, such as spacy-sbert.CosineSimilarityLoss.v1, got {given}. Set "
        "@layers to one of them in {setting}, or to a function of yours that returns a spacy_sbert.losses.LossLayer."
    )
    NESTED_OBJECTIVES = (
        "The loss '{loss}' cannot hold '{given}', which has objectives of its own. Make '{given}' the outermost loss."
    )
    NOT_A_LOSS_LAYER = "Expected a loss layer (spacy_sbert.losses.LossLayer), got {given}."
    LOSS_NOT_A_NUMBER = (
        "The forward function of the loss '{loss}' returned {given} as the loss of a batch. Expected a float, such as "
        "float(losses.mean())."
    )
    GRADIENT_SHAPES = (
        "The backprop of the loss '{loss}' returned gradients of the shapes {given}. Expected a list with one array a "
        "member, of the shape of the member: {expected}."
    )
    WRONG_GRADIENT = (
        "The gradient of the loss '{loss}' is wrong for {what} at [{place}]: backprop returns {given}, finite "
        "differences give {expected}. Correct the backprop. If the loss has a kink near this point, try other members."
    )
    LOSS_NOT_REGISTERED = (
        "Cannot train with the loss '{name}': no function of this name is registered in this process, and the saved "
        "pipeline was loaded without it. Import the module that registers it before you load the pipeline, or give its "
        "file with --code."
    )
