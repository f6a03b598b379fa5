"""Files of vectors, and the record beside each that says what it was made of."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import numpy
from pydantic import BaseModel, NonNegativeInt

from ..files.checksum import digest_of_stream, file_digest
from ..files.manifest import Manifest
from ..files.tables import TextColumns, read_text_rows
from ..progress import progress_of
from .stored_vectors import StoredVectors, TableReader

# What vectors depend on, by the name that messages use
MadeOf = dict[str, str | bool | int | None]
ENCODER_DIGEST = "encoder (SHA-256)"


def name_and_digest(made_of: MadeOf) -> tuple[str, str]:
    """Return the name and the SHA-256 of the encoder that made vectors."""
    return str(made_of["encoder"]), str(made_of[ENCODER_DIGEST])


def differences(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """Return what differs between two descriptions, for a message; "" if they are equal."""
    keys = [key for key in {**before, **now} if before.get(key) != now.get(key)]
    return "; ".join(f"{key} was {before.get(key)}, now {now.get(key)}" for key in keys)


class ScannedTexts(BaseModel):
    """Result of reading all texts of a file.

    rows (int): how many there are. blank (list of int): the rows without text. digest (str): the
        SHA-256 of the other texts. id_type (str): "int64" or "string"; None if no ids are read.
    """

    rows: NonNegativeInt
    blank: list[NonNegativeInt]
    digest: str
    id_type: Literal["int64", "string"] | None

    @classmethod
    def scan(cls, path: Path, columns: TextColumns, *, progress: bool = False) -> "ScannedTexts":
        """Read all texts of a file once.

        RAISES (ValueError): for a bad row, or ids of several types.
        """
        blank: list[int] = []
        id_types: set[Literal["int64", "string"] | None] = set()
        count = 0
        records = read_text_rows(path, columns)
        records = progress_of(records, desc="Reading", unit="rows", shown=progress)

        def texts() -> Iterator[str]:
            nonlocal count
            for text, row_id in records:
                id_types.add(_id_type(row_id))
                if text and not text.isspace():
                    yield text
                else:
                    blank.append(count)
                count += 1

        digest = digest_of_stream(texts())
        if len(id_types) > 1:
            raise ValueError(
                f"{path}: the column '{columns.id}' has strings and whole numbers. Make them of "
                "one type."
            )
        return cls(rows=count, blank=blank, digest=digest, id_type=next(iter(id_types), None))


def _id_type(row_id: str | int | None) -> Literal["int64", "string"] | None:
    if row_id is None:
        return None
    return "int64" if isinstance(row_id, int) else "string"


class FileRecord(Manifest):
    """Contents of the record, which has the name of the file of vectors and .json; and of run.json.

    made_of (dict): input, encoder and options. width (int): of the vectors. texts (ScannedTexts):
        what was encoded.
    digest (str): the SHA-256 of the file of vectors, "" until it is whole.
    """

    format: Literal["spacy-sbert file 2"] = "spacy-sbert file 2"
    made_of: MadeOf
    width: NonNegativeInt
    digest: str = ""
    texts: ScannedTexts

    @staticmethod
    def path_of(vectors: Path) -> Path:
        """Return the path of the record of a file of vectors."""
        return vectors.with_name(vectors.name + ".json")


class FileVectors(StoredVectors):
    """The vectors that encode_file wrote. They index as an array does.

    path (Path): .npy or .parquet.
    name (str): the path. shape (tuple): (n, width). encoder (tuple): name and SHA-256 of the
        encoder.
    digest (str): of the file.
    RAISES (ValueError): if there is no record beside the file, or the file was changed. (OSError):
        if there is no such file.
    """

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self.name = str(path)
        self._state = self._file_state()
        self.digest = file_digest(self.path)
        record = FileRecord.path_of(self.path)
        try:
            self._record = FileRecord.read(record)
        except (OSError, ValueError) as error:
            raise ValueError(
                f"{path} does not say what it was made of: {record.name} beside it cannot be read "
                f"({error}). Encode the texts to another file: python -m spacy sbert encode."
            ) from error
        if self.digest != self._record.digest:
            raise ValueError(
                f"{path} is not the file that was written: its SHA-256 is {self.digest}, expected "
                f"{self._record.digest}. Encode the texts again, with --overwrite."
            )
        self.shape = (self._record.texts.rows, self._record.width)
        self.encoder = name_and_digest(self._record.made_of)

    def __repr__(self) -> str:
        n, width = self.shape
        return f"FileVectors({self.name}: {n} vectors of {width} numbers by {self.encoder[0]})"

    def of_texts(self, corpus: Path, columns: TextColumns) -> numpy.ndarray:
        """Return the vectors of a file's texts without its blank ones, float32 (n, width).

        corpus (Path), columns (TextColumns): the file that was encoded, or one with the same texts
            in the same order, such as the command `cluster` writes.
        RAISES (ValueError): if it has other texts.
        """
        texts = self._record.texts
        theirs = ScannedTexts.scan(corpus, columns)
        if theirs.digest != texts.digest:
            raise ValueError(
                f"The {len(self)} vectors in {self.path} are of other texts than the {theirs.rows} "
                f"of {corpus}. Give the file and the column that were encoded, or encode these."
            )
        return numpy.delete(self[:], texts.blank, axis=0)

    def _take(self, rows: numpy.ndarray) -> numpy.ndarray:
        state = self._file_state()
        if state != self._state:
            if file_digest(self.path) != self.digest:
                raise ValueError(
                    f"{self.path} was changed since it was opened. Open it again: "
                    "FileVectors(path)."
                )
            self._state = state
        if self.path.suffix.lower() == ".npy":
            return numpy.load(self.path, mmap_mode="r", allow_pickle=False)[rows]
        return TableReader(str(self.path)).take(rows)

    def _file_state(self) -> tuple[int, int, int]:
        stat = self.path.stat()
        # Programs may set the time of modification, but not that of the change
        return stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino
