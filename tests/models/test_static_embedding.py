"""A table of wordpieces: what is looked up, the way back, folders of static encoders, and what is
refused.
"""

import shutil

import numpy
import pytest
import spacy
from helpers.gradients import finite_differences, relative_error
from helpers.pipelines import change_json, one_pipe, write_modules
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from spacy_sbert.models import static_embedding as wordpiece_table
from spacy_sbert.search import identify

ARCHITECTURE = "spacy-sbert.StaticSentenceEncoder.v1"
TEXTS = ["A man is eating food.", "", "He cannot go!", " \n", "The cat sat on the mat.", "food"]
WIDTH = 6


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return AutoTokenizer.from_pretrained(tiny_bert).backend_tokenizer


@pytest.fixture
def table(tokenizer):
    return (
        numpy.random.default_rng(0)
        .normal(size=(tokenizer.get_vocab_size(), WIDTH))
        .astype("float32")
    )


@pytest.fixture
def folder(tokenizer, table, tmp_path):
    return write(tmp_path / "static", tokenizer, {"embedding.weight": table})


def write(folder, tokenizer, arrays, *, path=""):
    """The folder of a static encoder."""
    module = folder / path
    module.mkdir(parents=True)
    write_modules(folder, ("StaticEmbedding", path))
    tokenizer.save(str(module / "tokenizer.json"))
    save_file(arrays, module / "model.safetensors")
    return folder


def load(folder, **model):
    return one_pipe(folder, **{"@architectures": ARCHITECTURE, "width": WIDTH, **model})


def reader(nlp):
    return nlp.get_pipe("sbert").model.get_ref("encoder").get_ref("reader")


def rows_of(tokenizer, table, text):
    """The rows of the table that the tokenizer alone finds, without special tokens."""
    return table[Tokenizer.from_str(tokenizer.to_str()).encode(text, add_special_tokens=False).ids]


@pytest.mark.parametrize(
    ("name", "path"), [("embedding.weight", ""), ("embeddings", "0_StaticEmbedding")]
)
def test_a_text_is_the_mean_of_its_rows(tokenizer, table, tmp_path, name, path):
    nlp = load(write(tmp_path / "static", tokenizer, {name: table}, path=path))
    for text in TEXTS:
        rows = rows_of(tokenizer, table, text)
        doc = nlp(text)
        expected = rows.mean(axis=0) if len(rows) else numpy.zeros(WIDTH)
        assert numpy.allclose(doc.vector, expected, rtol=0, atol=1e-6)
        assert doc.has_vector == bool(len(rows))
        assert doc._.sbert_truncated is False
    given = nlp.get_pipe("sbert").encode(TEXTS)
    assert numpy.allclose(given, [doc.vector for doc in nlp.pipe(TEXTS)], rtol=0, atol=1e-6)
    assert not given[[1, 3]].any()
    assert nlp.get_pipe("sbert").encode([]).shape == (0, WIDTH)


def test_the_parts_of_a_doc(folder, tokenizer, table):
    """Each is pooled from its own wordpieces, and stands alone as it stands among others."""
    nlp = load(folder)
    nlp.add_pipe("sentencizer", first=True)
    doc = nlp("He ran fast. The cat sat on the mat.")
    for sentence in doc.sents:
        assert numpy.allclose(sentence.vector, nlp(sentence.text).vector, atol=1e-6)
    for part in (doc[1], doc[2:4], doc[5:]):
        assert numpy.allclose(
            part.vector, rows_of(tokenizer, table, part.text).mean(axis=0), atol=1e-6
        )
    (whole,) = rows_of(tokenizer, table, "cannot")
    assert all(numpy.allclose(token.vector, whole, atol=1e-6) for token in nlp("cannot")), (
        "its tokens share it"
    )


def test_chunks_give_the_same_bits_and_no_text_is_too_long(folder, tokenizer, table, monkeypatch):
    sbert = load(folder).get_pipe("sbert")
    long = "the cat sat on a mat " * 3000
    texts = [*TEXTS, "the dog ran " * 30, "", *TEXTS, long]
    expected = sbert.encode(texts)
    assert numpy.allclose(
        expected[-1], rows_of(tokenizer, table, long).mean(axis=0, dtype="float64"), atol=1e-5
    )
    for chunk in (1, 7, 40):
        monkeypatch.setattr(wordpiece_table, "_CHUNK", chunk)
        assert numpy.array_equal(sbert.encode(texts), expected)


def test_gradient(folder):
    """Each number of the table's, of wordpieces that stand in several texts, once or more in
    each.
    """
    layer = reader(load(folder))
    layer.load()
    wordpieces = layer.wordpiece_tokenizer(["the cat the cat", "", "the mat"], offsets=False)
    E = layer.get_param("E").astype("float64")
    layer.set_param("E", E)
    d_values = numpy.random.default_rng(1).normal(size=(len(wordpieces.ids), WIDTH))
    (states,), backprop = layer.states(wordpieces, True)
    assert states.windows.tolist() == [0, 2]
    assert states.lengths.tolist() == [4, 2]
    backprop([d_values])
    expected = finite_differences(lambda E: float((E[wordpieces.ids] * d_values).sum()), E.copy())
    assert relative_error(layer.get_grad("E"), expected) < 1e-6
    assert not layer.get_grad("E")[numpy.setdiff1d(numpy.arange(len(E)), wordpieces.ids)].any()


