"""From one part of a data set to its vectors, in whichever process."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from ..files.digests import file_digest
from ..vectors.computing import Precision
from .encoding import Encoding
from .errors import Errors
from .manifest import Job, Manifest, check_job, done, manifest_name, write
from .parts import Part
from .pipe import load_pipe
from .places import Place
from .run import encode_file
from .work_folder import Values


class Outcome(BaseModel):
    """What became of a part: its manifest, or why there is none.

    is_new (bool): whether its vectors were made now. failed (str): the message, with file and line.
    """

    part: Part
    manifest: Manifest | None = None
    is_new: bool = False
    failed: str = ""


@dataclass(frozen=True)
class Plan:
    """What a worker needs to know; it goes to other processes.

    source, target (Place): folders. suffix (str): of the files of vectors. encoding (Encoding): the options.
    pipeline, name, precision (str): see load_pipe. n_process (int), gpu_ids (tuple): see encode_file.
    scratch (str): a folder of the worker's machine for one part at a time, None for its temporary one.
    """

    source: Place
    target: Place
    suffix: str
    encoding: Encoding
    pipeline: str | None = None
    name: str | None = None
    precision: Precision | None = None
    n_process: int = 1
    gpu_ids: tuple[int, ...] = ()
    scratch: str | None = None


class PartEncoder:
    """A worker: it loads the pipeline by itself, and encodes part after part.

    RAISES (ValueError): if this machine has no such scratch folder. See load_pipe for others.
    """

    def __init__(self, plan: Plan):
        if plan.scratch is not None and not Path(plan.scratch).is_dir():
            raise ValueError(Errors.BULK_NO_SCRATCH.format(given=plan.scratch))
        self.plan = plan
        self.pipe = load_pipe(plan.pipeline, name=plan.name, precision=plan.precision, gpu_ids=plan.gpu_ids)

    def made_of(self) -> Values:
        """What the vectors depend on beside the texts, on this machine."""
        encoding, gpu_ids = self.plan.encoding, self.plan.gpu_ids
        encoder = encoding.encoder(self.pipe)
        return encoding.made_of(encoder, encoding.budget(encoder, gpu_ids), gpu_ids, self.plan.suffix)

    def check(self, job: Job) -> None:
        """RAISES (ValueError): if this machine would make other bytes than the job's; the message says why."""
        check_job(self.plan.target, job.made_of, self.made_of())

    def __call__(self, part: Part, job: Job) -> Outcome:
        """Encode a part, unless it is done. What is wrong with it is told, and raises nothing."""
        plan = self.plan
        try:
            found = done(plan.target, part, job, plan.suffix)
            if found is not None:
                return Outcome(part=part, manifest=found)
            return Outcome(part=part, manifest=self._encode(part, job), is_new=True)
        except (OSError, ValueError) as error:
            return Outcome(part=part, failed=str(error))

    def _encode(self, part: Part, job: Job) -> Manifest:
        plan = self.plan
        with self._fetched(part) as local, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r"\[sbert-truncated\]")  # counted, and said of all parts at once
            output = local.with_name(f"{local.name}{plan.suffix}")
            options = {**asdict(plan.encoding), "n_process": plan.n_process, "gpu_ids": plan.gpu_ids}
            found = Manifest(
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
    def _fetched(self, part: Part) -> Iterator[Path]:
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

    def _write_row_group(self, part: Part, local: Path) -> None:
        from pyarrow.parquet import ParquetFile, write_table

        files, root = self.plan.source.open()
        columns = [name for name in (self.plan.encoding.column, self.plan.encoding.id_column) if name is not None]
        with ParquetFile(files.open_input_file(f"{root}/{part.path}"), page_checksum_verification=True) as file:
            known = [name for name in columns if name in file.schema_arrow.names]  # encode_file says which is missing
            write_table(file.read_row_group(part.row_group, columns=known), local)
