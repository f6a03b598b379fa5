"""What is said of the reranker."""

from .. import errors


class Errors(errors.Errors):
    RERANKER_NO_MODEL = (
        "The model of the 'sbert_reranker' pipe '{name}' is not a cross-encoder: expected the architecture "
        "spacy-sbert.CrossEncoder.v1, got the Thinc model '{given}'."
    )
    RERANKER_UNKNOWN_OBJECTIVE = "Unknown objective '{given}' of a reranker: expected one of {expected}."
    RERANKER_UNKNOWN_ACTIVATION = "Unknown activation '{given}' of a cross-encoder: expected one of {expected}."
    RERANKER_FOREIGN_ACTIVATION = (
        "The folder of the cross-encoder names the activation '{given}', which is not supported: expected one of "
        "{expected}. Set activation to one of them in the config of the model."
    )
    RERANKER_SOFTMAX_OF_ONE = (
        'Softmax of a single output is always 1. Leave apply_softmax out, set activation = "sigmoid" or "identity" in '
        "the config of the cross-encoder, or n_outputs to 2 or more."
    )
    RERANKER_ACTIVATION_SHAPE = (
        "activation_fn made {given} of logits of shape {expected}: expected a tensor of the same shape, such as "
        "torch.nn.Identity() gives."
    )
    RERANKER_MAX_LENGTH = "Cannot read pairs of max_length = {given} wordpieces: expected {expected}."
    RERANKER_NO_PAIR = (
        "Cannot score pair number {number}, {given}: expected two texts (str, Doc or Span), such as (query, passage). "
        "Put a single pair into a list."
    )
    RERANKER_NO_PAIRS = (
        "Cannot score {given}: expected several pairs of texts in an order, such as a list of (query, passage), or of "
        'two columns of a table zip(df["query"], df["passage"]).'
    )
    RERANKER_PREDICT = (
        "predict of '{name}' scores Docs that are pairs, as every pipe of spaCy does with Docs, got {given}. To score "
        "pairs of texts, as CrossEncoder.predict of sentence-transformers does, call score_pairs(pairs)."
    )
    RERANKER_TWO_COUNTS = "Cannot rank with k = {k} and top_k = {top_k}: expected one of them. Leave one out."
    RERANKER_ONE_TEXT = "Cannot rank {given}: expected several texts, such as a list. Put a single text into a list."
    RERANKER_COUNT = (
        "Cannot find {given} best of {most} texts: expected a whole number, at least 1 and at most {most}, as k. Ask "
        "for fewer, or give more texts."
    )
    RERANKER_SEVERAL_OUTPUTS = (
        "Cannot rank with '{name}', whose cross-encoder gives {given} numbers a pair: expected one. Use score_pairs "
        "and choose a column, or a cross-encoder with n_outputs = 1."
    )
    RERANKER_NOT_FINITE = (
        "The score that '{name}' gives to the pair ('{first}', '{second}') is not finite: training has diverged, or "
        "the weights are damaged. Use other weights, or train with a lower learning rate."
    )
    RERANKER_NOT_INITIALIZED = (
        'The cross-encoder has {given} outputs, which do not fit the objective "{objective}". Call nlp.initialize '
        'before training, with examples that carry labels for "classification", or set n_outputs.'
    )
    RERANKER_OTHER_OUTPUTS = (
        'The objective "{objective}" needs {expected} outputs with these examples, and the config of the cross-encoder '
        "says n_outputs = {given}. Set n_outputs = 0, which follows the objective, or choose another objective: scores "
        'are learned by "regression", labels by "classification".'
    )
    RERANKER_UNKNOWN_LABEL = (
        "The label '{given}' is unknown to the reranker, which has outputs for {known}. Correct the example, or "
        "initialize the pipe with all labels, from the examples or from [initialize.components.sbert_reranker] labels."
    )
    RERANKER_LABELS_OF_SCORES = (
        'Labels were given ({given}), but the objective "{objective}" learns scores. Set objective = '
        '"classification", or leave the labels out.'
    )
    RERANKER_NO_CHECKPOINT = (
        "Cannot start '{name}' from the pipeline '{given}': it has no 'sbert_reranker' of that name, its pipes are "
        "{pipes}. Name a pipeline that was trained with one, such as with configs/reranker_nli.cfg, in "
        "[initialize.components.{name}] checkpoint."
    )


class Warnings(errors.Warnings):
    RERANKER_TRUNCATED = (
        "{count} of {total} pairs were longer than the cross-encoder's limit of {limit} wordpieces; of these the "
        "longer text was cut. Score shorter texts, such as sentences or paragraphs."
    )
    RERANKER_TRAINING_CUT = (
        "While training '{name}': in this batch, and maybe in later ones, pairs were longer than the limit of {limit} "
        "wordpieces; of these the longer text was cut."
    )
    RERANKER_NEW_HEAD = (
        "The cross-encoder of '{name}' has a new head, drawn at random: its scores mean nothing before it is trained "
        "(configs/reranker.cfg). To use one that is trained, set its name in the config of the model."
    )
    RERANKER_NOTHING_TO_LEARN = (
        "'{name}' got a training batch without pairs and learned nothing from it: example.predicted has no two members "
        "in doc.spans['{key}']{found}. Read pairs with spacy-sbert.PairCorpus.v1. If the pipe should not learn, list "
        "it in [training] frozen_components, or in exclude of nlp.update."
    )
