"""Encode a folder of files, shard by shard."""

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from pydantic import BaseModel, NonNegativeInt

from ..errors import Warnings, warn
from ..files.checksum import digest_of_parts, file_digest
from ..files.manifest import Manifest
from ..models.sbert_config import Precision
from ..progress import progress_of
from ..validation import NonNegative, Positive, Processes, validated
from .dataset_folder import SPLIT_ABOVE, RemoteFolder, Shard
from .embeddings_file import MadeOf, differences
from .file_encoding import BulkReport, Encoding, encode_file
from .loading import load_pipe

JOB = "job.json"
INDEX = "index.json"


class Job(Manifest):
    """Contents of job.json: what all vectors of a folder are made of, except the texts."""

    format: Literal["spacy-sbert dataset 1"] = "spacy-sbert dataset 1"
    made_of: MadeOf

    @property
    def digest(self) -> str:
        """The SHA-256 of the contents."""
        return digest_of_parts(self.made_of)

    @classmethod
    def begin(cls, target: RemoteFolder, made_of: MadeOf, *, restart: bool = False) -> "Job":
        """Return the job of a folder, written if there was none, or another before a restart."""
        job = cls(made_of=made_of)
        written = target.read(JOB, cls)
        if written is None or (restart and written != job):
            target.write(JOB, job)
            # Another process may have begun another at the same moment
            written = target.read(JOB, cls) or cls(made_of={})
        written.check(made_of, target)
        return job

    def check(self, made_of: MadeOf, target: RemoteFolder) -> None:
        """Refuse to mix vectors.

        RAISES (ValueError): if those of a folder are made of something else.
        """
        differing = differences(self.made_of, made_of)
        if differing:
            raise ValueError(
                f"{target.name} holds vectors that were made otherwise: {differing}. Use another "
                "folder, or make all again with --restart."
            )


class ShardManifest(Manifest):
    """Contents of NAME.npy.json. It is written last: a shard without it is encoded again.

    job (str): the digest of the job. part (Shard): the texts. made (BulkReport): counts.
    vectors (str): their file, below the folder. digest (str): its SHA-256. bytes (int): its size.
    """

    format: Literal["spacy-sbert part 1"] = "spacy-sbert part 1"
    job: str
    part: Shard
    made: BulkReport
    vectors: str
    digest: str
    bytes: NonNegativeInt


class Index(Manifest):
    """Contents of index.json: all shards, in the order of their names."""

    format: Literal["spacy-sbert vectors 1"] = "spacy-sbert vectors 1"
    parts: list[ShardManifest]


class ShardResult(BaseModel):
    """Manifest of a shard, or why there is none.

    is_new (bool): whether it was encoded now. failed (str): the message, with file and line.
    """

    part: Shard
    manifest: ShardManifest | None = None
    is_new: bool = False
    failed: str = ""


@dataclass(frozen=True)
class WorkerConfig:
    """Settings of a worker, which go to other processes.

    source, target (RemoteFolder): folders. suffix (str): of the files of vectors. encoding
        (Encoding): the options.
    pipeline, name, precision (str): see load_pipe. n_process (int), gpu_ids (tuple): see
        encode_file.
    scratch (str): a folder of the worker's machine for the shard in work, None for that of
        temporary files.
    """

    source: RemoteFolder
    target: RemoteFolder
    suffix: str
    encoding: Encoding
    pipeline: str | Path | None = None
    name: str | None = None
    precision: Precision | None = None
    n_process: int = 1
    gpu_ids: tuple[int, ...] = ()
    scratch: str | Path | None = None

    def finished(self, shard: Shard, job: Job) -> ShardManifest | None:
        """Return the manifest of a finished shard, None for others.

        RAISES (ValueError): if its file was changed.
        """
        manifest = self.target.read(f"{shard.name}{self.suffix}.json", ShardManifest)
        if manifest is None or manifest.job != job.digest:
            return None
        if self.target.size(manifest.vectors) != manifest.bytes:
            return None
        if manifest.part != shard:
            raise ValueError(
                f"{shard.path} was changed since its vectors were made: another size, time of "
                f"change, or part ({shard.size} bytes now, {manifest.part.size} then). Take "
                "another folder for the new data, or make all again with --restart."
            )
        return manifest


