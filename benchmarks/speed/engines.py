"""The engines that people deploy an encoder on, beside this package: many texts, and one at a time.

Usage: python benchmarks/speed/engines.py WORK --data $SPACY_SBERT_DATA --output FILE.json
    [--threads 1] [--texts 1000] [--rounds 5] [--calls 20] [--busy]

`make engines` runs it in an environment of its own. all-MiniLM-L6-v2 is exported to the folder
WORK, once: for ONNX Runtime with its own optimizer in float32 and with dynamic int8, for OpenVINO
in float32 and with static int8 of nncf (calibrated on 300 sentences), and for CTranslate2. All
have the same number of threads. Each engine has the tokenizer of transformers before it, mean
pooling and unit length behind it, as its users write them.

Variants take turns: all texts at once, or so many calls of one text. Figures are medians of the
clock. "bare" is a pass with nothing but embeddings, products, attention and norms in PyTorch. With
--busy, one text is measured again beside a process on each core.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

import numpy
import spacy
import torch
from measure import Encode, arguments, compare, prepare, ratio, save
from texts import sts_sentences, texts_of
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer, BatchEncoding

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.engine.bert_families import (
    ATTENTION,
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    OUTPUT,
)
from spacy_sbert.models.engine.packed_bert import PackedBert
from spacy_sbert.models.resolve import resolve

PACKAGES = ("sentence-transformers", "onnxruntime", "openvino", "nncf", "ctranslate2")
# Wordpieces of one text, with the two special tokens
LENGTHS = (9, 15, 46)
WARM_UP = 3
# Texts of each length
N_ONE = 10
BATCH_SIZE = 32
LIMIT = 256
N_CALIBRATION = 300
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Keeps a core busy
BUSY = "while True: sum(range(10**6))"
# The states of a batch of the tokenizer, float32 (rows, width, hidden)
States = Callable[[BatchEncoding], numpy.ndarray]


# The engines


def export(work: Path, calibration: list[str]) -> None:
    """Write the encoder in the formats of the engines."""
    import nncf
    import openvino
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.transformers import optimizer

    folder = resolve(DEFAULT_NAME)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    example = tokenizer(["a text", "and another one"], padding=True, return_tensors="pt")
    sizes = {name: {0: "rows", 1: "width"} for name in (*INPUTS, "states")}
    plain = work / "plain.onnx"
    torch.onnx.export(
        _LastStates(model),
        tuple(example[name] for name in INPUTS),
        str(plain),
        input_names=list(INPUTS),
        output_names=["states"],
        dynamic_axes=sizes,
        opset_version=17,
        dynamo=False,
    )
    config = model.config
    fused = optimizer.optimize_model(
        str(plain),
        model_type="bert",
        num_heads=config.num_attention_heads,
        hidden_size=config.hidden_size,
    )
    fused.save_model_to_file(str(work / "fused.onnx"))
    quantize_dynamic(
        plain,
        work / "int8.onnx",
        weight_type=QuantType.QInt8,
        per_channel=True,
        # TensorProto.FLOAT
        extra_options={"DefaultTensorType": 1},
    )
    converted = openvino.convert_model(str(plain))
    openvino.save_model(converted, work / "plain.xml", compress_to_fp16=False)
    samples = [dict(tokenizer(text, return_tensors="np")) for text in calibration]
    kind = nncf.ModelType.TRANSFORMER
    quantized = nncf.quantize(converted, nncf.Dataset(samples), model_type=kind)
    openvino.save_model(quantized, work / "int8.xml")
    converter = Path(sys.executable).parent / "ct2-transformers-converter"
    command = [converter, "--model", folder, "--output_dir", work / "ctranslate2", "--force"]
    subprocess.run(list(map(str, command)), check=True)


class _LastStates(torch.nn.Module):
    """A Hugging Face model that returns its last states alone."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        output = self.model(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )
        return output.last_hidden_state


def onnx_runtime(file: Path, threads: int) -> States:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def states(batch: BatchEncoding) -> numpy.ndarray:
        inputs = {name: batch[name].astype("int64") for name in names}
        return session.run(None, inputs)[0]

    return states


