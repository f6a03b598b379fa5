"""Write a config over the shared transformer of spacy-transformers, in place of an
sbert_transformer.

    python scripts/choose_transformer.py configs/joint.cfg joint.cfg --transformer transformer

With --transformer sbert_transformer, and for a config that shares no sbert_transformer, the file is
written as it is.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confection import Config

OURS = "sbert_transformer"
THEIRS = "transformer"
MEAN = {"@layers": "reduce_mean.v1"}
# Settings of spacy-sbert.TransformerTok2Vec.v1 that spacy-sbert.TransformerModel.v1 does not have,
# with their defaults.
ONLY_OURS = {
    "pooling": MEAN,
    "grad_factor": 1.0,
    "prompts": {},
    "default_prompt_name": None,
    "include_prompt": None,
}
# The default of spacy-transformers, 4096, cuts a batch into small ones
MAX_BATCH_ITEMS = 32768


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path, help="the config to read")
    parser.add_argument("output", type=Path, help="the config to write")
    parser.add_argument(
        "--transformer", choices=[OURS, THEIRS], default=OURS, help="the factory of the transformer"
    )
    arguments = parser.parse_args()
    text = arguments.config.read_text(encoding="utf8")
    config = Config().from_str(escaped(text), interpolate=False)
    if arguments.transformer == THEIRS and shared_transformers(config):
        try:
            use_spacy_transformers(config)
        except ValueError as error:
            sys.exit(f"Cannot write {arguments.config} for spacy-transformers. {error}")
        text = escaped(config.to_str(interpolate=False))
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(text, encoding="utf8")


def escaped(text: str) -> str:
    """Return a config whose texts with a `$` are the same, whether it is interpolated or not."""
    return text.replace("$$", r"\u0024")


def shared_transformers(config: Config) -> list[str]:
    """Return the names of the components that are an `sbert_transformer`."""
    return [
        name for name, block in config.get("components", {}).items() if block.get("factory") == OURS
    ]


def use_spacy_transformers(config: Config) -> None:
    """Put a `transformer` in the place of each `sbert_transformer`, and its listeners in place of
    ours.

    RAISES (ValueError): for a setting that it would not follow.
    """
    for name in shared_transformers(config):
        component = config["components"][name]
        model = component["model"]
        for key, default in ONLY_OURS.items():
            given = model.pop(key, default)
            if given != default:
                raise ValueError(
                    f"[components.{name}.model] has {key} = {given}, which its transformer has not."
                )
        component["factory"] = THEIRS
        component["max_batch_items"] = model.pop("max_batch_items", 0) or MAX_BATCH_ITEMS
        model["@architectures"] = "spacy-sbert.TransformerModel.v1"
    for block in blocks(config["components"]):
        if block.get("@architectures") == "spacy-sbert.TransformerListener.v1":
            block["@architectures"] = "spacy-transformers.TransformerListener.v1"
            block.setdefault("pooling", dict(MEAN))
        elif block.get("@architectures") == "spacy.Tok2VecListener.v1" and not has_tok2vec(config):
            raise ValueError(
                "A component listens by spacy.Tok2VecListener.v1, which does not hear its "
                "transformer. Use spacy-sbert.TransformerListener.v1."
            )


def has_tok2vec(config: Config) -> bool:
    """Return whether a component of spaCy's own speaks to its listeners."""
    return any(block.get("factory") == "tok2vec" for block in config["components"].values())


def blocks(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a block of a config and all blocks in it."""
    yield block
    for inner in block.values():
        if isinstance(inner, dict):
            yield from blocks(inner)


if __name__ == "__main__":
    main()
