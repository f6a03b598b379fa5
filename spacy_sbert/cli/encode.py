"""`python -m spacy sbert encode`: from a file of texts to a file of vectors."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, BadParameter, Exit, Option
from wasabi import msg

from ..errors import Errors
from ._util import Computing, app, check_columns, check_pipeline, exit_on_error, fail
from .options import GPU, TEXTS, Column, Header, IdColumn, Overwrite, Precision, set_options, takes_options

RAY = ("address", "workers", "num_cpus", "num_gpus")


@dataclass(frozen=True)
class Running(Computing):
    """What encodes, and where."""

    pipeline: Annotated[
        str | None, Option("--pipeline", "-p", help="The pipeline, where it does not stand before the input.")
    ] = None
    precision: Precision = None
    gpu_id: Annotated[int, Option("--gpu-id", help=GPU, min=-1)] = -1
    gpu_ids: Annotated[
        str, Option("--gpu-ids", "-g", help="The GPUs to work on, with a process for each, such as 0,1.")
    ] = ""

    def gpus(self) -> list[int]:
        """The GPUs to work on; none for the CPU. RAISES (ValueError): if they are not numbers, or given twice."""
        if self.gpu_id >= 0 and self.gpu_ids:
            raise ValueError(
                "--gpu-id and --gpu-ids were both given: expected one of them. --gpu-ids 0,1 takes several GPUs."
            )
        try:
            several = [int(gpu_id) for gpu_id in self.gpu_ids.split(",") if gpu_id.strip()]
        except ValueError as error:
            raise ValueError(
                f"Cannot use --gpu-ids {self.gpu_ids}: expected whole numbers with commas between, such as 0,1."
            ) from error
        if several == [-1]:
            return []
        return several or ([self.gpu_id] if self.gpu_id >= 0 else [])


@dataclass(frozen=True)
class Encoding:
    """Which texts of a file become which vectors, and how."""

    column: Column = None
    header: Header = True
    id_column: IdColumn = None
    with_text: Annotated[bool, Option("--with-text", help="Write the texts into a .parquet output, too.")] = False
    dtype: Annotated[str, Option("--dtype", help="The numbers in the output: float32 or float16.")] = "float32"
    window: Annotated[
        int, Option("--window", help="The number of texts that are encoded together, and saved at a time.")
    ] = 4096
    max_batch_items: Annotated[
        int, Option("--batch-items", help="The wordpieces in a forward pass, or 0 for what suits the machine.")
    ] = 0
    prompt_name: Annotated[
        str | None, Option("--prompt-name", help="The name of the encoder's prompt to put before each text.")
    ] = None
    prompt: Annotated[str | None, Option("--prompt", help="A prompt to put before each text.")] = None
    truncate_dim: Annotated[
        int | None, Option("--truncate-dim", help="The number of dimensions to keep; by default all.", min=1)
    ] = None
    n_process: Annotated[int, Option("--n-process", help="The number of processes to work in.")] = 1
    overwrite: Overwrite = False
    restart: Annotated[bool, Option("--restart", help="Begin anew, whatever an interrupted run has kept.")] = False


@dataclass(frozen=True)
class Folders:
    """How a folder of files is encoded, and where; None as encode_dataset has it."""

    output_format: Annotated[
        str | None, Option("--output-format", help="The files that a folder becomes: npy or parquet.")
    ] = None
    shard: Annotated[str | None, Option("--shard", help="The share of a folder to encode: I/N for the I-th of N.")] = (
        None
    )
    scratch: Annotated[str | None, Option("--scratch", help="The folder that keeps the part of a folder in work.")] = (
        None
    )
    engine: Annotated[str | None, Option("--engine", help="What works on a folder: local or ray.")] = None
    address: Annotated[
        str | None, Option("--address", help="The address of a Ray cluster, or auto for this machine's.")
    ] = None
    workers: Annotated[
        str | None, Option("--workers", help="The fewest and the most workers on Ray, such as 1,64.")
    ] = None
    num_cpus: Annotated[float | None, Option("--num-cpus", help="The CPUs that a worker on Ray takes.")] = None
    num_gpus: Annotated[float | None, Option("--num-gpus", help="The GPUs that a worker on Ray takes.")] = None


@app.command("encode")
@takes_options
def encode_cli(
    *,
    input_path: Annotated[
        str | None,
        Argument(metavar="PIPELINE", help="The pipeline, or the name of an encoder; by default the default encoder."),
    ] = None,
    output_path: Annotated[
        str | None, Argument(metavar="INPUT", help=f"{TEXTS[:-1]}; or a folder or s3://... of such files.")
    ] = None,
    more: Annotated[
        str | None, Argument(metavar="OUTPUT", help="The .npy or .parquet file of vectors to write; or a folder.")
    ] = None,
    running: Running,
    encoding: Encoding,
    folders: Folders,
) -> None:
    """Write the vectors of a file or folder of texts.

    After an interruption the same command goes on. `encode INPUT OUTPUT --pipeline PIPELINE` does the same.
    """
    from ..progress import ticking

    running, source, target = _paths(running, input_path, output_path, more)
    if "://" in source or (source and Path(source).is_dir()):
        encode_folder(source, target, running, encoding, folders)
        return
    if of_folders := set_options(folders):
        options = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in of_folders.items())
        fail(f"{source} is a file, and {options} is for folders of files. Leave it out, or name a folder.")
    if not Path(source).exists():
        fail(
            f"Cannot encode {source}",
            (
                f"There is no file or folder {source}: expected texts, as `encode INPUT OUTPUT` or `encode "
                "PIPELINE INPUT OUTPUT`."
            ),
        )

    check_columns(Path(source), encoding.column, header=encoding.header)
    if running.pipeline is not None:
        check_pipeline(running.pipeline)

    try:
        with exit_on_error(f"Cannot encode {source}", RuntimeError):
            gpus, bar = running.gpus(), not running.quiet
            running.import_code()
            with ticking("Loading", shown=bar):
                from ..bulk import encode_file, load_pipe
                from ..bulk.file_encoding import check_paths
                from ..bulk.options import Encoding as Options

                known = Options.__dataclass_fields__
                asked = {name: value for name, value in set_options(encoding).items() if name in known}
                check_paths(Path(source), Path(target), Options(**asked), overwrite=encoding.overwrite)
                pipe = load_pipe(
                    running.pipeline, name=running.pipe, precision=cast(Any, running.precision), gpu_ids=gpus
                )
            report = encode_file(pipe, source, target, gpu_ids=gpus, progress=bar, **set_options(encoding))
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    msg.good(f"Wrote {report.rows} vectors of width {report.width} to {target}")
    if report.resumed:
        msg.info(f"{report.resumed} of them were there from an interrupted run")
    if report.zero:
        msg.info(f"{report.zero} are zero: their texts are empty")


def _paths(running: Running, *given: str | None) -> tuple[Running, str, str]:
    """What INPUT and OUTPUT are, and what encodes: of three names the first is the pipeline."""
    names = [name for name in given if name is not None]
    if len(names) < 2:
        raise BadParameter(Errors.ENCODE_MISSING.format(given=names[0] if names else "the options"))
    if len(names) == 2:
        if _is_texts(Path(names[1]), of_folder=Path(names[0]).is_dir()):
            raise BadParameter(Errors.ENCODE_MISSING.format(given=" and ".join(names)))
        return running, names[0], names[1]
    if running.pipeline is not None:
        fail(
            f"Cannot tell what {names[0]} is: expected `encode INPUT OUTPUT --pipeline PIPELINE` or `encode "
            "PIPELINE INPUT OUTPUT`, with the pipeline once."
        )
    return replace(running, pipeline=names[0]), names[1], names[2]


def _is_texts(path: Path, *, of_folder: bool) -> bool:
    """Whether a path can be that of texts alone: vectors are .npy or .parquet, those of a folder a folder."""
    from ..files.text_lines import format_suffix

    if path.is_dir():
        return False
    return format_suffix(path) in (".txt", ".csv", ".tsv", ".jsonl") or (of_folder and path.is_file())


def encode_folder(source: str, target: str, running: Running, encoding: Encoding, folders: Folders) -> None:
    """Encode the files of a folder, and end with 1 if one of them could not be."""
    from ..bulk.dataset_encoding import encode_dataset

    options = set_options(encoding)
    if options.pop("overwrite"):
        fail(
            f"{source} is a folder, and --overwrite is for single files: parts that are done stay. --restart "
            "makes all anew."
        )
    try:
        with exit_on_error(f"Cannot encode {source}", RuntimeError):
            engine = _engine(folders)
            if engine is not None and running.code is not None:
                fail(
                    "--code is not imported by workers on Ray: install a package of the pipeline there that "
                    "has the code."
                )
            running.import_code()
            report = encode_dataset(
                source,
                target,
                pipeline=running.pipeline,
                name=running.pipe,
                precision=cast(Any, running.precision),
                gpu_ids=running.gpus(),
                shard=folders.shard,
                output=f".{folders.output_format or 'npy'}",
                scratch=folders.scratch,
                engine=engine,
                progress=not running.quiet,
                **options,
            )
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    for name, reason in report.failed.items():
        msg.fail(f"No vectors of {name}", reason)
    done = report.parts - len(report.failed)
    msg.good(f"Wrote {report.rows} vectors of {done} of {report.parts} files to {target}")
    if report.done:
        msg.info(f"{report.done} of these files were there from an earlier run")
    if report.zero:
        msg.info(f"{report.zero} vectors are zero: their texts are empty")
    if report.failed:
        raise Exit(1)


def _engine(folders: Folders) -> Any:
    """The Ray cluster that the options are of, None for this process."""
    of_ray = {name: value for name, value in set_options(folders).items() if name in RAY}
    if folders.engine in (None, "local"):
        if of_ray:
            raise ValueError(
                f"Options of Ray were given without --engine ray: {', '.join(of_ray)}. Add it, or leave them out."
            )
        return None
    if folders.engine != "ray":
        raise ValueError(f"Unknown --engine '{folders.engine}': expected local or ray.")
    from ..ray import Cluster

    if "workers" in of_ray:
        fewest, _, most = of_ray["workers"].partition(",")
        if not (fewest.strip().isdecimal() and most.strip().isdecimal() and 1 <= int(fewest) <= int(most)):
            raise ValueError(
                f"Cannot use --workers {of_ray['workers']}: expected the fewest and the most, such as 1,64."
            )
        of_ray["workers"] = int(fewest), int(most)
    return Cluster(**of_ray)
