"""What the tests share beside fixtures: pairs, and a look at weights."""

import json
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.util import registry
from spacy.vocab import Vocab
from thinc.api import Config
from thinc.types import Ragged
from thinc.util import to_numpy
from transformers import AutoModel, AutoTokenizer

from spacy_sbert.models.poolings import make_pooling
from spacy_sbert.models.private_attributes import is_installed
from spacy_sbert.readers import pair_doc

ROOT = Path(__file__).parents[2]
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
# The factory of a shared transformer, and its architecture
SHARING = {
    "shared": ("sbert_transformer", "spacy-sbert.TransformerTok2Vec.v1"),
    "spacy-transformers": ("transformer", "spacy-sbert.TransformerModel.v1"),
}
TRANSFORMERS = ("own", *SHARING)
# A tok2vec of its own, or that of the pipeline
TOKENS = ("tokens", "listening")
# Which read the tokens of whole Docs: beside these a shared curated_transformer
WHOLE_DOCS = (
    *TOKENS,
    "curated",
)
# Without a transformer of this package
OTHERS = (*WHOLE_DOCS, "static")
ENCODERS = (*TRANSFORMERS, *OTHERS)
INSTALLED = tuple(
    encoder for encoder in ENCODERS if encoder != "spacy-transformers" or is_installed()
)
# Where it does not matter whose the transformer is
TRAINED = "shared"
HOLDER = {
    "own": "sbert",
    "shared": "transformer",
    "tokens": "sbert",
    "listening": "tok2vec",
    "curated": "transformer",
}
HOLDER |= {"static": "sbert", "spacy-transformers": "transformer"}
CNN = {
    "@architectures": "spacy.HashEmbedCNN.v2",
    "width": 16,
    "depth": 1,
    "embed_size": 100,
    "window_size": 1,
}
CNN |= {"maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None}
TOK2VEC_LISTENER = {"@architectures": "spacy.Tok2VecListener.v1", "width": 16}
CURATED = "spacy-curated-transformers."
# Of the tiny BERT
MAX_LENGTH = 24


def make_example(nlp: Language, first: str, second: str, score: float = 0.5) -> Example:
    """A pair as PairCorpus makes it."""
    reference = pair_doc(nlp, first, second, score)
    predicted = reference.copy()
    predicted.spans["sbert"].attrs.clear()
    return Example(predicted, reference)


PAIRS = [
    ("A man is eating food.", "Someone is having a meal.", 1.0),
    ("The cat sat on the mat.", "A man is eating.", 0.0),
    ("He cannot go.", "The dog ran fast.", 0.4),
]


def scored_pairs(nlp: Language) -> list[Example]:
    """PAIRS as PairCorpus makes them."""
    return [make_example(nlp, *pair) for pair in PAIRS]


def slow(*cases: Any) -> list[Any]:
    """Cases of the slow suite, to parametrize."""
    return [pytest.param(case, marks=pytest.mark.slow) for case in cases]


@contextmanager
def no_warnings() -> Iterator[None]:
    """Where a warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@contextmanager
def warnings_with(part: str) -> Iterator[list[str]]:
    """All warnings in which a text occurs, as often as they are given; the list is filled at the
    end.
    """
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    found += [str(one.message) for one in caught if part in str(one.message)]


def shipped_config(name: str, encoder: Path) -> Config:
    """Return a config of the project for another encoder, not interpolated."""
    config = Config().from_disk(ROOT / "configs" / f"{name}.cfg", interpolate=False)
    shared = config["components"].get("transformer", {}).get("model")
    if shared is not None:
        shared["name"] = str(encoder)
    return config


def change_json(file: Path, **changes: Any) -> None:
    """Change keys of an object in JSON, which may be new; of ... they are left out."""
    content = {**(json.loads(file.read_text(encoding="utf8")) if file.is_file() else {}), **changes}
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        json.dumps({key: value for key, value in content.items() if value is not ...}),
        encoding="utf8",
    )


def write_modules(folder: Path, *modules: tuple[str, str]) -> None:
    """Write the modules.json of sentence-transformers, of kinds and paths."""
    types = [(path, f"sentence_transformers.models.{kind}") for kind, path in modules]
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(types)
    ]
    (folder / "modules.json").write_text(json.dumps(listed), encoding="utf8")


def blank(lang: str = "xx") -> Language:
    """An empty pipeline that splits the contractions of the tests' texts; all those of English load
    in 0.2 s.
    """
    nlp = spacy.blank(lang)
    for first, second in (("can", "not"), ("ca", "n't"), ("do", "n't"), ("is", "n't")):
        nlp.tokenizer.add_special_case(first + second, [{"ORTH": first}, {"ORTH": second}])
    return nlp


def one_pipe(name: Path | str, factory: str = "sbert", **model: Any) -> Language:
    """A pipeline of one component, with the encoder of this name, and settings of its model."""
    nlp = blank()
    nlp.add_pipe(factory, config={"model": {"name": str(name), **model}})
    return nlp


# To parametrize
EVERY_ENCODER = [*TRANSFORMERS, *slow(*OTHERS)]
# Overlapping windows, as by default
STRIDED = "spacy-transformers.strided_spans.v1"
STOCK = "spacy-transformers.TransformerModel.v3"


def stock_nlp(
    folder: Path, getter: str = STRIDED, architecture: str = STOCK, **spans: Any
) -> Language:
    """A transformer with span getters of spacy-transformers' own, and sentence vectors on it."""
    model = {"@architectures": architecture, "get_spans": {"@span_getters": getter, **spans}}
    nlp = one_pipe(folder, "transformer", **model)
    nlp.add_pipe(
        "sbert", config={"model": {"@architectures": "spacy-sbert.SharedSentenceEncoder.v1"}}
    )
    nlp.initialize()
    return nlp


def make_pipeline(make_nlp: Any, encoder: str = "own", **settings: Any) -> Language:
    """A pipeline with settings of the transformer, initialised."""
    nlp = make_nlp(encoder, transformer=settings)
    nlp.initialize()
    return nlp


def finish_update(nlp: Language, optimizer: Any) -> None:
    """A step of all pipes after all have called back, as `spacy train` makes it: tok2vec waits for
    no listener.
    """
    for _, pipe in nlp.pipeline:
        pipe.finish_update(optimizer)


def reloaded(nlp: Language, path: Path, **settings: Any) -> Language:
    """A pipeline, saved and loaded."""
    nlp.to_disk(path)
    return spacy.load(path, **settings)


def through_docbin(docs: list[Doc], vocab: Vocab | None = None) -> list[Doc]:
    """Docs as a DocBin of them gives them again."""
    data = DocBin(docs=docs, store_user_data=True).to_bytes()
    return list(DocBin().from_bytes(data).get_docs(vocab or docs[0].vocab))


def shim_of(nlp: Language, pipe: str = "sbert") -> Any:
    """The shim of the transformer inside a pipe."""
    return next(shim for node in nlp.get_pipe(pipe).model.walk() for shim in node.shims)


def gradients(nlp: Language, pipe: str) -> dict[str, numpy.ndarray]:
    """The gradients of the transformer's parameters inside a pipe."""
    parameters = shim_of(nlp, pipe)._model.named_parameters()
    return {k: v.grad.cpu().numpy().copy() for k, v in parameters if v.grad is not None}


def pooled(states: numpy.ndarray, pooling: str) -> numpy.ndarray:
    """The vector of one row of states."""
    return make_pooling(pooling).predict(Ragged(states, numpy.array([len(states)], dtype="int32")))[
        0
    ]


def weights(nlp: Language, pipe: str) -> dict[str, numpy.ndarray]:
    """A copy of the parameters of the encoder inside a pipe."""
    model = nlp.get_pipe(pipe).model
    nodes = list((model.get_ref("encoder") if model.has_ref("encoder") else model).walk())
    for shim in (shim for node in nodes for shim in node.shims):
        return {
            key: value.detach().cpu().numpy().copy()
            for key, value in shim._model.named_parameters()
        }
    named = [
        (f"{i} {name}", node.get_param(name))
        for i, node in enumerate(nodes)
        for name in node.param_names
    ]
    found = {key: to_numpy(value).copy() for key, value in named}
    if not found:
        raise ValueError(pipe)
    return found


def parameters_of(nlp: Language) -> dict[tuple[str, int, str], numpy.ndarray]:
    """A copy of all that learns in a pipeline, of PyTorch and of Thinc: by pipe, number of the node
    and name.
    """
    found = {}
    for pipe_name, pipe in nlp.pipeline:
        for number, node in enumerate(pipe.model.walk() if hasattr(pipe, "model") else ()):
            held = {
                key: to_numpy(node.get_param(key))
                for key in node.param_names
                if node.has_param(key)
            }
            for shim in node.shims:
                held |= {
                    key: value.detach().cpu().numpy()
                    for key, value in shim._model.named_parameters()
                }
            found |= {(pipe_name, number, key): value.copy() for key, value in held.items()}
    return found


def add_curated(nlp: Language, folder: Path | str, *, window: int = 24, **settings: Any) -> None:
    """Add a curated_transformer with the BERT of a folder under the name that spaCy's own pipelines
    give it, and load
    it.

    window (int): wordpieces in a stride. They do not overlap: spacy-curated-transformers 0.3.1
        hands back a quarter of the gradient of wordpieces that are in two, where it is a half.
        settings: of the component.
    """
    bert = json.loads((Path(folder) / "config.json").read_text(encoding="utf8"))
    model: dict[str, Any] = {
        "@architectures": f"{CURATED}BertTransformer.v1",
        **{name: bert[name] for name in ("vocab_size", "num_attention_heads", "num_hidden_layers")},
        **{"hidden_width": bert["hidden_size"], "intermediate_width": bert["intermediate_size"]},
        **dict.fromkeys(
            ("max_position_embeddings", "model_max_length"), bert["max_position_embeddings"]
        ),
        "attention_probs_dropout_prob": 0.0,
        "hidden_dropout_prob": 0.0,
        "piece_encoder": {"@architectures": f"{CURATED}BertWordpieceEncoder.v1"},
        "with_spans": {
            "@architectures": f"{CURATED}WithStridedSpans.v1",
            "window": window,
            "stride": window,
        },
    }
    _let_curated_train()
    pipe: Any = nlp.add_pipe(
        "curated_transformer", name="transformer", config={"model": model, **settings}
    )
    loaders = {
        "encoder_loader": "HFTransformerEncoderLoader.v1",
        "piecer_loader": "HFPieceEncoderLoader.v1",
    }
    blocks = {
        key: {"@model_loaders": CURATED + loader, "name": str(folder)}
        for key, loader in loaders.items()
    }
    nlp.config["initialize"]["components"]["transformer"] = blocks
    doc = nlp.make_doc("a")
    pipe.initialize(lambda: [Example(doc, doc)], **registry.resolve(blocks))


def _let_curated_train() -> None:
    """Train with NumPy 2.4, too: spacy-curated-transformers 0.3.1 asks for `float` of an array of
    shape (1,).
    """
    from spacy_curated_transformers.pipeline import transformer

    vars(transformer).setdefault(
        "float", lambda given: given.item() if hasattr(given, "item") else float(given)
    )


def blocks(page: str, language: str = "python") -> list[str]:
    """The blocks of a language in Markdown."""
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def real_data() -> Path:
    return _given_folder("SPACY_SBERT_DATA", "a folder with sts/STSBenchmark")


def mpnet() -> Path:
    return _given_folder("SPACY_SBERT_MPNET", "the folder of scripts/fetch_mpnet.py")


def _given_folder(variable: str, expected: str) -> Path:
    """The folder that a variable names; skips the test where it is not set."""
    if not os.environ.get(variable):
        pytest.skip(f"set {variable} to {expected}")
    return Path(os.environ[variable])


MEAN = {"@layers": "reduce_mean.v1"}
CURATED_LISTENER = {
    "@architectures": f"{CURATED}LastTransformerLayerListener.v1",
    "width": 16,
    "pooling": MEAN,
}
LISTENER = {
    "@architectures": "spacy-sbert.TransformerListener.v1",
    "grad_factor": 1.0,
    "pooling": MEAN,
}
STOCK_LISTENER = {**LISTENER, "@architectures": "spacy-transformers.TransformerListener.v1"}


def add_tagger(nlp: Language, name: str = "tagger", *, tok2vec: Any = None, **kwargs) -> None:
    """A second component that listens, at token level, to the `transformer` of the pipeline."""
    if tok2vec is None:
        is_stock = nlp.get_pipe_meta("transformer").factory == "transformer"
        tok2vec = STOCK_LISTENER if is_stock else LISTENER
    config = {"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}}
    nlp.add_pipe("tagger", name=name, config=config, **kwargs).add_label("X")


_DENSE = {"@layers": "spacy-sbert.Dense.v1", "nI": 16, "nO": 4, "activation": "tanh"}
# Settings that change vectors, by what they change
OTHER_VECTORS = {
    "pooling": {"pooling": "cls"},
    "two poolings": {"pooling": "mean+max"},
    "normalisation": {"normalize": True},
    "windows": {"overflow": "windows"},
    "width": {"truncate_dim": 8},
    "prompt": {"prompts": {"p": "a dog "}, "default_prompt_name": "p"},
    "prompt, pooled without": {
        "prompts": {"p": "a dog "},
        "default_prompt_name": "p",
        "include_prompt": False,
    },
    "case": {"tokenizer_config": {"do_lower_case": False}},
    "accents": {"tokenizer_config": {"strip_accents": False}},
    "limit": {"tokenizer_config": {"model_max_length": 12}},
    "end that is kept": {"tokenizer_config": {"truncation_side": "left"}},
    "activation": {"transformer_config": {"hidden_act": "relu"}},
    "layer norm": {"transformer_config": {"layer_norm_eps": 0.1}},
    "dense": {"dense": _DENSE},
    "dense, another activation": {"dense": {**_DENSE, "activation": "sigmoid"}},
}


def autograd(folder: Path, loss: Any) -> dict[str, Any]:
    """The gradients of a loss by PyTorch, in float64, by the names of the parameters.

    loss (Callable): of a network of Hugging Face's and its tokenizer.
    """
    network = AutoModel.from_pretrained(folder).double().eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    loss(network, tokenizer).backward()
    return {
        name: own.grad
        for name, own in network.named_parameters()
        if own.grad is not None and own.grad.any()
    }


def error_of_gradients(shim: Any, expected: dict[str, Any], factor: float = 1.0) -> float:
    """The largest difference of the gradients in a shim to others, times a factor, relative to the
    largest of them.
    """
    given = {name: own.grad for name, own in shim._model.named_parameters()}
    scale = max(float(gradient.abs().max()) for gradient in expected.values())
    differences = []
    for name, gradient in expected.items():
        found = given[name]
        differences.append(
            gradient * factor if found is None else found.double() - gradient * factor
        )
    return max(float(difference.abs().max()) for difference in differences) / scale
