"""`python -m spacy sbert train`: train on several processes of torchrun, and resume."""

import logging
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from spacy.cli._util import import_code, parse_config_overrides, show_validation_error
from spacy.training.initialize import init_nlp
from spacy.util import load_config, logger
from thinc.api import Config
from typer import Argument, Context, Exit, Option
from wasabi import msg

from ..errors import missing_packages
from ._util import command, exit_on_error, fail, named_output, use_gpu
from .options import CODE, Gpu

if TYPE_CHECKING:
    from ..distributed.torch_distributed import TorchDistributed
    from ..distributed.train_loop import TrainingEnd

# spaCy's default
_EVAL_FREQUENCY = 200
_OUTPUT = "The folder for model-best and model-last."


@command("train", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def _train_cli(
    # Has the options that are settings of the config
    context: Context,
    config: Annotated[
        Path, Argument(help="The config to train with.", exists=True, dir_okay=False)
    ],
    output: Annotated[
        Path | None, Option("--output", "-o", help=_OUTPUT, parser=named_output)
    ] = None,
    code: Annotated[
        Path | None, Option("--code", "-c", help=CODE, exists=True, dir_okay=False)
    ] = None,
    every: Annotated[
        int, Option("--checkpoint-every", help="The steps between checkpoints, 0 for none.", min=0)
    ] = 0,
    resume: Annotated[
        bool, Option("--resume", help="Resume from the last checkpoint, if there is one.")
    ] = False,
    verbose: Annotated[bool, Option("--verbose", "-V", help="Log more.")] = False,
    gpu_id: Gpu = -1,
) -> None:
    """Train a pipeline.

    It trains as 'spacy train' does, with clear messages, and can resume after an interruption. It
    also trains on all processes that torchrun has started:

    torchrun --nproc-per-node 2 -m spacy sbert train configs/ranking.cfg --output training/ranking

    Settings of the config are options here, too: --training.max_epochs 2. With --gpu-id 0 each
    process takes a GPU of its own, from number 0 on. One log and one folder for all. Without
    torchrun there is one process.
    """
    from ..distributed.checkpoint import latest
    from ..distributed.torch_distributed import RankLost, check_launch, launched

    overrides = _parse_overrides(context.args)
    frequency = _EVAL_FREQUENCY
    import_code(code)
    with exit_on_error(f"Cannot train by {config}"):
        check_launch(gpu_id)
    with launched(gpu_id) as ranks:
        _set_log_level(ranks, verbose)
        use_gpu(ranks.gpu_id, silent=not ranks.is_first)
        try:
            with _shown_errors(config, verbose):
                settings = _read_config(config, overrides)
                frequency = settings.interpolate()["training"].get("eval_frequency", frequency)
                ended = _train(
                    config,
                    settings,
                    output,
                    ranks,
                    checkpoint_every=every,
                    resume=resume,
                    code=code,
                )
        except RankLost as error:
            fail(str(error))
        except KeyboardInterrupt:
            if ranks.is_first:
                how = _how_to_resume(latest(output), every, frequency)
                msg.warn("Stopped", f"What was saved is complete. {how}")
            raise Exit(130) from None
        if ranks.is_first:
            _report_end(ended, output)


def _parse_overrides(words: list[str]) -> dict[str, Any]:
    """Return the settings of the config among the options. End the command for other options."""
    options = [word.split("=")[0] for word in words if word.startswith("--")]
    unknown = [option for option in options if "." not in option]
    if unknown:
        fail(
            f"There is no option {unknown[0]}: expected one of --help, or such as "
            "--training.max_epochs 4."
        )
    return parse_config_overrides(words)


def _shown_errors(config: Path, verbose: bool) -> AbstractContextManager[None]:
    """Report errors by their message; with `verbose` by the traceback to where they are raised."""
    if verbose:
        return nullcontext()
    return exit_on_error(f"Cannot train by {config}")


def _report_end(ended: "TrainingEnd", output: Path | None) -> None:
    msg.info(ended.message)
    if output is not None:
        msg.good(f"Saved the pipeline to {output}")
    if ended.warning is not None:
        msg.warn(ended.warning)


def _set_log_level(ranks: "TorchDistributed", verbose: bool) -> None:
    """Let the first process log; with `verbose` more."""
    if not ranks.is_first:
        logger.setLevel(logging.ERROR)
    elif verbose:
        logger.setLevel(logging.DEBUG)
    else:
        logger.setLevel(logging.INFO)


def _read_config(path: Path, overrides: dict[str, Any]) -> Config:
    """Read a config, and check what can be checked before anything is loaded."""
    from ..readers.infer_schema import check_missing_labels
    from ..training.quickstart_config import check_config
    from ..training.settings import check_training

    with show_validation_error(path):
        settings = load_config(path, overrides, interpolate=False)
        check_config(settings, load_config(path, interpolate=False))
        interpolated = settings.interpolate()
        check_training(interpolated)
        check_missing_labels(interpolated.get("corpora", {}))
    return settings


def _train(
    path: Path,
    settings: Config,
    output: Path | None,
    ranks: "TorchDistributed",
    *,
    checkpoint_every: int,
    resume: bool,
    code: Path | None,
) -> "TrainingEnd":
    """Train from the start, or from the last checkpoint."""
    from ..distributed.checkpoint import find_checkpoint
    from ..distributed.train_loop import train

    checkpoint = find_checkpoint(output, ranks, every=checkpoint_every, resume=resume)
    if ranks.is_first and resume:
        if checkpoint:
            msg.info(f"Resuming from {checkpoint}")
        else:
            msg.info(f"No checkpoint in {output}: training begins")
    with show_validation_error(path), missing_packages():
        nlp = init_nlp(settings, use_gpu=ranks.gpu_id)
    return train(
        nlp, output, ranks, checkpoint_every=checkpoint_every, checkpoint=checkpoint, code=code
    )


def _how_to_resume(last: Path | None, every: int, frequency: int) -> str:
    """Return what to do after an interruption.

    last (Path): the last checkpoint. every (int): the steps between checkpoints. frequency (int):
        the steps between evaluations.
    """
    if last is not None:
        return f"The same command with --resume continues from {last}."
    if every:
        return f"There is no checkpoint to resume from yet: the first comes after step {every}."
    return (
        f"There is no checkpoint to resume from: with --checkpoint-every {frequency} there is one "
        f"for each evaluation (eval_frequency = {frequency})."
    )
