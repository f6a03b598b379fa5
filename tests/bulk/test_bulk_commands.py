"""The commands `encode` and `index`, and `search` in what they write.

test_file_encoding_resume.py kills the first.
"""

import json
from functools import partial
from itertools import islice, permutations

import numpy
import pytest
import spacy
from helpers.invoking import said as run

from spacy_sbert.bulk import file_encoding as module
from spacy_sbert.bulk import load_pipe
from spacy_sbert.bulk.loading import find_pipe
from spacy_sbert.models.engine.torch_backend import resolve_precision
from spacy_sbert.pipeline.sentence_model import find_transformer
from spacy_sbert.search import ivfpq

encode = partial(run, "encode")


@pytest.fixture(scope="module")
def pipeline(tiny_bert, tmp_path_factory):
    """Its pipe has a name of its own."""
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert", name="encoder", config={"model": {"name": str(tiny_bert)}})
    folder = tmp_path_factory.mktemp("cli") / "nlp"
    nlp.to_disk(folder)
    return folder


def test_encode(pipeline, sbert, texts, write_texts, tmp_path):
    path = write_texts("a.csv", texts)
    output = tmp_path / "out.npy"
    options = ["--pipeline", pipeline, "--pipe", "encoder"]
    said = encode(
        path, output, *options, "--column", 1, "--no-header", "--dtype", "float16", "--window", 3
    )
    assert "Wrote 9 vectors of width 16" in said
    assert "3 are zero: their texts are empty" in said
    assert "9/9" in said, "a bar"
    expected = sbert.encode(["text", *texts])
    assert numpy.allclose(numpy.load(output), expected, rtol=2**-10, atol=1e-5)
    said = encode(path, output, *options, "--quiet", code=1)
    assert "is there already" in said
    assert "Traceback" not in said
    said = encode(path, output, *options, "--quiet", "--overwrite")
    assert "Wrote 8 vectors" in said
    assert "9/9" not in said


def test_refused(pipeline, texts, write_texts, tmp_path):
    path = write_texts("a.csv", texts)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("One.\n")
    for source, target, options, message in (
        (path, "out.npy", ["--pipe", "sbert"], "encoder"),
        (path, "out.npy", ["--gpu-ids", "0,x"], "--gpu-ids 0,x"),
        (path, "out.npy", ["--gpu-id", 0, "--gpu-ids", "0,1"], "--gpu-id"),
        (path, "out.npy", ["--column", "body"], "a.csv, line 1"),
        (path, "out.npy", ["--shard", "1/2"], "--shard 1/2"),
        (folder, "out", ["--shard", "3/2"], "3/2"),
        (folder, "out", ["--overwrite"], "--overwrite"),
        (folder, "out", ["--workers", "1,2"], "--engine ray"),
        (folder, "out", ["--engine", "ray", "--workers", "2,1"], "--workers 2,1"),
        (folder, "out", ["--engine", "ray", "--num-cpus", "0"], "num_cpus"),
        (folder, "out", ["--engine", "spark"], "spark"),
    ):
        assert message in encode(
            source, tmp_path / target, "--pipeline", pipeline, *options, code=1
        )
        assert not list(tmp_path.glob("out*"))


def test_forms_of_the_command(pipeline, sbert, tmp_path):
    """`encode PIPELINE INPUT OUTPUT`, as the other commands have it, and `encode INPUT OUTPUT`."""
    texts = ["the cat sat", "a dog ran", "he"]
    paths = (tmp_path / "texts.txt", tmp_path / "out.npy")
    paths[0].write_text("\n".join(texts) + "\n")
    for given, expected, message in (
        ([pipeline, *paths, "--pipeline", pipeline], 1, "--pipeline"),
        ([], 2, "no OUTPUT"),
        ([paths[0]], 2, "no OUTPUT"),
    ):
        assert message in encode(*given, code=expected)
        assert not paths[1].exists()
    for form in [
        (pipeline, *paths, "--pipe", "encoder"),
        (*paths, "-p", pipeline),
        (pipeline, *paths, "--gpu-id", -1),
    ]:
        assert "Wrote 3 vectors" in encode(*form, "--overwrite", "--gpu-ids", "")
        assert numpy.allclose(numpy.load(paths[1]), sbert.encode(texts), atol=1e-6)


def test_stopped_and_resumed(pipeline, texts, write_texts, tmp_path, monkeypatch):
    path = write_texts("a.txt", texts)
    output = tmp_path / "out.npy"
    options = ["--pipeline", pipeline, "--pipe", "encoder", "--window", 3, "--quiet"]
    whole = module.encode_chunks

    def stopped(*args, **kwargs):
        yield next(whole(*args, **kwargs))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "encode_chunks", stopped)
        said = encode(path, output, *options, code=130)
    assert "Run the same command again to go on" in said
    assert not output.exists()
    said = encode(path, output, *options)
    assert "Wrote 8 vectors" in said
    assert "3 of them were there from an interrupted run" in said