class ShardEncoder:
    """Worker that loads its own pipeline, and encodes shards."""

    def __init__(self, config: WorkerConfig):
        if config.scratch is not None and not Path(config.scratch).is_dir():
            raise ValueError(
                f"There is no folder scratch = {config.scratch} on this machine. Make it, or omit "
                "it."
            )
        self.config = config
        self.pipe = load_pipe(
            config.pipeline, name=config.name, precision=config.precision, gpu_ids=config.gpu_ids
        )

    def made_of(self) -> MadeOf:
        """Return what the vectors depend on but the texts, on this machine."""
        encoding = self.config.encoding
        return encoding.made_of(
            encoding.encoder(self.pipe), self.config.gpu_ids, self.config.suffix
        )

    def __call__(self, shard: Shard, job: Job) -> ShardResult:
        """Encode a shard, unless it is finished. Errors of its file are in the result."""
        try:
            manifest = self.config.finished(shard, job)
            if manifest is not None:
                return ShardResult(part=shard, manifest=manifest)
            return ShardResult(part=shard, manifest=self._encode(shard, job), is_new=True)
        except (OSError, ValueError) as error:
            return ShardResult(part=shard, failed=str(error))

    def _encode(self, shard: Shard, job: Job) -> ShardManifest:
        config = self.config
        with self._fetched(shard) as local, warnings.catch_warnings():
            # One warning, at the end, counts all shards
            warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")
            output = local.with_name(f"{local.name}{config.suffix}")
            made = encode_file(
                self.pipe,
                local,
                output,
                n_process=config.n_process,
                gpu_ids=config.gpu_ids,
                **asdict(config.encoding),
            )
            manifest = ShardManifest(
                job=job.digest,
                part=shard,
                made=made,
                vectors=shard.name + config.suffix,
                digest=file_digest(output),
                bytes=output.stat().st_size,
            )
            config.target.put(output, manifest.vectors)
            config.target.write(f"{manifest.vectors}.json", manifest)
        return manifest

    @contextmanager
    def _fetched(self, shard: Shard) -> Iterator[Path]:
        """Copy the texts of a shard to this machine.

        Error messages name the file they come from.
        """
        scratch = tempfile.TemporaryDirectory(
            prefix="sbert-", dir=self.config.scratch, ignore_cleanup_errors=True
        )
        with scratch as folder:
            local = Path(folder) / PurePosixPath(shard.path).name
            try:
                if shard.row_group is None:
                    self.config.source.fetch(shard.path, local)
                else:
                    self._write_row_group(shard, local)
                yield local
            except ValueError as error:
                where = shard.path
                if shard.row_group is not None:
                    where += f", row group {shard.row_group}"
                raise ValueError(str(error).replace(str(local), where)) from error

    def _write_row_group(self, shard: Shard, local: Path) -> None:
        from pyarrow.parquet import ParquetFile, write_table  # noqa: PLC0415 (an extra)

        columns = {self.config.encoding.column, self.config.encoding.id_column}
        stream = self.config.source.open().open_input_file(shard.path)
        with ParquetFile(stream, page_checksum_verification=True) as file:
            # encode_file reports missing columns
            known = [name for name in file.schema_arrow.names if name in columns]
            write_table(file.read_row_group(shard.row_group, columns=known), local)


