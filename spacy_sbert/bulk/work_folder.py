"""The folder beside an output in which a run keeps what it has done."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, NonNegativeInt

from ..errors import reason_of
from ..files.lock import Lock
from ..files.regular import check_folder, open_own
from ..files.sealed_json import parse_sealed, sealed
from .durable import write_whole, writing
from .errors import Errors

FORMAT: Literal["spacy-sbert encode 1"] = "spacy-sbert encode 1"
Values = Mapping[str, str | bool | int | None]  # by what messages call them


class Kept(BaseModel):
    """What a run wants to know when it goes on: the number of rows, the type of their ids, the width of the vectors."""

    rows: NonNegativeInt
    id_type: Literal["int64", "string"] | None
    width: NonNegativeInt


class Run(BaseModel):
    """What run.json says; made_of: input, encoder and options."""

    format: Literal["spacy-sbert encode 1"]
    made_of: dict[str, str | bool | int | None]
    kept: Kept


class WorkFolder:
    """OUT.partial: the only folder of a run, locked while it is used, and removed when nothing is left to keep.

    run.json holds what the vectors are made of; vectors.npy and windows.jsonl are those of VectorFile.

    output (Path): OUT. its folder is made.
    RAISES (RuntimeError): if another process writes the same output.
    """

    def __init__(self, output: Path):
        self.folder = output.with_name(output.name + ".partial")
        self.vectors = self.folder / "vectors.npy"
        self.journal = self.folder / "windows.jsonl"
        self.assembled = self.folder / "assembled"  # an output that is made of the vectors
        self._run = self.folder / "run.json"

    def __enter__(self) -> "WorkFolder":
        check_folder(self.folder)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.folder / "lock")
        return self

    def __exit__(self, *error: object) -> None:
        empty = not self._run.is_file()
        self._lock.release(remove=empty)
        if empty:
            with suppress(OSError):  # something that is not ours is in it
                self.folder.rmdir()

    def begun(self, made_of: Values) -> Kept | None:
        """What an interrupted run kept, None if there was none.

        made_of (dict): input, encoder and options, which must be those of that run.
        RAISES (ValueError): if they are others, or run.json is damaged.
        """
        if not self._run.is_file():
            return None
        with open_own(self._run, "rb") as file:
            data = file.read()
        try:
            found = parse_sealed(Run, data)
        except ValueError as error:
            raise ValueError(Errors.BULK_DAMAGED.format(folder=self.folder, reason=reason_of(error))) from error
        theirs = found.made_of
        differing = [key for key in {**theirs, **made_of} if theirs.get(key) != made_of.get(key)]
        if differing:
            listed = "; ".join(f"{key} was {theirs.get(key)}, now {made_of.get(key)}" for key in differing)
            raise ValueError(Errors.BULK_OTHER_RUN.format(folder=self.folder, differing=listed))
        return found.kept

    def begin(self, made_of: Values, kept: Kept) -> None:
        """Write down what a run is made of, and what it wants to know when it goes on."""
        found = sealed(Run(format=FORMAT, made_of=dict(made_of), kept=kept).model_dump())
        write_whole(self._run, json.dumps(found, indent=2).encode("utf8"))

    def clear(self) -> None:
        """Remove what a run kept; run.json first, so that nobody goes on with the rest."""
        for path in (self._run, self.journal, self.vectors, self.assembled):
            path.unlink(missing_ok=True)
