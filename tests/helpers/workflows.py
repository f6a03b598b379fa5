"""Shipped configs and workflows, for a tiny encoder."""

import re
import shutil

from helpers.pipelines import ROOT
from spacy.tokens import DocBin
from spacy.training.converters import iob_to_docs

TOKENS = ("infersent", "paraphrase_average", "word_average")
FROM_TEACHERS = ("distillation_static", "distillation_tok2vec")
RERANKERS = ("reranker", "reranker_nli", "reranker_two_step")
# tests/reranker, tests/textcat, and the two tests of those without a transformer
OTHERS = (
    *RERANKERS,
    "textcat",
    *TOKENS,
    *FROM_TEACHERS,
)
CONFIGS = [file for file in sorted((ROOT / "configs").glob("*.cfg")) if file.stem not in OTHERS]
TWO_STEPS = {"training.max_epochs": 0, "training.max_steps": 2, "training.eval_frequency": 1}


def entities(folder):
    """Convert the sample of entities, and return where it is."""
    for part in ("train", "dev"):
        text = (ROOT / "assets" / f"entities-{part}.iob").read_text(encoding="utf8")
        docs = iob_to_docs(text, n_sents=1, no_print=True)
        DocBin(docs=docs, store_user_data=True).to_disk(folder / f"entities-{part}.spacy")
    return {
        f"paths.entities_{part}": str(folder / f"entities-{part}.spacy")
        for part in ("train", "dev")
    }


def settings_for(name, make_nlp, encoder, folder):
    """What a shipped config needs beside a file of its own; encoder: of the checkpoint."""
    overrides = entities(folder) if name == "joint" else {}
    if name in ("distillation", "multilingual"):
        make_nlp("own", lang="en", model={"pooling": "max"}).to_disk(folder / "teacher")
        overrides["paths.teacher"] = str(folder / "teacher")
    if name == "two_step":
        make_nlp(encoder, lang="en").to_disk(folder / "checkpoint")
        overrides["paths.checkpoint"] = str(folder / "checkpoint")
    if name == "matryoshka":
        overrides["components.sbert.loss.dims"] = [16, 8]
    return overrides


def copy_project(folder, tiny_bert):
    """The project, whose configs train a tiny encoder for two steps."""
    for name in ("configs", "scripts", "assets"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "project.yml", folder)
    use_tiny_bert(folder, tiny_bert)
    return folder


def use_tiny_bert(project, tiny_bert):
    """Two steps of every shipped config, for the random tiny BERT."""
    root = project if (project / "configs").is_dir() else project.parent.parent
    for file in (root / "configs").glob("*.cfg"):
        text = file.read_text(encoding="utf8").replace(
            "sentence-transformers/all-MiniLM-L6-v2", str(tiny_bert)
        )
        text = re.sub(
            r"(max_steps) = 0", r"\1 = 2", re.sub(r"(eval_frequency) = .*", r"\1 = 1", text)
        )
        file.write_text(text, encoding="utf8")