def openvino_engine(file: Path, threads: int) -> States:
    import openvino

    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
    }
    compiled = openvino.Core().compile_model(file, "CPU", settings)
    request = compiled.create_infer_request()
    output = compiled.output(0)

    def states(batch: BatchEncoding) -> numpy.ndarray:
        inputs = {name: values.astype("int64") for name, values in batch.items()}
        return request.infer(inputs)[output]

    return states


def ctranslate2_engine(folder: Path, kind: str, threads: int) -> States:
    import ctranslate2

    encoder = ctranslate2.Encoder(
        str(folder), device="cpu", compute_type=kind, intra_threads=threads
    )

    def states(batch: BatchEncoding) -> numpy.ndarray:
        rows = zip(batch["input_ids"], batch["attention_mask"], strict=True)
        ids = [row[mask > 0].tolist() for row, mask in rows]
        return numpy.array(encoder.forward_batch(ids).last_hidden_state)

    return states


def by_users(states: States) -> Encode:
    """Return what encodes texts with an engine: tokenizer, batches, pooling, unit length."""
    tokenizer = AutoTokenizer.from_pretrained(resolve(DEFAULT_NAME))

    def encode_batch(texts: list[str]) -> numpy.ndarray:
        batch = tokenizer(
            texts, padding=True, truncation=True, max_length=LIMIT, return_tensors="np"
        )
        mask = batch["attention_mask"][:, :, None].astype("float32")
        pooled = (states(batch) * mask).sum(1) / mask.sum(1)
        return pooled / numpy.linalg.norm(pooled, axis=1, keepdims=True)

    def encode(texts: list[str]) -> numpy.ndarray:
        if len(texts) <= BATCH_SIZE:
            return encode_batch(texts)
        order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
        batches = [
            encode_batch([texts[number] for number in order[first : first + BATCH_SIZE]])
            for first in range(0, len(order), BATCH_SIZE)
        ]
        vectors = numpy.concatenate(batches)
        return vectors[numpy.argsort(order)]

    return encode


# This package


def pipeline(calibration: list[str], **model: Any) -> Any:
    nlp = spacy.blank("en")
    sbert = nlp.add_pipe("sbert", config={"model": model})
    sbert.load()
    if model.get("precision") == "int8" and model.get("backend") != "onnx":
        # Where the processor has no products of 8 bits, it works in another precision
        sbert.calibrate(calibration)
    return nlp


def docs(nlp: Any) -> Encode:
    return lambda texts: numpy.stack([doc.vector for doc in nlp.pipe(texts)])


def doc(nlp: Any) -> Encode:
    return lambda texts: numpy.stack([nlp(text).vector for text in texts])


def bare(sbert: Any) -> Encode:
    """Return what encodes one text by the products of the encoder, and nothing that is not needed.

    sbert: a pipe that is loaded, in float32.
    """
    encoder: Any = sbert.text_encoder()
    backend: PackedBert = encoder.model.shim.backend()
    tokenizer = encoder.model.wordpiece_tokenizer

    @torch.inference_mode()
    def encode(texts: list[str]) -> numpy.ndarray:
        (text,) = texts
        ids = torch.from_numpy(tokenizer([text], offsets=False).ids)
        n_places = len(ids)
        added = backend.words[ids] + backend.positions[:n_places] + backend.types[0]
        states = backend.norm(added)
        for layer in backend.layers:
            linears = layer.linears
            heads = linears[ATTENTION](states).view(1, n_places, 3, layer.n_heads, -1)
            query, key, value = (heads[:, :, part].transpose(1, 2) for part in range(3))
            attended = functional.scaled_dot_product_attention(query, key, value)
            attended = attended[0].transpose(0, 1).reshape(n_places, -1)
            mixed = layer.attention_norm(linears[ATTENTION_OUTPUT](attended) + states)
            widened = linears[INTERMEDIATE](mixed)
            states = layer.output_norm(linears[OUTPUT](widened) + mixed)
        pooled = states.mean(0, keepdim=True)
        return functional.normalize(pooled).numpy()

    return encode


# Measuring


