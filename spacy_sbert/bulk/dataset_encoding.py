"""Encode a folder of files, shard by shard."""

import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, NonNegativeInt

from ..errors import Warnings
from ..files.serialization import digest_of_parts, file_digest
from ..models.sbert_config import Precision
from ..progress import progress_bar
from ..validation import NonNegative, Positive, Processes, validated
from .checkpoint import Values, differences
from .embeddings_file import check_format
from .file_encoding import BulkReport, encode_file
from .loading import load_pipe
from .options import Encoding
from .shards import SPLIT_ABOVE, RemoteFolder, Shard, find_shards, shard_of

JOB, INDEX = "job.json", "index.json"


class JobSpec(BaseModel):
    """What the vectors of a data set are made of, beside its texts: encoder, options, device and versions."""

    format: Literal["spacy-sbert dataset 1"] = "spacy-sbert dataset 1"
    made_of: dict[str, str | bool | int | None]

    @property
    def digest(self) -> str:
        return digest_of_parts(self.made_of)

    def check(self, target: RemoteFolder, made_of: Values) -> None:
        """Refuse to make vectors otherwise than those of a folder. RAISES (ValueError): that says what differs."""
        if differing := differences(self.made_of, made_of):
            raise ValueError(
                f"{target.name} holds vectors that were made otherwise: {differing}. Go on with the encoder and the "
                "options of then, or take another folder. --restart makes all of them again."
            )


class ShardManifest(BaseModel):
    """Record of a part whose vectors are whole. It is written last: without it, they are made again.

    job (str): the digest of what they are made of. part (Shard): of which texts. made (BulkReport): counts.
    vectors (str): their file, below the folder. digest (str): its SHA-256. bytes (int): its size.
    """

    format: Literal["spacy-sbert part 1"] = "spacy-sbert part 1"
    job: str
    part: Shard
    made: BulkReport
    vectors: str
    digest: str
    bytes: NonNegativeInt


class Index(BaseModel):
    """All vectors of a data set as one: the parts in the order of their names."""

    format: Literal["spacy-sbert vectors 1"] = "spacy-sbert vectors 1"
    parts: list[ShardManifest]


def begin_job(target: RemoteFolder, made_of: Values, *, restart: bool = False) -> JobSpec:
    """Return the job of a folder, which is written there if it is the first.

    restart (bool): whether what was made otherwise is to be made again.
    RAISES (ValueError): if the folder has another job; the message says what differs.
    """
    job, before = JobSpec(made_of=dict(made_of)), target.read_json(JOB, JobSpec)
    if before is None or (restart and before.digest != job.digest):
        target.write_json(JOB, job)
        before = target.read_json(JOB, JobSpec)  # another shard may have begun another at the same moment
    (before or JobSpec(made_of={})).check(target, made_of)
    return job


def _manifest_name(part: Shard, suffix: str) -> str:
    return f"{part.name}{suffix}.json"


def _finished(target: RemoteFolder, part: Shard, job: JobSpec, suffix: str) -> ShardManifest | None:
    """Return the manifest of a part whose vectors are there and whole; None if they are to be made.

    RAISES (ValueError): if they were made of another state of its file.
    """
    manifest = target.read_json(_manifest_name(part, suffix), ShardManifest)
    if manifest is None or manifest.job != job.digest or target.size(part.name + suffix) != manifest.bytes:
        return None
    if manifest.part != part:
        raise ValueError(
            f"{part.path} was changed since its vectors were made (it has {part.size} bytes, then "
            f"{manifest.part.size}). Take another folder for the new data, or make all vectors again with "
            "--restart."
        )
    return manifest


class ShardResult(BaseModel):
    """Result of a part: its manifest, or why there is none.

    is_new (bool): whether its vectors were made now. failed (str): the message, with file and line.
    """

    part: Shard
    manifest: ShardManifest | None = None
    is_new: bool = False
    failed: str = ""


