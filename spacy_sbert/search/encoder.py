"""Which encoder made vectors, so that those of another one are never searched."""

from dataclasses import dataclass
from pathlib import Path

from ..component.sbert import SentenceBert
from ..errors.checks import shown
from .errors import Errors


@dataclass(frozen=True)
class EncoderIdentity:
    """What tells the vectors of one encoder from those of another.

    name (str): that of the transformer, for messages. width (int): of the vectors. digest (str): see encoder_digest.
    """

    name: str
    width: int
    digest: str


def check_encoder(theirs: EncoderIdentity | None, ours: EncoderIdentity, where: Path | str) -> None:
    """RAISES (ValueError): if the vectors that stand somewhere are not of our encoder, or nobody said of which."""
    if theirs is None:
        raise ValueError(Errors.SEARCH_NO_ENCODER.format(folder=where, name=ours.name))
    names = {"folder": where, "name": theirs.name, "given": ours.name}
    if theirs.width != ours.width:
        raise ValueError(Errors.SEARCH_OTHER_WIDTH.format(theirs=theirs.width, ours=ours.width, **names))
    if theirs.digest != ours.digest:
        raise ValueError(Errors.SEARCH_OTHER_ENCODER.format(**names))


def identify(pipe: SentenceBert) -> EncoderIdentity:
    """The identity of the encoder of an `sbert` pipe; it changes with training, not with use or saving.

    RAISES (TypeError): if the pipe is another one. (OSError, ValueError): if the encoder is not found, or the
        transformer is not of this package.
    """
    if not isinstance(pipe, SentenceBert):
        raise TypeError(Errors.SEARCH_NO_IDENTITY.format(given=shown(pipe)))
    encoder = pipe.text_encoder()
    return EncoderIdentity(encoder.name, encoder.width, encoder.digest())
