"""The pipes of a pipeline by their class, under the names at the top level."""

import numpy
import pytest

from spacy_sbert import (
    SentenceBert,
    SentenceMeta,
    SentenceReranker,
    find_meta,
    find_reranker,
    find_sbert,
)


@pytest.fixture
def nlp(make_nlp, tiny_bert):
    nlp = make_nlp()
    nlp.add_pipe("sbert", name="second", config={"model": {"name": str(tiny_bert)}})
    nlp.add_pipe("sbert_meta")
    nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
    return nlp


@pytest.mark.parametrize(
    ("find", "kind", "factory", "last"),
    [
        (find_sbert, SentenceBert, "sbert", "second"),
        (find_meta, SentenceMeta, "sbert_meta", "sbert_meta"),
        (find_reranker, SentenceReranker, "sbert_reranker", "sbert_reranker"),
    ],
)
def test_each_finds_its_own(nlp, find, kind, factory, last):
    assert find(nlp) is nlp.get_pipe(last)
    assert type(find(nlp)) is kind
    assert find(nlp, factory) is nlp.get_pipe(factory)
    with pytest.raises(
        ValueError,
        match=rf"pipe named 'tagger': .*{last}\.",
    ):
        find(nlp, "tagger")
    own = [name for name in nlp.pipe_names if isinstance(nlp.get_pipe(name), kind)]
    for arguments in ((), (last,)):
        disabled = rf"'{last}' of the pipeline is disabled: .*enable_pipe\(\"{last}\"\)"
        with nlp.select_pipes(disable=own), pytest.raises(ValueError, match=disabled):
            find(nlp, *arguments)
    for name in own:
        nlp.remove_pipe(name)
    with pytest.raises(
        ValueError,
        match=rf"no '{factory}' pipe: .*add_pipe\(\"{factory}\"\)",
    ):
        find(nlp)


def test_a_sourced_pipe_works_in_the_pipeline_that_it_is_found_in(make_nlp, tiny_bert, other_bert):
    def with_two(folder):
        nlp = make_nlp(name=folder)
        nlp.add_pipe("sbert", name="second", config={"model": {"name": str(folder)}})
        return nlp

    source = with_two(tiny_bert)
    source.add_pipe("sbert_meta")
    target = with_two(other_bert)
    target.add_pipe("sbert_meta", source=source)
    text = "a man is eating"
    assert numpy.array_equal(find_meta(source).encode(text), source(text).vector)
    for nlp in (target, source, target):
        with pytest.warns(UserWarning, match=r"\[sbert-in-two-pipelines\] 'sbert_meta'"):
            found = find_meta(nlp)
        assert numpy.array_equal(found.encode(text), nlp(text).vector)
    assert not numpy.array_equal(source(text).vector, target(text).vector)
