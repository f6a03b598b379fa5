"""The time of one text at a time by each backend, beside ONNX Runtime by itself.

Usage: python benchmarks/speed/one_text.py --output FILE.json [--threads 1] [--rounds 3]
"onnxruntime" is the same graph in a session with the same settings, after the tokenizer of the
encoder, without pooling. Variants take turns, by 25 calls; figures are milliseconds: the median and
the least on the clock, and the least of the processor, which other processes disturb less.
Needs the extra "onnx".
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import spacy
import torch
from tokenizers import Tokenizer

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.evaluation.protocols.speed import machine
from spacy_sbert.files.serialization import versions
from spacy_sbert.models.resolve import resolve

# With the two special tokens
LENGTHS = (9, 20, 46)
WARM_UP, CALLS = 5, 20
TEXT = "a man is eating food and a woman is playing the guitar in the old house near the river "
Run = Callable[[str], Any]


def text_of(tokenizer: Tokenizer, n_wordpieces: int) -> str:
    """Return words that are so many wordpieces."""
    words = (TEXT * 4).split()
    text = " ".join(words[: n_wordpieces - 2])
    assert len(tokenizer.encode(text).ids) == n_wordpieces
    return text


def sbert(**settings: Any) -> Any:
    return spacy.blank("en").add_pipe("sbert", config={"model": settings})


def encode(**settings: Any) -> Run:
    pipe = sbert(**settings)
    return lambda text: pipe.encode([text])


def doc(**settings: Any) -> Run:
    nlp = spacy.blank("en")
    nlp.add_pipe("sbert", config={"model": settings})
    return lambda text: nlp(text).vector


def by_itself(tokenizer: Tokenizer, precision: str) -> Run:
    """Tokenize, and run the graph that the backend has, in a session of its own."""
    pipe = sbert(backend="onnx", precision=precision)
    pipe.load()
    shim = pipe.text_encoder().model.shim
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(
        shim.backend().graph, options, providers=["CPUExecutionProvider"]
    )

    def run(text: str) -> numpy.ndarray:
        ids = numpy.array([tokenizer.encode(text).ids])
        inputs = {
            "input_ids": ids,
            "attention_mask": numpy.ones_like(ids),
            "token_type_ids": numpy.zeros_like(ids),
        }
        return session.run(None, inputs)[0]

    return run


def figures(milliseconds: list[numpy.ndarray]) -> list[float]:
    """Return the median and the least on the clock, and the least of the processor."""
    clock, processor = numpy.array(milliseconds).T
    return [
        round(float(figure), 2) for figure in (numpy.median(clock), clock.min(), processor.min())
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    tokenizer = Tokenizer.from_file(str(resolve(DEFAULT_NAME) / "tokenizer.json"))
    tokenizer.no_padding()
    variants: dict[str, Run] = {
        "encode, torch": encode(),
        "encode, onnx": encode(backend="onnx"),
        "encode, onnx int8": encode(backend="onnx", precision="int8"),
        "onnxruntime": by_itself(tokenizer, "float32"),
        "onnxruntime int8": by_itself(tokenizer, "int8"),
        "Doc, torch": doc(),
        "Doc, onnx": doc(backend="onnx"),
    }
    expected = variants["encode, torch"](TEXT)
    error = float(numpy.abs(variants["encode, onnx"](TEXT) - expected).max())
    milliseconds: dict[str, dict[str, list[float]]] = {}
    for length in LENGTHS:
        text = text_of(tokenizer, length)
        seconds: dict[str, list[numpy.ndarray]] = {name: [] for name in variants}
        for _ in range(given.rounds):
            for name, run in variants.items():
                for call in range(WARM_UP + CALLS):
                    start = numpy.array([time.perf_counter(), time.process_time()])
                    run(text)
                    end = numpy.array([time.perf_counter(), time.process_time()])
                    if call >= WARM_UP:
                        seconds[name].append(1000 * (end - start))
        milliseconds[str(length)] = {name: figures(each) for name, each in seconds.items()}
    report = {
        "threads": given.threads,
        "milliseconds": milliseconds,
        "largest difference of a vector": error,
        "machine": machine(),
        "versions": {**versions(), "onnxruntime": onnxruntime.__version__},
    }
    given.output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf8")
    for length, each in milliseconds.items():
        print(length, each)


if __name__ == "__main__":
    main()
