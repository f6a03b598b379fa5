"""The same folder on Ray: local clusters that lose a node or their driver, and a store that speaks S3."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy
import pytest
import spacy

from spacy_sbert.bulk import PartVectors, encode_dataset
from spacy_sbert.ray import Cluster, SbertBatches

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray = pytest.importorskip("ray")
PARTS, ROWS = 12, 400
LOCAL = Cluster(workers=(1, 2))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for number in range(PARTS):
        texts = [f"The cat sat on {number} mats and {i} dogs ran fast.\n" for i in range(ROWS + number)]
        (folder / f"part{number:02}.txt").write_text("".join(texts))
    return folder


@pytest.fixture(scope="module")
def expected(source, pipeline, tmp_path_factory):
    """What one process makes of it."""
    folder = tmp_path_factory.mktemp("expected") / "out"
    encode_dataset(source, folder, pipeline=pipeline)
    return contents(folder)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def vectors_in(made):
    return {name: data for name, data in made.items() if name.endswith(".npy")}


def test_local_cluster(source, pipeline, expected, tmp_path):
    report = encode_dataset(source, tmp_path / "out", pipeline=pipeline, engine=LOCAL)
    assert (report.parts, report.done, report.failed) == (PARTS, 0, {})
    assert contents(tmp_path / "out") == expected
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part*")}
    assert encode_dataset(source, tmp_path / "out", pipeline=pipeline, engine=LOCAL).done == PARTS
    assert times == {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("part*")}
    with pytest.raises(ValueError, match="dtype was float32, now float16"):
        encode_dataset(source, tmp_path / "out", pipeline=pipeline, engine=LOCAL, dtype="float16")


def test_bad_part(source, pipeline, expected, tmp_path):
    texts = shutil.copytree(source, tmp_path / "in")
    (texts / "part07.txt").write_bytes(b"good\nbad \xff\n")
    report = encode_dataset(texts, tmp_path / "out", pipeline=pipeline, engine=LOCAL)
    assert list(report.failed) == ["part07.txt"] and "part07.txt, line 2" in report.failed["part07.txt"]
    assert vectors_in(contents(tmp_path / "out")) == {
        name: data for name, data in vectors_in(expected).items() if "part07" not in name
    }


def test_killed_node(source, pipeline, expected, tmp_path, monkeypatch):
    """Three nodes, of which one is killed without grace while it is amid a part."""
    from ray.cluster_utils import Cluster as Nodes

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            nodes.add_node(num_cpus=1)
        code = (
            "import sys\nfrom spacy_sbert.bulk import encode_dataset\nfrom spacy_sbert.ray import Cluster\n"
            "report = encode_dataset(*sys.argv[1:3], pipeline=sys.argv[3], scratch=sys.argv[4], window=16,\n"
            "    engine=Cluster(address=sys.argv[5], workers=(3, 3)))\n"
            "print(report.parts, report.done, report.failed, report.rows)\n"
        )
        arguments = [source, tmp_path / "out", pipeline, scratch, nodes.address]
        driver = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        killed = kill_amid_a_part(nodes, scratch, driver)
        said, errors = driver.communicate(timeout=500)
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert killed, "no part was being worked on when the node was killed"
    assert driver.returncode == 0, errors
    assert said.splitlines()[-1] == f"{PARTS} 0 {{}} {sum(ROWS + number for number in range(PARTS))}"
    encode_dataset(source, tmp_path / "alone", pipeline=pipeline, window=16)
    assert contents(tmp_path / "out") == contents(tmp_path / "alone")


def kill_amid_a_part(nodes, scratch, driver):
    """Kill the processes of a node other than the head when one of its workers has a part in its hands."""
    end = time.monotonic() + 300
    while time.monotonic() < end and driver.poll() is None:
        for node in nodes.worker_nodes:
            raylet = node.all_processes["raylet"][0].process.pid
            for child in descendants(raylet):
                if any(str(scratch) in target for target in open_files(child)):
                    for process in [*descendants(raylet), raylet]:
                        os.kill(process, signal.SIGKILL)
                    return True
        time.sleep(0.005)
    return False


def descendants(process):
    found = []
    for task in Path(f"/proc/{process}/task").glob("*"):
        try:
            children = [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
        found += [one for child in children for one in (*descendants(child), child)]
    return found


def open_files(process):
    try:
        return [os.readlink(file) for file in Path(f"/proc/{process}/fd").glob("*")]
    except OSError:
        return []


def test_killed_driver(source, pipeline, expected, tmp_path):
    """At five moments; what is done is not touched again."""
    code = (
        "import sys\nfrom spacy_sbert.bulk import encode_dataset\nfrom spacy_sbert.ray import Cluster\n"
        "print(encode_dataset(*sys.argv[1:3], pipeline=sys.argv[3], engine=Cluster(workers=(1, 2))).done)\n"
    )
    command = [sys.executable, "-c", code, str(source), str(tmp_path / "out"), str(pipeline)]
    rng = random.Random(0)
    done = {}
    for _ in range(5):
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for_a_part(driver, tmp_path / "out", len(done))
        time.sleep(rng.random())
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        time.sleep(2)  # until its workers have noticed
        manifests = sorted((tmp_path / "out").glob("part*.json"))
        now = {path: (path.stat().st_mtime_ns, vectors(path).stat().st_mtime_ns) for path in manifests}
        assert {path: now[path] for path in done} == done
        done = now
    last = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert int(last.stdout.splitlines()[-1]) == len(done), last.stderr
    assert contents(tmp_path / "out") == expected
    assert {path: (path.stat().st_mtime_ns, vectors(path).stat().st_mtime_ns) for path in done} == done


def vectors(manifest):
    return manifest.with_suffix("")


def wait_for_a_part(driver, folder, n):
    """Until one more is done than there were, or all are, or the driver has ended."""
    end = time.monotonic() + 120
    while driver.poll() is None and time.monotonic() < end and len(list(folder.glob("part*.json"))) in range(n + 1):
        if n == PARTS:
            return
        time.sleep(0.02)


def test_s3(source, pipeline, expected, tmp_path, monkeypatch):
    server = pytest.importorskip("moto.server")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    store = server.ThreadedMotoServer(port=0)
    store.start()
    try:
        _, port = store.get_host_and_port()
        address = f"?endpoint_override=http://127.0.0.1:{port}&region=us-east-1&allow_bucket_creation=true"
        from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

        files, bucket = FileSystem.from_uri(f"s3://texts/in{address}")
        files.create_dir("texts", recursive=True)
        copy_files(str(source), bucket, source_filesystem=LocalFileSystem(), destination_filesystem=files)
        report = encode_dataset(f"s3://texts/in{address}", f"s3://texts/out{address}", pipeline=pipeline)
        assert (report.parts, report.failed) == (PARTS, {})
        (tmp_path / "out").mkdir()
        copy_files("texts/out", str(tmp_path / "out"), source_filesystem=files)
        made = contents(tmp_path / "out")
        assert made.keys() == expected.keys() and vectors_in(made) == vectors_in(expected)
        theirs, ours = (json.loads(found["index.json"])["parts"] for found in (made, expected))
        assert [(part["vectors"], part["digest"], part["made"]) for part in theirs] == [
            (part["vectors"], part["digest"], part["made"]) for part in ours
        ]
        there, here = PartVectors(f"s3://texts/out{address}"), PartVectors(tmp_path / "out")
        assert there.digest == here.digest and numpy.array_equal(there[numpy.arange(20)], here[numpy.arange(20)])
        assert all(numpy.array_equal(*blocks) for blocks in zip(there.blocks(), here.blocks(), strict=True))
        again = encode_dataset(f"s3://texts/in{address}", f"s3://texts/out{address}", pipeline=pipeline)
        assert again.done == PARTS
    finally:
        store.stop()


def test_batches_of_a_dataset(source, pipeline):
    texts = (source / "part00.txt").read_text().splitlines()
    ray.init(num_cpus=1, log_to_driver=False)
    try:
        rows = ray.data.from_items([{"text": text, "number": i} for i, text in enumerate(texts[:40])])
        found = rows.map_batches(
            SbertBatches, fn_constructor_kwargs={"pipeline": str(pipeline)}, batch_size=8, concurrency=1
        ).take_all()
    finally:
        ray.shutdown()
    alone = spacy.load(pipeline).get_pipe("sbert").encode(texts[:40])
    found.sort(key=lambda row: row["number"])
    assert numpy.abs(numpy.stack([row["vector"] for row in found]) - alone).max() < 1e-6
    with pytest.raises(ValueError, match=r"A batch has no column 'text', but other"):
        SbertBatches(str(pipeline))({"other": numpy.array(["a"])})
