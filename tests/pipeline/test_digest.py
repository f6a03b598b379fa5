"""The digest of a pipeline."""

import json
import linecache
import shutil
from functools import partial
from pathlib import Path

import pytest
import spacy
from spacy.language import Language
from spacy.util import import_file

from spacy_sbert.evaluation import PipelineSource
from spacy_sbert.files.checksum import file_digest
from spacy_sbert.pipeline.digest import code_digest, pipeline_digest, unseen_by_digest

FUNCTION = """
from spacy.language import Language

@Language.component("{name}")
def component(doc):
    return doc
"""
FACTORY = """
from spacy.language import Language

class Component:
    def __call__(self, doc):
        return doc

@Language.factory("{name}")
def make(nlp, name):
    return Component()
"""
SPAN_GETTER = """
from spacy.util import registry
from spacy_sbert.models.spans import sentence_spans

@registry.span_getters("{name}")
def make():
    return sentence_spans()
"""


def test_a_setting_of_a_later_version_keeps_the_digest(make_nlp):
    """A digest that was written before a setting existed still holds, unless it is used."""
    nlp = make_nlp("own")
    digest = pipeline_digest(nlp)
    model = nlp._pipe_configs["sbert"]["model"]
    assert model["backend"] == "torch"
    model["backend"] = "onnx"
    assert pipeline_digest(nlp) != digest
    del model["backend"]
    del model["backend_config"]
    assert pipeline_digest(nlp) == digest


def write(file, source, name):
    """Write code to a file, and run it as spaCy's --code: not as a module that is imported."""
    file.write_text(source.format(name=name))
    import_file("python_code", file)


def test_prompts_of_the_folder_that_are_edited_change_the_digest(tiny_bert, tmp_path):
    """By which queries and documents are encoded: kept vectors would be those of other prompts."""
    folder = shutil.copytree(tiny_bert, tmp_path / "encoder")
    kind = "sentence_transformers.models.Transformer"
    modules = [{"idx": 0, "name": "0", "path": "", "type": kind}]
    (folder / "modules.json").write_text(json.dumps(modules))

    def digest():
        nlp = spacy.blank("en")
        nlp.add_pipe("sbert", config={"model": {"name": str(folder)}})
        return pipeline_digest(nlp)

    digests = [digest()]
    for query in ("", "query: ", "Find: "):
        prompts = {"prompts": {"query": query}}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
        digests.append(digest())
    assert len(set(digests)) == 4


@pytest.mark.parametrize("source", [FUNCTION, FACTORY], ids=["function", "factory"])
def test_code_of_a_component_that_is_edited_changes_the_digest(tmp_path, source):
    file = tmp_path / "code.py"
    name = "edited_function" if source is FUNCTION else "edited_factory"
    write(file, source, name)
    nlp = spacy.blank("en")
    nlp.add_pipe(name)
    digest = pipeline_digest(nlp)
    assert pipeline_digest(nlp) == digest
    file.write_text(file.read_text() + "OTHER = 1\n")
    assert pipeline_digest(nlp) != digest


def test_code_of_a_registered_function_that_is_edited_changes_the_digest(tmp_path, make_nlp):
    file = tmp_path / "code.py"
    write(file, SPAN_GETTER, "edited_spans.v1")
    nlp = make_nlp("own")
    before = pipeline_digest(nlp)
    nlp._pipe_configs["sbert"]["model"]["get_spans"] = {"@span_getters": "edited_spans.v1"}
    digest = pipeline_digest(nlp)
    assert digest != before
    file.write_text(file.read_text() + "OTHER = 1\n")
    assert pipeline_digest(nlp) != digest


def plain(doc):
    return doc


class Callable:
    def __call__(self, doc):
        return doc


def test_code_is_that_of_the_file_behind_what_wraps_it():
    of_this_file = file_digest(Path(__file__))
    for code in (plain, partial(plain), partial(partial(plain)), Callable, Callable()):
        assert code_digest(code) == of_this_file
    assert code_digest(len) == ""


def typed_in(source, number):
    """Return a function as a notebook makes it: its source is in no file."""
    cell = f"<cell {number}>"
    linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)
    names = {}
    exec(compile(source, cell, "exec"), names)
    return names["function"]


def test_code_that_was_typed_in_has_the_digest_of_its_source():
    one = typed_in("def function(doc):\n    return 1\n", 1)
    two = typed_in("def function(doc):\n    return 2\n", 2)
    again = typed_in("def function(doc):\n    return 1\n", 3)
    assert code_digest(one) == code_digest(again) != code_digest(two)


def test_a_source_has_the_digest_of_the_pipeline_as_it_is_now(make_nlp):
    nlp = make_nlp("own")
    source = PipelineSource(nlp)
    digest = source.digest
    nlp.remove_pipe("sbert")
    assert source.digest == pipeline_digest(nlp) != digest


def test_code_of_no_package_and_what_is_not_saved_may_change_unseen(make_nlp):
    nlp = make_nlp("own")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("merge_entities")
    assert unseen_by_digest(nlp) == []
    Language.component("plain_of_this_test", func=plain)
    nlp.add_pipe("plain_of_this_test")
    assert unseen_by_digest(nlp) == ["plain"]
