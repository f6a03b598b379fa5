"""`python -m spacy sbert encode`: from a file or folder of texts to vectors."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, BadParameter, Exit, Option
from wasabi import msg

from ._util import app, check_columns, check_pipeline, exit_on_error, fail
from .options import GPU, TEXTS, Code, Column, Header, IdColumn, Overwrite, Pipe, Precision, Quiet, without_none

if TYPE_CHECKING:
    from ..bulk import BulkReport, DatasetReport
    from ..ray import Cluster


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
    gpu_id: Annotated[int, Option(help=GPU, min=-1)] = -1,
    pipeline: Annotated[
        str | None, Option("--pipeline", "-p", help="The pipeline, where it does not stand before the input.")
    ] = None,
    precision: Precision = None,
    gpu_ids: Annotated[
        str, Option("--gpu-ids", "-g", help="The GPUs to work on, with a process for each, such as 0,1.")
    ] = "",
    column: Column = None,
    header: Header = True,
    id_column: IdColumn = None,
    with_text: Annotated[bool, Option("--with-text", help="Write the texts into a .parquet output, too.")] = False,
    dtype: Annotated[str, Option(help="The numbers in the output: float32 or float16.")] = "float32",
    window: Annotated[
        int, Option(help="The number of texts that are encoded together, and saved at a time.", min=1)
    ] = 4096,
    max_batch_items: Annotated[
        int, Option("--batch-items", help="The wordpieces in a forward pass, or 0 for what suits the machine.", min=0)
    ] = 0,
    prompt_name: Annotated[str | None, Option(help="The name of the encoder's prompt to put before each text.")] = None,
    prompt: Annotated[str | None, Option(help="A prompt to put before each text.")] = None,
    truncate_dim: Annotated[int | None, Option(help="The number of dimensions to keep; by default all.", min=1)] = None,
    n_process: Annotated[int, Option(help="The number of processes to work in.")] = 1,
    overwrite: Overwrite = False,
    restart: Annotated[
        bool, Option("--restart", help="Begin at the start, whatever an interrupted run has kept.")
    ] = False,
    output_format: Annotated[str | None, Option(help="The files that a folder becomes: npy or parquet.")] = None,
    shard: Annotated[str | None, Option(help="The share of a folder to encode: I/N for the I-th of N.")] = None,
    scratch: Annotated[str | None, Option(help="The folder that keeps the part of a folder in work.")] = None,
    engine: Annotated[str | None, Option(help="What works on a folder: local or ray.")] = None,
    address: Annotated[str | None, Option(help="The address of a Ray cluster, or auto for this machine's.")] = None,
    workers: Annotated[str | None, Option(help="The fewest and the most workers on Ray, such as 1,64.")] = None,
    num_cpus: Annotated[float | None, Option(help="The CPUs that a worker on Ray takes.")] = None,
    num_gpus: Annotated[float | None, Option(help="The GPUs that a worker on Ray takes.")] = None,
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
    )
    ray = without_none(address=address, workers=workers, num_cpus=num_cpus, num_gpus=num_gpus)
    of_folders = without_none(output_format=output_format, shard=shard, scratch=scratch, engine=engine) | ray
    run: dict[str, Any] = {"n_process": n_process, "restart": restart, "progress": not quiet}
    loading = {"name": pipe, "precision": precision}
    is_folder = "://" in source or (source and Path(source).is_dir())
    if not is_folder:
        _check_file(Path(source), pipeline, column, header=header, of_folders=of_folders)
    try:
        with exit_on_error(f"Cannot encode {source}", RuntimeError):
            run["gpu_ids"] = _gpus(gpu_id, gpu_ids)
            if is_folder:
                if overwrite:
                    raise ValueError("--overwrite is for single files. --restart makes all parts of a folder again.")
                run |= {"engine": _engine(engine, ray, code), "shard": shard, "scratch": scratch}
                run["output"] = f".{output_format or 'npy'}"
                n_failed = _encode_folder(source, target, code, pipeline=pipeline, **loading, **options, **run)
            else:
                n_failed = _encode_file(source, target, code, pipeline, loading, options, overwrite=overwrite, **run)
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    if n_failed:
        raise Exit(1)


def _check_file(
    source: Path, pipeline: str | None, column: str | None, *, header: bool, of_folders: dict[str, Any]
) -> None:
    """End the command, before any work, if the input cannot be a file of texts, or options do not fit a file."""
    if of_folders:
        options = ", ".join(f"--{name.replace('_', '-')} {value}" for name, value in of_folders.items())
        fail(f"{source} is a file, and {options} is for folders of files. Leave it out, or name a folder.")
    if not source.exists():
        fail(f"Cannot encode {source}", "There is no such file or folder: expected texts, as `encode INPUT OUTPUT`.")
    check_columns(source, column, header=header)
    if pipeline is not None:
        check_pipeline(pipeline)


def _gpus(gpu_id: int, gpu_ids: str) -> list[int]:
    """Return the GPUs to work on; none for the CPU. RAISES (ValueError): if they are given twice, or no numbers."""
    if gpu_id >= 0 and gpu_ids:
        raise ValueError("--gpu-id and --gpu-ids were both given: expected one of them.")
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
    if len(names) == 3:
        if pipeline is not None:
            fail("The pipeline was given twice: expected `encode INPUT OUTPUT --pipeline PIPELINE`, or without it.")
        return names[0], names[1], names[2]
    if len(names) < 2 or _is_texts(Path(names[1]), of_folder=Path(names[0]).is_dir()):
        given = " and ".join(names) or "the options"
        raise BadParameter(
            f"There is no OUTPUT beside {given}: expected `encode INPUT OUTPUT` or `encode PIPELINE INPUT OUTPUT`. "
            "OUTPUT is a .npy or .parquet file, or the folder for the vectors of a folder."
        )
    return pipeline, names[0], names[1]


def _is_texts(path: Path, *, of_folder: bool) -> bool:
    """Return whether a path can be that of texts alone: vectors are .npy or .parquet, those of a folder a folder."""
    from ..files.text_lines import format_suffix

    if path.is_dir():
        return False
    return format_suffix(path) in (".txt", ".csv", ".tsv", ".jsonl") or (of_folder and path.is_file())


def _encode_file(
    source: str,
    target: str,
    code: Path | None,
    pipeline: str | None,
    loading: dict[str, Any],
    options: dict[str, Any],
    *,
    overwrite: bool,
    **run: Any,  # noqa: ANN401 (of different types)
) -> int:
    """Encode a file, and return 0: none failed. Wrong options are reported before the pipeline is loaded."""
    from spacy.cli._util import import_code

    from ..progress import ticking

    import_code(code)
    with ticking("Loading", shown=run["progress"]):
        from ..bulk import encode_file, load_pipe
        from ..bulk.file_encoding import Encoding, check_paths

        check_paths(Path(source), Path(target), Encoding(**options), overwrite=overwrite)
        pipe = load_pipe(pipeline, gpu_ids=run["gpu_ids"], **loading)
    report: BulkReport = encode_file(pipe, source, target, overwrite=overwrite, **options, **run)
    msg.good(f"Wrote {report.rows} vectors of width {report.width} to {target}")
    if report.resumed:
        msg.info(f"{report.resumed} of them were there from an interrupted run")
    if report.zero:
        msg.info(f"{report.zero} are zero: their texts are empty")
    return 0


def _encode_folder(source: str, target: str, code: Path | None, **options: Any) -> int:  # noqa: ANN401 (see above)
    """Encode the files of a folder, and return how many failed."""
    from spacy.cli._util import import_code

    from ..bulk import encode_dataset

    import_code(code)
    report: DatasetReport = encode_dataset(source, target, **options)
    for name, reason in report.failed.items():
        msg.fail(f"No vectors of {name}", reason)
    done = report.parts - len(report.failed)
    msg.good(f"Wrote {report.rows} vectors of {done} of {report.parts} files to {target}")
    if report.done:
        msg.info(f"{report.done} of these files were there from an earlier run")
    if report.zero:
        msg.info(f"{report.zero} vectors are zero: their texts are empty")
    return len(report.failed)


def _engine(engine: str | None, ray: dict[str, Any], code: Path | None) -> "Cluster | None":
    """Return the Ray cluster of the options, None for this process."""
    if engine not in (None, "local", "ray"):
        raise ValueError(f"Unknown --engine '{engine}': expected local or ray.")
    if engine != "ray":
        if ray:
            raise ValueError(f"Options of Ray were given without --engine ray: {', '.join(ray)}. Add it.")
        return None
    if code is not None:
        raise ValueError("Workers on Ray do not import --code. Install a package of the pipeline that has the code.")
    from ..ray import Cluster

    if "workers" in ray:
        fewest, _, most = ray["workers"].partition(",")
        if not (fewest.strip().isdecimal() and most.strip().isdecimal() and 1 <= int(fewest) <= int(most)):
            raise ValueError(f"Cannot use --workers {ray['workers']}: expected the fewest and the most, such as 1,64.")
        ray["workers"] = int(fewest), int(most)
    return Cluster(**ray)
