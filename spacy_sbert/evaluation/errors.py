"""What is said of evaluation."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    NO_SCORES = (
        "The pipeline has no 'sbert' pipe that scores pairs; its pipes are {pipes}. Add one: nlp.add_pipe(\"sbert\")."
    )
    UNKNOWN_SETTING = "Unknown value '{given}' among the {name} of the evaluation: expected some of {expected}."
    REPEATED_SETTING = "The {name} of the evaluation are '{given}': expected at least one, and none twice."
    UNKNOWN_SIZE = (
        "Unknown size '{given}': expected own, pca-D (D principal components) or up-D (random up-projection to D "
        "numbers, at most 65536), such as pca-128."
    )
    NO_SIZE_FITS = (
        "None of the sizes {sizes} can be made from {rows} vectors of width {width}: in up-D, D must be at least the "
        "width; in pca-D, at most the smaller of the two numbers. Add the size own, or another."
    )
    SIZE_TOO_SMALL = "Cannot up-project vectors of width {width} to size '{size}': expected at least up-{width}."
    SIZE_TOO_LARGE = (
        "Cannot take '{size}' of {rows} vectors of width {width}: there are no more components than the smaller of the "
        "two. Choose a smaller size."
    )
    MISSING_DATA = "{names} not found below {root}. Get it from {source}"
    NOT_OFFICIAL = (
        "{path}: {given} examples with a gold value, where the official data set has {official}. Get the whole file, "
        "or allow any number (any_count, on the command line --any-count); the scores then cannot be compared with "
        "published ones."
    )
    NO_DATA = "None of the data sets asked for is below {root}:\n{missing}"
    UNKNOWN_SUITE = "Unknown suite '{given}': expected some of {expected}."
    NO_FELLOW = "{path} is missing, while {fellow} is there: sentences and scores belong together."
    UNEQUAL_FILES = (
        "{path}, line {line}: the file ends before this line, but the other one goes on. {given} has {lines} lines, "
        "{gold} has {scores}: expected one score, or a blank line, for each pair."
    )
    PIPELINE_WITHOUT_VECTORS = (
        "The pipeline {name} gives no vectors: doc.vector is empty. It has the pipes {pipes}: add one that sets "
        'doc.vector, such as nlp.add_pipe("sbert"), or static vectors.'
    )
    NOT_CLASSIFYING = (
        "The pipeline has no trained classification head: to label pairs, train an 'sbert' pipe with "
        "spacy-sbert.SoftmaxLoss.v1 (configs/nli.cfg)."
    )
    BAD_CACHE = "{path} does not hold saved vectors of an evaluation: {reason}. Delete it."
    UNREADABLE_RESULTS = (
        "{path} cannot be read as results of an evaluation: {reason}. Expected the JSON file that 'python -m spacy "
        "sbert benchmark --output' saves."
    )
    LARGE_RESULTS = (
        "{path} has {given} bytes, more than any results of an evaluation ({limit}). Expected the JSON file that "
        "'python -m spacy sbert benchmark --output' saves."
    )
    OTHER_FORMAT = (
        "{path} has the format {given}, expected '{expected}': it is not the result of an evaluation, or comes from "
        "another version of this package. Evaluate the model again."
    )
    BAD_RESULTS = (
        "{path} is not the result of an evaluation: {place} is {given}, expected {expected}. Evaluate the model again."
    )
    NOTHING_TO_COMPARE = "Cannot compare {given} results of evaluations: expected two or more."
    NO_SKLEARN = "{task} needs scikit-learn. Install it: pip install 'spacy-sbert[evaluation]'."
    NO_CROSS_ENTROPY = (
        "The perceptron has no cross-entropy that is a number on {held} held-out examples, of which {known} have a "
        "class of the training data: expected some, and vectors of finite numbers. Check the labels and the vectors."
    )
    ONE_CLASS = (
        "{task}: all training examples have the label '{given}', but a classifier needs at least two. Check the "
        "files, or get them again."
    )
    FEW_EXAMPLES = (
        "{task}: {given} training examples have the label '{label}', expected at least {expected}: one for each fold. "
        "Check the files, or get them again."
    )
    BAD_FOLDS = "Cannot make {given} folds of {most} {what}: expected 2 to {most}."
    ONE_TOPIC = "All pairs are about {given}: expected two topics or more, to leave one out."
    UNKNOWN_BASELINE = "Unknown baseline '{given}': expected one of {expected}."
    BASELINE_NEEDS = "The baseline '{name}' needs {needs}."
    NO_STATIC_VECTORS = (
        "The pipeline {name} has no static vectors, which this baseline needs. Use one that has them, such as "
        "en_core_web_md, or make one from a file of word vectors with 'python -m spacy init vectors'."
    )
    BAD_POWER = "Cannot take the power mean with p = {given}: expected whole numbers above 0, -inf and inf."
    NO_PIPELINE_TO_TIME = "There is no source of vectors to time: give the task a pipeline (nlp) or a source."
    NO_MTEB = "The adapter for mteb needs mteb 2. Install it: pip install 'spacy-sbert[mteb]'."
    NOT_TEXT_INPUT = (
        "The task '{task}' gave a batch with {given}, but no text: a pipeline encodes only texts. Choose tasks whose "
        "modality is text."
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    UNKNOWN_EVALUATE_LABELS = (
        "{count} examples of {path} have labels that the pipeline does not know ({given}; known are {known}). They "
        "count as wrong: correct or remove them."
    )
