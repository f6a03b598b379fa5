"""The folder beside an output in which a run keeps what it has done."""

import json
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..files.lock import Lock
from ..files.regular import check_folder, open_own
from ..files.sealed_json import sealed, unsealed
from .durable import write_whole, writing
from .errors import Errors

FORMAT = "spacy-sbert encode 1"


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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        empty = not self._run.is_file()
        self._lock.release(remove=empty)
        if empty:
            with suppress(OSError):  # something that is not ours is in it
                self.folder.rmdir()

    def begun(self, made_of: dict[str, Any]) -> dict[str, Any] | None:
        """What an interrupted run kept, None if there was none.

        made_of (dict): input, encoder and options, which must be those of that run.
        RAISES (ValueError): if they are others, or run.json is damaged.
        """
        if not self._run.is_file():
            return None
        with open_own(self._run, "rb") as file:
            data = file.read()
        try:
            found = json.loads(data)
            if not _is_run(found):
                raise ValueError(f'not of the format "{FORMAT}"')
            found = unsealed(found)
        except (RecursionError, ValueError) as error:
            raise ValueError(Errors.BULK_DAMAGED.format(folder=self.folder, reason=error)) from error
        theirs = found["made_of"]
        differing = [key for key in {**theirs, **made_of} if theirs.get(key) != made_of.get(key)]
        if differing:
            listed = "; ".join(f"{key} was {theirs.get(key)}, now {made_of.get(key)}" for key in differing)
            raise ValueError(Errors.BULK_OTHER_RUN.format(folder=self.folder, differing=listed))
        return found["kept"]

    def begin(self, made_of: dict[str, Any], kept: dict[str, Any]) -> None:
        """Write down what a run is made of, and what it wants to know when it goes on."""
        found = {"format": FORMAT, "made_of": made_of, "kept": kept}
        write_whole(self._run, json.dumps(sealed(found), indent=2).encode("utf8"))

    def clear(self) -> None:
        """Remove what a run kept; run.json last but one, so that nobody goes on with the rest."""
        for path in (self._run, self.journal, self.vectors, self.assembled):
            path.unlink(missing_ok=True)


def _is_run(found: Any) -> bool:
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        return False
    made_of, kept = found.get("made_of"), found.get("kept")
    if not isinstance(made_of, dict) or not isinstance(kept, dict):
        return False
    counts = [kept.get("rows"), kept.get("width")]
    known = kept.get("id_type") in (None, "int64", "string")
    return known and all(type(count) is int and count >= 0 for count in counts)
