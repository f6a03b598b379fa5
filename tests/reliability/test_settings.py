"""Every setting with wrong values: refused with an error that names it, before anything hangs or is allocated."""

import inspect

import pytest
import spacy
from counted_cases import parts
from spacy.util import registry
from thinc.api import reduce_mean
from wrong_settings import LATER, MANY, PROMISE, ROOT, entry_points, target

from spacy_sbert.architectures import sentence_listener
from spacy_sbert.losses.similarity import CosineSimilarityLoss
from spacy_sbert.models.spans import sentence_spans
from spacy_sbert.readers import PairCorpus
from spacy_sbert.training.batchers import batch_mixed

RIGHT_FACTORS = {"zero", "one and a half", *MANY}  # a finite factor; a loss that is not finite is refused in training
# Values that are right, by setting: with the reason, so that nothing is accepted by accident.
ALLOWED = {
    # Factors and margins in formulas
    **dict.fromkeys(("grad_factor", "learn_rate_factor", "loss_weight", "margin", "initial_rate"), RIGHT_FACTORS),
    **dict.fromkeys(("scale", "a"), RIGHT_FACTORS - {"zero"}),  # which divides, or makes all alike
    "max_grad_norm": RIGHT_FACTORS,
    "warmup": {"zero"},  # none
    "min_score": {"minus one", "zero"},  # below max_score, 1
    "max_score": {"one and a half", *MANY},  # above min_score, 0
    # Limits, which large numbers take away
    **dict.fromkeys(
        ("batch_size", "limit", "max_batch_items", "mini_batch_size", "shuffle_buffer", "size", "total_steps"), MANY
    ),
    "epochs": {"minus one", "zero", *MANY},  # a stream and no limit, which max_steps ends
    "max_steps": MANY,
    "start_step": MANY,  # behind the end the rate is zero, at once
    "max_length": MANY,  # more than the encoder has is refused when it is loaded
    # Names that are anybody's choice, or found when they are used
    "spans_key": LATER,
    "upstream": LATER,  # refused by name when the pipeline is put together
    "name": LATER,  # of an encoder, which is loaded on first use: see test_unknown_encoders
    "default_prompt_name": {"empty text", *LATER},  # "" for none; the folder's prompts are known when it is loaded
    "teacher": LATER,  # a pipeline that is loaded when the first example is read
    "counts": LATER,  # a file that is read when the function is fitted
    "output_file": LATER,  # a file that will be written
    "seed": {"minus one", *MANY},  # Python's generator takes any whole number
    # Blocks and lists that may be empty, or hold what their own function checks
    **{key: {"dict"} for key in ("grad_scaler_config", "prompts")},
    **{key: {"dict", "dict of things"} for key in ("tokenizer_config", "transformer_config")},  # read with the folder
    "frozen": {"list"},  # nothing
    "members": {"list"},  # no columns are named
    "missing": {"list"},  # no label stands for none
}
ALONE = {  # and all that is right, whatever annotation and default say
    "spacy-sbert.PairCorpus.v1 min_score": {"zero"},  # the default; the layout has a range of its own
    "spacy-sbert.PairCorpus.v1 max_score": set(),
    "spacy-sbert.PairCorpus.v1 path": set(),  # None stands for what the command line is to give
    "spacy-sbert.NgramHashEmbed.v1 seed": {"zero", "billion"},  # of 32 bits
    "spacy-sbert.NgramHashEmbed.v1 ngram_size": {"zero"},  # words alone
    "spacy-sbert.LossByName.v1 settings": {"none", "dict", "dict of things"},  # for code that may not be there
    "spacy-sbert.MultiTaskLoss.v1 weights": {"none", "dict"},  # objectives that are not named have 1
    **{f"{pipe} {block}": {"dict"} for pipe, block in (("sbert", "model"), ("sbert_reranker", "model"))},  # the default
    "sbert loss": {"none", "dict"},  # no training; the default
    **{f"{pipe} scorer": {"none", "dict"} for pipe in ("sbert", "sbert_meta", "sbert_reranker")},
    "sbert spans_key": set(),  # that of the span getter: see test_spans_keys
    "sbert_meta pipes": {"list"},  # all that there are
    **{f"sbert_meta {block}": {"dict"} for block in ("functions", "options")},  # none
    "sbert_meta size": {"none"},
}
PAIRS = str(ROOT / "assets" / "pairs-dev.csv")
COSINE = {"@layers": "spacy-sbert.CosineSimilarityLoss.v1"}
CORPUS = {"@readers": "spacy-sbert.PairCorpus.v1", "path": PAIRS}
NUMBERS = {"nI": 16, "nO": 8, "size": 4, "initial_rate": 1e-3, "total_steps": 100, "epochs": 0, "max_steps": 100}
GIVEN = {  # what must be given
    **NUMBERS,
    "batcher": batch_mixed(4),
    "loss": CosineSimilarityLoss(),
    "dims": [4, 2],
    "objectives": {"one": CosineSimilarityLoss()},
    "corpora": {"one": lambda nlp: []},
    "corpus": PairCorpus(PAIRS),
    "teacher": "en_teacher",
    "path": "pairs.csv",
    "name": "my-package.MyLoss.v1",
    "pooling": reduce_mean(),
    "tok2vec": sentence_listener(),
    "get_spans": sentence_spans(),
}
BLOCKS = {  # the same in a config
    **{"loss": COSINE, "objectives": {"one": COSINE}, "corpora": {"one": CORPUS}, "corpus": CORPUS},
    "batcher": {"@batchers": "spacy-sbert.batch_mixed.v1", "size": 4},
    "pooling": {"@layers": "reduce_mean.v1"},
}
DEFAULT_BLOCKS = ("tok2vec", "get_spans")  # defaults that a config fills, and Python does not
ENTRY_POINTS = entry_points()
REGISTERED = {name: made for name, made in ENTRY_POINTS.items() if made[0] != "factories"}


