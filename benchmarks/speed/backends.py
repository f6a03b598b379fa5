"""ONNX Runtime and OpenVINO in place of PyTorch, against `encode`.

Usage: python benchmarks/speed/backends.py --data FOLDER --output FILE.json [--n 2000] [--rounds 5]
    [--only VARIANT ...]
All but "encode" get the same batches: texts sorted by length, padded, 2048 wordpieces at most.
"huggingface" is the model itself on them. Needs onnx, onnxruntime and openvino.
"""

import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy
import onnxruntime
import openvino
import torch
from measure import Encode, arguments, compare, prepare, save
from onnx import TensorProto
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers.optimizer import optimize_model
from texts import SEED, sts_sentences
from transformers import AutoModel
from variants import direct, own

from spacy_sbert.architectures import DEFAULT_NAME
from spacy_sbert.models.engine.huggingface import padded_inputs
from spacy_sbert.models.engine.packing import CPU_BUDGET, padded_batches
from spacy_sbert.models.resolve import resolve

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
States = Callable[[dict[str, torch.Tensor]], torch.Tensor]


def in_batches(states: States) -> Encode:
    """From texts to vectors, through what makes the states of padded batches."""
    sbert: Any = own("float32").get_pipe("sbert")
    encoder = sbert.text_encoder()
    model = huggingface()

    @torch.inference_mode()
    def encode(texts: list[str]) -> numpy.ndarray:
        wordpieces = encoder.tokenize(texts)
        vectors = torch.empty(len(texts), model.config.hidden_size)
        for rows in padded_batches(wordpieces.lengths, numpy.arange(len(texts)), CPU_BUDGET):
            inputs = padded_inputs(model, wordpieces, rows)
            inputs.setdefault("token_type_ids", torch.zeros_like(inputs["input_ids"]))
            mask = inputs["attention_mask"].unsqueeze(-1).float()
            pooled = (states(inputs).float() * mask).sum(1) / mask.sum(1)
            vectors[torch.from_numpy(rows.windows)] = torch.nn.functional.normalize(pooled)
        return vectors.numpy()

    return encode


@cache
def huggingface() -> Any:
    """The model, with attention that can be exported."""
    return AutoModel.from_pretrained(resolve(DEFAULT_NAME), attn_implementation="eager").eval()


@cache
def exported() -> Path:
    """The model as ONNX, as it is; in a folder that is left to the system."""
    file = Path(tempfile.mkdtemp()) / "model.onnx"
    example = {name: torch.ones(2, 7, dtype=torch.long) for name in INPUTS}
    axes = {name: {0: "rows", 1: "width"} for name in (*INPUTS, "states")}

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = huggingface()

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            return self.model(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state

    names = {"input_names": list(INPUTS), "output_names": ["states"], "dynamic_axes": axes}
    torch.onnx.export(
        Encoder(), tuple(example.values()), str(file), **names, opset_version=17, dynamo=False
    )
    return file


def of_pytorch(precision: str) -> Encode:
    """The Hugging Face model itself."""
    model = AutoModel.from_pretrained(
        resolve(DEFAULT_NAME), torch_dtype=getattr(torch, precision)
    ).eval()
    return in_batches(lambda inputs: model(**inputs).last_hidden_state)


def of_onnx(quantized: bool, threads: int) -> Encode:
    """ONNX Runtime, with its fused BERT, quantized dynamically or not."""
    config, plain = huggingface().config, exported()
    file = plain.with_name("fused.onnx")
    options = {
        "model_type": "bert",
        "num_heads": config.num_attention_heads,
        "hidden_size": config.hidden_size,
    }
    optimize_model(str(plain), **options).save_model_to_file(str(file))
    if quantized:
        fused, file = file, plain.with_name("int8.onnx")
        # Of the outputs of fused nodes
        known = {"DefaultTensorType": TensorProto.FLOAT}
        quantize_dynamic(fused, file, weight_type=QuantType.QInt8, extra_options=known)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
    taken = [one.name for one in session.get_inputs()]

    def states(inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        types = {
            one.name: "int32" if "int32" in one.type else "int64" for one in session.get_inputs()
        }
        given = {name: inputs[name].numpy().astype(types[name]) for name in taken}
        return torch.from_numpy(session.run(None, given)[0])

    return in_batches(states)


def of_openvino(precision: str, threads: int) -> Encode:
    """OpenVINO, which is told the precision."""
    settings = {
        "INFERENCE_PRECISION_HINT": precision,
        "INFERENCE_NUM_THREADS": threads,
        "PERFORMANCE_HINT": "LATENCY",
    }
    model = openvino.Core().compile_model(str(exported()), "CPU", settings)
    request = model.create_infer_request()
    return in_batches(
        lambda inputs: torch.from_numpy(request.infer({n: inputs[n].numpy() for n in INPUTS})[0])
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--n", type=int, default=2000, help="sentences")
    parser.add_argument("--only", nargs="+", default=[], help="variants, by default all")
    args = parser.parse_args()
    start = prepare(args)
    makers: dict[str, Callable[[], Encode]] = {
        "encode-float32": partial(direct, "float32"),
        "encode-bfloat16": partial(direct, "bfloat16"),
        "huggingface-float32": partial(of_pytorch, "float32"),
        "huggingface-bfloat16": partial(of_pytorch, "bfloat16"),
        "onnx-float32": partial(of_onnx, False, args.threads),
        "onnx-int8": partial(of_onnx, True, args.threads),
        "openvino-float32": partial(of_openvino, "f32", args.threads),
        "openvino-bfloat16": partial(of_openvino, "bf16", args.threads),
    }
    chosen = {name: make for name, make in makers.items() if name in args.only or not args.only}
    _, measured = compare(chosen, sts_sentences(args.data)[: args.n], args.rounds, "encode-float32")
    settings = {"texts": args.n, "rounds": args.rounds, "seed": SEED}
    save(
        args.output,
        start,
        {**settings, "onnxruntime": onnxruntime.__version__, "openvino": openvino.__version__},
        measured,
    )


if __name__ == "__main__":
    main()