@pytest.mark.parametrize("used", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_what_was_saved_stands_on_its_own(folder, tmp_path, used):
    nlp = load(folder)
    blank = load(folder)
    expected = load(folder)(TEXTS[0]).vector
    if used:
        nlp(TEXTS[0])
    nlp.to_disk(tmp_path / "nlp")
    data = nlp.to_bytes()
    shutil.rmtree(folder)
    for one in (spacy.load(tmp_path / "nlp"), blank.from_bytes(data)):
        assert numpy.array_equal(one(TEXTS[0]).vector, expected)
        assert numpy.allclose(one.get_pipe("sbert").encode(TEXTS[:1])[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    "architecture",
    ["SentenceEncoder", pytest.param("TransformerModel", marks=pytest.mark.spacy_transformers)],
)
def test_a_transformer_is_not_made_of_a_static_folder(folder, architecture):
    factory = "sbert" if architecture == "SentenceEncoder" else "transformer"
    nlp = one_pipe(folder, factory, **{"@architectures": f"spacy-sbert.{architecture}.v1"})
    with pytest.raises(ValueError, match=r"static.*spacy-sbert\.StaticSentenceEncoder\.v1"):
        nlp("a")


BAD_TABLES = {
    "short": lambda table: {"embedding.weight": table[:-1].copy()},
    "NaN": lambda table: {"embedding.weight": numpy.where(table == table[2, 2], numpy.nan, table)},
    "two": lambda table: {"embeddings": table, "weights": table[:, 0].copy()},
    "flat": lambda table: {"embedding.weight": table.reshape(-1).copy()},
    "other": lambda table: {"linear.weight": table},
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_bad_table(folder, table, kind):
    expected = rf"expected one table of finite numbers.* of \({len(table)}, width\)"
    save_file(BAD_TABLES[kind](table), folder / "model.safetensors")
    uses = (lambda nlp: nlp("a"), lambda nlp: nlp.initialize(), lambda nlp: nlp.to_bytes())
    for use in uses if kind == "NaN" else uses[:1]:
        with pytest.raises(ValueError, match=expected):
            use(load(folder))


@pytest.mark.parametrize("file", ["tokenizer.json", "model.safetensors"])
def test_damaged_and_missing_files(folder, file):
    content = (folder / file).read_bytes()
    (folder / file).unlink()
    with pytest.raises(ValueError, match=f"static has no {file}"):
        load(folder)("a")
    (folder / file).write_bytes(content[:200])
    with pytest.raises((ValueError, OSError), match=r"static|" + file):
        load(folder)("a")


def test_prompts_widths_and_no_table_are_refused(folder, tiny_bert, examples):
    nlp = load(tiny_bert)
    for use in (
        lambda: nlp("a"),
        lambda: nlp.get_pipe("sbert").encode(["a"]),
        lambda: nlp.update(examples(nlp)),
    ):
        with pytest.raises(ValueError, match=r"has no table yet.*nlp\.initialize\(\)"):
            use()
    with pytest.raises(ValueError, match=r"set width = 6"):
        load(folder, width=7)("a")
    nlp = load(folder)
    with pytest.raises(ValueError, match="a table of wordpieces"):
        nlp.get_pipe("sbert").predict([nlp.make_doc("a")], prompt="query: ")


def test_initialize_keeps_the_table_of_a_folder_and_draws_one_for_a_transformer(
    folder, table, tiny_bert, tokenizer
):
    nlp = load(folder)
    nlp.initialize()
    assert numpy.array_equal(reader(nlp).get_param("E"), table)
    nlp = load(tiny_bert)
    nlp.initialize()
    drawn = reader(nlp).get_param("E")
    assert drawn.shape == (tokenizer.get_vocab_size(), WIDTH)
    assert drawn.std() > 0.01
    nlp.initialize()
    assert numpy.array_equal(reader(nlp).get_param("E"), drawn), (
        "what was learned is not drawn anew"
    )


def test_the_identity_is_that_of_each_number_of_the_table_wherever_it_lies(folder, tmp_path):
    first = identify(load(folder).get_pipe("sbert")).digest
    moved = shutil.copytree(folder, tmp_path / "elsewhere")
    assert identify(load(moved).get_pipe("sbert")).digest == first
    table = load_file(moved / "model.safetensors")["embedding.weight"]
    table[3, 2] = numpy.nextafter(table[3, 2], 9, dtype="float32")
    save_file({"embedding.weight": table}, moved / "model.safetensors")
    assert identify(load(moved).get_pipe("sbert")).digest != first


def test_a_folder_by_name_is_followed(tokenizer, table, tmp_path):
    """Its Normalize and truncate_dim, also once it is saved; Dense comes with an import alone."""
    folder = write(tmp_path / "static", tokenizer, {"embedding.weight": table})
    write_modules(folder, ("StaticEmbedding", ""), ("Normalize", "1_Normalize"))
    change_json(
        folder / "config_sentence_transformers.json", truncate_dim=3, default_prompt_name="document"
    )
    nlp = load(folder)
    expected = SentenceTransformer(str(folder), device="cpu").encode(["the cat sat"])
    saved = load(folder).from_bytes(nlp.to_bytes())
    shutil.rmtree(folder)
    for pipeline in (nlp, saved):
        assert numpy.abs(pipeline.get_pipe("sbert").encode(["the cat sat"]) - expected).max() < 1e-6
        assert pipeline("").vector.shape == (3,)
        assert pipeline.get_pipe("sbert").encode([]).shape == (0, 3)
    dense = write(tmp_path / "dense", tokenizer, {"embedding.weight": table})
    write_modules(dense, ("StaticEmbedding", ""), ("Dense", "1_Dense"))
    with pytest.raises(ValueError, match='sentence encoder with Dense, and normalize = "auto"'):
        load(dense)("the cat")
