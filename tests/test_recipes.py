"""The recipes of docs/ on a tiny encoder: their blocks give the right values, and pin what the
project pins.
"""

import ast
import asyncio
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy
import pytest
import spacy
from helpers.pipelines import ROOT, blocks
from sklearn.base import clone

from spacy_sbert import load_pipe
from spacy_sbert.models.resolve import PACKAGES

TEXTS = ["a man is eating food", "the cat sat on the mat", "", "someone is having a meal"]
Namespace = dict[str, Any]
Run = Callable[[str, list[str]], Namespace]


def text(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, tiny_bert: Path) -> Iterator[Run]:
    """Run blocks of a page, with a tiny encoder as the default one, as a module whose classes can
    be pickled.
    """
    model = f'"model": {{"name": {str(tiny_bert)!r}}}'
    tiny = {
        "all-MiniLM-L6-v2": str(tiny_bert),
        'add_pipe("sbert")': f'add_pipe("sbert", config={{{model}}})',
        'add_pipe("sbert", config={"loss"': f'add_pipe("sbert", config={{{model}, "loss"',
    }

    def run(name: str, blocks: list[str]) -> Namespace:
        module = ModuleType(f"page_{name.replace('-', '_')}")
        patch.setitem(sys.modules, module.__name__, module)
        for block in blocks:
            for default, replacement in tiny.items():
                block = block.replace(default, replacement)
            exec(compile(block, f"{name}.md", "exec"), module.__dict__)
        return module.__dict__

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("recipes"))
        yield run


@pytest.fixture(scope="module")
def service(run: Run) -> Iterator[tuple[Any, Namespace]]:
    testclient = pytest.importorskip("fastapi.testclient")
    found = run("service", blocks(text("service"))[:1])
    with testclient.TestClient(found["app"]) as client:
        yield client, found


def test_the_service_answers_with_the_vectors_of_its_encoder(service, tiny_bert):
    client, found = service
    assert client.get("/health").json() == {"status": "ok"}
    answer = client.post("/encode", json={"texts": TEXTS})
    expected = load_pipe(str(tiny_bert)).encode(TEXTS)
    assert answer.status_code == 200
    assert numpy.array_equal(numpy.float32(answer.json()["vectors"]), expected)
    assert answer.json()["n_cut"] == 0
    long = client.post("/encode", json={"texts": [*TEXTS, "a man is eating food " * 100]}).json()
    assert long["n_cut"] == 1
    assert len(long["vectors"]) == len(TEXTS) + 1
    for sentence in found["ANSWERS"]:
        ((score, nearest),) = client.post("/search", json={"query": sentence}).json()
        assert nearest == sentence
        assert score == pytest.approx(1.0, abs=1e-6)
    assert len(client.post("/search", json={"query": TEXTS[0], "k": 10}).json()) == len(
        found["ANSWERS"]
    )
    assert client.post("/search", json={"query": " "}).json() == []


NO_TEXTS = (b'["half \\ud83d"]', b"[]", b'"a"', b'["%b"]' % (b"a" * 5001))
REFUSED = [("encode", b'{"texts": %b}' % texts) for texts in NO_TEXTS]
REFUSED += [
    ("search", body) for body in (b'{"query": "half \\ud83d"}', b'{"query": "a", "k": 0}', b"{")
]


def test_the_service_refuses_what_cannot_be_encoded(service):
    for address, body in REFUSED:
        answer = service[0].post(
            f"/{address}", content=body, headers={"Content-Type": "application/json"}
        )
        assert answer.status_code == 422
        assert len(answer.content) < 500
        assert answer.json()["detail"][0]["msg"]


def test_batches_of_the_service_give_each_request_its_own_vector(run, tiny_bert):
    pytest.importorskip("fastapi")
    found = run(
        "service",
        [
            blocks(text("service"))[0],
            *blocks(text("service"))[-1].split("\n\n\nasync def main")[:1],
        ],
    )
    texts = [f"a man is eating {'food ' * (i % 7)}" for i in range(100)]
    calls: list[int] = []

    class Counting:
        encoder = load_pipe(str(tiny_bert))

        def encode(self, texts: list[str]) -> numpy.ndarray:
            calls.append(len(texts))
            return self.encoder.encode(texts)

    async def main() -> list[Any]:
        batches = found["Batches"](Counting(), size=32)
        worker = asyncio.create_task(batches.run())
        vectors = await asyncio.gather(*map(batches.encode, texts))
        failed = await asyncio.gather(*map(batches.encode, [1, "the cat"]), return_exceptions=True)
        vectors.append(await batches.encode("the cat"))
        worker.cancel()
        return [vectors, failed]

    vectors, failed = asyncio.run(main())
    assert numpy.allclose(vectors, Counting.encoder.encode([*texts, "the cat"]), atol=1e-6)
    assert calls[:4] == [32, 32, 32, 4]
    assert all(isinstance(one, Exception) for one in failed)


