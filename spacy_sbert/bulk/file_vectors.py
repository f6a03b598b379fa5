"""A file of vectors that says what it was made of, so that the same texts need not be encoded again."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy
from pydantic import BaseModel, NonNegativeInt

from ..errors import reason_of
from ..files.digests import digest_of_stream, file_digest
from ..files.sealed_json import parse_sealed, sealed
from ..files.texts import TextColumns, read_text_rows
from .durable import write_whole
from .errors import Errors
from .identity import WEIGHTS
from .part_files import open_vectors
from .work_folder import Values

INPUT = "input (SHA-256)"


class FileRecord(BaseModel):
    """What stands beside a file of vectors, under its name and .json.

    made_of: input, encoder and options. rows, width: of the vectors. digest (str): the SHA-256 of their file.
    texts (str): the SHA-256 of the texts without blank ones, by which they are known in another file, too.
        blank: the rows of those that are.
    """

    format: Literal["spacy-sbert file 1"] = "spacy-sbert file 1"
    made_of: dict[str, str | bool | int | None]
    rows: NonNegativeInt
    width: NonNegativeInt
    digest: str
    texts: str
    blank: list[NonNegativeInt]


class FileVectors:
    """The vectors that encode_file wrote.

    path (Path): .npy or .parquet.
    name (str): the path. shape (tuple): (n, width). encoder (tuple): name and SHA-256 of what made them.
    digest (str): of their file.
    RAISES (ValueError): if what they were made of does not stand beside them, or the file is not the one that was
        written. RAISES (OSError): if there is no such file.
    """

    def __init__(self, path: Path | str):
        self.path, self.name = Path(path), str(path)
        check_vectors(self.path)
        self.digest, record = file_digest(self.path), record_path(self.path)
        try:
            found = parse_sealed(FileRecord, record.read_bytes())
        except (OSError, ValueError) as error:
            said = Errors.BULK_NO_RECORD.format(path=path, record=record.name, reason=reason_of(error))
            raise ValueError(said) from error
        if found.digest != self.digest:
            raise ValueError(Errors.BULK_NOT_WRITTEN.format(path=path, given=self.digest, known=found.digest))
        self.made_of, self._texts, self._blank = found.made_of, found.texts, found.blank
        self.shape = found.rows, found.width
        self.encoder = str(self.made_of["encoder"]), str(self.made_of[WEIGHTS])

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"FileVectors({self.name}: {self.shape[0]} vectors of {self.shape[1]} numbers by {self.encoder[0]})"

    def of_texts(self, corpus: Path, columns: TextColumns) -> numpy.ndarray:
        """The vectors of a file's texts without its blank ones, float32 (n, width).

        corpus (Path), columns (TextColumns): what was encoded, or a file that has these texts in this order, such as
            one that the command `cluster` wrote.
        RAISES (ValueError): if it has other texts, or it is the file, and this another column of it.
        """
        given: Values = {INPUT: file_digest(corpus), "column": columns.text, "header": columns.header}
        differing = "; ".join(
            f"{key} was {known}, now {now}" for key, now in given.items() if (known := self.made_of.get(key)) != now
        )
        is_copy = given[INPUT] != self.made_of.get(INPUT) and described(corpus, columns)[0] == self._texts
        if differing and not is_copy:
            count = sum(1 for _ in read_text_rows(corpus, columns))
            said = {"path": self.path, "rows": len(self), "corpus": corpus, "count": count, "differing": differing}
            raise ValueError(Errors.BULK_OTHER_TEXTS.format(**said))
        blank = self._blank if is_copy else described(corpus, columns)[1]
        return numpy.delete(self._read(), blank, axis=0).astype("float32", copy=False)

    def _read(self) -> numpy.ndarray:
        if self.path.suffix.lower() == ".npy":
            return numpy.load(self.path, mmap_mode="r", allow_pickle=False)
        import pyarrow

        with pyarrow.OSFile(self.name) as file:
            blocks = list(open_vectors(file, self.name.lower()).blocks())
        return numpy.concatenate(blocks) if blocks else numpy.empty(self.shape, dtype="float32")


def check_vectors(path: Path) -> None:
    """RAISES (ValueError): if the name of a file tells that it has no vectors. (OSError): if there is no such file."""
    said = {"path": path, "expected": path.with_suffix(".npy").name}
    if path.suffix.lower() not in (".npy", ".parquet"):
        raise ValueError(Errors.BULK_NO_VECTORS.format(**said, reason="its name ends in neither .npy nor .parquet"))
    if not path.exists():
        raise FileNotFoundError(Errors.BULK_NO_VECTORS.format(**said, reason="there is no such file"))


def described(corpus: Path, columns: TextColumns) -> tuple[str, list[int]]:
    """The SHA-256 of the texts of a file without its blank ones, and the rows of these."""
    blank: list[int] = []

    def kept() -> Iterator[str]:
        for number, (text, _) in enumerate(read_text_rows(corpus, columns)):
            if text and not text.isspace():
                yield text
            else:
                blank.append(number)

    return digest_of_stream(kept()), blank


def record_path(path: Path) -> Path:
    """Where it stands what a file of vectors was made of."""
    return path.with_name(path.name + ".json")


def write_record(
    path: Path, vectors: Path, made_of: Values, texts: tuple[str, list[int]], shape: tuple[int, int]
) -> None:
    """Write down what a file of vectors is made of.

    path (Path): where it is going to stand. vectors (Path): where it is now. texts: see described. shape: (n, width).
    """
    record = FileRecord(
        made_of=dict(made_of),
        rows=shape[0],
        width=shape[1],
        digest=file_digest(vectors),
        texts=texts[0],
        blank=texts[1],
    )
    write_whole(record_path(path), json.dumps(sealed(record.model_dump()), indent=2).encode("utf8"))


def is_record(path: Path) -> bool:
    """Whether a file is a record, and may be replaced."""
    try:
        parse_sealed(FileRecord, path.read_bytes())
    except (OSError, ValueError):
        return False
    return True
