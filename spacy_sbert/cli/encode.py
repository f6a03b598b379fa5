"""`python -m spacy sbert encode`: from a file of texts to a file of vectors."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option
from wasabi import msg

from ..errors import Errors
from ._util import app, check_columns, check_pipeline, exit_on_error, fail
from .options import (
    GPU,
    TEXTS,
    Code,
    Column,
    Header,
    IdColumn,
    Overwrite,
    Pipe,
    Precision,
    Quiet,
    without_none,
)

if TYPE_CHECKING:
    from ..bulk.dataset_encoding import DatasetReport
    from ..bulk.file_encoding import BulkReport
    from ..ray import Cluster

_RAY = ("address", "workers", "num_cpus", "num_gpus")


_Pipeline = Annotated[
    str | None, Option("--pipeline", "-p", help="The pipeline, where it does not stand before the input.")
]
_GpuIds = Annotated[str, Option("--gpu-ids", "-g", help="The GPUs to work on, with a process for each, such as 0,1.")]
_GpuId = Annotated[int, Option("--gpu-id", help=GPU, min=-1)]
_WithText = Annotated[bool, Option("--with-text", help="Write the texts into a .parquet output, too.")]
_Dtype = Annotated[str, Option("--dtype", help="The numbers in the output: float32 or float16.")]
_Window = Annotated[
    int, Option("--window", help="The number of texts that are encoded together, and saved at a time.", min=1)
]
_MaxBatchItems = Annotated[
    int, Option("--batch-items", help="The wordpieces in a forward pass, or 0 for what suits the machine.", min=0)
]
_PromptName = Annotated[
    str | None, Option("--prompt-name", help="The name of the encoder's prompt to put before each text.")
]
_Prompt = Annotated[str | None, Option("--prompt", help="A prompt to put before each text.")]
_TruncateDim = Annotated[
    int | None, Option("--truncate-dim", help="The number of dimensions to keep; by default all.", min=1)
]
_NProcess = Annotated[int, Option("--n-process", help="The number of processes to work in.")]
_Restart = Annotated[bool, Option("--restart", help="Begin at the start, whatever an interrupted run has kept.")]
_OutputFormat = Annotated[
    str | None, Option("--output-format", help="The files that a folder becomes: npy or parquet.")
]
_Shard = Annotated[str | None, Option("--shard", help="The share of a folder to encode: I/N for the I-th of N.")]
_Scratch = Annotated[str | None, Option("--scratch", help="The folder that keeps the part of a folder in work.")]
_Engine = Annotated[str | None, Option("--engine", help="What works on a folder: local or ray.")]
_Address = Annotated[str | None, Option("--address", help="The address of a Ray cluster, or auto for this machine's.")]
_Workers = Annotated[str | None, Option("--workers", help="The fewest and the most workers on Ray, such as 1,64.")]
_NumCpus = Annotated[float | None, Option("--num-cpus", help="The CPUs that a worker on Ray takes.")]
_NumGpus = Annotated[float | None, Option("--num-gpus", help="The GPUs that a worker on Ray takes.")]


@app.command("encode")
def _encode_cli(
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
    pipe: Pipe = None,
    code: Code = None,
    quiet: Quiet = False,
    gpu_id: _GpuId = -1,
    pipeline: _Pipeline = None,
    precision: Precision = None,
    gpu_ids: _GpuIds = "",
    column: Column = None,
    header: Header = True,
    id_column: IdColumn = None,
    with_text: _WithText = False,
    dtype: _Dtype = "float32",
    window: _Window = 4096,
    max_batch_items: _MaxBatchItems = 0,
    prompt_name: _PromptName = None,
    prompt: _Prompt = None,
    truncate_dim: _TruncateDim = None,
    n_process: _NProcess = 1,
    overwrite: Overwrite = False,
    restart: _Restart = False,
    output_format: _OutputFormat = None,
    shard: _Shard = None,
    scratch: _Scratch = None,
    engine: _Engine = None,
    address: _Address = None,
    workers: _Workers = None,
    num_cpus: _NumCpus = None,
    num_gpus: _NumGpus = None,
) -> None:
    """Write the vectors of a file or folder of texts.

    After an interruption the same command goes on. `encode INPUT OUTPUT --pipeline PIPELINE` does the same.
    """
    pipeline, source, target = _paths(pipeline, input_path, output_path, more)
    options = without_none(
        column=column,
        header=header,
        id_column=id_column,
        with_text=with_text,
        dtype=dtype,
        window=window,
        max_batch_items=max_batch_items,
        prompt_name=prompt_name,
        prompt=prompt,
        truncate_dim=truncate_dim,
        n_process=n_process,
        overwrite=overwrite,
        restart=restart,
    )
    of_folders = without_none(
        output_format=output_format,
        shard=shard,
        scratch=scratch,
        engine=engine,
        address=address,
        workers=workers,
        num_cpus=num_cpus,
        num_gpus=num_gpus,
    )
    is_folder = "://" in source or (source and Path(source).is_dir())
    if not is_folder:
        _check_file(Path(source), pipeline, column, header=header, of_folders=of_folders)
    encode = partial(_encode_folder, of_folders=of_folders) if is_folder else _encode_file
    loading = {"name": pipe, "precision": precision}
    try:
        with exit_on_error(f"Cannot encode {source}", RuntimeError):
            gpus = _gpus(gpu_id, gpu_ids)
            bar = not quiet
            report: Any = encode(pipeline, source, target, options, code, loading=loading, gpu_ids=gpus, progress=bar)
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    if is_folder:
        _summarize_folder(report, target)
        return
    msg.good(f"Wrote {report.rows} vectors of width {report.width} to {target}")
    if report.resumed:
        msg.info(f"{report.resumed} of them were there from an interrupted run")
    if report.zero:
        msg.info(f"{report.zero} are zero: their texts are empty")


def _check_file(
    source: Path, pipeline: str | None, column: str | None, *, header: bool, of_folders: dict[str, Any]
) -> None:
    """End the command, before any work, if the input cannot be a file of texts, or options do not fit a file."""
    if of_folders:
        options = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in of_folders.items())
        fail(f"{source} is a file, and {options} is for folders of files. Leave it out, or name a folder.")
    if not source.exists():
        fail(
            f"Cannot encode {source}",
            f"There is no file or folder {source}: expected texts, as `encode INPUT OUTPUT` or `encode "
            "PIPELINE INPUT OUTPUT`.",
        )
    check_columns(source, column, header=header)
    if pipeline is not None:
        check_pipeline(pipeline)


def _gpus(gpu_id: int, gpu_ids: str) -> list[int]:
    """Return the GPUs to work on; none for the CPU.

    RAISES (ValueError): if they are not numbers, or given twice.
    """
    if gpu_id >= 0 and gpu_ids:
        raise ValueError(
            "--gpu-id and --gpu-ids were both given: expected one of them. --gpu-ids 0,1 takes several GPUs."
        )
    try:
        several = [int(number) for number in gpu_ids.split(",") if number.strip()]
    except ValueError as error:
        raise ValueError(
            f"Cannot use --gpu-ids {gpu_ids}: expected whole numbers with commas between, such as 0,1."
        ) from error
    if several == [-1]:
        return []
    return several or ([gpu_id] if gpu_id >= 0 else [])


def _paths(pipeline: str | None, *arguments: str | None) -> tuple[str | None, str, str]:
    """Return the pipeline, INPUT and OUTPUT: of three arguments the first is the pipeline."""
    names = [name for name in arguments if name is not None]
    if len(names) < 2:
        raise BadParameter(Errors.ENCODE_MISSING.format(given=names[0] if names else "the options"))
    if len(names) == 2:
        if _is_texts(Path(names[1]), of_folder=Path(names[0]).is_dir()):
            raise BadParameter(Errors.ENCODE_MISSING.format(given=" and ".join(names)))
        return pipeline, names[0], names[1]
    if pipeline is not None:
        fail(
            f"Cannot tell what {names[0]} is: expected `encode INPUT OUTPUT --pipeline PIPELINE` or `encode "
            "PIPELINE INPUT OUTPUT`, with the pipeline once."
        )
    return names[0], names[1], names[2]


def _is_texts(path: Path, *, of_folder: bool) -> bool:
    """Return whether a path can be that of texts alone: vectors are .npy or .parquet, those of a folder a folder."""
    from ..files.text_lines import format_suffix

    if path.is_dir():
        return False
    return format_suffix(path) in (".txt", ".csv", ".tsv", ".jsonl") or (of_folder and path.is_file())


def _encode_file(
    pipeline: str | None,
    source: str,
    target: str,
    options: dict[str, Any],
    code: Path | None,
    *,
    loading: dict[str, Any],
    gpu_ids: list[int],
    progress: bool,
) -> "BulkReport":
    """Encode a file; what is wrong in the options shows before the pipeline is loaded."""
    from spacy.cli._util import import_code

    from ..progress import ticking

    import_code(code)
    with ticking("Loading", shown=progress):
        from ..bulk import encode_file, load_pipe
        from ..bulk.file_encoding import check_paths
        from ..bulk.options import Encoding

        known = {name: value for name, value in options.items() if name in Encoding.__dataclass_fields__}
        check_paths(Path(source), Path(target), Encoding(**known), overwrite=options["overwrite"])
        pipe = load_pipe(pipeline, gpu_ids=gpu_ids, **loading)
    return encode_file(pipe, source, target, gpu_ids=gpu_ids, progress=progress, **options)


def _encode_folder(
    pipeline: str | None,
    source: str,
    target: str,
    options: dict[str, Any],
    code: Path | None,
    *,
    loading: dict[str, Any],
    gpu_ids: list[int],
    progress: bool,
    of_folders: dict[str, Any],
) -> "DatasetReport":
    """Encode the files of a folder."""
    from spacy.cli._util import import_code

    from ..bulk.dataset_encoding import encode_dataset

    if options["overwrite"]:
        fail(
            f"{source} is a folder, and --overwrite is for single files: parts that are done stay. --restart "
            "makes all again."
        )
    engine = _engine(of_folders)
    if engine is not None and code is not None:
        fail("--code is not imported by workers on Ray: install a package of the pipeline there that has the code.")
    import_code(code)
    return encode_dataset(
        source,
        target,
        pipeline=pipeline,
        gpu_ids=gpu_ids,
        shard=of_folders.get("shard"),
        output=f".{of_folders.get('output_format') or 'npy'}",
        scratch=of_folders.get("scratch"),
        engine=engine,
        progress=progress,
        **loading,
        **{name: value for name, value in options.items() if name != "overwrite"},
    )


def _summarize_folder(report: "DatasetReport", target: str) -> None:
    """Print what was written of a folder; files that could not be encoded end the command with 1."""
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


def _engine(of_folders: dict[str, Any]) -> "Cluster | None":
    """Return the Ray cluster that the options are of, None for this process."""
    of_ray = {name: value for name, value in of_folders.items() if name in _RAY}
    engine = of_folders.get("engine", "local")
    if engine == "local":
        if of_ray:
            raise ValueError(
                f"Options of Ray were given without --engine ray: {', '.join(of_ray)}. Add it, or leave them out."
            )
        return None
    if engine != "ray":
        raise ValueError(f"Unknown --engine '{engine}': expected local or ray.")
    from ..ray import Cluster

    if "workers" in of_ray:
        fewest, _, most = of_ray["workers"].partition(",")
        if not (fewest.strip().isdecimal() and most.strip().isdecimal() and 1 <= int(fewest) <= int(most)):
            raise ValueError(
                f"Cannot use --workers {of_ray['workers']}: expected the fewest and the most, such as 1,64."
            )
        of_ray["workers"] = int(fewest), int(most)
    return Cluster(**of_ray)
