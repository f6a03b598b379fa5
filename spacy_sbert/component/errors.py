"""What is said of the `sbert` pipe."""

from .. import errors


class Errors(errors.Errors):
    """Of exceptions."""

    TWO_PROMPTS = "Got both prompt_name = {name!r} and prompt = {prompt!r}: give one of them."
    NOT_AN_ENCODER = (
        "The model of the 'sbert' pipe '{name}' is not a sentence encoder: expected an architecture such as "
        "spacy-sbert.SentenceEncoder.v1 or spacy-sbert.SharedSentenceEncoder.v1, got the Thinc model '{given}'."
    )
    NO_TEXT_ENCODER = (
        "Cannot encode texts without Docs: the 'sbert' pipe '{name}' listens to a transformer that is not of this "
        "package, or is in no pipeline. Give the 'transformer' pipe the architecture "
        "spacy-sbert.TransformerModel.v1, or use nlp.pipe(texts)."
    )
    CURATED_ENCODER = (
        "The encoder of the 'sbert' pipe '{name}' is a curated_transformer, and this works with transformers of this "
        "package alone (spacy-sbert.SentenceEncoder.v1, spacy-sbert.TransformerModel.v1). To pass the pipeline on, "
        "save it or make a package of it: python -m spacy package."
    )
    NOT_A_TRANSFORMER = (
        "The encoder of the 'sbert' pipe '{name}' is {kind}, and this works with transformers alone. To pass the "
        "pipeline on, save it or make a package of it: python -m spacy package."
    )
    NO_TOKENIZER = (
        "Cannot encode texts without Docs: the 'sbert' pipe '{name}' is in no pipeline, whose tokenizer its encoder "
        "needs. Use the pipe of a pipeline (nlp.get_pipe('{name}')), or nlp.pipe(texts)."
    )
    NO_UPSTREAM = (
        "The 'sbert' pipe '{name}' listens to a transformer, but no 'transformer' component of spacy-transformers, and "
        "no 'curated_transformer', "
        '(upstream = "{upstream}") stands before it; the pipeline is {pipes}. Add one before it: '
        'nlp.add_pipe("transformer", before="{name}", config={{"model": {{"@architectures": '
        '"spacy-sbert.TransformerModel.v1"}}}}){install}, or use spacy-sbert.SentenceEncoder.v1, which has its own '
        "encoder."
    )
    WITH_SPACY_TRANSFORMERS = ' after pip install "spacy-sbert[transformers]"'
    NO_TOK2VEC = (
        "The 'sbert' pipe '{name}' listens to a '{kind}' component (upstream = '{upstream}'), and none stands before "
        "it; the pipeline is {pipes}. Add one before it, nlp.add_pipe('{kind}', before='{name}'), correct upstream, "
        "or give the encoder a tok2vec of its own, such as spacy.HashEmbedCNN.v2."
    )
    TOK2VEC_WIDTH = (
        "The 'sbert' pipe '{name}' listens for vectors of {given} numbers, and the component '{upstream}' makes "
        "{expected}: set width = {expected} in its [components.{name}.model.tok2vec]."
    )
    ALL_LAYER_OUTPUTS = (
        "The 'sbert' pipe '{name}' listens to all layers of the component '{upstream}' ({given}), which gives the last "
        "one alone: set all_layer_outputs = true in [components.{upstream}]."
    )
    OTHER_SPANS_KEY = (
        "The 'sbert' pipe '{name}' has spans_key = '{key}', but the span getter of its encoder takes the members of an "
        "example from doc.spans['{given}']: pairs would not be trained, or not scored. Set spans_key = '{key}' in "
        "get_spans, spacy-sbert.sentence_spans.v1, too ([components.transformer.model.get_spans] when the transformer "
        "is shared), or '{given}' in the pipe."
    )
    BAD_LOSS = (
        "The loss of the 'sbert' pipe '{name}' is not a loss layer: expected a registered layer such as "
        "spacy-sbert.CosineSimilarityLoss.v1, got {given}. A loss of your own is a registered function that returns a "
        "spacy_sbert.losses.LossLayer: see docs/own-loss.md."
    )
    NO_LOSS = (
        "The 'sbert' pipe '{name}' was built without a loss (loss = null) and cannot be trained. Set one in its "
        'config: [components.{name}.loss] @layers = "spacy-sbert.CosineSimilarityLoss.v1".'
    )
    NO_SUCH_HEAD = (
        "Cannot classify with the 'sbert' pipe '{name}' for the objective {given!r}: it has trained heads for {names}."
    )
    NOT_ONE_HEAD = (
        "Cannot classify with the 'sbert' pipe '{name}': it has {given} trained classification heads. Expected one; "
        "train with spacy-sbert.SoftmaxLoss.v1, or name the objective of several: {names}."
    )


