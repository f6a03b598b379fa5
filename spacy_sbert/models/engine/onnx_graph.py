"""The ONNX graph of a BERT-like encoder, made of its parameters."""

from types import ModuleType
from typing import Any

import numpy
import torch

from ...errors import import_extra
from ..loading import Network
from .bert_families import (
    ATTENTION,
    ATTENTION_OUTPUT,
    INTERMEDIATE,
    N_HEADS,
    NORMS,
    OUTPUT,
    Layer,
    activation_of,
    layers_of,
    relative_bias_of,
    weights_of,
)
from .packed_bert import distance_buckets

# Of ONNX, and of the operators that ONNX Runtime adds: attention, and sums with layer norm
_OPSET = 17
_CONTRIB = "com.microsoft"
_IR_VERSION = 8
# A file of protocol buffers cannot be larger
_MOST_BYTES = 2**31 - 1


def bert_graph(model: Network) -> bytes:
    """Return the ONNX model of an encoder of bert_families.FAMILIES.

    From input_ids, attention_mask and token_type_ids, int64 (rows, width), to last_hidden_state,
    float32 (rows, width, hidden).
    RAISES (ValueError): if the weights take 2 GB or more.
    """
    n_bytes = sum(weight.numel() * 4 for weight in model.parameters())
    if n_bytes > _MOST_BYTES:
        raise ValueError(
            f"The weights take {n_bytes:,} bytes, and an ONNX graph has room for {_MOST_BYTES:,}. "
            "Set backend = 'torch', or export the encoder by Optimum."
        )
    return _Graph(model).to_bytes()


