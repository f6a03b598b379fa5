"""Identities of encoders: vectors are compared with queries by the same encoder only."""

from dataclasses import dataclass
from pathlib import Path

from ..bulk import StoredVectors
from ..pipeline.sbert import SentenceBert
from ..validation import short_repr


@dataclass(frozen=True)
class EncoderIdentity:
    """Identity that tells the vectors of one encoder from those of another.

    name (str): of the transformer, for messages. width (int): of the vectors. digest (str): see
        identify.
    """

    name: str
    width: int
    digest: str

    @classmethod
    def of(cls, vectors: StoredVectors) -> "EncoderIdentity":
        """Return the encoder that made stored vectors."""
        name, digest = vectors.encoder
        return cls(name, vectors.shape[1], digest)


def check_same_encoder(
    theirs: EncoderIdentity | None,
    encoder: EncoderIdentity | SentenceBert | None,
    where: Path | str,
) -> None:
    """Check which encoder made stored vectors.

    encoder (EncoderIdentity or SentenceBert): the one expected; None not to check.
    RAISES (ValueError): if it was another, or is not known.
    """
    ours = identity_of(encoder)
    if ours is None:
        return
    if theirs is None:
        raise ValueError(
            f"The index in {where} does not say which encoder made its vectors. Build it with "
            "encoder=identify(pipe)."
        )
    if (theirs.width, theirs.digest) != (ours.width, ours.digest):
        differing = "weights or settings"
        if theirs.width != ours.width:
            differing = f"width {theirs.width} and {ours.width}"
        raise ValueError(
            f"The index in {where} was built with another encoder, '{theirs.name}', than "
            f"'{ours.name}' (other {differing}). Use that pipeline, or build it again."
        )


def identify(pipe: SentenceBert) -> EncoderIdentity:
    """Return the identity of the encoder of an `sbert` pipe.

    Its digest is of weights, tokenizer and settings: it changes with training, not with use or
    saving.

    RAISES (TypeError): if the pipe is another one. (OSError, ValueError): if the encoder is not
        found, or foreign.

    Example:
        index = VectorIndex.build(pipe.encode(texts), encoder=identify(pipe))
        index.search(pipe.encode(queries), k=3, encoder=identify(pipe))

    """
    if not isinstance(pipe, SentenceBert):
        raise TypeError(
            f"Cannot identify the encoder of {short_repr(pipe)}: expected an 'sbert' pipe."
        )
    encoder = pipe.text_encoder()
    return EncoderIdentity(encoder.name, encoder.width, encoder.digest())


def identity_of(encoder: EncoderIdentity | SentenceBert | None) -> EncoderIdentity | None:
    """Return the identity of an encoder that is given by it, or by its pipe; see identify."""
    if encoder is None or isinstance(encoder, EncoderIdentity):
        return encoder
    return identify(encoder)
