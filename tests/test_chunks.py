"""Passages of whole sentences: their bounds by an independent count, and that no token is lost."""

import pickle
from itertools import pairwise

import numpy
import pytest
import spacy
from helpers.pipelines import EVERY_ENCODER, MAX_LENGTH, no_warnings, through_docbin, warnings_with
from helpers.small_tokenizers import KINDS, make_folder
from spacy.tokens import Doc
from transformers import AutoTokenizer

from spacy_sbert import find_sbert
from spacy_sbert.chunks import SentenceChunker, count_wordpieces

WORDS = ["a", "man", "is", "eating", "food", "the", "cat", "sat", "on", "mat", "cannot", "dog"]
TEXT = "A man is eating food. The cat sat on the mat. He cannot go. The dog ran fast."


def chunked(name, *, after=(), **config):
    """A pipeline of sentences and passages for an encoder, which is disabled."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("sbert_chunks", config=config)
    for factory in after:
        nlp.add_pipe(factory)
    nlp.add_pipe("sbert", config={"model": {"name": str(name)}})
    nlp.disable_pipe("sbert")
    return nlp


def random_texts(rng, n=10):
    """Texts of random sentences, some of them long, with white space of all kinds."""
    texts = []
    for _ in range(n):
        parts = []
        for _ in range(rng.integers(0, 8)):
            length = rng.choice([1, 2, 4, 6, 30], p=[0.2, 0.3, 0.3, 0.15, 0.05])
            words = rng.choice(WORDS, length)
            parts.append(f"{' '.join(words)}{rng.choice(['.', '!', ' .', '...'])}")
            parts.append(rng.choice([" ", "  ", "\n\n", "\t "]))
        texts.append("".join(parts))
    return texts


def passages_of(nlp, text):
    doc = nlp(text)
    return [span.text for span in doc.spans["chunks"]]


def is_covered_once(doc, spans):
    counts = numpy.zeros(len(doc), dtype=int)
    for span in spans:
        counts[span.start : span.end] += 1
    return all(count == 1 or token.is_space for token, count in zip(doc, counts, strict=True))


def sentence_bounds(doc):
    """Where sentences begin and end, in tokens that are not white space."""
    for sentence in doc.sents:
        tokens = [token.i for token in sentence if not token.is_space]
        if tokens:
            yield tokens[0], tokens[-1] + 1


@pytest.mark.filterwarnings("ignore:.*was broken between tokens")
@pytest.mark.parametrize("kind", KINDS)
def test_passages_are_whole_sentences_as_many_as_fit(tmp_path, kind):
    folder = make_folder(tmp_path / "encoder", kind, limit=60)
    tokenizer = AutoTokenizer.from_pretrained(folder)

    def size(doc, start, end):
        text = doc.text if (start, end) == (0, len(doc)) else doc[start:end].text
        return len(tokenizer(text, verbose=False)["input_ids"])

    # A word of 6 characters, with special tokens
    for max_length in (9, 24):
        nlp = chunked(folder, max_length=max_length, min_length=0)
        rng = numpy.random.default_rng(max_length)
        n_broken = 0
        for doc in nlp.pipe(random_texts(rng)):
            spans = list(doc.spans["chunks"])
            assert is_covered_once(doc, spans)
            sentences = list(sentence_bounds(doc))
            fitting = {bounds for bounds in sentences if size(doc, *bounds) <= max_length}
            n_broken += len(sentences) - len(fitting)
            starts = {start for start, _ in sentences}
            for span in spans:
                assert size(doc, span.start, span.end) <= max_length
                assert not doc[span.start].is_space
                assert not doc[span.end - 1].is_space
                # Borders inside of a sentence are inside of one that is too long
                for start, end in fitting:
                    assert not start < span.start < end
                    assert not start < span.end < end
            for span, following in pairwise(spans):
                # What follows would not have fitted
                next_end = following.start + 1
                if following.start in starts:
                    next_end = next(end for start, end in sentences if start == following.start)
                assert size(doc, span.start, next_end) > max_length
        assert n_broken


def test_sizes_are_counted_beyond_the_limit(make_nlp, tiny_bert):
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    for overflow in ("truncate", "windows", "cut"):
        encoder = find_sbert(make_nlp(transformer={"overflow": overflow})).text_encoder()
        for text in ("", "  ", "a man", TEXT, TEXT * 5):
            expected = len(tokenizer(text, verbose=False)["input_ids"])
            # "cut" ends without the last special token
            is_cut = overflow == "cut" and expected > MAX_LENGTH
            assert count_wordpieces(encoder, text) == expected - is_cut


def test_a_default_prompt_counts(tiny_bert):
    nlp = chunked(tiny_bert, max_length=12, min_length=0)
    model = {"name": str(tiny_bert), "prompts": {"p": "a dog "}, "default_prompt_name": "p"}
    prompted = spacy.blank("xx")
    prompted.add_pipe("sentencizer")
    prompted.add_pipe("sbert_chunks", config={"max_length": 14, "min_length": 0})
    prompted.add_pipe("sbert", config={"model": model})
    prompted.disable_pipe("sbert")
    texts = passages_of(nlp, TEXT)
    assert len(texts) == 3
    assert passages_of(prompted, TEXT) == texts


@pytest.mark.parametrize("encoder", EVERY_ENCODER)
def test_every_encoder_counts(make_nlp, encoder):
    if encoder == "curated":
        pytest.skip("texts are not encoded without Docs")
    nlp = make_nlp(encoder, unit="doc+sent")
    nlp.add_pipe("sbert_chunks", config={"max_length": 16, "min_length": 0})
    doc = nlp(TEXT)
    assert is_covered_once(doc, doc.spans["chunks"])
    assert {span.start for span in doc.spans["chunks"]} < {sent.start for sent in doc.sents}


def test_a_passage_ends_where_sentences_differ(tiny_bert):
    first, second = "a man is eating.", "the cat sat."
    text = f"{first} {first} {second} {second}"
    nlp = chunked(tiny_bert, max_length=19, min_length=0)
    assert passages_of(nlp, text) == [f"{first} {first} {second}", second]
    u, v = find_sbert(nlp_with_sbert(nlp)).encode([first, second])
    similarity = float(u @ v / numpy.linalg.norm(u) / numpy.linalg.norm(v))
    assert similarity < 0.99
    above = chunked(tiny_bert, max_length=19, min_length=0, threshold=similarity + 1e-3)
    assert passages_of(above, text) == [f"{first} {first}", f"{second} {second}"]
    below = chunked(tiny_bert, max_length=19, min_length=0, threshold=similarity - 1e-3)
    assert passages_of(below, text) == passages_of(nlp, text)
    # Only a passage that has min_length
    long = chunked(tiny_bert, max_length=19, min_length=13, threshold=similarity + 1e-3)
    assert passages_of(long, text) == [f"{first} {first} {second}", second]


def nlp_with_sbert(nlp):
    nlp.enable_pipe("sbert")
    return nlp


def test_a_short_last_passage_joins_the_one_before(tiny_bert):
    texts = ["a man is eating food.", "the cat sat.", "a dog."]
    text = " ".join(texts)
    nlp = chunked(tiny_bert, max_length=24, min_length=0, threshold=1.0)
    encoder = find_sbert(nlp_with_sbert(nlp)).text_encoder()
    assert [count_wordpieces(encoder, one) for one in texts] == [8, 6, 5]
    assert passages_of(nlp, text) == texts
    # The last has not, and joins the second
    six = chunked(tiny_bert, max_length=24, min_length=6, threshold=1.0)
    assert passages_of(six, text) == [texts[0], " ".join(texts[1:])]
    # Where it does not fit, it stays
    narrow = chunked(tiny_bert, max_length=12, min_length=6)
    assert passages_of(narrow, text) == [" ".join(texts[:2]), texts[2]]


def test_a_long_sentence_is_broken_with_a_warning(tiny_bert):
    nlp = chunked(tiny_bert, max_length=10, min_length=0)
    with warnings_with("sbert-long-sentence") as found:
        doc = nlp("a man is eating food on the mat, and the dog ran fast. The cat sat.")
        nlp("a man is eating food on the mat, and the dog ran fast.")
    (message,) = found
    assert "A sentence of 19 wordpieces is longer than max_length of 'sbert_chunks'" in message
    assert is_covered_once(doc, doc.spans["chunks"])
    assert [span.text for span in doc.spans["chunks"]] == [
        "a man is eating food on the mat",
        ", and the dog ran fast",
        ". The cat sat.",
    ]


@pytest.mark.filterwarnings("ignore:.*was broken between tokens")
def test_a_token_that_does_not_fit_is_a_passage_of_its_own(tiny_bert):
    nlp = chunked(tiny_bert, max_length=6, min_length=0)
    assert passages_of(nlp, "a man xyzxyzxyz is eating.") == ["a man", "xyzxyzxyz", "is eating."]


@pytest.mark.parametrize("text", ["", " ", "\n\n \t", "dog"])
def test_texts_of_no_sentence_or_one_word(tiny_bert, text):
    nlp = chunked(tiny_bert, max_length=10, min_length=0, threshold=0.5)
    assert passages_of(nlp, text) == text.split()


def test_the_encoder_encodes_passages_once(tiny_bert):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("sbert_chunks", config={"max_length": 16, "min_length": 0})
    model = {"name": str(tiny_bert), "get_spans": {"unit": "chunk"}}
    sbert = nlp.add_pipe("sbert", config={"model": model})
    with no_warnings():
        docs = list(nlp.pipe([TEXT, "", " \n", "The dog ran fast.\n"]))
        spans = [span for doc in docs for span in doc.spans["chunks"]]
        vectors = numpy.stack([span.vector for span in spans])
    assert len(spans) == 3
    assert numpy.allclose(vectors, sbert.encode([span.text for span in spans]), atol=1e-6)
    assert numpy.allclose(docs[0].vector, vectors[:2].mean(axis=0), atol=1e-6)
    assert not docs[1].vector.any()
    assert not docs[2].vector.any()


# What survives


def places(docs, key="chunks"):
    return [[(span.start_char, span.end_char) for span in doc.spans[key]] for doc in docs]


def test_processes_bytes_disk_and_docbin(tiny_bert, tmp_path):
    nlp = chunked(tiny_bert, max_length=16, min_length=0, spans_key="passages")
    texts = [TEXT, "", "The dog ran fast.", TEXT * 2]
    docs = list(nlp.pipe(texts))
    expected = places(docs, "passages")
    assert sum(map(len, expected)) > 6
    assert places(nlp.pipe(texts, n_process=2, batch_size=1), "passages") == expected
    assert places(through_docbin(docs), "passages") == expected
    nlp.to_disk(tmp_path / "nlp")
    assert places(spacy.load(tmp_path / "nlp").pipe(texts), "passages") == expected
    other = chunked(tiny_bert, max_length=16, min_length=0, spans_key="passages")
    other.from_bytes(nlp.to_bytes())
    assert places(other.pipe(texts), "passages") == expected
    # Again, and from another pipeline of the same settings
    assert places((nlp.get_pipe("sbert_chunks")(doc) for doc in docs), "passages") == expected
    assert places(other.pipe(through_docbin(docs, other.vocab)), "passages") == expected


def test_a_pickled_one_counts_without_its_pipeline(tiny_bert):
    nlp = chunked(tiny_bert, max_length=16, min_length=0)
    copied = pickle.loads(pickle.dumps(nlp.get_pipe("sbert_chunks")))
    with nlp.select_pipes(enable="sentencizer"):
        doc = copied(nlp(TEXT))
    assert places([doc]) == places([nlp(TEXT)])


# Bad input


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"min_length": 129}, "min_length = 129: expected at most max_length = 128"),
        ({"max_length": 0}, "max_length = 0: expected greater than or equal to 1"),
        ({"max_length": 20.5}, "max_length"),
        ({"min_length": -1}, "min_length = -1"),
        ({"threshold": 1.5}, "threshold = 1.5"),
        ({"threshold": "low"}, "threshold"),
        ({"spans_key": ""}, "spans_key = ''"),
    ],
)
def test_settings_that_cannot_be(config, message):
    with pytest.raises(ValueError, match=message):
        spacy.blank("xx").add_pipe("sbert_chunks", config=config)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            {"max_length": 25, "min_length": 0},
            "max_length = 25: .* at most 24, the limit of the encoder of 'sbert'",
        ),
        ({"max_length": 2, "min_length": 0}, "max_length = 2: expected more than 2, of special"),
        ({"max_length": 16, "min_length": 0, "spans_key": "sbert"}, r"doc.spans\['sbert'\], which"),
    ],
)
def test_settings_that_the_encoder_cannot_have(tiny_bert, config, message):
    with pytest.raises(ValueError, match=message):
        chunked(tiny_bert, **config)("A man.")


def test_pipelines_that_cannot_be(tiny_bert):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert_chunks")
    with pytest.raises(ValueError, match="counts the wordpieces of an 'sbert' pipe, and there is"):
        nlp("a man")
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert)}})
    nlp.get_pipe("sbert_chunks").max_length = 24
    with pytest.raises(
        ValueError, match=r"'a man' has no sentence boundaries, which .*sbert_chunks"
    ):
        nlp("a man")
    with pytest.raises(ValueError, match="counts the wordpieces of an 'sbert' pipe"):
        SentenceChunker(nlp.vocab)(nlp.make_doc("a"))


def test_a_key_of_another_pipe_is_refused(tiny_bert):
    nlp = chunked(tiny_bert, max_length=16, min_length=0, spans_key="sc")
    doc = Doc(nlp.vocab, ["a", "man"], sent_starts=[True, False])
    doc.spans["sc"] = [doc[:1]]
    with pytest.raises(
        ValueError, match=r"passages in doc\.spans\['sc'\], which another pipe uses"
    ):
        nlp.get_pipe("sbert_chunks")(doc)
    assert [span.text for span in doc.spans["sc"]] == ["a"]


@pytest.mark.parametrize("unit", ["chunk", "doc+chunk"])
def test_an_encoder_of_passages_before_them_is_refused(tiny_bert, unit):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    model = {"name": str(tiny_bert), "get_spans": {"unit": unit}}
    nlp.add_pipe("sbert", config={"model": model})
    nlp.add_pipe("sbert_chunks", config={"max_length": 16, "min_length": 0})
    with pytest.raises(ValueError, match=r"has no passages in doc\.spans\['chunks'\]"):
        nlp(TEXT)


def test_a_key_of_ones_own_and_members_of_pairs(tiny_bert):
    nlp = spacy.blank("xx")
    nlp.add_pipe("sentencizer")
    config = {"max_length": 16, "min_length": 0, "spans_key": "passages"}
    nlp.add_pipe("sbert_chunks", config=config)
    get_spans = {"unit": "chunk", "chunks_key": "passages"}
    nlp.add_pipe("sbert", config={"model": {"name": str(tiny_bert), "get_spans": get_spans}})
    doc = nlp(TEXT)
    get_rows = find_sbert(nlp).model.source.attrs["get_spans"]
    assert get_rows([doc]) == [list(doc.spans["passages"])]
    # A pair of training or evaluation has no passages
    pair = nlp.make_doc("a man the cat")
    pair.spans["sbert"] = [pair[2:4], pair[0:2]]
    assert get_rows([pair]) == [[pair[0:2], pair[2:4]]]
