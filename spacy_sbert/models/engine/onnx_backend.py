"""ONNX Runtime as a backend on CPUs: by a graph of the weights, or by the folder's file."""

import os
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import numpy
import torch

from ...errors import Errors, import_extra
from ...files.checksum import digest_of_bytes
from ..encoder_checks import padding_id
from ..loading import Network
from ..private_attributes import has_int8_product
from ..sbert_config import INT8
from ..tokenization import TokenizedBatch
from .backend import Backend, BackendCache
from .bert_families import is_packable
from .huggingface import HFBackend
from .packed_bert import PackedBert
from .packing import Batch, lay_out, padded_batches, single_batch

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# As Optimum and sentence-transformers name the states
_OUTPUTS = ("last_hidden_state", "token_embeddings")
_FOLDER = "onnx"
_FILE = "model.onnx"
# The most that states of a file differ from those of the weights, as a share of the greatest, for
# float32; what is rounded to 8 bits must have the same direction
_TOLERANCE = 1e-3
_LOWEST_COSINE = 0.9
# Wordpieces that the two are compared on, if the vocabulary has them
_TRIAL = range(5, 25)


def _import(name: str) -> ModuleType:
    return import_extra(name, "backend = 'onnx' needs onnx and onnxruntime", "onnx")


class ONNXBackend:
    """A graph in ONNX Runtime, on rows of similar length.

    graph (bytes): an ONNX model from input_ids, attention_mask and optionally token_type_ids, int64
        (rows, width), to the states, float32 (rows, width, hidden).
    padding (int): the wordpiece that fills rows. pads (bool): whether rows may be padded.
    one_by_one (bool): whether each batch is one window, so that the ranges by which inputs are
        rounded, which are those of a batch, do not depend on other texts.
    """

    merges_equal = True
    # ONNX Runtime uses the threads for each product
    in_parallel = False

    def __init__(self, graph: bytes, *, padding: int, pads: bool = True, one_by_one: bool = False):
        self.graph = graph
        self.padding = padding
        self.pads = pads
        self.one_by_one = one_by_one
        self.device = torch.device("cpu")
        # By process and number of threads: those of a session do not survive a fork
        self._sessions: dict[tuple[int, int], Any] = {}
        session = self.session()
        self._inputs = [each.name for each in session.get_inputs()]
        unknown = sorted(set(self._inputs) - set(_INPUTS))
        outputs = [each.name for each in session.get_outputs()]
        self._output = next((name for name in _OUTPUTS if name in outputs), None)
        if unknown or self._output is None:
            raise ValueError(
                f"The ONNX file reads {', '.join(self._inputs)} and gives {', '.join(outputs)}: "
                f"expected some of {', '.join(_INPUTS)}, and {' or '.join(_OUTPUTS)}. Export it "
                "for feature extraction."
            )

    def session(self) -> Any:
        """Return the InferenceSession of this process, with as many threads as PyTorch has."""
        key = (os.getpid(), torch.get_num_threads())
        if key not in self._sessions:
            runtime = _import("onnxruntime")
            options = runtime.SessionOptions()
            options.intra_op_num_threads = key[1]
            options.inter_op_num_threads = 1
            # Between two texts, threads that wait for a product would keep others from the cores
            options.add_session_config_entry("session.force_spinning_stop", "1")
            session = runtime.InferenceSession(
                self.graph, options, providers=["CPUExecutionProvider"]
            )
            # Those of a parent process are kept, since its threads could not be ended here
            others = {each: made for each, made in self._sessions.items() if each[0] != key[0]}
            self._sessions = {**others, key: session}
        return self._sessions[key]

    def batches(
        self, wordpieces: TokenizedBatch, windows: numpy.ndarray, budget: int
    ) -> list[Batch]:
        if self.one_by_one:
            return [single_batch(wordpieces.lengths, window) for window in windows[:, None]]
        return padded_batches(wordpieces.lengths, windows, budget, of_equal_length=not self.pads)

    def encode(self, wordpieces: TokenizedBatch, batch: Batch) -> torch.Tensor:
        ids, _, types, owners = lay_out(wordpieces, batch, self.device, self.padding)
        arrays = {
            "input_ids": ids.numpy(),
            "attention_mask": (owners >= 0).long().numpy(),
            "token_type_ids": types.numpy(),
        }
        inputs = {name: arrays[name] for name in self._inputs}
        (states,) = self.session().run([self._output], inputs)
        return torch.from_numpy(states).flatten(0, 1)