@dataclass(frozen=True)
class DatasetReport:
    """Counts of a data set.

    parts (int): shards of this job. done (int): how many of them were there before. failed (dict):
        from the names of those that have no vectors to the error messages.
    rows, zero, cut: of all shards but the failed, see BulkReport.
    """

    parts: int
    done: int
    failed: dict[str, str]
    rows: int
    zero: int
    cut: int


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
    engine: Callable[[WorkerConfig, Sequence[Shard], bool], Iterator[ShardResult]] | None = None,
    progress: bool = False,
    **options: Any,
) -> DatasetReport:
    """Write the vectors of all files of texts in a folder to another folder, a file for each.

    They are written as by encode_file. A shard is a file, or a row group of a large .parquet file.
    Its manifest, NAME.npy.json, is written when its vectors are there: a second call encodes only
    shards without one. job.json says what all vectors are made of, and index.json, which is written
    last, which shards there are.

    source, target (str): folders, or addresses that Arrow knows: s3://bucket/folder, gs://...,
        hdfs://...
    pipeline, name, precision: see load_pipe. output (str): ".npy" or ".parquet", the format of the
        vectors.
    n_process, gpu_ids, options: see encode_file; column, header, id_column, with_text, dtype,
        window, max_batch_items, prompt_name, prompt, truncate_dim.
    large (int): bytes above which the row groups of a .parquet file are shards.
    shard (str): "2/8" for the second of eight jobs, which together encode all: the shards 2, 10,
        18, ...
    scratch (Path): a folder for the shard in work; by default the machine's for temporary files.
    restart (bool): whether to make all vectors again. engine (Cluster): the Ray cluster that does
        it; None for this process. progress (bool): whether to show a progress bar.
    RETURNS (DatasetReport): counts, and error messages of shards that have no vectors.
    RAISES (ValueError): if a folder is missing, has no shard or an unknown file; if the target is
        in the source, or has vectors of another encoder, device or option. (OSError): if the
        pipeline is not found. (ImportError): without pyarrow.

    Example:
        encode_dataset("texts", "vectors", pipeline="all-MiniLM-L6-v2")
        PartVectors("vectors")[:10]

    """
    encoding = Encoding(**options)
    encoding.check_format(Path(f"vectors{output}"))
    config = WorkerConfig(
        source=RemoteFolder(str(source)),
        target=RemoteFolder(str(target)),
        suffix=output.lower(),
        encoding=encoding,
        pipeline=pipeline,
        name=name,
        precision=precision,
        n_process=n_process,
        gpu_ids=tuple(gpu_ids),
        scratch=scratch,
    )
    config.source.check_apart(config.target)
    every = config.source.shards(large)
    shards = every
    if shard is not None:
        shards = _share_of(every, shard)
    if restart:
        config.target.remove(INDEX)
        for part in shards:
            config.target.remove(f"{part.name}{config.suffix}.json")
    found = (engine or _encode_here)(config, shards, restart)
    report = _report(list(progress_of(found, total=len(shards), shown=progress, unit="parts")))
    _write_index(config, every)
    if report.cut:
        warn(Warnings.BULK_CUT.format(cut=report.cut, rows=report.rows))
    return report


def _share_of(shards: list[Shard], share: str) -> list[Shard]:
    number, _, count = share.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise ValueError(
            f"Unknown shard '{share}': expected I/N, such as 2/8 for the second of eight."
        )
    return shards[int(number) - 1 :: int(count)]


def _encode_here(
    config: WorkerConfig, shards: Sequence[Shard], restart: bool
) -> Iterator[ShardResult]:
    """Encode the shards sequentially in this process."""
    worker = ShardEncoder(config)
    job = Job.begin(config.target, worker.made_of(), restart=restart)
    return (worker(shard, job) for shard in shards)


def _report(results: Sequence[ShardResult]) -> DatasetReport:
    made = [result.manifest.made for result in results if result.manifest is not None]
    done = sum(result.manifest is not None and not result.is_new for result in results)
    failed = {result.part.name: result.failed for result in results if result.failed}
    return DatasetReport(
        parts=len(results),
        done=done,
        failed=failed,
        rows=sum(counts.rows for counts in made),
        zero=sum(counts.zero for counts in made),
        cut=sum(counts.cut for counts in made),
    )


def _write_index(config: WorkerConfig, shards: Sequence[Shard]) -> None:
    """Write the index if all shards are finished, and remove it otherwise."""
    job = config.target.read(JOB, Job)
    manifests: list[ShardManifest] = []
    for shard in shards:
        if job is None:
            break
        # The result of a shard says that its file was changed
        with suppress(ValueError):
            manifest = config.finished(shard, job)
            if manifest is not None:
                manifests.append(manifest)
    if len(manifests) == len(shards):
        config.target.write(INDEX, Index(parts=manifests))
    else:
        config.target.remove(INDEX)