def test_loaded_pipes(pipeline):
    """The precision is that of the config unless it is given; without a pipeline it is the default
    encoder.
    """
    for given, expected in (
        (None, "float32"),
        ("bfloat16", "bfloat16"),
        ("auto", resolve_precision("auto", "cpu")),
    ):
        pipe = load_pipe(str(pipeline), name="encoder", precision=given)
        assert find_transformer("encoder", pipe.model).shim.precision == expected
    pipe = load_pipe(name="mini")
    assert pipe.name == "mini"
    assert pipe.encode(["A man is eating."]).shape == (1, 384)


def test_members_of_a_combination(pipeline, tiny_bert):
    """Its vectors are not those of the pipeline's Docs."""
    nlp = spacy.load(pipeline)
    nlp.add_pipe(
        "sbert", name="second", config={"model": {"name": str(tiny_bert), "pooling": "max"}}
    )
    nlp.add_pipe("sbert_meta", config={"method": "conc"})
    with pytest.raises(ValueError, match=r"'sbert_meta' .* encoder, second\..*--pipe"):
        find_pipe(nlp)
    assert find_pipe(nlp, "encoder").name == "encoder"


def test_a_folder_in_shards(pipeline, tmp_path):
    folder = tmp_path / "in"
    out = tmp_path / "out"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.txt").write_text("One.\nTwo.\n\n")
    options = ["--pipeline", pipeline, "--quiet", "--dtype", "float16"]
    said = encode(folder, out, *options, "--shard", "1/2")
    assert f"Wrote 6 vectors of 2 of 2 files to {out}" in said
    assert "2 vectors are zero" in said
    said = encode(folder, out, *options)
    assert "Wrote 9 vectors of 3 of 3 files" in said
    assert "2 of these files were there" in said
    assert numpy.load(out / "b.txt.npy").dtype == "float16"
    (folder / "b.txt").write_bytes(b"bad \xff\n")
    said = encode(folder, tmp_path / "other", *options, "--output-format", "parquet", code=1)
    assert "No vectors of b.txt" in said
    assert "b.txt, line 1" in said
    assert "2 of 3 files" in said


WORDS = ["the", "cat", "sat", "on", "mat", "dog", "ran", "he", "man", "food"]
ROW = 123
QUERY = " ".join(list(islice(permutations(WORDS, 5), ROW + 1))[-1])


@pytest.fixture
def search(tmp_path):
    def found(folder, *options, code=0):
        output = tmp_path / "found.jsonl"
        arguments = (
            tmp_path / "nlp",
            folder,
            QUERY,
            "-k",
            3,
            "--output",
            output,
            "--overwrite",
            *options,
        )
        said = run("search", *arguments, code=code)
        return said if code else [json.loads(line) for line in output.read_text().splitlines()]

    return found


def test_encode_index_and_search(make_nlp, search, tmp_path, monkeypatch):
    # FAISS trains on less, and says so
    monkeypatch.setattr(ivfpq, "_MIN_ROWS", 600)
    make_nlp().to_disk(tmp_path / "nlp")
    (tmp_path / "texts").mkdir()
    for number in range(2):
        lines = [" ".join(words) + "\n" for words in islice(permutations(WORDS, 4 + number), 300)]
        (tmp_path / "texts" / f"{number}.txt").write_text("".join(lines))
    options = ["--pipeline", tmp_path / "nlp", "--with-text", "--quiet"]
    run("encode", tmp_path / "texts", tmp_path / "vectors", *options, "--output-format", "parquet")
    exact = search(tmp_path / "vectors")
    assert (exact[0]["file"], exact[0]["row"], exact[0]["text"], exact[0]["id"]) == (
        "1.txt.parquet",
        ROW,
        QUERY,
        None,
    )
    assert exact[0]["score"] == pytest.approx(1, abs=1e-6)

    said = run(
        *("index", "build", tmp_path / "vectors", tmp_path / "index"),
        *("--lists", 8, "--bytes", 16, "--quiet"),
    )
    assert "Wrote an index of 600 vectors" in said
    found = search(tmp_path / "index")
    assert found[0] == exact[0]
    assert all(one["score"] > 0.9 for one in found)
    (tmp_path / "vectors").rename(tmp_path / "moved")
    assert "is no folder of vectors that is whole" in search(tmp_path / "index", code=1)
    assert search(tmp_path / "index", "--vectors", tmp_path / "moved") == found
    assert "--vectors is of a file of texts" in search(tmp_path / "moved", "--vectors", "x", code=1)
    assert "--kind is of a file of texts" in search(tmp_path / "index", "--kind", "flat", code=1)
