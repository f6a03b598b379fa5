"""From a folder of files of texts to a folder of files of vectors."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors.checks import NonNegative, Positive, Processes, validated
from ..errors.progress import progress_bar
from ..vectors.computing import Precision
from .encoding import Encoding
from .errors import Warnings
from .manifest import INDEX, JOB, Index, Job, begin_job, done, manifest_name, read, write
from .outputs import writer_of
from .part_encoder import Outcome, PartEncoder, Plan
from .parts import LARGE, Part, find_parts, shard_of
from .places import Place

Outcomes = Iterator[Outcome]
Engine = Callable[[Plan, Sequence[Part], bool], Outcomes]  # the last: whether what was made otherwise is made anew


@dataclass(frozen=True)
class DatasetReport:
    """What became of a data set.

    parts (int): of this job. done (int): how many of them were there before. failed (dict): from the names of those
        that have no vectors to what is wrong with them.
    rows, zero, cut: of all parts but the failed, see BulkReport.
    """

    parts: int
    done: int
    failed: dict[str, str]
    rows: int
    zero: int
    cut: int


def alone(plan: Plan, parts: Sequence[Part], restart: bool) -> Outcomes:
    """The engine that is none: this process, part after part."""
    worker = PartEncoder(plan)
    job = begin_job(plan.target, worker.made_of(), restart=restart)
    for part in parts:
        yield worker(part, job)


@validated
def encode_dataset(
    source: Path | str,
    target: Path | str,
    *,
    pipeline: str | Path | None = None,
    name: str | None = None,
    precision: Precision | None = None,
    output: str = ".npy",
    n_process: Processes = 1,
    gpu_ids: Sequence[NonNegative] = (),
    large: Positive = LARGE,
    shard: str | None = None,
    scratch: Path | str | None = None,
    restart: bool = False,
    engine: Engine | None = None,
    progress: bool = False,
    **options: Any,
) -> DatasetReport:
    """Write the vectors of all files of texts in a folder to another folder, a file for each, as encode_file does.

    A part is a file, or a row group of a large .parquet file. Its manifest, NAME.npy.json, is written when its vectors
    are there: a second call makes only those that have none. job.json says what all vectors are made of, index.json,
    at the end, which parts there are.

    source, target (str): folders, or addresses that Arrow knows: s3://bucket/folder, gs://..., hdfs://...
    pipeline, name, precision: see load_pipe.
    output (str): ".npy" or ".parquet", the format of the vectors.
    n_process, gpu_ids, options: see encode_file; column, header, id_column, with_text, dtype, window, max_batch_items,
        prompt_name, prompt, truncate_dim.
    large (int): bytes above which the row groups of a .parquet file are parts.
    shard (str): "2/8" to do the second of eight shares; all of them together do the whole.
    scratch (Path): a folder for the part that is worked on; by default the machine's for temporary files.
    restart (bool): whether to make all vectors anew. engine (Cluster): the Ray cluster that does it; None for this
        process. progress (bool): whether to show a progress bar.
    RETURNS (DatasetReport): counts, and what is wrong with parts that have no vectors.
    RAISES (ValueError): if a folder is none, has no part or an unknown file; if the target has vectors of another
        encoder, device or option; for an unknown option. (OSError): if the pipeline is not found.
    RAISES (ImportError): without pyarrow.
    """
    encoding = Encoding(**options)
    writer_of(Path(f"vectors{output}"), with_columns=encoding.with_columns)
    plan = Plan(
        Place(str(source)),
        Place(str(target)),
        output.lower(),
        encoding,
        None if pipeline is None else str(pipeline),
        name,
        precision,
        n_process,
        tuple(gpu_ids),
        None if scratch is None else str(scratch),
    )
    every = find_parts(plan.source, large)
    parts = every if shard is None else shard_of(every, shard)
    if restart:
        for name in (INDEX, *(manifest_name(part, plan.suffix) for part in parts)):
            plan.target.remove(name)
    outcomes = list(_shown((engine or alone)(plan, parts, restart), len(parts), progress))
    _write_index(plan, every)
    return _report(outcomes)


def _shown(outcomes: Outcomes, n: int, progress: bool) -> Outcomes:
    """The outcomes as they come, with a bar of parts, rows, rows a second and failures."""
    rows = failed = 0
    with progress_bar(n, shown=progress, unit="parts") as bar:
        for outcome in outcomes:
            rows += outcome.manifest.made.rows if outcome.manifest is not None and outcome.is_new else 0
            failed += bool(outcome.failed)
            elapsed = bar.format_dict["elapsed"] or 1.0
            bar.set_postfix(rows=rows, rows_per_s=round(rows / elapsed), failed=failed)
            bar.update()
            yield outcome


def _write_index(plan: Plan, parts: Sequence[Part]) -> None:
    """Write the index when all parts are done, by whichever shard is the last: none of another job is in it. Until then
    there is none."""
    job = read(plan.target, JOB, Job)
    indexed = []
    for part in parts:
        try:
            found = done(plan.target, part, job, plan.suffix) if job is not None else None
        except ValueError:  # its file was changed, as its outcome says
            found = None
        if found is None:
            plan.target.remove(INDEX)
            return
        indexed.append(found)
    write(plan.target, INDEX, Index(parts=indexed))


def _report(outcomes: Sequence[Outcome]) -> DatasetReport:
    made = [outcome.manifest.made for outcome in outcomes if outcome.manifest is not None]
    report = DatasetReport(
        parts=len(outcomes),
        done=sum(outcome.manifest is not None and not outcome.is_new for outcome in outcomes),
        failed={outcome.part.name: outcome.failed for outcome in outcomes if outcome.failed},
        rows=sum(one.rows for one in made),
        zero=sum(one.zero for one in made),
        cut=sum(one.cut for one in made),
    )
    if report.cut:
        warnings.warn(Warnings.BULK_CUT.format(cut=report.cut, rows=report.rows), stacklevel=3)
    return report
