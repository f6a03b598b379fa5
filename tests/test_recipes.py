"""The recipes of docs/ on a tiny encoder: their blocks give the right values, and pin what the
project pins.
"""

import ast
import asyncio
import base64
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
from helpers.stand_ins import stand_in_for_missing
from sklearn.base import clone

from spacy_sbert import find_sbert, load_pipe
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


def block_with(name: str, part: str) -> str:
    """The block of a page that has this part, up to an example of its use."""
    (found,) = [block for block in blocks(text(name)) if part in block]
    return found.split("\n\n\nasync def main")[0].split("\n\n\nprint(")[0]


def test_batches_of_the_service_give_each_request_its_own_vectors(run, tiny_bert):
    pytest.importorskip("fastapi")
    found = run("service", [blocks(text("service"))[0], block_with("service", "class Batches:")])
    texts = [f"a man is eating {'food ' * (i % 7)}" for i in range(100)]
    calls: list[int] = []

    class Counting:
        encoder = load_pipe(str(tiny_bert))

        def encode(self, texts: list[str]) -> numpy.ndarray:
            calls.append(len(texts))
            return self.encoder.encode(texts)

    async def main() -> list[Any]:
        batches = found["Batches"](Counting(), size=32, limit=100)
        worker = asyncio.create_task(batches.run())
        requests = [texts[:1], texts[1:3], *([text] for text in texts[3:])]
        answers = await asyncio.gather(*map(batches.encode, requests))
        requests = [[1], ["the cat"]]
        failed = await asyncio.gather(*map(batches.encode, requests), return_exceptions=True)
        answers.append(await batches.encode(["the cat"]))
        with pytest.raises(asyncio.QueueFull):
            await batches.encode([*texts, "the cat"])
        assert batches.waiting.empty()
        worker.cancel()
        return [answers, failed]

    answers, failed = asyncio.run(main())
    assert [len(vectors) for vectors in answers[:3]] == [1, 2, 1]
    expected = Counting.encoder.encode([*texts, "the cat"])
    assert numpy.allclose(numpy.concatenate(answers), expected, atol=1e-6)
    assert calls[:4] == [32, 32, 32, 4]
    assert all(isinstance(one, Exception) for one in failed)


WORDS = ["a man is eating food", "the cat sat on the mat"]


@pytest.fixture(scope="module")
def openai_service(run: Run) -> Iterator[tuple[Any, Namespace]]:
    testclient = pytest.importorskip("fastapi.testclient")
    parts = ("class Batches:", "openai_app = FastAPI")
    first = blocks(text("service"))[0]
    found = run("service", [first, *(block_with("service", part) for part in parts)])
    with testclient.TestClient(found["openai_app"]) as client:
        yield client, found


@pytest.fixture
def ask(openai_service: tuple[Any, Namespace]) -> Callable[..., Any]:
    client, found = openai_service

    def ask(texts: object, **fields: object) -> Any:
        return client.post(
            "/v1/embeddings", json={"model": found["MODEL"], "input": texts, **fields}
        )

    return ask


def test_v1_embeddings(ask, openai_service, tiny_bert):
    encoder = load_pipe(str(tiny_bert))
    expected = encoder.encode(WORDS)
    answer = ask(WORDS)
    assert answer.status_code == 200
    found = answer.json()
    assert (found["object"], found["model"]) == ("list", openai_service[1]["MODEL"])
    assert [(one["object"], one["index"]) for one in found["data"]] == [
        ("embedding", 0),
        ("embedding", 1),
    ]
    assert numpy.allclose([one["embedding"] for one in found["data"]], expected, atol=1e-6)
    # "[CLS]" and "[SEP]" of each text too
    n_wordpieces = int(encoder.text_encoder().tokenize(WORDS).lengths.sum())
    assert n_wordpieces == 5 + 6 + 4
    assert found["usage"] == {"prompt_tokens": n_wordpieces, "total_tokens": n_wordpieces}
    # One text
    (alone,) = ask(WORDS[0]).json()["data"]
    assert numpy.allclose(alone["embedding"], expected[0], atol=1e-6)
    # 32-bit floats
    (encoded, _) = ask(WORDS, encoding_format="base64").json()["data"]
    decoded = numpy.frombuffer(base64.b64decode(encoded["embedding"]), dtype="<f4")
    assert numpy.allclose(decoded, expected[0], atol=1e-6)
    # The first dimensions, of length 1 again
    cut = numpy.array([one["embedding"] for one in ask(WORDS, dimensions=3).json()["data"]])
    lengths = numpy.linalg.norm(expected[:, :3], axis=1, keepdims=True)
    assert numpy.allclose(cut, expected[:, :3] / lengths, atol=1e-6)


