"""The same folder on Ray: local clusters that lose a node or their driver, and a store that speaks
S3.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy
import pytest
import spacy

from spacy_sbert.bulk import PartVectors, encode_dataset
from spacy_sbert.ray import Cluster, SbertBatches

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
ray = pytest.importorskip("ray")
PARTS = 12
ROWS = 400
WINDOW = 16


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for number in range(PARTS):
        texts = [
            f"The cat sat on {number} mats and {i} dogs ran fast.\n" for i in range(ROWS + number)
        ]
        (folder / f"part{number:02}.txt").write_text("".join(texts))
    return folder


@pytest.fixture(scope="module")
def expected(source, pipeline, tmp_path_factory):
    """What one process makes of it."""
    folder = tmp_path_factory.mktemp("expected") / "out"
    encode_dataset(source, folder, pipeline=pipeline, window=WINDOW)
    return contents(folder)


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_local_cluster(source, pipeline, expected, tmp_path):
    options = {"pipeline": pipeline, "engine": Cluster(workers=(1, 2)), "window": WINDOW}
    report = encode_dataset(source, tmp_path / "out", **options)
    assert (report.parts, report.done, report.failed) == (PARTS, 0, {})
    assert contents(tmp_path / "out") == expected
    before = times(tmp_path / "out")
    assert encode_dataset(source, tmp_path / "out", **options).done == PARTS
    assert times(tmp_path / "out") == before
    with pytest.raises(ValueError, match="dtype was float32, now float16"):
        encode_dataset(source, tmp_path / "out", **options, dtype="float16")


CODE = """
import sys
from spacy_sbert.bulk import encode_dataset
from spacy_sbert.ray import Cluster
source, target, pipeline, scratch, address, fewest, most = sys.argv[1:]
engine = Cluster(address=address or None, workers=(int(fewest), int(most)))
report = encode_dataset(
    source, target, pipeline=pipeline, scratch=scratch, window=16, engine=engine
)
print(report.parts, report.done, report.failed, report.rows)
"""


def driver(*arguments, **options):
    """The arguments: source, target, pipeline, scratch, address, fewest and most workers."""
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, **{"stderr": subprocess.PIPE, **options}
    )


def test_killed_node(source, pipeline, expected, tmp_path):
    """Three nodes, of which one is killed without grace while it is amid a part."""
    from ray.cluster_utils import Cluster as Nodes

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 1})
    try:
        for _ in range(2):
            nodes.add_node(num_cpus=1)
        process = driver(source, tmp_path / "out", pipeline, scratch, nodes.address, 3, 3)
        killed = kill_amid_a_part(nodes, scratch, process)
        said, errors = process.communicate(timeout=500)
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert killed, "no part was being worked on when the node was killed"
    assert process.returncode == 0, errors
    assert (
        said.splitlines()[-1] == f"{PARTS} 0 {{}} {sum(ROWS + number for number in range(PARTS))}"
    )
    assert contents(tmp_path / "out") == expected


def kill_amid_a_part(nodes, scratch, driver):
    """Kill the processes of a node other than the head when one of its workers has a part in its
    hands.
    """
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
        with suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                found += [*descendants(child), child]
    return found


def open_files(process):
    with suppress(OSError):
        return [os.readlink(file) for file in Path(f"/proc/{process}/fd").glob("*")]
    return []


def test_killed_driver(source, pipeline, expected, tmp_path):
    """At five moments; what is done is not touched again."""
    out = tmp_path / "out"
    rng = random.Random(0)
    done = {}
    arguments = (source, out, pipeline, tmp_path, "", 1, 2)
    for _ in range(5):
        process = driver(*arguments, start_new_session=True, stderr=subprocess.DEVNULL)
        wait_for_a_part(process, out, len(done))
        time.sleep(rng.random())
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        # Until its workers have noticed
        time.sleep(2)
        now = times(out)
        assert {path: now[path] for path in done} == done
        done = now
    said, errors = driver(*arguments).communicate(timeout=300)
    assert int(said.splitlines()[-1].split()[1]) == len(done), errors
    assert contents(out) == expected
    now = times(out)
    assert {path: now[path] for path in done} == done


def times(folder):
    """When each manifest and its vectors were written."""
    manifests = sorted(folder.glob("part*.json"))
    return {
        path: (path.stat().st_mtime_ns, path.with_suffix("").stat().st_mtime_ns)
        for path in manifests
    }


def wait_for_a_part(driver, folder, n):
    """Until one more is done than there were, or all are, or the driver has ended."""
    end = time.monotonic() + 120
    while (
        driver.poll() is None
        and time.monotonic() < end
        and len(list(folder.glob("part*.json"))) in range(n + 1)
    ):
        if n == PARTS:
            return
        time.sleep(0.02)


def test_s3(source, pipeline, expected, tmp_path, monkeypatch):
    from pyarrow.fs import FileSystem, LocalFileSystem, copy_files

    server = pytest.importorskip("moto.server")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    store = server.ThreadedMotoServer(port=0)
    store.start()
    try:
        _, port = store.get_host_and_port()
        address = f"?endpoint_override=http://127.0.0.1:{port}&region=us-east-1&allow_bucket_creation=true"
        places = f"s3://texts/in{address}", f"s3://texts/out{address}"
        files, bucket = FileSystem.from_uri(places[0])
        files.create_dir("texts", recursive=True)
        copy_files(
            str(source), bucket, source_filesystem=LocalFileSystem(), destination_filesystem=files
        )
        report = encode_dataset(*places, pipeline=pipeline, window=WINDOW)
        assert (report.parts, report.failed) == (PARTS, {})
        (tmp_path / "out").mkdir()
        copy_files("texts/out", str(tmp_path / "out"), source_filesystem=files)
        made = contents(tmp_path / "out")
        arrays = [name for name in expected if name.endswith(".npy")]
        assert made.keys() == expected.keys()
        assert all(made[name] == expected[name] for name in arrays)
        each = [json.loads(found["index.json"])["parts"] for found in (made, expected)]
        theirs, ours = (
            [(part["vectors"], part["digest"], part["made"]) for part in parts] for parts in each
        )
        assert theirs == ours
        there = PartVectors(places[1])
        here = PartVectors(tmp_path / "out")
        assert there.digest == here.digest
        assert numpy.array_equal(there[numpy.arange(20)], here[numpy.arange(20)])
        assert all(
            numpy.array_equal(*blocks) for blocks in zip(there.blocks(), here.blocks(), strict=True)
        )
        assert encode_dataset(*places, pipeline=pipeline, window=WINDOW).done == PARTS
    finally:
        store.stop()


def test_batches_of_a_dataset(source, pipeline):
    texts = (source / "part00.txt").read_text().splitlines()
    ray.init(num_cpus=1, log_to_driver=False)
    try:
        rows = ray.data.from_items(
            [{"text": text, "number": i} for i, text in enumerate(texts[:40])]
        )
        found = rows.map_batches(
            SbertBatches,
            fn_constructor_kwargs={"pipeline": str(pipeline)},
            batch_size=8,
            concurrency=1,
        ).take_all()
    finally:
        ray.shutdown()
    alone = spacy.load(pipeline).get_pipe("sbert").encode(texts[:40])
    found.sort(key=lambda row: row["number"])
    assert numpy.abs(numpy.stack([row["vector"] for row in found]) - alone).max() < 1e-6
    with pytest.raises(ValueError, match=r"A batch has no column 'text', but other"):
        SbertBatches(str(pipeline))({"other": numpy.array(["a"])})