class Warnings(errors.Warnings):
    """Of warnings and the log."""

    FOREIGN_ROWS = (
        "The shared transformer encodes overlapping windows, not whole Docs or sentences: vectors are pooled over the "
        "Doc's wordpieces instead, each token once, and differ from those of the encoder on its own. Set "
        '[components.transformer.model.get_spans] @span_getters = "spacy-sbert.sentence_spans.v1".'
    )
    NO_SENTENCES = (
        "The pipe '{name}' makes vectors of Docs and of their sentences, but '{setter}', which sets their boundaries, "
        "is disabled. So Docs are encoded whole, and have no sentences. Enable it and what it needs, or add a "
        'sentencizer: nlp.add_pipe("sentencizer", before="{encoder}"). If you need no vectors of sentences, '
        'set unit = "doc" in get_spans.'
    )
    LATE_SENTENCES = (
        "The 'sbert' pipe '{name}' makes vectors of sentences, but '{setter}', which sets their boundaries, stands "
        "behind '{encoder}', which encodes. So Docs are encoded whole, and their sentences have vectors in context, "
        "which are more alike. Add '{encoder}' behind it (after=\"{setter}\"), or a sentencizer before it: "
        'nlp.add_pipe("sentencizer", before="{encoder}"). If you need no vectors of sentences, set unit = "doc" in '
        "get_spans."
    )
    SHARED_DEFAULT_PROMPT = (
        "The authors of '{name}' put the prompt '{prompt}' before texts, which a shared transformer cannot do: vectors "
        "differ from theirs. Use spacy-sbert.SentenceEncoder.v1, which has an encoder of its own."
    )
    TRAINING_CUT = "While training the 'sbert' pipe '{name}': in this batch, and maybe in later ones, "
    OTHER_POOLING = (
        "The encoder '{name}' was made for {expected} pooling, this pipeline uses {given} pooling: vectors differ from "
        'those its authors publish. Set pooling = "{expected}" unless that is what you want.'
    )
    PART_OF_BATCH = (
        "The loss '{loss}' compares all examples of a batch with one another, but training.accumulate_gradient shows "
        "it the batch in parts: the step is not that of the whole batch. Set accumulate_gradient = 1, and for batches "
        "larger than memory use mini_batch_size in the encoder's config, or "
        "spacy-sbert.CachedMultipleNegativesRankingLoss.v1."
    )
    UNKNOWN_BATCH = (
        "training.accumulate_gradient splits batches, and the 'sbert' pipe '{name}' is not told of the size of the "
        "whole: its mean losses are added up, not averaged, and the step is larger than that of the whole batch. Set "
        '[training.batcher] @batchers = "spacy-sbert.batch_by_objective.v1", or "spacy-sbert.batch_mixed.v1".'
    )
    SCORES_IGNORED = (
        "{loss} does not read scores: it takes every pair of the training data as one whose texts belong together, "
        "also '{text}', whose score is {score:g} (of 0 to 1). Leave pairs of low scores out, or take a loss that reads "
        "scores: CosineSimilarityLoss, CoSENTLoss, AnglELoss, or of scores 0 and 1 OnlineContrastiveLoss."
    )
    NOTHING_TO_LEARN = (
        "The 'sbert' pipe '{name}' got a training batch without pairs and learned nothing from it: example.predicted "
        "has no members in doc.spans['{key}']{found}. Read pairs with spacy-sbert.PairCorpus.v1. If the pipe should "
        "not learn, list it in [training] frozen_components, or in exclude of nlp.update."
    )
