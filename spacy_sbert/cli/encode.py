"""`python -m spacy sbert encode`: from a file of texts to a file of vectors."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Option
from wasabi import msg

from .ending import or_fail
from .errors import Errors
from .group import app
from .options import takes_options


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


@app.command("encode")
@takes_options
def encode_cli(
    input_path: Annotated[Path, Argument(help="Texts: .txt, .jsonl, .csv, .tsv (all also .gz) or .parquet")],
    output_path: Annotated[Path, Argument(help="Vectors: .npy, or .parquet with row or id, text, vector")],
    pipeline: Annotated[str | None, Option("--pipeline", "-p", help="A folder or package; else MiniLM")] = None,
    name: Annotated[str | None, Option("--name", "-n", help="The sbert pipe, by default the last")] = None,
    precision: Annotated[
        str | None, Option("--precision", help="As in the config: float32, bfloat16, auto, ...")
    ] = None,
    gpu_ids: Annotated[str, Option("--gpu-ids", "-g", help="GPUs to work on, a process for each: 0,1")] = "",
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress bar")] = False,
    *,
    encoding: Encoding,
) -> None:
    """Write the vector of each text in a file to another file. After an interruption the same command goes on."""
    from ..bulk import encode_file, load_pipe

    try:
        with or_fail(f"Cannot encode {input_path}", RuntimeError):
            gpus = _gpu_ids(gpu_ids)
            pipe = load_pipe(pipeline, name=name, precision=precision, gpu_ids=gpus)
            report = encode_file(pipe, input_path, output_path, gpu_ids=gpus, progress=not quiet, **asdict(encoding))
    except KeyboardInterrupt:
        msg.warn("Stopped", "Run the same command again to go on.")
        raise Exit(130) from None
    msg.good(f"Wrote {report.rows} vectors of width {report.width} to {output_path}")
    if report.resumed:
        msg.info(f"{report.resumed} of them were there from an interrupted run")
    if report.zero:
        msg.info(f"{report.zero} are zero: their texts are empty")


def _gpu_ids(given: str) -> list[int]:
    try:
        return [int(gpu_id) for gpu_id in given.split(",") if gpu_id.strip()]
    except ValueError as error:
        raise ValueError(Errors.BULK_BAD_GPU_IDS.format(given=given)) from error
