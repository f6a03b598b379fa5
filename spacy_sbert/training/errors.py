"""What is said of examples and objectives."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    WARMUP = "Cannot warm up over warmup = {given} of the steps: expected a fraction from 0 to 1, such as 0.1."
    NO_END = (
        "spacy-sbert.linear_warmup.v2 does not know how long the training is: epochs = {epochs} and max_steps = 0. Set "
        "training.max_epochs to 1 or more, or training.max_steps (a stream, max_epochs = -1, needs max_steps)."
    )
    NO_BATCHES = (
        "The training corpus makes no batch, so there is nothing to learn: expected one example or more. Check [paths] "
        "and [training.batcher]."
    )
    NO_BATCH_IN_TURN = (
        "spacy-sbert.batch_in_turn.v1 with size = {size} found only {given} examples {kind}, no batch of them: "
        "they would never be learned from. Set size to {given} or less in [training.batcher], or give it more examples."
    )
    WRONG_ROWS = (
        "The encoder's rows are not the members of the pair '{text}': it encoded {given}, but doc.spans['{key}'] says "
        "{expected}. The pair would be trained or scored wrongly. Use the span getter spacy-sbert.sentence_spans.v1 "
        '(spans_key = "{key}") in the config of the encoder: [components.transformer.model.get_spans] when the '
        "transformer is shared."
    )
    WRONG_MEMBER_COUNT = (
        "The example '{text}' has {given} members in doc.spans['{key}'], but the loss '{loss}' takes {expected} in "
        "this batch. Make one Doc an example, with one Span a member; all examples of an objective have as many."
    )
    EMPTY_MEMBER = (
        "The example '{text}' has an empty member (number {number}) in doc.spans['{key}'], which has no vector to "
        "learn from. Remove the example."
    )
    NO_GOLD = (
        "The example '{text}' has no gold value '{gold}': expected {kind} in "
        "example.reference.spans['{key}'].attrs['{gold}']. spacy-sbert.PairCorpus.v1 and 'python -m spacy sbert "
        "convert' set it where the data have it; else the data are not those of this objective: choose another loss."
    )
    UNKNOWN_OBJECTIVE = (
        "The example '{text}' is of the objective '{given}', but the loss spacy-sbert.MultiTaskLoss.v1 has {expected}. "
        "Give the corpora in spacy-sbert.MultiCorpus.v1 the names of the objectives in [components.sbert.loss]."
    )
    LABELS_OF_NO_OBJECTIVE = (
        "[initialize.components.sbert] labels names the objectives {given}, expected some of: {expected}. Give a "
        "single objective a list of labels, and those of spacy-sbert.MultiTaskLoss.v1 a list each, by their names."
    )
    GOLD_OUT_OF_RANGE = (
        "The example '{text}' has the gold score {given}: expected one from {low:g} to {high:g} in "
        "example.reference.spans['{key}'].attrs['score']. Scale it, as spacy-sbert.PairCorpus.v1 does by min_score and "
        "max_score: scores from 0 to 5 are divided by 5."
    )
    RANK_LOST = (
        "Rank {rank} of {size} waited in vain for the others ({reason}): one of them has ended, or cannot be reached. "
        "Its own message says why; what was saved before is whole."
    )
    RANKS_AND_PARTS = (
        "training.accumulate_gradient is {given}, and {size} ranks train together, which need whole batches: expected "
        "1. For batches that are larger than memory take spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
    )
    RANKS_OF_OTHERS = (
        "{size} ranks cannot train {given} together: expected no trainable components but 'sbert' pipes and the "
        "transformers that they hear. Name the others in training.frozen_components, or train them on one rank."
    )
    RANKS_WITHOUT_SBERT = (
        "{size} ranks have nothing to train: expected an 'sbert' pipe that is not frozen, the pipeline has {given}."
    )
    RANKS_ABOVE_BATCH = (
        "A batch of {given} examples, of which every rank gets every {size}th, leaves rank {rank} without an example "
        "for '{name}' to learn from: expected one or more for each of {size} ranks. Take larger batches (size in "
        "[training.batcher]) or fewer ranks; only examples with members in doc.spans['{key}'] count."
    )
    UNLIKE_BATCHES = (
        "The ranks read other examples than each other in step {step}: every rank must make the same batches, of which "
        "it trains its part. Check that training.seed is set (it is {seed}), that all ranks have the same files, and "
        "that a reader of your own shuffles with Python's random or with a seed."
    )
    UNLIKE_WEIGHTS = (
        "The ranks have other weights than each other after step {step}: they would train different models. Set "
        "system.seed and training.seed, and give all ranks the same files, versions and kind of machine."
    )
    CHECKPOINT_OF_OTHER_EXAMPLES = (
        "The checkpoint cannot be gone on with: the training corpus holds {given} examples, expected the {expected} "
        "that it was made with, in their order and with their texts. Give the same files, or train in another folder."
    )
    CHECKPOINT_OF_OTHER_BATCHES = (
        "The checkpoint cannot be gone on with: the training corpus makes {given} batches, expected the {expected} of "
        "its epoch and more. Give the same files, or train in another folder."
    )
    CHECKPOINT_DAMAGED = (
        "{path} cannot be gone on with ({reason}): expected a checkpoint as it was saved. Remove the folder; an older "
        "one beside it is used then, or else training begins anew."
    )
    CHECKPOINT_OF_OTHER_CONFIG = (
        "{path} was made with other settings in {given}: expected the same config and options, but for "
        "training.logger. Give those that it was made with, or train in another folder."
    )
    CHECKPOINT_OF_OTHER_RANKS = (
        "{path} was made by {given} processes, and there are {expected}: start as many as before, or train in another "
        "folder."
    )
    CHECKPOINT_IS_THERE = (
        "{path} holds a checkpoint of an interrupted training. Go on with it by --resume, or remove it to begin anew."
    )
    CHECKPOINT_NOT_SHARED = (
        "The {size} processes find other checkpoints in {path} than each other: give a folder that all of them see."
    )
    NO_TRAINING_SECTION = (
        "The config has no section [training]; it has: {given}. Write one with 'python -m spacy sbert init-config', or "
        "complete it with 'python -m spacy init fill-config'."
    )
    SCORES_NOT_DEFINED = (
        "Training could not tell better weights from worse: on [{corpus}] no score of [training.score_weights] is "
        "defined. {reasons}. Give weight to another score, or another dev corpus."
    )
    OTHER_DEV_LABELS = (
        "[{corpus}] has the labels {given}, and the training examples have none of them: {known}. Spell them alike, or "
        "give another dev corpus."
    )
    NO_SUCH_SETTING = (
        "[{section}] has no setting '{given}', which would be ignored: expected {expected}. Correct its name."
    )
    NAME_OF_PIPE = (
        "[components.{pipe}] has name = '{given}', which would be ignored: a component is called as its section is, "
        "and the encoder stands in its model. Set name in [components.{pipe}.model] (--components.{pipe}.model.name)."
    )
    BESIDE_SOURCE = (
        "[components.{pipe}] has a source and also {settings}, which spaCy would ignore. Load {source} with the "
        'setting, spacy.load("{source}", config={{"components.{pipe}.{first}": ...}}), save it, and give that folder '
        "as source."
    )
    NOT_SCORED = (
        "Training could not tell better weights from worse: no score of [training.score_weights] ({weighted}) is among "
        "those of the pipeline: {found}. Give weight to one of these."
    )
    OUTPUT_NOT_WRITABLE = (
        "Cannot save to --output {path}: {there} {reason}. Expected a folder that can be written to, or a new one: "
        "give --output another name."
    )
    CHECKPOINT_WITHOUT_OUTPUT = "--checkpoint-every and --resume need a folder: give --output."
    CHECKPOINT_OF_UNKNOWN = (
        "The optimizer has moments of a parameter that is in no component of the pipeline ('{given}' of the layer "
        "number {number}), so that a checkpoint could not give them back: train it without --checkpoint-every."
    )
    SCORER_KEY = (
        "The scorer of the pipe '{name}' looked up {given}, and there is no such key. Members are in "
        "example.predicted.spans['{key}'], gold values in example.reference.spans['{key}'].attrs under 'score', "
        "'label' and 'objective': see docs/own-loss.md."
    )
    SCORER_NO_DICT = (
        "The scorer of the pipe '{name}' returned {given}. Expected a dict of scores by name, such as "
        "{{'my_accuracy': 0.5}}, with the names in [training.score_weights]."
    )


class Notes(errors.Messages):
    """Of the log."""

    NOT_EVALUATED = (
        "Steps after the last evaluation: {steps}. model-last has their weights, model-best has not. 'spacy train' "
        "evaluates every training.eval_frequency steps only; 'spacy sbert train' takes the same config, and always "
        "evaluates the last step."
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    UNKNOWN_DEV_LABELS = (
        "{count} examples of [{corpus}] have labels that no training example has ({given}; known are {known}). They "
        "count as wrong: correct or remove them."
    )
