"""Training by several processes: spaCy's own loop, with one folder and one log for all."""

import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy
import torch
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.loop import (
    DIR_MODEL_BEST,
    DIR_MODEL_LAST,
    clean_output_dir,
    create_before_to_disk_callback,
    create_evaluation_callback,
    create_train_batches,
    train_while_improving,
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, CupyOps, Optimizer, fix_random_seed, get_current_ops, set_gpu_allocator

from ..files.whole import new_folder
from .ranks import Ranks
from .together import together

SETTINGS = (  # of [training], which spaCy's loop takes as they are
    "dropout",
    "accumulate_gradient",
    "patience",
    "max_steps",
    "eval_frequency",
    "annotating_components",
    "before_update",
)


def train(nlp: Language, output: Path | None, ranks: Ranks) -> None:
    """Train a pipeline with the other ranks, as `spacy train` does with one.

    Rank 0 alone evaluates, writes and logs. What it saves takes the place of what it saved before when it is whole.

    nlp (Language): initialised by spacy.training.initialize.init_nlp, from the same config on all ranks.
    output (Path): the folder for model-best and model-last. ranks (Ranks): see launched.
    RAISES (ValueError): if the ranks cannot train it, see together. (RuntimeError): if one of them is gone.
    """
    config = nlp.config.interpolate()
    training = _begin(config, ranks)
    train_corpus, dev_corpus = resolve_dot_names(config, [training["train_corpus"], training["dev_corpus"]])
    optimizer, frozen = training["optimizer"], training["frozen_components"]
    output = output if ranks.is_first else None
    clean_output_dir(output)
    save = partial(_save, nlp, output, optimizer, create_before_to_disk_callback(training["before_to_disk"]))
    with together(nlp, ranks):
        steps = train_while_improving(
            nlp,
            optimizer,
            create_train_batches(nlp, train_corpus, training["batcher"], training["max_epochs"]),
            create_evaluation_callback(nlp, dev_corpus, training["score_weights"]),
            exclude=frozen,
            **{name: training[name] for name in SETTINGS},
        )
        with nlp.select_pipes(disable=frozen):
            logger = training["logger"] if ranks.is_first else _silent
            log, finish = logger(nlp, sys.stdout, sys.stderr)
        try:
            for _, info, is_best in steps:
                if is_best is not None:
                    with nlp.select_pipes(disable=frozen):
                        update_meta(training, nlp, info)
                    save(is_best)
                    if output is not None:
                        info["output_path"] = str(output / DIR_MODEL_LAST)
                log(info if is_best is not None else None)
        finally:
            finish()
            save(False)


def _save(
    nlp: Language,
    output: Path | None,
    optimizer: Optimizer,
    before_to_disk: Callable[[Language], Language],
    is_best: bool,
) -> None:
    """Save model-last, and a copy of it as model-best."""
    if output is None:
        return
    with nlp.use_params(optimizer.averages), new_folder(output / DIR_MODEL_LAST, replace=True) as folder:
        before_to_disk(nlp).to_disk(folder)
    if is_best:
        with new_folder(output / DIR_MODEL_BEST, replace=True) as folder:
            shutil.copytree(output / DIR_MODEL_LAST, folder, dirs_exist_ok=True)


def _begin(config: Config, ranks: Ranks) -> dict[str, Any]:
    """Resolve [training], and have each rank drop out other numbers, where batches stay those of the seed."""
    seed, allocator = config["training"]["seed"], config["training"]["gpu_allocator"]
    if seed is not None:
        fix_random_seed(seed)
        fix_dropout(seed + ranks.rank)
    if allocator and isinstance(get_current_ops(), CupyOps):
        set_gpu_allocator(allocator)
    return registry.resolve(config["training"], schema=ConfigSchemaTraining)


def fix_dropout(seed: int) -> None:
    """Seed what layers draw from, PyTorch's and Thinc's; readers and spaCy shuffle by Python's random."""
    torch.manual_seed(seed)
    xp: Any = get_current_ops().xp
    for module in {numpy, xp}:
        module.random.seed(seed)


def _silent(nlp: Language, stdout: IO[str], stderr: IO[str]) -> tuple[Callable, Callable]:
    """The logger of a rank that does not speak."""
    return lambda info: None, lambda: None
