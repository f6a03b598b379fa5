"""Folders of files to folders of vectors: the bytes of single files, each shard once, and what is
refused.
"""

import sys

import numpy
import pytest
import spacy
from helpers.made_tables import write_texts
from helpers.pipelines import one_pipe

from spacy_sbert.bulk import encode_dataset, encode_file
from spacy_sbert.bulk.dataset_encoding import (
    Index,
    Job,
    ShardEncoder,
    ShardManifest,
    ShardResult,
    WorkerConfig,
)
from spacy_sbert.bulk.dataset_folder import RemoteFolder
from spacy_sbert.bulk.file_encoding import Encoding
from spacy_sbert.ray import _Worker
from spacy_sbert.ray import encode_dataset as on_machines

pyarrow = pytest.importorskip("pyarrow")
WINDOW = 4
N_FILES = 6
N_ROWS = sum(range(6))


@pytest.fixture
def source(tmp_path):
    """Files of other texts each, in two folders, one of them empty."""
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    for number in range(N_FILES):
        name = f"part{number}.txt" if number % 2 else f"part{number}.jsonl"
        place = folder / "deep" if number % 3 == 0 else folder
        write_texts(place / name, [f"The cat sat {number} {i}." for i in range(number)])
    (folder / "_SUCCESS").write_text("")
    (folder / ".hidden").write_text("")
    return folder


@pytest.fixture
def encode(pipeline, source, tmp_path):
    def run(target="out", **options):
        return encode_dataset(
            source, tmp_path / target, **{"pipeline": pipeline, "window": WINDOW, **options}
        )

    return run


def contents(folder, but=("index.json",)):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in but
    }


def test_parts_equal_single_files(encode, source, pipeline, tmp_path):
    report = encode()
    assert (report.parts, report.done, report.failed, report.rows) == (N_FILES, 0, {}, N_ROWS)
    pipe = spacy.load(pipeline).get_pipe("sbert")
    for path in source.rglob("part*"):
        single = tmp_path / "single.npy"
        encode_file(pipe, path, single, window=WINDOW, overwrite=True)
        name = str(path.relative_to(source))
        assert (tmp_path / "out" / f"{name}.npy").read_bytes() == single.read_bytes()
        manifest = RemoteFolder(str(tmp_path / "out")).read(f"{name}.npy.json", ShardManifest)
        assert manifest.made.rows == len(numpy.load(single))
        assert manifest.bytes == single.stat().st_size
    index = RemoteFolder(str(tmp_path / "out")).read("index.json", Index)
    assert sum(part.made.rows for part in index.parts) == N_ROWS
    assert index.parts[-1].made.width == 16
    assert [part.vectors for part in index.parts] == sorted(part.vectors for part in index.parts)
    assert {part.vectors for part in index.parts} == {
        str(p.relative_to(source)) + ".npy" for p in source.rglob("part*")
    }


def test_second_run(encode, tmp_path):
    encode()
    out = tmp_path / "out"
    before = {path: path.stat().st_mtime_ns for path in out.rglob("part*")}
    expected = contents(out)
    (out / "part1.txt.npy.json").unlink()
    (out / "deep" / "part3.txt.npy").write_bytes(b"half")
    manifest = (out / "part5.txt.npy.json").read_text()
    # Its checksum is wrong
    (out / "part5.txt.npy.json").write_text(manifest.replace('"rows": 5', '"rows": 6'))
    report = encode()
    assert (report.done, report.parts, report.rows) == (N_FILES - 3, N_FILES, N_ROWS)
    assert contents(out) == expected
    again = {
        path.name.split(".")[0]
        for path in out.rglob("part*")
        if path.stat().st_mtime_ns != before.get(path)
    }
    assert again == {"part1", "part3", "part5"}


