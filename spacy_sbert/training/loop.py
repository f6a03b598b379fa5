"""Training as spaCy's, by several processes with one folder and one log for all, and with checkpoints."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
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
    update_meta,
)
from spacy.util import registry, resolve_dot_names
from thinc.api import Config, CupyOps, Optimizer, fix_random_seed, get_current_ops, set_gpu_allocator

from ..files.whole import new_folder
from .checkpoint import latest, load_checkpoint, remove_checkpoints, save_checkpoint
from .epochs import Epochs
from .errors import Errors
from .improving import Progress, train_while_improving
from .ranks import Ranks
from .together import together
from .weighted_scores import check_scored, check_weighted_scores

DIR_CHECKPOINT = "checkpoint"
PROGRESS_LOGGER = "spacy-sbert.ProgressLogger.v1"
SETTINGS = (  # of [training], which spaCy's loop takes as they are
    "dropout",
    "accumulate_gradient",
    "patience",
    "max_steps",
    "eval_frequency",
    "annotating_components",
    "before_update",
)


@dataclass(frozen=True)
class Checkpoints:
    """When checkpoints are saved, and whether training goes on from the last one.

    every (int): the steps between two, 0 for none. resume (bool): where there is none, training begins.
    """

    every: int = 0
    resume: bool = False


def train(nlp: Language, output: Path | None, ranks: Ranks, checkpoints: Checkpoints = Checkpoints()) -> str:
    """Train a pipeline with the other ranks, as `spacy train` does with one.

    Rank 0 alone evaluates, writes and logs. What it saves takes the place of what it saved before when it is whole.

    nlp (Language): initialised by spacy.training.initialize.init_nlp, from the same config on all ranks.
    output (Path): the folder for model-best, model-last and checkpoints, which are removed at the end.
    ranks (Ranks): see launched. checkpoints (Checkpoints): see find_checkpoint.
    RETURNS (str): in words, how it ended, and with which score.
    RAISES (ValueError): if the ranks cannot train it, see together; for a checkpoint that cannot be gone on with.
        (RuntimeError): if one of them is gone.
    """
    found = find_checkpoint(output, checkpoints, ranks)
    config = nlp.config.interpolate()
    training = _begin(config, ranks)
    if config["training"]["logger"].get("@loggers") != PROGRESS_LOGGER:  # which checks by itself
        check_weighted_scores(nlp)
    train_corpus, dev_corpus = resolve_dot_names(config, [training["train_corpus"], training["dev_corpus"]])
    optimizer, frozen = training["optimizer"], training["frozen_components"]
    epochs = Epochs(nlp, train_corpus, training["batcher"], training["max_epochs"])
    progress = Progress() if found is None else load_checkpoint(found, nlp, optimizer, epochs, ranks)
    begun, written = progress.step, output if ranks.is_first else None
    save = partial(_save, nlp, written, optimizer, create_before_to_disk_callback(training["before_to_disk"]))
    with together(nlp, ranks) as joint:
        evaluate = partial(joint.evaluate, create_evaluation_callback(nlp, dev_corpus, training["score_weights"]))
        settings = {name: training[name] for name in SETTINGS}
        steps = train_while_improving(
            nlp, optimizer, epochs, evaluate, progress, update=joint.update, exclude=frozen, **settings
        )
        with nlp.select_pipes(disable=frozen):
            logger = training["logger"] if ranks.is_first else _silent
            log, finish = logger(nlp, sys.stdout, sys.stderr)
        if found is None:
            clean_output_dir(written)
        try:
            for info, is_best in steps:
                if is_best is not None:
                    check_scored(training["score_weights"], info["other_scores"])
                    with nlp.select_pipes(disable=frozen):
                        update_meta(training, nlp, info)
                    save(is_best)
                    if written is not None:
                        info["output_path"] = str(written / DIR_MODEL_LAST)
                log(info if is_best is not None else None)
                if output is not None and checkpoints.every and not progress.step % checkpoints.every:
                    save_checkpoint(output / DIR_CHECKPOINT, nlp, optimizer, progress, epochs, ranks)
        finally:
            finish()
            if found is None or progress.step > begun:  # else what is there may be newer than the checkpoint
                save(False)
    if written is not None:
        remove_checkpoints(written / DIR_CHECKPOINT)  # the training is over
    why = (
        f", as no score was better for {training['patience']}"
        if progress.is_patience_over(training["patience"], training["eval_frequency"])
        else ""
    )
    score, step = progress.best
    ended = f"Training ended after step {progress.step - 1}{why}"
    return f"{ended}. The best score, {100 * score:.2f}, is that of step {step}."


def find_checkpoint(output: Path | None, checkpoints: Checkpoints, ranks: Ranks) -> Path | None:
    """The checkpoint that a training is to go on from; None to begin.

    RAISES (ValueError): if there is one that would be lost, no folder for one, or another one for another rank.
    """
    if output is None:
        if checkpoints.every or checkpoints.resume:
            raise ValueError(Errors.CHECKPOINT_WITHOUT_OUTPUT)
        return None
    found = latest(output / DIR_CHECKPOINT)
    if not ranks.agree([b"" if found is None else found.name.encode()]):
        raise ValueError(Errors.CHECKPOINT_NOT_SHARED.format(path=output / DIR_CHECKPOINT, size=ranks.size))
    if found is not None and not checkpoints.resume:
        raise ValueError(Errors.CHECKPOINT_IS_THERE.format(path=output / DIR_CHECKPOINT))
    return found


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
