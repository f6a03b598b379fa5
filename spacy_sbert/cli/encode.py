"""`python -m spacy sbert encode`: from a file or folder of texts to vectors."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from spacy.cli._util import import_code
from typer import Argument, BadParameter, Exit, Option
from wasabi import msg

from ..progress import ticking
from ._util import command, exit_on_error, fail
from .options import GPU, TEXTS, ColumnOptions, Loading, Overwrite, PrecisionOption, without_none

if TYPE_CHECKING:
    from ..ray import Cluster

_PIPELINE = "The pipeline, or the name of an encoder; by default the default encoder."
_INPUT = f"{TEXTS[:-1]}; or a folder or s3://... of such files."
_OUTPUT = "The .npy or .parquet file of vectors to write; or a folder."


@dataclass
class _Encoding(ColumnOptions):
    """How texts become vectors."""

    with_text: Annotated[
        bool, Option("--with-text", help="Write the texts into a .parquet output, too.")
    ] = False
    dtype: Annotated[str, Option(help="The numbers in the output: float32 or float16.")] = "float32"
    window: Annotated[
        int, Option(help="The texts that are encoded together, and saved at a time.", min=1)
    ] = 4096
    max_batch_items: Annotated[
        int, Option("--batch-items", help="The wordpieces in a forward pass, or 0.", min=0)
    ] = 0
    prompt_name: Annotated[
        str | None, Option(help="The name of the encoder's prompt to put before each text.")
    ] = None
    prompt: Annotated[str | None, Option(help="A prompt to put before each text.")] = None
    truncate_dim: Annotated[
        int | None, Option(help="The number of dimensions to keep; by default all.", min=1)
    ] = None


@dataclass
class _OfFolders:
    """How the files of a folder are shared out."""

    output_format: Annotated[
        str | None, Option(help="The files that a folder becomes: npy or parquet.")
    ] = None
    shard: Annotated[
        str | None, Option(help="The share of a folder to encode: I/N for the I-th of N.")
    ] = None
    scratch: Annotated[
        str | None, Option(help="The folder that keeps the part of a folder in work.")
    ] = None
    engine: Annotated[str | None, Option(help="What works on a folder: local or ray.")] = None
    address: Annotated[
        str | None, Option(help="The address of a Ray cluster, or auto for this machine's.")
    ] = None
    workers: Annotated[
        str | None, Option(help="The fewest and the most workers on Ray, such as 1,64.")
    ] = None
    num_cpus: Annotated[float | None, Option(help="The CPUs that a worker on Ray takes.")] = None
    num_gpus: Annotated[float | None, Option(help="The GPUs that a worker on Ray takes.")] = None

    def cluster(self, code: Path | None) -> "Cluster | None":
        """Return the Ray cluster of the options, None for this process."""
        ray = without_none(
            address=self.address,
            workers=self.workers,
            num_cpus=self.num_cpus,
            num_gpus=self.num_gpus,
        )
        if self.engine not in (None, "local", "ray"):
            raise ValueError(f"Unknown --engine '{self.engine}': expected local or ray.")
        if self.engine != "ray" and ray:
            raise ValueError(
                f"Options of Ray were given without --engine ray: {', '.join(ray)}. Add it."
            )
        if self.engine != "ray":
            return None
        if code is not None:
            raise ValueError(
                "Workers on Ray do not import --code. Install a package of the pipeline that has "
                "it."
            )
        from ..ray import Cluster

        if self.workers is not None:
            ray["workers"] = _workers(self.workers)
        return Cluster(**ray)


def _workers(text: str) -> tuple[int, int]:
    """Return the fewest and the most workers, such as "1,64"."""
    fewest, _, most = text.partition(",")
    are_numbers = fewest.isdecimal() and most.isdecimal()
    if not are_numbers or not 1 <= int(fewest) <= int(most):
        raise ValueError(f"Cannot use --workers {text}: expected fewest and most, such as 1,64.")
    return int(fewest), int(most)


@command("encode")
def _encode_cli(
    loading: Loading,
    encoding: _Encoding,
    of_folders: _OfFolders,
    # With --pipeline the first two are INPUT and OUTPUT
    first: Annotated[str | None, Argument(metavar="PIPELINE", help=_PIPELINE)] = None,
    second: Annotated[str | None, Argument(metavar="INPUT", help=_INPUT)] = None,
    third: Annotated[str | None, Argument(metavar="OUTPUT", help=_OUTPUT)] = None,
    gpu_id: Annotated[int, Option(help=GPU, min=-1)] = -1,
    pipeline: Annotated[
        str | None, Option("--pipeline", "-p", help="The pipeline, if not the first argument.")
    ] = None,
    precision: PrecisionOption = None,
    gpu_ids: Annotated[
        str, Option("--gpu-ids", "-g", help="GPUs with a process for each, such as 0,1.")
    ] = "",
    n_process: Annotated[int, Option(help="The number of processes to work in.")] = 1,
    overwrite: Overwrite = False,
    restart: Annotated[
        bool, Option("--restart", help="Drop what an interrupted run has kept.")
    ] = False,
) -> None:
    """Write the vectors of a file or folder of texts.

    After an interruption the same command goes on. `encode INPUT OUTPUT --pipeline PIPELINE` does
    the same.
    """
    pipeline, source, target = _arguments([first, second, third], pipeline)
    is_folder = "://" in source or Path(source).is_dir()
    if not is_folder:
        _check_file(Path(source), encoding, of_folders)
    pipe = {"pipeline": pipeline, "name": loading.pipe, "precision": precision}
    run: dict[str, Any] = {"n_process": n_process, "restart": restart, "progress": loading.shown}
    n_failed = 0
    try:
        with exit_on_error(f"Cannot encode {source}", RuntimeError):
            run["gpu_ids"] = _gpus(gpu_id, gpu_ids)
            import_code(loading.code)
            if is_folder:
                if overwrite:
                    raise ValueError(
                        "--overwrite is for single files. --restart makes all parts of a folder "
                        "again."
                    )
                run["engine"] = of_folders.cluster(loading.code)
                run["shard"] = of_folders.shard
                run["scratch"] = of_folders.scratch
                run["output"] = f".{of_folders.output_format or 'npy'}"
                options = without_none(**vars(encoding))
                n_failed = _encode_folder(source, target, **pipe, **run, **options)
            else:
                run["overwrite"] = overwrite
                _encode_file(source, target, pipe, encoding, run)
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    if n_failed:
        raise Exit(1)


def _arguments(given: list[str | None], pipeline: str | None) -> tuple[str | None, str, str]:
    """Return the pipeline, None for the default encoder, the input and the output.

    given: INPUT OUTPUT, or PIPELINE INPUT OUTPUT. pipeline (str): the option --pipeline.
    """
    paths = [path for path in given if path is not None]
    if len(paths) < 2:
        raise BadParameter(
            "There is no OUTPUT, a file or folder of vectors: expected `encode PIPELINE INPUT "
            "OUTPUT`."
        )
    *named, source, target = paths
    if named and pipeline is not None:
        fail("The pipeline was given twice: leave --pipeline out, or the first argument.")
    return (named[0] if named else pipeline), source, target


def _check_file(source: Path, columns: ColumnOptions, of_folders: _OfFolders) -> None:
    """End the command, before any work, if the input is no file, or options do not fit a file."""
    if given := without_none(**vars(of_folders)):
        options = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in given.items())
        fail(
            f"{source} is a file, and {options} is for folders of files. Leave it out, or name a "
            "folder."
        )
    if not source.exists():
        fail(
            f"Cannot encode {source}",
            "There is no such file or folder: expected texts, as `encode INPUT OUTPUT`.",
        )
    columns.check(source)


def _gpus(gpu_id: int, gpu_ids: str) -> list[int]:
    """Return the GPUs to work on; none for the CPU.

    RAISES (ValueError): if they are given twice, or no numbers.
    """
    if gpu_id >= 0 and gpu_ids:
        raise ValueError("--gpu-id and --gpu-ids were both given: expected one of them.")
    try:
        several = [int(number) for number in gpu_ids.split(",") if number.strip()]
    except ValueError as error:
        raise ValueError(
            f"Cannot use --gpu-ids {gpu_ids}: expected whole numbers with commas, such as 0,1."
        ) from error
    return [number for number in several or [gpu_id] if number >= 0]


def _encode_file(
    source: str, target: str, pipe: dict[str, Any], encoding: _Encoding, run: dict[str, Any]
) -> None:
    """Encode a file. Wrong options are reported before the pipeline is loaded."""
    with ticking("Loading", shown=run["progress"]):
        from ..bulk import encode_file, load_pipe
        from ..bulk.file_encoding import Encoding, check_paths

        options = without_none(**vars(encoding))
        check_paths(Path(source), Path(target), Encoding(**options), overwrite=run["overwrite"])
        loaded = load_pipe(gpu_ids=run["gpu_ids"], **pipe)
    report = encode_file(loaded, source, target, **options, **run)
    msg.good(f"Wrote {report.rows} vectors of width {report.width} to {target}")
    if report.resumed:
        msg.info(f"{report.resumed} of them were there from an interrupted run")
    if report.zero:
        msg.info(f"{report.zero} are zero: their texts are empty")


def _encode_folder(source: str, target: str, **options: Any) -> int:
    """Encode the files of a folder, and return how many failed."""
    from ..bulk import encode_dataset

    report = encode_dataset(source, target, **options)
    for name, reason in report.failed.items():
        msg.fail(f"No vectors of {name}", reason)
    done = report.parts - len(report.failed)
    msg.good(f"Wrote {report.rows} vectors of {done} of {report.parts} files to {target}")
    if report.done:
        msg.info(f"{report.done} of these files were there from an earlier run")
    if report.zero:
        msg.info(f"{report.zero} vectors are zero: their texts are empty")
    return len(report.failed)
