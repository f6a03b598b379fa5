"""Texts to vectors on the machines of a Ray cluster."""

from pathlib import Path
from typing import Any

from .bulk.dataset_encoding import DatasetReport
from .bulk.dataset_encoding import encode_dataset as encode
from .bulk.ray import Cluster, SbertBatches

__all__ = ["Cluster", "DatasetReport", "SbertBatches", "encode_dataset"]


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
    """Write the vectors of all files of texts in a folder to another folder, on the machines of a Ray cluster.

    source, target (str), options: as of spacy_sbert.bulk.encode_dataset, which is the same without Ray.
    address (str), workers (tuple), num_cpus, num_gpus (float): see Cluster.
    RETURNS (DatasetReport): counts, and what is wrong with parts that have no vectors.
    RAISES: as spacy_sbert.bulk.encode_dataset; (ImportError): without ray.
    """
    return encode(source, target, engine=Cluster(address, workers, num_cpus, num_gpus), **options)
