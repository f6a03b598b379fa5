"""Encode a folder of files, shard by shard."""

import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, NonNegativeInt

from ..errors import Warnings
from ..files.serialization import checksummed_json, digest_of_parts, file_digest, parse_checksummed
from ..models.options import Precision
from ..progress import progress_bar
from ..validation import NonNegative, Positive, Processes, validated
from .checkpoint_dir import Values
from .file_encoding import BulkReport, Encoding, encode_file
from .loading import load_pipe
from .shards import SPLIT_ABOVE, RemoteFolder, Shard, find_shards, shard_of
from .writers import writer_of

JOB, INDEX = "job.json", "index.json"
ModelT = TypeVar("ModelT", bound=BaseModel)


class JobSpec(BaseModel):
    """What the vectors of a data set are made of, beside its texts: encoder, options, device and versions."""

    format: Literal["spacy-sbert dataset 1"] = "spacy-sbert dataset 1"
    made_of: dict[str, str | bool | int | None]

    @property
    def digest(self) -> str:
        return digest_of_parts(self.made_of)


class ShardManifest(BaseModel):
    """That the vectors of a part are whole. It is written last: without it, or with another one, they are made anew.

    job (str): the digest of what they are made of. part (Part): of which texts. made (BulkReport): what became of them.
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
    """The job of a folder, which is noted there if it is the first.

    restart (bool): whether what was made otherwise is to be made anew.
    RAISES (ValueError): if the folder has another job; the message says what differs.
    """
    ours, theirs = JobSpec(made_of=dict(made_of)), read(target, JOB, JobSpec)
    if theirs is None or (restart and theirs.digest != ours.digest):
        write(target, JOB, ours)
        theirs = read(target, JOB, JobSpec)  # another shard may have begun another at the same moment
    known: Mapping[str, object] = theirs.made_of if theirs is not None else {}
    check_job(target, known, ours.made_of)
    return ours


def check_job(target: RemoteFolder, theirs: Mapping[str, object], ours: Mapping[str, object]) -> None:
    """RAISES (ValueError): if vectors would be made otherwise than those of a folder; the message says what differs."""
    differing = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    if differing:
        listed = "; ".join(f"{key} was {theirs.get(key)}, now {ours.get(key)}" for key in differing)
        raise ValueError(
            f"{target.name} holds vectors that were made otherwise: {listed}. Go on with the encoder and the "
            "options of then, or take another folder. --restart makes all of them anew."
        )


def manifest_name(part: Shard, suffix: str) -> str:
    """Where the manifest of a part stands. suffix (str): of the file of its vectors."""
    return f"{part.name}{suffix}.json"


def done(target: RemoteFolder, part: Shard, job: JobSpec, suffix: str) -> ShardManifest | None:
    """The manifest of a part whose vectors are there and whole; None if they are to be made.

    RAISES (ValueError): if they were made of another state of its file.
    """
    found = read(target, manifest_name(part, suffix), ShardManifest)
    if found is None or found.job != job.digest or target.size(part.name + suffix) != found.bytes:
        return None
    if found.part != part:
        raise ValueError(
            f"{part.path} was changed since its vectors were made (it has {part.size} bytes, then "
            f"{found.part.size}). Take another folder for the new data, or make all vectors anew with "
            "--restart."
        )
    return found


def read(place: RemoteFolder, path: str, model: type[ModelT]) -> ModelT | None:
    """What was written down, None if it is not there or not whole."""
    data = place.read(path)
    try:
        return None if data is None else parse_checksummed(model, data)
    except ValueError:
        return None


def write(place: RemoteFolder, path: str, content: BaseModel) -> None:
    """Write down, sealed with a digest."""
    place.write(path, json.dumps(checksummed_json(content.model_dump()), indent=2).encode("utf8"))


class ShardResult(BaseModel):
    """What became of a part: its manifest, or why there is none.

    is_new (bool): whether its vectors were made now. failed (str): the message, with file and line.
    """

    part: Shard
    manifest: ShardManifest | None = None
    is_new: bool = False
    failed: str = ""


@dataclass(frozen=True)
class WorkerConfig:
    """What a worker needs to know; it goes to other processes.

    source, target (Place): folders. suffix (str): of the files of vectors. encoding (Encoding): the options.
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
    """A worker: it loads the pipeline by itself, and encodes part after part.

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
        """What the vectors depend on beside the texts, on this machine."""
        encoding, gpu_ids = self.plan.encoding, self.plan.gpu_ids
        encoder = encoding.encoder(self.pipe)
        return encoding.made_of(encoder, encoding.budget(encoder, gpu_ids), gpu_ids, self.plan.suffix)

    def check(self, job: JobSpec) -> None:
        """RAISES (ValueError): if this machine would make other bytes than the job's; the message says why."""
        check_job(self.plan.target, job.made_of, self.made_of())

    def __call__(self, part: Shard, job: JobSpec) -> ShardResult:
        """Encode a part, unless it is done. What is wrong with it is told, and raises nothing."""
        plan = self.plan
        try:
            found = done(plan.target, part, job, plan.suffix)
            if found is not None:
                return ShardResult(part=part, manifest=found)
            return ShardResult(part=part, manifest=self._encode(part, job), is_new=True)
        except (OSError, ValueError) as error:
            return ShardResult(part=part, failed=str(error))

    def _encode(self, part: Shard, job: JobSpec) -> ShardManifest:
        plan = self.plan
        with self._fetched(part) as local, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")  # counted, and said of all parts at once
            output = local.with_name(f"{local.name}{plan.suffix}")
            options = {**asdict(plan.encoding), "n_process": plan.n_process, "gpu_ids": plan.gpu_ids}
            found = ShardManifest(
                job=job.digest,
                part=part,
                made=encode_file(self.pipe, local, output, **options),
                vectors=part.name + plan.suffix,
                digest=file_digest(output),
                bytes=output.stat().st_size,
            )
            plan.target.put(output, found.vectors)
            write(plan.target, manifest_name(part, plan.suffix), found)
        return found

    @contextmanager
    def _fetched(self, part: Shard) -> Iterator[Path]:
        """The texts of a part in a file of this machine; messages name the file they came from."""
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
        from pyarrow.parquet import ParquetFile, write_table

        files, root = self.plan.source.open()
        columns = [name for name in (self.plan.encoding.column, self.plan.encoding.id_column) if name is not None]
        with ParquetFile(files.open_input_file(f"{root}/{part.path}"), page_checksum_verification=True) as file:
            known = [name for name in columns if name in file.schema_arrow.names]  # encode_file says which is missing
            write_table(file.read_row_group(part.row_group, columns=known), local)


Outcomes = Iterator[ShardResult]
Engine = Callable[
    [WorkerConfig, Sequence[Shard], bool], Outcomes
]  # the last: whether what was made otherwise is made anew


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


def alone(plan: WorkerConfig, parts: Sequence[Shard], restart: bool) -> Outcomes:
    """The engine that is none: this process, part after part."""
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


def _write_index(plan: WorkerConfig, parts: Sequence[Shard]) -> None:
    """Write the index when all parts are done, by whichever shard is the last: none of another job is in it. Until then
    there is none."""
    job = read(plan.target, JOB, JobSpec)
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


def _report(outcomes: Sequence[ShardResult]) -> DatasetReport:
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