LONG = "a man is eating food " * 100
REFUSALS = {
    "empty": ("", {}, 400, "input", None, "no word"),
    "blank, the second": (["a man", " "], {}, 400, "input", None, "input.1:"),
    "no texts": ([], {}, 400, "input", None, "at least 1"),
    "too many texts": (["a man"] * 257, {}, 400, "input", None, "at most 256"),
    "too many characters": ("a" * 20_001, {}, 400, "input", None, "at most 20000"),
    "token ids": ([[1, 2]], {}, 400, "input", None, "valid string"),
    "too long": (["a", LONG], {}, 400, "input", "context_length_exceeded", "input.1: .* Split"),
    "model": ("a man", {"model": "ada"}, 404, "model", "model_not_found", "'ada'"),
    "too wide": ("a man", {"dimensions": 1000}, 400, "dimensions", None, "1000"),
    "no dimensions": ("a man", {"dimensions": 0}, 400, "dimensions", None, "greater"),
    "format": ("a man", {"encoding_format": "hex"}, 400, "encoding_format", None, "base64"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_v1_embeddings_refuses_in_the_shape_of_openai(ask, name):
    texts, fields, status, param, code, message = REFUSALS[name]
    answer = ask(texts, **fields)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)
    assert re.search(message, error["message"])


def test_v1_embeddings_asks_to_come_again_if_too_many_wait(ask, openai_service, monkeypatch):
    monkeypatch.setattr(openai_service[1]["openai_app"].state.batches, "limit", 1)
    assert ask(WORDS[0]).status_code == 200
    answer = ask(WORDS)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.json()["error"]["type"] == "rate_limit_error"
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"


def test_v1_embeddings_answers_the_client_of_openai(openai_service, tiny_bert, monkeypatch):
    openai = pytest.importorskip("openai")
    http_client, found = openai_service
    expected = load_pipe(str(tiny_bert)).encode(WORDS)
    client = openai.OpenAI(
        base_url="http://testserver/v1", api_key="none", http_client=http_client, max_retries=1
    )
    for settings in ({}, {"encoding_format": "float"}, {"encoding_format": "base64"}):
        answer = client.embeddings.create(model=found["MODEL"], input=WORDS, **settings)
        vectors = [one.embedding for one in answer.data]
        if isinstance(vectors[0], str):
            vectors = [numpy.frombuffer(base64.b64decode(one), dtype="<f4") for one in vectors]
        assert numpy.allclose(vectors, expected, atol=1e-6)
        assert answer.usage.prompt_tokens == answer.usage.total_tokens == 15
    for texts, settings, error in (
        ("", {}, openai.BadRequestError),
        (LONG, {}, openai.BadRequestError),
        (WORDS, {"dimensions": 1000}, openai.BadRequestError),
        (WORDS, {"model": "ada"}, openai.NotFoundError),
    ):
        with pytest.raises(error) as raised:
            client.embeddings.create(**{"model": found["MODEL"], "input": texts, **settings})
        assert raised.value.type == "invalid_request_error"
        assert raised.value.param in ("input", "dimensions", "model")
    # It waits as long as Retry-After says, and tries again
    asked = []
    http_client.event_hooks = {"request": [asked.append]}
    monkeypatch.setattr(found["openai_app"].state.batches, "limit", 0)
    with pytest.raises(openai.RateLimitError):
        client.embeddings.create(model=found["MODEL"], input=WORDS)
    assert len(asked) == 2


PROMPTS = {"query": "is a man ", "passage": "the dog "}


def langchain_recipe(run: Run) -> Namespace:
    imports = "from spacy_sbert import SentenceBert, find_sbert"
    return run("service", [imports, block_with("service", "langchain")])


def test_langchain_embeddings_put_the_prompts_of_roles(run, make_nlp, monkeypatch):
    stand_in_for_missing(monkeypatch)
    found = langchain_recipe(run)
    for prompts in ({}, PROMPTS):
        sbert = find_sbert(make_nlp("own", model={"prompts": prompts}))
        embeddings = found["SbertEmbeddings"](sbert)
        documents = embeddings.embed_documents(WORDS)
        query = embeddings.embed_query(WORDS[0])
        assert type(documents) is list and type(documents[0][0]) is type(query[0]) is float
        for vectors, prompt in ((documents, "passage"), ([query], "query")):
            texts = WORDS[: len(vectors)]
            expected = sbert.encode(texts, prompt=prompts.get(prompt, ""))
            assert numpy.allclose(vectors, expected, atol=1e-6)


def test_a_store_of_langchain_finds_by_the_embeddings(run, make_nlp):
    stores = pytest.importorskip("langchain_core.vectorstores")
    found = langchain_recipe(run)
    embeddings = found["SbertEmbeddings"](find_sbert(make_nlp("own")))
    store = stores.InMemoryVectorStore.from_texts(WORDS, embedding=embeddings)
    for sentence in WORDS:
        assert store.similarity_search(sentence, k=1)[0].page_content == sentence


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