def test_shards(encode, tmp_path):
    encode("whole")
    reports = [encode("shards", shard="1/2"), encode("shards", shard="2/2")]
    assert [report.parts for report in reports] == [3, 3]
    assert contents(tmp_path / "shards", but=()) == contents(tmp_path / "whole", but=())


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b", "1/0", ""])
def test_bad_shards(encode, shard):
    with pytest.raises(ValueError, match=f"'{shard}'"):
        encode(shard=shard)


def test_bad_part(encode, source, tmp_path):
    (source / "part5.txt").write_bytes(b"good\nbad \xff\n")
    (tmp_path / "scratch").mkdir()
    report = encode(scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == []
    assert list(report.failed) == ["part5.txt"]
    assert "part5.txt, line 2" in report.failed["part5.txt"]
    assert str(tmp_path) not in report.failed["part5.txt"]
    assert len(list((tmp_path / "out").rglob("part*.npy"))) == N_FILES - 1
    assert not (tmp_path / "out" / "index.json").exists()
    (source / "part5.txt").write_text("good\nbetter\n")
    report = encode()
    assert (report.done, report.failed) == (N_FILES - 1, {})
    assert (tmp_path / "out" / "index.json").exists()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("dtype", "float16", "dtype was float32, now float16"),
        ("precision", "bfloat16", "precision was float32, now bfloat16"),
        ("output", ".parquet", r"output was \.npy, now \.parquet"),
        ("truncate_dim", 8, "now 8"),
    ],
)
def test_other_options_are_refused(encode, tmp_path, option, value, message):
    encode()
    before = contents(tmp_path / "out", but=())
    with pytest.raises(ValueError, match=message):
        encode(**{option: value})
    assert contents(tmp_path / "out", but=()) == before


def test_another_encoder_is_refused(encode, tiny_bert, tmp_path):
    encode()
    before = contents(tmp_path / "out", but=())
    one_pipe(tiny_bert, pooling="max").to_disk(tmp_path / "other")
    with pytest.raises(ValueError, match=r"encoder \(SHA-256\) was \w+, now"):
        encode(pipeline=tmp_path / "other")
    assert contents(tmp_path / "out", but=()) == before
    report = encode(pipeline=tmp_path / "other", restart=True)
    assert (report.done, report.parts) == (0, N_FILES)


def test_index_of_changed_jobs(encode, source, tmp_path):
    """It is removed until all shards are of one job, and of the files that are there."""
    index = tmp_path / "out" / "index.json"
    encode()
    assert index.exists()
    encode(dtype="float16", restart=True, shard="1/2")
    assert not index.exists()
    encode(dtype="float16", restart=True, shard="2/2")
    assert index.exists()
    (source / "part1.txt").write_text("Something else.\nAnd more.\n")
    assert list(encode(dtype="float16").failed) == ["part1.txt"]
    assert not index.exists()
    assert encode(dtype="float16", restart=True).failed == {}
    assert index.exists()


def test_row_groups(pipeline, tmp_path):
    from pyarrow.parquet import read_table, write_table

    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "big.parquet"
    texts = [f"The dog ran {i}." for i in range(10)]
    table = pyarrow.table({"name": list(range(10)), "text": texts, "other": list(range(10))})
    write_table(table, file, row_group_size=4)
    options = {"pipeline": pipeline, "output": ".parquet", "id_column": "name", "with_text": True}
    report = encode_dataset(tmp_path / "in", tmp_path / "out", large=1, **options)
    assert (report.parts, report.rows) == (3, 10)
    assert encode_dataset(tmp_path / "in", tmp_path / "whole", **options).parts == 1
    names = [f"big.parquet.0000{i}.parquet" for i in range(3)]
    assert sorted(path.name for path in (tmp_path / "out").glob("big*.parquet")) == names
    found = pyarrow.concat_tables([read_table(tmp_path / "out" / name) for name in names])
    assert found["id"].to_pylist() == list(range(10))
    assert found["text"].to_pylist() == texts
    expected = read_table(tmp_path / "whole" / "big.parquet.parquet")
    assert (
        numpy.abs(numpy.array(found["vector"].to_pylist()) - expected["vector"].to_pylist()).max()
        < 1e-6
    )
    write_table(pyarrow.table({"text": ["one", "two", None, "four"]}), file, row_group_size=2)
    report = encode_dataset(tmp_path / "in", tmp_path / "bad", pipeline=pipeline, large=1)
    assert list(report.failed) == ["big.parquet.00001"]
    assert "big.parquet, row group 1, line 1" in report.failed["big.parquet.00001"]


