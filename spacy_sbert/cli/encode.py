"""`python -m spacy sbert encode`: from a file of texts to a file of vectors."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Exit, Option
from wasabi import msg

from .ending import fail, or_fail
from .errors import Errors
from .group import app
from .options import given, takes_options

RAY = ("address", "workers", "num_cpus", "num_gpus")


@dataclass(frozen=True)
class Running:
    """What encodes, and where."""

    pipeline: Annotated[str | None, Option("--pipeline", "-p", help="A folder or package; else MiniLM")] = None
    name: Annotated[str | None, Option("--name", "-n", help="The sbert pipe, by default the last")] = None
    precision: Annotated[str | None, Option("--precision", help="As in the config: float32, bfloat16, auto, ...")] = (
        None
    )
    gpu_ids: Annotated[str, Option("--gpu-ids", "-g", help="GPUs to work on, a process for each: 0,1")] = ""
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress bar")] = False


@dataclass(frozen=True)
class Encoding:
    """Which texts of a file become which vectors, and how."""

    column: Annotated[str, Option("--column", "-c", help="Column or JSON field of the texts")] = "text"
    header: Annotated[bool, Option(" /--no-header", help="Columns of .csv and .tsv are named 0, 1, ...")] = True
    id_column: Annotated[str | None, Option("--id-column", help=".parquet: a column to copy, named id")] = None
    with_text: Annotated[bool, Option("--with-text", help=".parquet: also the texts")] = False
    dtype: Annotated[str, Option("--dtype", help="Numbers in the output: float32 or float16")] = "float32"
    window: Annotated[int, Option("--window", help="Texts encoded together, and saved at a time")] = 4096
    max_batch_items: Annotated[int, Option("--batch-items", help="Wordpieces in a forward pass, 0: what suits")] = 0
    prompt_name: Annotated[str | None, Option("--prompt-name", help="Which of the encoder's prompts")] = None
    prompt: Annotated[str | None, Option("--prompt", help="What is put before each text")] = None
    truncate_dim: Annotated[int | None, Option("--truncate-dim", help="Dimensions to keep", min=1)] = None
    n_process: Annotated[int, Option("--n-process", help="Processes to work in")] = 1
    overwrite: Annotated[bool, Option("--overwrite", help="Replace the output when all is done")] = False
    restart: Annotated[bool, Option("--restart", help="Begin anew, whatever an interrupted run has kept")] = False


@dataclass(frozen=True)
class Folders:
    """How a folder of files is encoded, and where; None as encode_dataset has it."""

    output_format: Annotated[str | None, Option("--output-format", help="Of a folder: npy or parquet")] = None
    shard: Annotated[str | None, Option("--shard", help="Of a folder: I/N for the I-th share of N")] = None
    scratch: Annotated[str | None, Option("--scratch", help="Of a folder: where the part in work is kept")] = None
    engine: Annotated[str | None, Option("--engine", help="Of a folder: local or ray")] = None
    address: Annotated[str | None, Option("--address", help="Of Ray: a cluster's, auto for this machine's")] = None
    workers: Annotated[str | None, Option("--workers", help="Of Ray: the fewest and the most: 1,64")] = None
    num_cpus: Annotated[float | None, Option("--num-cpus", help="Of Ray: what a worker takes")] = None
    num_gpus: Annotated[float | None, Option("--num-gpus", help="Of Ray: what a worker takes")] = None


@app.command("encode")
@takes_options
def encode_cli(
    input_path: Annotated[
        str,
        Argument(help="Texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet; a folder or s3://... of them"),
    ],
    output_path: Annotated[str, Argument(help="Vectors: .npy, or .parquet with row or id, text, vector; or a folder")],
    *,
    running: Running,
    encoding: Encoding,
    folders: Folders,
) -> None:
    """Write the vector of each text in a file, or in all files of a folder, to another file or folder. After an
    interruption the same command goes on."""
    from ..bulk import encode_file, load_pipe

    if "://" in input_path or (input_path and Path(input_path).is_dir()):
        encode_folder(input_path, output_path, running, encoding, folders)
        return
    if of_folders := given(folders):
        options = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in of_folders.items())
        fail(Errors.BULK_OF_FOLDERS.format(options=options, path=input_path))
    try:
        with or_fail(f"Cannot encode {input_path}", RuntimeError):
            gpus, bar = _gpu_ids(running.gpu_ids), not running.quiet
            pipe = load_pipe(running.pipeline, name=running.name, precision=running.precision, gpu_ids=gpus)
            report = encode_file(pipe, input_path, output_path, gpu_ids=gpus, progress=bar, **asdict(encoding))
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    msg.good(f"Wrote {report.rows} vectors of width {report.width} to {output_path}")
    if report.resumed:
        msg.info(f"{report.resumed} of them were there from an interrupted run")
    if report.zero:
        msg.info(f"{report.zero} are zero: their texts are empty")


def encode_folder(source: str, target: str, running: Running, encoding: Encoding, folders: Folders) -> None:
    """Encode the files of a folder, and end with 1 if one of them could not be."""
    from ..bulk.dataset import encode_dataset

    options = asdict(encoding)
    if options.pop("overwrite"):
        fail(Errors.BULK_OF_FILES.format(option="--overwrite", path=source))
    try:
        with or_fail(f"Cannot encode {source}", RuntimeError):
            report = encode_dataset(
                source,
                target,
                pipeline=running.pipeline,
                name=running.name,
                precision=running.precision,
                gpu_ids=_gpu_ids(running.gpu_ids),
                shard=folders.shard,
                output=f".{folders.output_format or 'npy'}",
                scratch=folders.scratch,
                engine=_engine(folders),
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
    of_ray = {name: value for name, value in given(folders).items() if name in RAY}
    if folders.engine in (None, "local"):
        if of_ray:
            raise ValueError(Errors.BULK_OF_RAY.format(options=", ".join(of_ray)))
        return None
    if folders.engine != "ray":
        raise ValueError(Errors.BULK_NO_ENGINE.format(given=folders.engine))
    from ..bulk.on_ray import Cluster

    if "workers" in of_ray:
        fewest, _, most = of_ray["workers"].partition(",")
        if not (fewest.strip().isdecimal() and most.strip().isdecimal() and 1 <= int(fewest) <= int(most)):
            raise ValueError(Errors.BULK_BAD_WORKERS.format(given=of_ray["workers"]))
        of_ray["workers"] = int(fewest), int(most)
    return Cluster(**of_ray)


def _gpu_ids(said: str) -> list[int]:
    try:
        return [int(gpu_id) for gpu_id in said.split(",") if gpu_id.strip()]
    except ValueError as error:
        raise ValueError(Errors.BULK_BAD_GPU_IDS.format(given=said)) from error