@dataclass(frozen=True)
class WorkerConfig:
    """Settings of a worker, which go to other processes.

    source, target (RemoteFolder): folders. suffix (str): of the files of vectors. encoding (Encoding): the options.
    pipeline, name, precision (str): see load_pipe. n_process (int), gpu_ids (tuple): see encode_file.
    scratch (str): a folder of the worker's machine for one part at a time, None for its temporary one.
    """

    source: RemoteFolder
    target: RemoteFolder
    suffix: str
    encoding: Encoding
    pipeline: str | None = None
    name: str | None = None
    precision: Precision | None = None
    n_process: int = 1
    gpu_ids: tuple[int, ...] = ()
    scratch: str | None = None


class ShardEncoder:
    """Worker that loads the pipeline by itself, and encodes part after part.

    RAISES (ValueError): if this machine has no such scratch folder. See load_pipe for others.
    """

    def __init__(self, plan: WorkerConfig):
        if plan.scratch is not None and not Path(plan.scratch).is_dir():
            raise ValueError(
                f"There is no folder scratch = {plan.scratch} on this machine to work in. Make it, or leave "
                "scratch out."
            )
        self.plan = plan
        self.pipe = load_pipe(plan.pipeline, name=plan.name, precision=plan.precision, gpu_ids=plan.gpu_ids)

    def made_of(self) -> Values:
        """Return what the vectors depend on beside the texts, on this machine."""
        encoding = self.plan.encoding
        return encoding.made_of(encoding.encoder(self.pipe), self.plan.gpu_ids, self.plan.suffix)

    def __call__(self, part: Shard, job: JobSpec) -> ShardResult:
        """Encode a part, unless it is done. What is wrong with it stands in the result, and raises nothing."""
        try:
            manifest = _finished(self.plan.target, part, job, self.plan.suffix)
            if manifest is not None:
                return ShardResult(part=part, manifest=manifest)
            return ShardResult(part=part, manifest=self._encode(part, job), is_new=True)
        except (OSError, ValueError) as error:
            return ShardResult(part=part, failed=str(error))

    def _encode(self, part: Shard, job: JobSpec) -> ShardManifest:
        plan = self.plan
        with self._fetched(part) as local, warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore", message=r"\[sbert-truncated\]"
            )  # counted, and reported of all parts at once
            output = local.with_name(f"{local.name}{plan.suffix}")
            options = {**asdict(plan.encoding), "n_process": plan.n_process, "gpu_ids": plan.gpu_ids}
            manifest = ShardManifest(
                job=job.digest,
                part=part,
                made=encode_file(self.pipe, local, output, **options),
                vectors=part.name + plan.suffix,
                digest=file_digest(output),
                bytes=output.stat().st_size,
            )
            plan.target.put(output, manifest.vectors)
            plan.target.write_json(_manifest_name(part, plan.suffix), manifest)
        return manifest

    @contextmanager
    def _fetched(self, part: Shard) -> Iterator[Path]:
        """Copy the texts of a part to a file of this machine; messages name the file they came from."""
        folder = Path(tempfile.mkdtemp(prefix="sbert-", dir=self.plan.scratch))
        local = folder / PurePosixPath(part.path).name
        try:
            if part.row_group is None:
                self.plan.source.fetch(part.path, local)
            else:
                self._write_row_group(part, local)
            yield local
        except ValueError as error:
            where = part.path if part.row_group is None else f"{part.path}, row group {part.row_group}"
            raise ValueError(str(error).replace(str(local), where)) from error
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _write_row_group(self, part: Shard, local: Path) -> None:
        from pyarrow.parquet import ParquetFile, write_table  # noqa: PLC0415 (an extra)

        files, root = self.plan.source.open()
        columns = [name for name in (self.plan.encoding.column, self.plan.encoding.id_column) if name is not None]
        with ParquetFile(files.open_input_file(f"{root}/{part.path}"), page_checksum_verification=True) as file:
            known = [name for name in columns if name in file.schema_arrow.names]  # encode_file says which is missing
            write_table(file.read_row_group(part.row_group, columns=known), local)