@pytest.mark.parametrize(
    ("name", "message"),
    [("empty", "empty"), ("none", "none"), ("in", "README.md"), ("nothing://there", "there")],
)
def test_refused_sources(source, pipeline, tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    (source / "README.md").write_text("read me")
    given = name if "://" in name else tmp_path / name
    with pytest.raises(ValueError, match=message):
        encode_dataset(given, tmp_path / "out", pipeline=pipeline)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dtype": "float8"}, ValueError, "dtype"),
        ({"window": 0}, ValueError, "window"),
        ({"colour": "red"}, TypeError, "colour"),
        ({"with_text": True}, ValueError, "text"),
    ],
)
def test_options_are_refused_before_any_work(source, tmp_path, options, error, message):
    with pytest.raises(error, match=message):
        encode_dataset(source, tmp_path / "out", pipeline="none", **options)
    assert not (tmp_path / "out").exists()


def test_ray_that_is_not_installed(source, pipeline, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ImportError, match=r"spacy-sbert\[ray\]"):
        on_machines(source, tmp_path / "out", pipeline=pipeline)
    assert not (tmp_path / "out").exists()


def test_warning_about_truncation(pipeline, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "in" / name).write_text("the cat " * 30 + "\ndog\n")
    with pytest.warns(UserWarning, match=r"\[sbert-bulk-cut\] 2 of 4 texts") as warned:
        report = encode_dataset(tmp_path / "in", tmp_path / "out", pipeline=pipeline)
    assert len(warned) == 1
    assert report.cut == 2


def test_worker(source, pipeline, tmp_path):
    """On Ray; one with another device, as a GPU among others without one, is refused."""
    folders = RemoteFolder(str(source)), RemoteFolder(str(tmp_path / "out"))
    config = WorkerConfig(*folders, ".npy", Encoding(), str(pipeline))
    made_of = ShardEncoder(config).made_of()
    worker = _Worker(config, Job(made_of=made_of).model_dump_json())
    shard = config.source.shards()[-1]
    state = (source / shard.path).stat()
    assert (shard.size, shard.modified) == (state.st_size, state.st_mtime_ns)

    def encode(shard):
        return ShardResult.model_validate_json(worker({"shard": shard.model_dump_json()})["result"])

    for is_new in (True, False):
        found = encode(shard)
        assert (found.part, found.is_new, found.failed) == (shard, is_new, "")
        assert found.manifest.made.rows == int(shard.path[4])
    (source / shard.path).write_bytes(b"\xff")
    found = encode(shard.model_copy(update={"size": 1}))
    assert found.failed
    assert found.manifest is None
    with pytest.raises(ValueError, match="device was NVIDIA H100, now "):
        _Worker(config, Job(made_of={**made_of, "device": "NVIDIA H100"}).model_dump_json())


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (source, place)
        for source in ("texts", "link")
        for place in ("texts/vectors", "texts", "texts/sub/../vectors", "link/vectors")
    ]
    + [("texts", "texts/away")],
)
def test_a_target_in_the_source_is_refused(tmp_path, source, place):
    """Before anything is loaded, through a link, too; its vectors would be read as texts by the
    next call.
    """
    (tmp_path / "texts" / "sub").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("A man.\n")
    (tmp_path / "link").symlink_to(tmp_path / "texts")
    (tmp_path / "texts" / "away").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"The target .* is in the source"):
        encode_dataset(tmp_path / source, tmp_path / place, pipeline="no pipeline")
    assert sorted(path.name for path in (tmp_path / "texts").iterdir()) == ["a.txt", "away", "sub"]