def one_at_a_time(
    variants: Mapping[str, Encode], texts: list[str], rounds: int, calls: int
) -> dict[str, float]:
    """Return the median milliseconds of each variant, by so many calls in turn."""
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, encode in variants.items():
            for call in range(WARM_UP + calls):
                text = texts[call % len(texts)]
                start = time.perf_counter()
                encode([text])
                taken = 1000 * (time.perf_counter() - start)
                if call >= WARM_UP:
                    times[name].append(taken)
    return {name: round(median(each), 2) for name, each in times.items()}


@contextmanager
def busy(n_processes: int) -> Iterator[None]:
    """Keep cores busy in a with block."""
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(n_processes)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def print_best(title: str, figures: Mapping[str, float]) -> None:
    print(title)
    for name, figure in sorted(figures.items(), key=lambda each: each[1]):
        print(f"  {name:24s} {figure:8.2f}")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("work", type=Path)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--calls", type=int, default=20, help="of one text, in each turn")
    parser.add_argument("--busy", action="store_true")
    given = parser.parse_args()
    start = prepare(given)
    sentences = sts_sentences(given.data)
    calibration = sentences[-N_CALIBRATION:]
    if not (given.work / "ctranslate2").is_dir():
        given.work.mkdir(parents=True, exist_ok=True)
        export(given.work, calibration)
    of_engines, of_docs = _variants(given, calibration)

    measured: dict[str, Any] = {"versions": {name: version(name) for name in PACKAGES}}
    if given.texts:
        nlp = {f"Docs, {name}": docs(made) for name, made in of_docs.items()}
        makers = {name: (lambda made=made: made) for name, made in {**of_engines, **nlp}.items()}
        texts = sentences[: given.texts]
        _, measured["many"] = compare(makers, texts, given.rounds, "sentence-transformers")
        timings = measured["many"]["timings"]
        peer = timings["sentence-transformers"]
        print_best(
            "many: times sentence-transformers' speed",
            {name: ratio(own, peer)[0] for name, own in timings.items()},
        )
    single = {f"Doc, {name}": doc(made) for name, made in of_docs.items()}
    plain = of_docs["torch float32"].get_pipe("sbert")
    single_texts = {**of_engines, **single, "bare": bare(plain)}
    for title in ("one", "one, busy")[: 1 + given.busy]:
        with busy(given.threads if title != "one" else 0):
            measured[title] = {
                length: one_at_a_time(
                    single_texts,
                    texts_of([length - 2] * N_ONE, sentences),
                    given.rounds,
                    given.calls,
                )
                for length in LENGTHS
            }
        for length, figures in measured[title].items():
            print_best(f"{title}, {length} wordpieces, ms", figures)
    settings = {
        "threads": given.threads,
        "texts": given.texts,
        "rounds": given.rounds,
        "calls": given.calls,
    }
    save(given.output, start, settings, measured)


def _variants(
    given: argparse.Namespace, calibration: list[str]
) -> tuple[dict[str, Encode], dict[str, Any]]:
    """Return what encodes texts, the engines' and this package's, and the pipelines."""
    from sentence_transformers import SentenceTransformer

    work = given.work
    threads = given.threads
    peer = SentenceTransformer(str(resolve(DEFAULT_NAME)), device="cpu")
    variants: dict[str, Encode] = {
        "sentence-transformers": peer.encode,
        "ONNX Runtime float32": by_users(onnx_runtime(work / "fused.onnx", threads)),
        "ONNX Runtime int8": by_users(onnx_runtime(work / "int8.onnx", threads)),
        "OpenVINO float32": by_users(openvino_engine(work / "plain.xml", threads)),
        "OpenVINO int8": by_users(openvino_engine(work / "int8.xml", threads)),
        "CTranslate2 float32": by_users(
            ctranslate2_engine(work / "ctranslate2", "float32", threads)
        ),
        "CTranslate2 int8": by_users(
            ctranslate2_engine(work / "ctranslate2", "int8_float32", threads)
        ),
    }
    pipelines = {
        f"{backend} {precision}": pipeline(calibration, backend=backend, precision=precision)
        for backend in ("torch", "onnx")
        for precision in ("float32", "int8")
    }
    for name, nlp in pipelines.items():
        variants[f"encode, {name}"] = nlp.get_pipe("sbert").encode
    return variants, pipelines


if __name__ == "__main__":
    main()