def test_the_dockerfile_pins_the_torch_of_the_constraints_and_checks_its_encoder(run):
    pinned = re.findall(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    for name in ("containers", "../README"):
        assert set(re.findall(r"torch==([\d.]+)", text(name))) == set(pinned), name
    (dockerfile,) = blocks(text("containers"), "dockerfile")
    (check,) = re.findall(r"^RUN python -c '(.*)'$", dockerfile, re.MULTILINE)
    assert run("containers", [check])["nlp"].pipe_names == ["sbert"]
    (address,) = re.findall(
        r"^  CMD python .*http://localhost:8000(/\w+)", dockerfile, re.MULTILINE
    )
    assert f'@app.get("{address}")' in text("service")
    assert "EXPOSE 8000" in dockerfile
    assert "HF_HUB_OFFLINE=1" in dockerfile
    assert dockerfile.index("ENV HF_HUB_OFFLINE") < dockerfile.index("RUN python")
    (package,) = PACKAGES.values()
    page = text("encoders")
    assert package.sha256 in page
    assert package.distribution in page


@pytest.fixture(scope="module")
def frames(run: Run) -> Namespace:
    pytest.importorskip("pandas")
    return run("data-frames", blocks(text("data-frames")))


def test_sentence_vectors_in_scikit_learn(frames, tiny_bert):
    step = frames["SentenceVectors"](str(tiny_bert)).fit(TEXTS)
    expected = load_pipe(str(tiny_bert)).encode(TEXTS)
    assert numpy.array_equal(step.transform(TEXTS), expected)
    data = pickle.dumps(step)
    assert len(data) < 1000
    assert numpy.array_equal(pickle.loads(data).transform(TEXTS), expected)
    assert numpy.array_equal(clone(step).fit_transform(TEXTS), expected)
    model = frames["model"]
    frame = frames["frame"]
    shuffled = frame.iloc[[3, 0, 2, 1]]
    assert numpy.array_equal(
        pickle.loads(pickle.dumps(model)).predict(shuffled), model.predict(frame)[[3, 0, 2, 1]]
    )
    frames["columns"].set_output(transform="pandas")
    table = frames["columns"].fit_transform(shuffled)
    assert table.index.tolist() == [3, 0, 2, 1]
    assert list(table)[:2] == ["text__v0", "text__v1"]
    assert numpy.allclose(table.iloc[:, :-1], step.transform(shuffled["text"]), atol=1e-6)


def test_rows_of_data_frames_keep_their_vectors(frames):
    frame = frames["frame"]
    sbert = frames["sbert"]
    for row, vector in zip(frames["joined"].itertuples(index=False), frame["vector"], strict=True):
        assert numpy.allclose(row[4:], sbert.encode([row.text])[0], atol=1e-6)
        assert numpy.allclose(vector, sbert.encode([row.text])[0], atol=1e-6)
    assert frames["found"]["score"].is_monotonic_decreasing
    assert set(frames["found"]["id"]) <= set(frame["id"])


@pytest.fixture(scope="module")
def few_shot(run: Run) -> Namespace:
    return run("few-shot", blocks(text("few-shot")))


def test_few_shot_classes_load_in_another_process(few_shot):
    """The folder that the page saves, without code of the page."""
    expected = spacy.load("support")(TEXTS[0]).cats
    assert sorted(expected) == ["cards", "parcels", "refunds"]
    assert sum(expected.values()) == pytest.approx(1.0)
    code = f"import spacy; print(spacy.load({str(Path('support').resolve())!r})({TEXTS[0]!r}).cats)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert ast.literal_eval(loaded.stdout) == pytest.approx(expected, abs=1e-6)
    assert few_shot["textcat"].labels == ("cards", "parcels", "refunds")
