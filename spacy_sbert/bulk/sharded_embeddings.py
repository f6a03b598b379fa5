"""Vectors of a data set, read as one array: a block at a time, or a few rows of any part."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import ArrayLike

from ..files.checksum import digest_of_parts, open_file_digest
from .dataset_encoding import INDEX, JOB, Index, Job, ShardManifest
from .dataset_folder import RemoteFolder
from .embeddings_file import name_and_digest
from .stored_vectors import ArrayReader, StoredVectors, TableReader, by_start


class PartVectors(StoredVectors):
    """Vectors that encode_dataset wrote, in the order of the names of the parts.

    They index as an array does.

    folder (str): the target of encode_dataset, or its address.
    name (str): where it is, without a user's key. shape (tuple): (n, width).
    encoder (tuple): name and SHA-256 of what made them. digest (str): of all of them.
    parts (list of ShardManifest): the files.
    RAISES (ValueError): if there is no such folder, or not all of its parts are done.
        (ImportError): without pyarrow.
    """

    def __init__(self, folder: str | Path):
        address = str(folder)
        if "://" not in address:
            address = str(Path(folder).absolute())
        self.place = RemoteFolder(address)
        self.name = self.place.name
        index = self.place.read(INDEX, Index)
        job = self.place.read(JOB, Job)
        self.parts = [] if index is None else index.parts
        self._written = self.place.modified(INDEX)
        # When the files were modified whose bytes were compared
        self._compared: dict[str, int] = {}
        self._starts = numpy.cumsum([0, *(part.made.rows for part in self.parts)])
        if job is None or not self._starts[-1]:
            raise ValueError(
                f"{self.name} is no folder of vectors that is whole: index.json is missing, or has "
                "no row. Encode a folder of texts to it."
            )
        self.shape = (int(self._starts[-1]), self.parts[-1].made.width)
        self.encoder = name_and_digest(job.made_of)
        self.digest = digest_of_parts([(part.vectors, part.digest) for part in self.parts])

    def __repr__(self) -> str:
        n, width = self.shape
        return (
            f"PartVectors({self.name}: {n} vectors of {width} numbers by {self.encoder[0]}, "
            f"{len(self.parts)} parts)"
        )

    def blocks(self, start: int = 0) -> Iterator[numpy.ndarray]:
        """Yield all vectors from a row on, in order, float32 or float16 (b, width), b at most 4096.

        The bytes of the files are compared with what was written.
        """
        for part, first, end in zip(self.parts, self._starts[:-1], self._starts[1:], strict=True):
            if end <= start:
                continue
            with self._reader(part, whole=True) as reader:
                for block in reader.blocks():
                    if first + len(block) > start:
                        yield block[max(0, start - first) :]
                    first += len(block)

    def _take(self, rows: numpy.ndarray) -> numpy.ndarray:
        vectors = numpy.empty((len(rows), self.shape[1]), dtype="float32")
        for number, places, part_rows in by_start(self._starts, rows):
            with self._reader(self.parts[number]) as reader:
                vectors[places] = reader.take(part_rows)
        return vectors

    def where(self, rows: ArrayLike) -> list[tuple[str, int, Any, Any]]:
        """Return where some vectors are stored, with their ids and texts.

        rows (int64 (n,)): an index of rows.
        RETURNS (list of (file, row, id, text)): the file below the folder, the row in it (from 0),
            and id and text, None if they are not stored.
        """
        wanted = self.rows_at(rows).reshape(-1)
        places: dict[int, tuple[str, int, Any, Any]] = {}
        for number, of_part, part_rows in by_start(self._starts, wanted):
            with self._reader(self.parts[number]) as reader:
                ids, texts = reader.columns(part_rows)
            for place, row, row_id, text in zip(
                of_part.tolist(), part_rows.tolist(), ids, texts, strict=True
            ):
                places[place] = self.parts[number].vectors, row, row_id, text
        return [places[place] for place in range(len(wanted))]

    @contextmanager
    def _reader(
        self, part: ShardManifest, *, whole: bool = False
    ) -> Iterator[ArrayReader | TableReader]:
        """Open a part.

        whole (bool): whether its bytes are compared with what was written, as those of a file that
            is newer than the index always are.
        """
        try:
            modified = self.place.modified(part.vectors)
            # The index was written last
            is_newer = modified > self._written
            is_compared = self._compared.get(part.vectors) == modified
            with self.place.open().open_input_file(part.vectors) as file:
                if whole or (is_newer and not is_compared):
                    digest = open_file_digest(file)
                    if digest != part.digest:
                        raise ValueError(f"its SHA-256 is {digest}, {INDEX} says {part.digest}")
                    self._compared[part.vectors] = modified
                    file.seek(0)
                is_table = part.vectors.endswith(".parquet")
                reader = TableReader(file) if is_table else ArrayReader(file)
                shape = (part.made.rows, self.shape[1])
                if reader.shape != shape:
                    raise ValueError(f"its shape is {reader.shape}, expected {shape}")
                yield reader
        except (KeyError, OSError, ValueError) as error:
            raise ValueError(
                f"{part.vectors} in {self.name} is not the file that was written ({error}). Remove "
                "it and encode again."
            ) from error