# Encodes parts in some order; the last argument says whether what was made otherwise is made again.
Engine = Callable[[WorkerConfig, Sequence[Shard], bool], Iterator[ShardResult]]


@dataclass(frozen=True)
class DatasetReport:
    """Counts of a data set.

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


def _encode_here(plan: WorkerConfig, parts: Sequence[Shard], restart: bool) -> Iterator[ShardResult]:
    """Encode part after part in this process."""
    worker = ShardEncoder(plan)
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
    large: Positive = SPLIT_ABOVE,
    shard: str | None = None,
    scratch: Path | str | None = None,
    restart: bool = False,
    engine: Engine | None = None,
    progress: bool = False,
    **options: Any,  # noqa: ANN401 (of different types)
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
    restart (bool): whether to make all vectors again. engine (Cluster): the Ray cluster that does it; None for this
        process. progress (bool): whether to show a progress bar.
    RETURNS (DatasetReport): counts, and what is wrong with parts that have no vectors.
    RAISES (ValueError): if a folder is none, has no part or an unknown file; if the target has vectors of another
        encoder, device or option; for an unknown option. (OSError): if the pipeline is not found.
    RAISES (ImportError): without pyarrow.
    """
    encoding = Encoding(**options)
    check_format(Path(f"vectors{output}"), with_columns=encoding.with_columns)
    plan = WorkerConfig(
        RemoteFolder(str(source)),
        RemoteFolder(str(target)),
        output.lower(),
        encoding,
        None if pipeline is None else str(pipeline),
        name,
        precision,
        n_process,
        tuple(gpu_ids),
        None if scratch is None else str(scratch),
    )
    every = find_shards(plan.source, large)
    parts = every if shard is None else shard_of(every, shard)
    if restart:
        for name in (INDEX, *(_manifest_name(part, plan.suffix) for part in parts)):
            plan.target.remove(name)
    results = list(_with_bar((engine or _encode_here)(plan, parts, restart), len(parts), progress))
    _write_index(plan, every)
    made = [result.manifest.made for result in results if result.manifest is not None]
    report = DatasetReport(
        parts=len(results),
        done=sum(result.manifest is not None and not result.is_new for result in results),
        failed={result.part.name: result.failed for result in results if result.failed},
        rows=sum(counts.rows for counts in made),
        zero=sum(counts.zero for counts in made),
        cut=sum(counts.cut for counts in made),
    )
    if report.cut:
        warnings.warn(Warnings.BULK_CUT.format(cut=report.cut, rows=report.rows), stacklevel=2)
    return report


def _with_bar(results: Iterator[ShardResult], n: int, progress: bool) -> Iterator[ShardResult]:
    """Yield the results as they come, with a bar of parts, rows, rows a second and failures."""
    rows = failed = 0
    with progress_bar(n, shown=progress, unit="parts") as bar:
        for result in results:
            rows += result.manifest.made.rows if result.manifest is not None and result.is_new else 0
            failed += bool(result.failed)
            elapsed = bar.format_dict["elapsed"] or 1.0
            bar.set_postfix(rows=rows, rows_per_s=round(rows / elapsed), failed=failed)
            bar.update()
            yield result


def _write_index(plan: WorkerConfig, parts: Sequence[Shard]) -> None:
    """Write the index when all parts are done, by whichever shard is the last; until then there is none."""
    job = plan.target.read_json(JOB, JobSpec)
    manifests = []
    for part in parts:
        try:
            manifest = _finished(plan.target, part, job, plan.suffix) if job is not None else None
        except ValueError:  # its file was changed, as its result says
            manifest = None
        if manifest is None:
            plan.target.remove(INDEX)
            return
        manifests.append(manifest)
    plan.target.write_json(INDEX, Index(parts=manifests))