def given_to(function, source=GIVEN):
    parameters = inspect.signature(function).parameters
    needed = {key for key in parameters if parameters[key].default is inspect.Parameter.empty}
    return {key: source.get(key, GIVEN[key]) for key in parameters if key in needed | set(DEFAULT_BLOCKS) & set(source)}


def try_all(counted, targets, but=""):
    with counted(PROMISE) as cases:
        for one in targets:
            for setting, label in one.cases(but):
                right = ALLOWED.get(setting, set()) | one.natural[setting]
                one.judge(cases, setting, label, ALONE.get(f"{one.name} {setting}", right))


@pytest.mark.spacy_transformers
def test_what_is_registered_called_from_python(counted):
    try_all(counted, [target(name, function, given_to(function)) for name, (_, function) in REGISTERED.items()])


@pytest.mark.parametrize("part", parts(4))
def test_what_is_registered_built_from_a_config(counted, part):
    def built(kind, name):
        return lambda **settings: registry.resolve({"block": {f"@{kind}": name, **settings}})["block"]

    targets = []
    for name, (kind, function) in list(REGISTERED.items())[part::4]:
        targets.append(target(name, function, given_to(function, BLOCKS)))
        targets[-1].call = built(kind, name)
    try_all(counted, targets)


def test_settings_of_pipes(counted):
    two_encoders, targets = spacy.blank("en"), []
    for name in ("sbert", "other"):
        two_encoders.add_pipe("sbert", name=name)

    def made(factory):
        return lambda **config: two_encoders.create_pipe(factory, config=config)

    for name in [name for name, (kind, _) in ENTRY_POINTS.items() if kind == "factories"]:
        targets.append(target(name, ENTRY_POINTS[name][1], {}, ("nlp", "name")))
        targets[-1].call = made(name)
    try_all(counted, targets, but="half a character")  # which spaCy itself cannot put into a config
