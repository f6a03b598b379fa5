"""Cards on the Hugging Face hub: a README.md whose front matter says what the model is for."""

from collections.abc import Sequence

from huggingface_hub import ModelCard, ModelCardData

from ..render.markup import clean
from .facts import PipelineFacts
from .readme import package_card
from .scores import eval_results

TASK = "sentence-similarity"
TAGS = (TASK, "feature-extraction")


def hub_metadata(facts: PipelineFacts, *, library: str = "spacy") -> ModelCardData:
    """The front matter of a card.

    library (str): what loads the model: "spacy" or "sentence-transformers".
    """
    licence = clean(facts.meta.get("license") or "").strip()  # spelled as spacy-huggingface-hub does
    return ModelCardData(
        language=facts.languages,
        license=licence.replace(" ", "-").lower().removeprefix("gnu-") or None,
        library_name=library,
        tags=[library, *TAGS],
        base_model=list(dict.fromkeys(one.base_model for one in facts.encoders if one.is_on_hub)) or None,
        pipeline_tag=TASK,
        model_name=clean(facts.name),
        eval_results=list(eval_results(facts)) or None,
    )


def with_metadata(metadata: ModelCardData, text: str) -> str:
    """A card with its front matter."""
    return f"---\n{metadata.to_yaml()}\n---\n\n{text}"


def hub_card(facts: PipelineFacts) -> str:
    """The README of a repository on the hub that holds the pipeline: front matter and the card of its package."""
    return with_metadata(hub_metadata(facts), package_card(facts))


def update_hub(repo: str, metadata: ModelCardData) -> None:
    """Put metadata into the card of a repository on the hub; its text and its own tags stay.

    `spacy huggingface-hub push` writes a front matter of its own, which does not mention sentence vectors.

    repo (str): such as "organisation/en_sbert_sts".
    """
    card = ModelCard.load(repo)
    tags: Sequence[str] = [*(card.data.get("tags") or []), *(metadata.tags or [])]
    for key, value in {**vars(metadata), "tags": list(dict.fromkeys(tags))}.items():
        if value is not None:
            card.data[key] = value
    card.push_to_hub(repo, commit_message="Sentence similarity in the metadata of the card")
