"""State of an interrupted run, and what it was made with."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, NonNegativeInt

from ..errors import reason_of
from ..files.atomic import Lock, check_folder, open_own
from ..files.serialization import checksummed_json, parse_checksummed, versions
from ..models.digests import precision_of
from ..models.text_encoders import TextEncoder, TransformerTextEncoder, device_name
from .writers import rewriting_os_errors, write_atomically

FORMAT: Literal["spacy-sbert encode 1"] = "spacy-sbert encode 1"
Values = Mapping[str, str | bool | int | None]  # by what messages call them


class ResumeInfo(BaseModel):
    """What a run wants to know when it goes on: the number of rows, the type of their ids, the width of the vectors."""

    rows: NonNegativeInt
    id_type: Literal["int64", "string"] | None
    width: NonNegativeInt


class Run(BaseModel):
    """What run.json says; made_of: input, encoder and options."""

    format: Literal["spacy-sbert encode 1"]
    made_of: dict[str, str | bool | int | None]
    kept: ResumeInfo


class CheckpointDir:
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

    def __enter__(self) -> "CheckpointDir":
        check_folder(self.folder)
        with rewriting_os_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        self._lock = Lock(self.folder / "lock")
        return self

    def __exit__(self, *error: object) -> None:
        empty = not self._run.is_file()
        self._lock.release(remove=empty)
        if empty:
            with suppress(OSError):  # something that is not ours is in it
                self.folder.rmdir()

    def begun(self, made_of: Values) -> ResumeInfo | None:
        """What an interrupted run kept, None if there was none.

        made_of (dict): input, encoder and options, which must be those of that run.
        RAISES (ValueError): if they are others, or run.json is damaged.
        """
        if not self._run.is_file():
            return None
        with open_own(self._run, "rb") as file:
            data = file.read()
        try:
            found = parse_checksummed(Run, data)
        except ValueError as error:
            raise ValueError(
                f"{self.folder} holds an interrupted run whose run.json cannot be read ({reason_of(error)}). "
                "Begin anew with --restart."
            ) from error
        theirs = found.made_of
        differing = [key for key in {**theirs, **made_of} if theirs.get(key) != made_of.get(key)]
        if differing:
            listed = "; ".join(f"{key} was {theirs.get(key)}, now {made_of.get(key)}" for key in differing)
            raise ValueError(
                f"{self.folder} holds an interrupted run that was begun otherwise: {listed}. Go on with the "
                "input and the options of that run, or begin anew with --restart."
            )
        return found.kept

    def begin(self, made_of: Values, kept: ResumeInfo) -> None:
        """Write down what a run is made of, and what it wants to know when it goes on."""
        found = checksummed_json(Run(format=FORMAT, made_of=dict(made_of), kept=kept).model_dump())
        write_atomically(self._run, json.dumps(found, indent=2).encode("utf8"))

    def clear(self) -> None:
        """Remove what a run kept; run.json first, so that nobody goes on with the rest."""
        for path in (self._run, self.journal, self.vectors, self.assembled):
            path.unlink(missing_ok=True)


PACKAGES = ("spacy-sbert", "thinc", "torch", "transformers", "tokenizers", "numpy")
WEIGHTS = "weights (SHA-256)"


def describe(encoder: TextEncoder, budget: int, gpu_ids: Sequence[int]) -> dict[str, str | int]:
    """Name, weights and settings of an encoder, the device, and the versions of what computes.

    encoder (TextEncoder): it is loaded. budget (int): wordpieces in a forward pass, see budget_of.
    gpu_ids (Sequence[int]): GPUs it will work on.
    RETURNS (dict): strings and numbers, by what messages call them.
    RAISES (ValueError): if it is to round by ranges that were not found yet.
    """
    encoder.check_calibrated()
    own = (
        _of_transformer(encoder, budget)
        if isinstance(encoder, TransformerTextEncoder)
        else {"normalize": bool(encoder.pooling.normalize)}
    )
    packages = PACKAGES if isinstance(encoder, TransformerTextEncoder) else (*PACKAGES, "spacy")
    return {
        "encoder": encoder.name,
        WEIGHTS: encoder.digest(),
        "pooling": encoder.pooling.pooling_name,
        "width": encoder.width,
        **own,
        "device": device_name(encoder, gpu_ids),
        **{package: version for package, version in versions().items() if package in packages},
    }


def _of_transformer(encoder: TransformerTextEncoder, budget: int) -> dict[str, str | int]:
    transformer = encoder.model
    return {
        "encoder": transformer.shim.name,
        "normalize": encoder.pooling.normalizes(transformer.shim.load()),
        "prompt": transformer.prompt(encoder.settings.prompt),
        "include_prompt": transformer.prompts.include,
        "overflow": transformer.overflow,
        "precision": precision_of(transformer.shim),
        "max_batch_items": budget,
    }