class ONNXBackendCache(BackendCache):
    """ONNX Runtime: by the ONNX file of a folder, or the graph of a BERT-like encoder.

    What it finds are the bytes of the file. "int8" rounds weights beforehand, by output channel,
    and the inputs of each product by the range that they have in a text: nothing is calibrated.

    file_name (str): in the folder "onnx", such as "model_O3.onnx"; without it the file is
        model.onnx if there is one.
    """

    trains: ClassVar[bool] = False
    known_settings: ClassVar[tuple[str, ...]] = ("file_name",)

    def resolve_precision(self, precision: str, device: str) -> str:
        if device != "cpu":
            raise ValueError(
                f"backend = 'onnx' computes on the CPU, and the device is {device}. Set backend = "
                "'torch', or call spacy.require_cpu() before the pipeline is made."
            )
        if precision not in ("auto", "float32", INT8):
            raise ValueError(
                f"backend = 'onnx' has no precision = '{precision}'. Set 'float32' or 'int8', or "
                "backend = 'torch'."
            )
        return INT8 if precision == INT8 else "float32"

    def describe(self, weights: Network | None, precision: str) -> str:
        name = f"{precision} of ONNX Runtime"
        graph = None if weights is None else self.found(weights)
        return name if graph is None else f"{name} by the graph {digest_of_bytes(graph)}"

    def load_files(self, folder: Path, weights: Network, *, is_saved: bool) -> None:
        # Else the first text would say that it is missing
        _import("onnxruntime")
        file = self._find_file(folder, is_saved=is_saved)
        if file is not None:
            graph = _read_graph(file)
            self._check_graph(graph, weights, file)
            self._found = (None, graph)
        elif not is_packable(weights):
            raise ValueError(
                f"backend = 'onnx' has no graph for an encoder of class {type(weights).__name__}, "
                f"and there is no {_FOLDER}/{_FILE} in {folder}. Export it by Optimum, or set "
                "backend = 'torch'."
            )

    def _find_file(self, folder: Path, *, is_saved: bool) -> Path | None:
        """Return the ONNX file of an encoder; None if it has none."""
        name = self.settings.get("file_name")
        if is_saved:
            # Saved under one name, whatever it was called
            candidates = [folder / _FILE]
        else:
            candidates = [folder / _FOLDER / (name or _FILE), folder / (name or _FILE)]
        file = next((each for each in candidates if each.is_file()), None)
        if name is not None and file is None:
            raise ValueError(
                f"backend_config names the ONNX file '{name}', which is not in "
                f"{candidates[0].parent}. Correct file_name, or leave it out."
            )
        return file

    def _check_graph(self, graph: bytes, weights: Network, file: Path) -> None:
        """Check that a file computes what the weights do.

        RAISES (ValueError): if it does not.
        """
        given = self._backend(graph, weights)
        if is_packable(weights):
            expected: Backend = PackedBert(weights, torch.float32)
        else:
            expected = HFBackend(weights)
        wordpieces = _trial_wordpieces(weights)
        states = _states(given, wordpieces)
        theirs = _states(expected, wordpieces)
        if states.shape == theirs.shape:
            error = float((states - theirs).abs().max() / theirs.abs().max())
            cosine = float(torch.cosine_similarity(states, theirs, dim=1).min())
            if error <= _TOLERANCE or (_is_rounded(graph) and cosine >= _LOWEST_COSINE):
                return
        raise ValueError(
            f"The file {file} computes other states than the weights beside it. Export it again "
            "from these weights, or remove it."
        )

    def files(self, weights: Network) -> dict[str, bytes]:
        graph = self.found(weights)
        return {} if graph is None else {_FILE: graph}

    def make(self, weights: Network, precision: str) -> Backend:
        graph = self.found(weights)
        if graph is None:
            if not is_packable(weights):
                raise ValueError(
                    "The weights have changed since the ONNX file was read, and there is no graph "
                    f"for an encoder of class {type(weights).__name__}. Set backend = 'torch'."
                )
            from .onnx_graph import bert_graph  # noqa: PLC0415 (not needed with a file)

            graph = bert_graph(weights)
        if precision == INT8:
            graph = _rounded(graph)
        return self._backend(graph, weights)

    def _backend(self, graph: bytes, weights: Network) -> ONNXBackend:
        padding = padding_id(weights)
        rounds = _is_rounded(graph)
        return ONNXBackend(graph, padding=padding, pads=self.pads, one_by_one=rounds)


def _is_rounded(graph: bytes) -> bool:
    """Return whether a graph rounds the inputs of products."""
    model = _import("onnx").load_from_string(graph)
    operators = {node.op_type for node in model.graph.node}
    return any("QuantizeLinear" in name or "QuantizeMatMul" in name for name in operators)


def _trial_wordpieces(weights: Network) -> TokenizedBatch:
    """Return a window of some wordpieces, to compare two backends on."""
    n_rows = weights.get_input_embeddings().weight.shape[0]
    ids = numpy.array([number % n_rows for number in _TRIAL])
    return TokenizedBatch.of_window(ids, None, has_type_ids=True)


def _states(backend: Backend, wordpieces: TokenizedBatch) -> torch.Tensor:
    batch = single_batch(wordpieces.lengths, numpy.arange(1))
    return backend.encode(wordpieces, batch)[: len(wordpieces.ids)].float()


def _read_graph(file: Path) -> bytes:
    """Return an ONNX file, with the weights that it may have in files of their own.

    RAISES (ValueError): if it is damaged.
    """
    onnx = _import("onnx")
    try:
        return onnx.load(str(file)).SerializeToString()
    except Exception as error:
        # Whatever the parser makes of it
        raise ValueError(Errors.BAD_WEIGHTS.format(file=file, reason=error)) from error


def _rounded(graph: bytes) -> bytes:
    """Return a graph whose products by weights are of 8 bits.

    SOURCE: onnxruntime.quantization.quantize_dynamic.
    """
    onnx = _import("onnx")
    quantization = _import("onnxruntime.quantization")
    model = onnx.load_from_string(graph)
    # Else it advises, through the root logger, what does nothing for encoders
    quantization.quant_utils.add_pre_process_metadata(model)
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / _FILE
        quantization.quantize_dynamic(
            model,
            file,
            op_types_to_quantize=["MatMul", "Attention"],
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            # Without VNNI sums of two products of 8 bits do not fit into 16
            reduce_range=not has_int8_product(),
            # Of the operators that are ONNX Runtime's own
            extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},
        )
        return file.read_bytes()