class _Graph:
    """The nodes and constants of a graph, added one after another."""

    def __init__(self, model: Network):
        self.model = model
        self.onnx: ModuleType = import_extra("onnx", "backend = 'onnx' needs onnx", "onnx")
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def to_bytes(self) -> bytes:
        helper = self.onnx.helper
        types = self.onnx.TensorProto
        names = ["input_ids", "attention_mask"]
        if hasattr(self.model.embeddings, "token_type_embeddings"):
            names.append("token_type_ids")
        states = self._states()
        self.nodes.append(helper.make_node("Identity", [states], ["last_hidden_state"]))
        shape = ["rows", "width"]
        inputs = [helper.make_tensor_value_info(name, types.INT64, shape) for name in names]
        output = helper.make_tensor_value_info(
            "last_hidden_state", types.FLOAT, [*shape, self.model.config.hidden_size]
        )
        graph = helper.make_graph(
            self.nodes, "encoder", inputs, [output], list(self.constants.values())
        )
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        made = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        return made.SerializeToString()

    # Nodes and constants

    def constant(self, name: str, value: torch.Tensor | numpy.ndarray | list[int]) -> str:
        """Return the name of a constant, which is added unless it is there."""
        if name not in self.constants:
            if torch.is_tensor(value):
                value = value.detach().cpu().numpy()
            array = numpy.asarray(value)
            kind = numpy.float32 if array.dtype.kind == "f" else numpy.int64
            array = numpy.asarray(array, dtype=kind, order="C")
            self.constants[name] = self.onnx.numpy_helper.from_array(array, name)
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", **settings: Any) -> str:
        """Add a node of one output, and return the name of that."""
        output = f"{operator}_{len(self.nodes)}"
        node = self.onnx.helper.make_node(
            operator, list(inputs), [output], domain=domain, **settings
        )
        self.nodes.append(node)
        return output

    # Parts of the encoder

    def _states(self) -> str:
        states = self._embeddings()
        if hasattr(self.model, "embeddings_project"):
            project = self.model.embeddings_project
            states = self._linear("embeddings_project", states, project.weight, project.bias)
        mask = self.add("Cast", "attention_mask", to=self.onnx.TensorProto.INT32)
        bias = self._relative_bias()
        for i, layer in enumerate(layers_of(self.model)):
            states = self._layer(f"layer.{i}", layer, states, mask, bias)
        return states

    def _embeddings(self) -> str:
        embeddings = self.model.embeddings
        words = self.constant("word_embeddings", embeddings.word_embeddings.weight)
        added = self.add("Gather", words, "input_ids")
        positions = self.constant("position_embeddings", embeddings.position_embeddings.weight)
        added = self.add("Add", added, self.add("Gather", positions, self._position_ids()))
        if hasattr(embeddings, "token_type_embeddings"):
            types = self.constant("token_types", embeddings.token_type_embeddings.weight)
            added = self.add("Add", added, self.add("Gather", types, "token_type_ids"))
        norm = embeddings.LayerNorm
        weight = self.constant("embeddings.norm.weight", norm.weight)
        bias = self.constant("embeddings.norm.bias", norm.bias)
        return self.add("LayerNormalization", added, weight, bias, epsilon=norm.eps)

    def _position_ids(self) -> str:
        """See packed_bert.position_ids."""
        padding = getattr(self.model.embeddings, "padding_idx", None)
        if padding is None:
            return self._columns()
        padding_id = self.constant("padding", [padding])
        is_word = self.add("Not", self.add("Equal", "input_ids", padding_id))
        is_word = self.add("Cast", is_word, to=self.onnx.TensorProto.INT64)
        counted = self.add("CumSum", is_word, self.constant("one", numpy.array(1)))
        return self.add("Add", self.add("Mul", counted, is_word), padding_id)

    def _columns(self) -> str:
        """Return the number of each column, int64 (width,)."""
        zero = self.constant("zero", numpy.array(0))
        one = self.constant("one", numpy.array(1))
        width = self.add("Gather", self.add("Shape", "input_ids"), one)
        return self.add("Range", zero, width, one)

    def _relative_bias(self) -> str:
        """Return what is added to scores, float (1, heads, width, width); "" for none."""
        by_bucket = relative_bias_of(self.model)
        if by_bucket is None:
            return ""
        most = self.model.embeddings.position_embeddings.weight.shape[0]
        distances = torch.arange(1 - most, most)
        buckets = distance_buckets(distances).to(by_bucket.device)
        by_distance = self.constant("by_distance", by_bucket[buckets])
        columns = self._columns()
        ahead = self.add("Unsqueeze", columns, self.constant("rows_first", [0]))
        here = self.add("Unsqueeze", columns, self.constant("rows_last", [1]))
        distance = self.add("Sub", ahead, here)
        number = self.add("Add", distance, self.constant("no_distance", [most - 1]))
        bias = self.add("Transpose", self.add("Gather", by_distance, number), perm=[2, 0, 1])
        return self.add("Unsqueeze", bias, self.constant("rows_first", [0]))

    def _layer(self, name: str, layer: Layer, states: str, mask: str, bias: str) -> str:
        weights = weights_of(layer)
        weight, added = weights[ATTENTION]
        attended = self.add(
            "Attention",
            states,
            self.constant(f"{name}.{ATTENTION}.weight", weight.t()),
            self.constant(f"{name}.{ATTENTION}.bias", added),
            mask,
            "",
            bias,
            domain=_CONTRIB,
            num_heads=layer[N_HEADS],
        )
        norms = [layer[part] for part in NORMS]
        mixed = self._residual(
            f"{name}.{ATTENTION_OUTPUT}", attended, states, weights[ATTENTION_OUTPUT], norms[0]
        )
        widened = self._activated(
            f"{name}.{INTERMEDIATE}", mixed, weights[INTERMEDIATE], activation_of(self.model)
        )
        return self._residual(f"{name}.{OUTPUT}", widened, mixed, weights[OUTPUT], norms[1])

    def _product(self, name: str, states: str, weight: torch.Tensor) -> str:
        return self.add("MatMul", states, self.constant(f"{name}.weight", weight.t()))

    def _linear(self, name: str, states: str, weight: torch.Tensor, bias: torch.Tensor) -> str:
        product = self._product(name, states, weight)
        return self.add("Add", product, self.constant(f"{name}.bias", bias))

    def _activated(
        self,
        name: str,
        states: str,
        weights: tuple[torch.Tensor, torch.Tensor],
        activation: str,
    ) -> str:
        if activation == "relu":
            return self.add("Relu", self._linear(name, states, *weights))
        product = self._product(name, states, weights[0])
        bias = self.constant(f"{name}.bias", weights[1])
        # BiasGelu is by the error function, FastGelu by tanh
        operator = "BiasGelu" if activation == "gelu" else "FastGelu"
        return self.add(operator, product, bias, domain=_CONTRIB)

    def _residual(
        self,
        name: str,
        inputs: str,
        states: str,
        weights: tuple[torch.Tensor, torch.Tensor],
        norm: Any,
    ) -> str:
        """Add a linear layer of the inputs to the states, and normalize the sum."""
        product = self._product(name, inputs, weights[0])
        return self.add(
            "SkipLayerNormalization",
            product,
            states,
            self.constant(f"{name}.norm.weight", norm.weight),
            self.constant(f"{name}.norm.bias", norm.bias),
            self.constant(f"{name}.bias", weights[1]),
            domain=_CONTRIB,
            epsilon=norm.eps,
        )
