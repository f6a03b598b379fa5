"""The training of equal.py: the parameters that each of a revision's configs comes to."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from digests import Digests, parameters_digest
from spacy.language import Language
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from spacy.util import fix_random_seed, load_config, registry, resolve_dot_names

# The sample data are those of this checkout, for all revisions
ROOT = Path(__file__).parent.parent.parent
STEPS, SEED = 3, 0
ENTITIES = ("entities-train", "entities-dev")
STATIC = "static"
# Paths of a config that other configs, or commands, make
MADE = {
    "distillation": {"teacher": "sts"},
    "distillation_static": {"teacher": "sts", "student": STATIC},
    "distillation_tok2vec": {"teacher": "sts"},
    "joint": {"entities_train": f"{ENTITIES[0]}.spacy", "entities_dev": f"{ENTITIES[1]}.spacy"},
    "reranker_two_step": {"checkpoint": "reranker_nli"},
    "two_step": {"checkpoint": "nli"},
}
# They are trained first, and saved
SAVED = ("sts", "nli", "reranker_nli")


def add_configs(digests: Digests, checkout: Path) -> None:
    """Add the digest of all parameters after a few steps with each config of a checkout."""
    with TemporaryDirectory() as folder:
        made = Path(folder)
        convert_entities(made)
        for name in SAVED:
            add_config(digests, checkout, name, made)
        distill_static(made)
        for config in sorted((checkout / "configs").glob("*.cfg")):
            if config.stem not in SAVED:
                add_config(digests, checkout, config.stem, made)


def add_config(digests: Digests, checkout: Path, name: str, made: Path) -> None:
    """Add the digest of a config; save the pipeline if others begin with it."""

    def train() -> bytes:
        nlp = trained(checkout / "configs" / f"{name}.cfg", made)
        if name in SAVED:
            nlp.to_disk(made / name)
        return parameters_digest(nlp).encode()

    digests.add(f"configs/{name}.cfg", train)


def trained(path: Path, made: Path) -> Language:
    """Return the pipeline of a config after a few steps, as `spacy train` does them.

    There is no evaluation, which changes no parameter.
    """
    overrides = {
        **paths_of(path, made),
        "system.seed": SEED,
        "training.max_epochs": 0,
        "training.max_steps": STEPS,
    }
    nlp = init_nlp(load_config(path, overrides=overrides))
    for _ in training_steps(nlp):
        pass
    return nlp


def training_steps(nlp: Language) -> Iterator[object]:
    """Train the initialized pipeline by the settings of its config, a step at a time."""
    config = nlp.config.interpolate()
    fix_random_seed(SEED)
    training = registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpus = resolve_dot_names(config, [training["train_corpus"]])[0]
    keys = ("dropout", "accumulate_gradient", "patience", "max_steps", "eval_frequency")
    more_keys = ("annotating_components", "before_update")
    return train_while_improving(
        nlp,
        training["optimizer"],
        create_train_batches(nlp, corpus, training["batcher"], training["max_epochs"]),
        lambda: (0.0, {}),
        exclude=training["frozen_components"],
        **{key: training[key] for key in keys + more_keys},
    )


def paths_of(config: Path, made: Path) -> dict[str, str]:
    """Return the settings of a config's paths: the sample data, and what was made before."""
    paths = load_config(config)["paths"]
    sample = {key: ROOT / path for key, path in paths.items() if str(path).startswith("assets/")}
    before = {key: made / path for key, path in MADE.get(config.stem, {}).items()}
    return {f"paths.{key}": str(path) for key, path in (sample | before).items()}


def convert_entities(folder: Path) -> None:
    """Convert the sample of entities to .spacy, as project.yml does."""
    for name in ENTITIES:
        iob = ROOT / "assets" / f"{name}.iob"
        run("convert", str(iob), str(folder), "--converter", "iob")


def distill_static(folder: Path) -> None:
    """Make the static encoder with which configs/distillation_static.cfg begins."""
    vocabulary = ROOT / "assets" / "texts-train.txt"
    teacher, student = str(folder / "sts"), str(folder / STATIC)
    run(
        "sbert", "distill-static", teacher, student, "--vocabulary", str(vocabulary), "--size", "64"
    )


def run(*arguments: str) -> None:
    """Run a command of spaCy in this environment.

    If it fails, the configs that need its output are left out, with that as the reason.
    """
    command = [sys.executable, "-m", "spacy", *arguments]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
