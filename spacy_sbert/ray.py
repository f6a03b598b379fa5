"""Encoding on the machines of a Ray cluster: folders of files, and batches of a Ray dataset."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy

from .bulk import dataset_encoding
from .bulk.dataset_encoding import DatasetReport, Job, ShardEncoder, ShardResult, WorkerConfig
from .bulk.dataset_folder import Shard
from .bulk.loading import load_pipe
from .errors import import_extra
from .models.sbert_config import Precision
from .validation import NonNegativeFloat, PositiveFloat, check_fields


@dataclass(frozen=True)
class Cluster:
    """Engine of encode_dataset that encodes shards on a Ray cluster.

    For the settings see encode_dataset.
    """

    address: str | None = None
    workers: tuple[int, int] = (1, 64)
    num_cpus: PositiveFloat = 1
    num_gpus: NonNegativeFloat = 0

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(
        self, config: WorkerConfig, shards: Sequence[Shard], restart: bool
    ) -> Iterator[ShardResult]:
        """Encode shards, and yield the results in the order in which they are done."""
        ray = import_extra("ray", "The engine 'ray' needs Ray", "ray")
        import_extra("ray.data", "The engine 'ray' needs Ray", "ray")
        # A worker sees only its own GPU
        config = replace(config, gpu_ids=(0,) if self.num_gpus else ())
        with self._connected(ray):
            resources = {"num_cpus": self.num_cpus, "num_gpus": self.num_gpus}
            describe = ray.remote(**resources)(lambda: ShardEncoder(config).made_of())
            made_of = ray.get(describe.remote())
            job = Job.begin(config.target, made_of, restart=restart)
            rows = [{"shard": shard.model_dump_json()} for shard in shards]
            fewest, most = self.workers
            results = ray.data.from_items(rows, override_num_blocks=len(rows)).map(
                _Worker,
                fn_constructor_kwargs={"config": config, "job": job.model_dump_json()},
                compute=ray.data.ActorPoolStrategy(min_size=fewest, max_size=most),
                **resources,
            )
            for row in results.iter_rows():
                yield ShardResult.model_validate_json(row["result"])

    @contextmanager
    def _connected(self, ray: ModuleType) -> Iterator[None]:
        """Connect to the cluster, and raise a worker's ValueError in place of Ray's report."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        was_connected = ray.is_initialized()
        if not was_connected:
            ray.init(address=self.address, log_to_driver=False, logging_level="warning")
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield
        except ray.exceptions.RayError as error:
            refusal = _refusal_of_worker(ray, error)
            if refusal is None:
                raise
            raise ValueError(str(refusal)) from error
        finally:
            if not was_connected:
                ray.shutdown()


def _refusal_of_worker(ray: ModuleType, error: BaseException) -> ValueError | None:
    """Return the ValueError of a worker among the causes of Ray's error, None if there is none."""
    cause: BaseException | None = error
    while cause is not None:
        # Ray's own errors may be ValueErrors, too
        if isinstance(cause, ValueError) and not isinstance(cause, ray.exceptions.RayError):
            return cause
        cause = getattr(cause, "cause", None) or cause.__cause__
    return None


class _Worker:
    """ShardEncoder of rows of a Ray dataset. It refuses a machine that makes other bytes."""

    def __init__(self, config: WorkerConfig, job: str):
        self._encoder = ShardEncoder(config)
        self._job = Job.model_validate_json(job)
        self._job.check(self._encoder.made_of(), config.target)

    def __call__(self, row: dict[str, Any]) -> dict[str, str]:
        shard = Shard.model_validate_json(row["shard"])
        return {"result": self._encoder(shard, self._job).model_dump_json()}


class SbertBatches:
    """Add vectors to the batches of a Ray dataset.

    The last bits of a vector depend on the texts of its batch; encode_dataset gives equal bytes for
    equal files.

    pipeline, name, precision (str): see load_pipe. column (str): of the texts. vector (str): the
        column to add, float32 (texts, width).
    options: those of SentenceBert.encode, such as truncate_dim.

    Example:
        settings = {"pipeline": "all-MiniLM-L6-v2", "column": "text"}
        dataset.map_batches(SbertBatches, fn_constructor_kwargs=settings)

    """

    def __init__(
        self,
        pipeline: str | None = None,
        *,
        name: str | None = None,
        precision: Precision | None = None,
        column: str = "text",
        vector: str = "vector",
        **options: Any,
    ):
        self._pipe = load_pipe(pipeline, name=name, precision=precision)
        self._pipe.text_encoder().check_calibrated()
        self._column = column
        self._vector = vector
        self._options = options

    def __call__(self, batch: dict[str, numpy.ndarray]) -> dict[str, numpy.ndarray]:
        """Add vectors to a batch.

        RAISES (ValueError): if it has no such column, or one that is no text.
        """
        if self._column not in batch:
            raise ValueError(
                f"A batch has no column '{self._column}', but {', '.join(batch)}. Name that of the "
                "texts."
            )
        vectors = self._pipe.encode(batch[self._column].tolist(), **self._options)
        return {**batch, self._vector: vectors}


def encode_dataset(
    source: Path | str,
    target: Path | str,
    *,
    address: str | None = None,
    workers: tuple[int, int] = (1, 64),
    num_cpus: float = 1,
    num_gpus: float = 0,
    **options: Any,
) -> DatasetReport:
    """Write the vectors of a folder of texts to another folder, on a Ray cluster.

    source, target (str), options: as of spacy_sbert.bulk.encode_dataset, which is the same without
        Ray.
    address (str): of a Ray cluster, "auto" for that of this machine; None for one that begins and
        ends with the job.
    workers (tuple): the fewest and the most; each has a pipeline of its own.
    num_cpus, num_gpus (float): what a worker takes of a machine.

    Example:
        encode_dataset("texts", "vectors", address="auto", pipeline="all-MiniLM-L6-v2")

    """
    engine = Cluster(address, workers, num_cpus, num_gpus)
    return dataset_encoding.encode_dataset(source, target, engine=engine, **options)
