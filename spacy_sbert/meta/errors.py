"""What is said of meta-embeddings."""

from .. import errors

MORE_SENTENCES = " More sentences may give more directions."  # behind another message


class Errors(errors.Errors):
    META_UNKNOWN_METHOD = "Unknown method '{given}' of meta-embedding: expected one of {expected}."
    META_UNKNOWN_OPTION = "The method '{method}' has no setting {given}: expected some of {expected}."
    META_NO_SIZE = (
        "size = {given}, but the width of the method '{method}' follows from the members. Leave size out, or use "
        "svd, gcca or ae."
    )
    META_ONE_MEMBER = (
        "A meta-embedding combines at least two members, given: {given}. Add another 'sbert' pipe of another name, "
        "model or pooling before it, or a function to its functions; do not exclude one when loading."
    )
    META_TWICE = "Members of a meta-embedding need names of their own, given: {given}. Rename one of them."
    META_MISSING_PIPE = (
        "The meta-embedding '{name}' combines the pipe {missing}, which the pipeline does not have (it has: "
        "{expected}). Add it before '{name}', or do not exclude it when loading; to do without it, take it out of "
        "'pipes' and fit again."
    )
    META_NO_FUNCTION = (
        "The member '{name}' of a meta-embedding is not a function but a {given}: expected a registered function, such "
        'as [components.sbert_meta.functions.{name}] @misc = "spacy-sbert.MeanStaticVectors.v1".'
    )
    META_BAD_FUNCTION = (
        "The function '{name}' of a meta-embedding gave an array of shape {given} for {expected} texts: expected a row "
        "for each."
    )
    META_FUNCTION_NOT_FITTED = (
        "Weights by smooth inverse frequency are not known yet: fit the meta-embedding that the function is a member "
        "of, with nlp.initialize or python -m spacy sbert fit-meta."
    )
    META_NO_STATIC_VECTORS = (
        "A member of the meta-embedding takes static vectors, and the pipeline's vocab has none. Load them, for "
        "example with python -m spacy init vectors, or take the member out."
    )
    META_NO_MEMBER_VECTORS = (
        "The member '{name}' of a meta-embedding left no vector on the Doc '{text}': its pipe is disabled, or stands "
        "behind the meta-embedding. Enable it, or move it before."
    )
    META_NOT_FINITE = (
        "The member '{name}' of a meta-embedding has a number that is not finite in the vector of sentence {row} "
        "(from 0). Repair that encoder, or take the member or the sentence out."
    )
    META_NOT_FINITE_TEXT = (
        "The member '{name}' of a meta-embedding has a number that is not finite in its vector of '{text}'. Mend that "
        "encoder, or take the member out."
    )
    META_UNEQUAL_COUNTS = (
        "The member '{name}' of a meta-embedding has {given} vectors, '{first}' has {n}: expected those of the same "
        "sentences."
    )
    META_EMPTY_CORPUS = (
        "There is no sentence to fit the meta-embedding on: the corpus is empty, or all its sentences are too long. "
        "Give one with sentences, or a higher max_tokens."
    )
    META_ZERO_VARIANCE = (
        "The member '{name}' of a meta-embedding has the same vector for all {n} sentences. Take it out, or fit on "
        "sentences that it tells apart."
    )
    META_RANK = (
        "Asked for size {size}, but by the method '{method}' the members ({names}) have only {rank} directions to "
        "give on {n} sentences. Set size to at most that, or leave it out to take as many as there are. The directions "
        "of each member, of the numbers in its vectors: {each}."
    )
    META_SINGULAR = (
        "The covariance of the member '{name}' cannot be inverted with tau = {tau}: its vectors lie in {rank} "
        "directions, of the {width} that they are wide. Set tau higher, such as 0.1."
    )
    META_DIVERGED = (
        "The loss of the autoencoder is not finite in epoch {epoch}. Set learn_rate lower than {learn_rate}, or "
        "normalize = true."
    )
    META_NOT_FITTED = (
        "The meta-embedding by '{method}' has not been fitted: fit it on plain sentences with nlp.initialize, "
        "python -m spacy sbert fit-meta, or fit of the estimator."
    )
    META_OTHER_WIDTHS = "Members of widths {given}, but the meta-embedding was fitted on {expected}. Fit it again."
    META_OTHER_MEMBERS = (
        "The meta-embedding '{name}' was fitted on the members {expected}, the pipeline gives it {given}. Restore the "
        "members, in this order, or fit again with python -m spacy sbert fit-meta."
    )
    META_OTHER_SETTINGS = (
        "The meta-embedding '{name}' was saved with {expected}, the config says {given}. Restore the config, or fit "
        "again with python -m spacy sbert fit-meta."
    )
    META_BAD_STATE = "This is not a saved meta-embedding: expected {what}, found {given}. Save it again."
    META_CHANGED_WIDTH = (
        "The vectors of the member '{name}' of a meta-embedding change their width from {first} to {given} numbers."
    )
    META_CACHE_CHANGED = "The members' vectors in {folder} changed while they were written. Give each run a folder."
    META_NO_TEXT = '{path}, line {line}: expected an object with a string "text", found {given}.'
    META_NOT_A_META = "The pipe '{name}' is not an 'sbert_meta' but a {given}: name the pipe to fit."
    META_PROMPT = (
        "Cannot use prompt_name = {given!r}: the members of a meta-embedding have prompts of their own. Set "
        "default_prompt_name in their configs."
    )
    META_NOT_IN_PIPELINE = (
        "Cannot encode texts: the meta-embedding '{name}' is in no pipeline, whose pipes are its members. Use the pipe "
        "of a pipeline (nlp.get_pipe('{name}')), or nlp.pipe(texts)."
    )
    META_NO_PIPELINE = "To fit '{name}', its pipes are needed: call nlp.initialize, or give initialize the nlp."
    META_ROW_OUTSIDE = (
        "A member's row, characters {start} to {end}, reaches beyond the Doc '{text}', which is a part of another one. "
        "Process its text again."
    )
    META_SIZE = (
        "size = {size}, but by the method '{method}' the members have at most {most} directions to give on {n} "
        "sentences: {each}. Leave size out to take as many as there are."
    )
    META_UNCORRELATED = (
        "The members ({names}) have no direction to give by the method '{method}': on these {n} sentences no number of "
        "one correlates with any of another. Use the method svd, or other members."
    )
    META_LARGE_NUMBERS = (
        "The numbers in the vectors of the member '{name}' of a meta-embedding are too large for their squares. Set "
        "normalize = true, or scale them down."
    )


class Warnings(errors.Warnings):
    META_FEWER_DIRECTIONS = (
        "By the method '{method}' the members of '{name}' have {size} directions to give, fewer than the {widest} of "
        "the widest member: its vectors are {size} wide. Set size for narrower ones."
    )
    META_NOT_POSITIVE = (
        "Of the {size} rho of '{name}' by the method 'gcca', {count} are not positive: what its members have in common "
        "ends after {positive}. Set size to {positive} to take no more than that."
    )
