"""What is written down beside vectors: of a data set what all of them are made of, of a part that it is whole."""

import json
from collections.abc import Mapping
from typing import Literal, TypeVar

from pydantic import BaseModel, NonNegativeInt

from ..files.digests import digest_of_parts
from ..files.sealed_json import parse_sealed, sealed
from .errors import Errors
from .parts import Part
from .places import Place
from .run import BulkReport
from .work_folder import Values

JOB, INDEX = "job.json", "index.json"
ModelT = TypeVar("ModelT", bound=BaseModel)


class Job(BaseModel):
    """What the vectors of a data set are made of, beside its texts: encoder, options, device and versions."""

    format: Literal["spacy-sbert dataset 1"] = "spacy-sbert dataset 1"
    made_of: dict[str, str | bool | int | None]

    @property
    def digest(self) -> str:
        return digest_of_parts(self.made_of)


class Manifest(BaseModel):
    """That the vectors of a part are whole. It is written last: without it, or with another one, they are made anew.

    job (str): the digest of what they are made of. part (Part): of which texts. made (BulkReport): what became of them.
    vectors (str): their file, below the folder. digest (str): its SHA-256. bytes (int): its size.
    """

    format: Literal["spacy-sbert part 1"] = "spacy-sbert part 1"
    job: str
    part: Part
    made: BulkReport
    vectors: str
    digest: str
    bytes: NonNegativeInt


class Index(BaseModel):
    """All vectors of a data set as one: the parts in the order of their names."""

    format: Literal["spacy-sbert vectors 1"] = "spacy-sbert vectors 1"
    parts: list[Manifest]


def begin_job(target: Place, made_of: Values, *, restart: bool = False) -> Job:
    """The job of a folder, which is noted there if it is the first.

    restart (bool): whether what was made otherwise is to be made anew.
    RAISES (ValueError): if the folder has another job; the message says what differs.
    """
    ours, theirs = Job(made_of=dict(made_of)), read(target, JOB, Job)
    if theirs is None or (restart and theirs.digest != ours.digest):
        write(target, JOB, ours)
        theirs = read(target, JOB, Job)  # another shard may have begun another at the same moment
    known: Mapping[str, object] = theirs.made_of if theirs is not None else {}
    check_job(target, known, ours.made_of)
    return ours


def check_job(target: Place, theirs: Mapping[str, object], ours: Mapping[str, object]) -> None:
    """RAISES (ValueError): if vectors would be made otherwise than those of a folder; the message says what differs."""
    differing = [key for key in {**theirs, **ours} if theirs.get(key) != ours.get(key)]
    if differing:
        listed = "; ".join(f"{key} was {theirs.get(key)}, now {ours.get(key)}" for key in differing)
        raise ValueError(Errors.BULK_OTHER_JOB.format(folder=target.name, differing=listed))


def manifest_name(part: Part, suffix: str) -> str:
    """Where the manifest of a part stands. suffix (str): of the file of its vectors."""
    return f"{part.name}{suffix}.json"


def done(target: Place, part: Part, job: Job, suffix: str) -> Manifest | None:
    """The manifest of a part whose vectors are there and whole; None if they are to be made.

    RAISES (ValueError): if they were made of another state of its file.
    """
    found = read(target, manifest_name(part, suffix), Manifest)
    if found is None or found.job != job.digest or target.size(part.name + suffix) != found.bytes:
        return None
    if found.part != part:
        raise ValueError(Errors.BULK_OTHER_PART.format(path=part.path, given=part.size, known=found.part.size))
    return found


def read(place: Place, path: str, model: type[ModelT]) -> ModelT | None:
    """What was written down, None if it is not there or not whole."""
    data = place.read(path)
    try:
        return None if data is None else parse_sealed(model, data)
    except ValueError:
        return None


def write(place: Place, path: str, content: BaseModel) -> None:
    """Write down, sealed with a digest."""
    place.write(path, json.dumps(sealed(content.model_dump()), indent=2).encode("utf8"))
