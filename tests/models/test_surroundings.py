"""Loading, encoding and training are the same whatever the program around has set, or refused by
its name.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from pathlib import Path

import numpy
import pytest
import spacy
import torch
import transformers
from helpers.pipelines import MAX_LENGTH, blank, reloaded, scored_pairs, slow
from thinc.api import fix_random_seed, use_ops
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import AlbertConfig, AlbertModel, AutoTokenizer

from spacy_sbert.meta.methods import METHODS, estimator_from_bytes, make_estimator
from spacy_sbert.models import surroundings
from spacy_sbert.models.surroundings import is_from_around, unmasked

try:
    from transformers.initialization import no_init_weights
except ImportError:
    # Version 4
    from transformers.modeling_utils import no_init_weights

TEXTS = ["A man is eating food.", "", "the cat sat on the mat", "he cannot go"]


@contextmanager
def set_to(read, write, value):
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


@contextmanager
def default_device(device):
    torch.set_default_device(device)
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextmanager
def together(*states):
    with ExitStack() as stack:
        for state in states:
            stack.enter_context(state())
        yield


@contextmanager
def numpy_errors(value):
    before = numpy.seterr(all=value)
    try:
        yield
    finally:
        numpy.seterr(**before)


@contextmanager
def default_autocast(dtype):
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", dtype)
    try:
        yield
    finally:
        torch.set_autocast_enabled("cpu", False)
        torch.set_autocast_dtype("cpu", torch.bfloat16)


class Watching(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


class Doubling(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        return (
            made.double()
            if isinstance(made, torch.Tensor) and made.dtype == torch.float32
            else made
        )


@contextmanager
def empty_weights():
    """As `accelerate.init_empty_weights` makes them."""
    register = torch.nn.Module.register_parameter

    def registered(module, name, parameter):
        register(
            module, name, None if parameter is None else torch.nn.Parameter(parameter.to("meta"))
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.nn.Module, "register_parameter", registered)
        yield


def dtype(value):
    return partial(set_to, torch.get_default_dtype, torch.set_default_dtype, value)


no_gradients = {
    "no_grad": torch.no_grad,
    "set_grad_enabled": partial(torch.set_grad_enabled, False),
    "inference_mode": torch.inference_mode,
    "inference_mode, autocast": partial(
        together, torch.inference_mode, partial(torch.autocast, "cpu")
    ),
}
SAME = {
    **no_gradients,
    "autocast, bfloat16": partial(torch.autocast, "cpu", dtype=torch.bfloat16),
    "autocast, float16": partial(torch.autocast, "cpu", dtype=torch.float16),
    "autocast by default": partial(default_autocast, torch.float16),
    "float64 by default": dtype(torch.float64),
    "bfloat16 by default": dtype(torch.bfloat16),
    "float16 by default": dtype(torch.float16),
    "meta by default": partial(default_device, "meta"),
    "with meta": partial(torch.device, "meta"),
    "with meta, float64": partial(together, partial(torch.device, "meta"), dtype(torch.float64)),
    "numpy.seterr": partial(numpy_errors, "raise"),
    "numpy.errstate": partial(numpy.errstate, all="raise"),
    "deterministic": partial(
        set_to, torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "anomaly": torch.autograd.detect_anomaly,
    "saved tensors": partial(torch.autograd.graph.saved_tensors_hooks, torch.clone, torch.clone),
    "module parameters swapped": partial(
        set_to,
        torch.__future__.get_swap_module_params_on_conversion,
        torch.__future__.set_swap_module_params_on_conversion,
        True,
    ),
    "module parameters overwritten": partial(
        set_to,
        torch.__future__.get_overwrite_module_params_on_conversion,
        torch.__future__.set_overwrite_module_params_on_conversion,
        True,
    ),
    "function mode": Watching,
    "dispatch mode": partial(FlopCounterMode, display=False),
    "use_ops": partial(use_ops, "numpy"),
    "verbose": partial(
        set_to,
        transformers.logging.get_verbosity,
        transformers.logging.set_verbosity,
        transformers.logging.DEBUG,
    ),
    "printed short": partial(numpy.printoptions, precision=1, threshold=2, legacy="1.13"),
    "no streams": partial(
        together, partial(set_to, lambda: sys.stderr, partial(setattr, sys, "stderr"), None)
    ),
    "all together": partial(
        together,
        partial(torch.device, "meta"),
        dtype(torch.float64),
        partial(torch.autocast, "cpu", dtype=torch.float16),
        partial(numpy.errstate, all="raise"),
    ),
}
# Which kernels the program chooses
ROUNDED = {
    "attention by products": partial(sdpa_kernel, [SDPBackend.MATH]),
    "attention without a kernel": partial(sdpa_kernel, [SDPBackend.EFFICIENT_ATTENTION]),
    "matrix products": partial(
        set_to, torch.get_float32_matmul_precision, torch.set_float32_matmul_precision, "medium"
    ),
    "without oneDNN": partial(torch.backends.mkldnn.flags, enabled=False),
    "two threads": partial(set_to, torch.get_num_threads, torch.set_num_threads, 2),
}
REFUSED = {
    "fake tensors": (FakeTensorMode, "became FakeTensor"),
    "doubling": (Doubling, "became Tensor, torch.float64"),
    "empty weights": (empty_weights, "made without numbers"),
}
STATES = {**SAME, **ROUNDED}
ENCODERS = [
    "own",
    "reference",
    "bfloat16",
    "albert",
    "static",
    "tokens",
    "bilstm",
    "shared",
    "reranker",
    "meta",
]
QUICK = [
    "inference_mode",
    "no_grad",
    "autocast, float16",
    "float64 by default",
    "with meta",
    "numpy.seterr",
]
QUICK += ["attention without a kernel", "dispatch mode", "all together"]
CASES = [
    pytest.param(encoder, state, marks=() if is_quick else pytest.mark.slow)
    for encoder in ENCODERS
    for state in STATES
    for is_quick in [state == "all together" or (encoder == "own" and state in QUICK)]
]


def settings():
    """What a program can have set."""
    return {
        "PyTorch": (
            torch.is_inference_mode_enabled(),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
        ),
        "device": str(torch.get_default_device()),
        "autocast": (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")),
        "attention": (
            torch.backends.cuda.math_sdp_enabled(),
            torch.backends.cuda.flash_sdp_enabled(),
        ),
        "module parameters": torch.__future__.get_swap_module_params_on_conversion(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
        "numpy": numpy.geterr(),
        "filters": list(warnings.filters),
        "verbosity": transformers.logging.get_verbosity(),
        "recursion": sys.getrecursionlimit(),
    }


@pytest.fixture(scope="module")
def build(make_nlp, tiny_bert, tmp_path_factory):
    """Build a pipeline with an encoder of a kind; its weights are those of a folder, or drawn by a
    seed.
    """
    albert = tmp_path_factory.mktemp("albert")
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    tokenizer.save_pretrained(albert)
    sizes = {
        "hidden_size": 16,
        "embedding_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    sizes |= {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": MAX_LENGTH,
        "num_hidden_layers": 2,
    }
    with torch.random.fork_rng():
        torch.manual_seed(0)
        AlbertModel(AlbertConfig(**sizes, initializer_range=0.3)).save_pretrained(albert)

    def build(encoder):
        fix_random_seed(0)
        if encoder in ("reference", "bfloat16"):
            return make_nlp(transformer={"precision": encoder})
        if encoder == "albert":
            return make_nlp(name=albert)
        if encoder == "reranker":
            nlp = blank()
            nlp.add_pipe("sbert_reranker", config={"model": {"name": str(tiny_bert)}})
            return nlp
        if encoder == "bilstm":
            embed = {
                "@architectures": "spacy.MultiHashEmbed.v2",
                "width": 16,
                "attrs": ["NORM"],
                "rows": [60],
            }
            encode = {"@architectures": "spacy-sbert.BiLSTMEncoder.v1", "width": 16, "depth": 1}
            embed["include_static_vectors"] = False
            tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
            nlp = blank()
            model = {"@architectures": "spacy-sbert.Tok2VecSentenceEncoder.v1", "tok2vec": tok2vec}
            nlp.add_pipe("sbert", config={"model": model})
            nlp.initialize()
            return nlp
        if encoder == "meta":
            nlp = make_nlp(model={"normalize": False})
            nlp.add_pipe(
                "sbert",
                name="sbert_max",
                config={"model": {"name": str(tiny_bert), "pooling": "max"}},
            )
            nlp.add_pipe("sbert_meta")
            return nlp
        return make_nlp(encoder)

    return build


def encoded(nlp):
    """Vectors or scores of texts, and of Docs."""
    pipe = nlp.get_pipe(nlp.pipe_names[-1])
    if nlp.pipe_names[-1] == "sbert_reranker":
        return [numpy.asarray(pipe.score_pairs([("a man", "he ran"), ("the cat", "food")]))]
    docs = list(nlp.pipe(TEXTS))
    numbers = [
        docs[0].similarity(docs[2]),
        docs[0].similarity(docs[1]),
        docs[1].similarity(docs[0]),
    ]
    return [pipe.encode(TEXTS), *(doc.vector for doc in docs), numpy.array(numbers, "float32")]


def trained(nlp, optimizer):
    """The losses of two updates."""
    if nlp.pipe_names[-1] == "sbert_meta":
        return []
    fix_random_seed(1)
    return [
        numpy.array([*nlp.update(scored_pairs(nlp), sgd=optimizer, drop=0.1).values()])
        for _ in range(2)
    ]


def initialized(nlp):
    fix_random_seed(0)
    return None if nlp.pipe_names[-1] == "sbert_meta" else nlp.initialize(lambda: scored_pairs(nlp))


def check_alike(found, expected, state, atol=1e-5):
    assert [array.dtype for array in found] == [array.dtype for array in expected]
    for array, other in zip(found, expected, strict=True):
        assert array.shape == other.shape
        # In training roundings add up, as they do between machines
        if state in ROUNDED:
            assert numpy.allclose(array, other, atol=atol)
        else:
            assert numpy.array_equal(array, other)


@contextmanager
def inside(state):
    """In a state that is the same at the end."""
    with state():
        before = settings()
        yield
        assert settings() == before


@pytest.fixture(scope="module")
def expected(build):
    """Per kind of encoder what it gives where nothing is set."""

    @cache
    def run(encoder):
        nlp = build(encoder)
        first = encoded(nlp)
        optimizer = initialized(nlp)
        losses = trained(nlp, optimizer)
        return first, losses, encoded(nlp)

    return run


@pytest.mark.parametrize(("encoder", "state"), CASES)
def test_used_inside_and_trained_outside(build, expected, tmp_path, encoder, state):
    first, losses, last = expected(encoder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with inside(STATES[state]):
            nlp = build(encoder)
            assert not drew(nlp)
            check_alike(encoded(nlp), first, state)
            check_alike(encoded(reloaded(nlp, tmp_path / "saved")), first, state)
            optimizer = initialized(nlp)
        check_alike(encoded(spacy.load(tmp_path / "saved")), first, state)
        check_alike(trained(nlp, optimizer), losses, state)
        check_alike(encoded(nlp), last, state)


def drew(nlp):
    """Whether loading an encoder changes the state of a generator of random numbers."""
    before = random.getstate(), numpy.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    encoded(nlp)
    return before != (
        random.getstate(),
        numpy.random.get_state()[1].tolist(),
        torch.get_rng_state().tolist(),
    )


@pytest.mark.parametrize(("encoder", "state"), CASES)
def test_trained_inside(build, expected, encoder, state):
    _, losses, last = expected(encoder)
    # Another kernel of attention rounds to other numbers of 8 bits; without arithmetic for them,
    # processors differ by 0.022
    atol = 3e-2 if encoder == "bfloat16" else 1e-5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nlp = build(encoder)
        optimizer = initialized(nlp)
        # Which learn without PyTorch
        if state in no_gradients and encoder not in (
            "static",
            "tokens",
            "meta",
        ):
            before = encoded(nlp)
            with (
                inside(STATES[state]),
                pytest.raises(RuntimeError, match="gradients are turned off"),
            ):
                trained(nlp, optimizer)
            check_alike(encoded(nlp), before, state)
        else:
            with inside(STATES[state]):
                check_alike(trained(nlp, optimizer), losses, state, atol)
        if state not in no_gradients:
            check_alike(encoded(nlp), last, state, atol)


@pytest.mark.parametrize(
    "state", ["inference_mode", "autocast, float16", "float64 by default", "with meta"]
)
def test_copied_inside_trained_outside(build, state):
    nlp = build("own")
    encoded(nlp)
    with SAME[state]():
        copied = nlp.get_pipe("sbert").model.copy()
    shim = next(shim for node in copied.walk() for shim in node.shims)
    weights = list(shim.network.parameters())
    assert {(weight.dtype, weight.is_inference(), weight.is_meta) for weight in weights} == {
        (torch.float32, False, False)
    }


@pytest.mark.parametrize(
    "encoder", ["own", *slow("reference", "albert", "bilstm", "shared", "reranker")]
)
@pytest.mark.parametrize("state", REFUSED)
def test_tensors_that_are_none_are_refused(build, encoder, state):
    make, message = REFUSED[state]
    with make(), pytest.raises(RuntimeError, match=message):
        encoded(build(encoder))
    # As before
    encoded(build(encoder))


def test_a_head_that_is_not_drawn_is_refused(build):
    with (
        no_init_weights(),
        pytest.raises(RuntimeError, match="Cannot draw the weights of a new head"),
    ):
        encoded(build("reranker"))


@pytest.mark.parametrize(
    ("state", "message"), [("autocast, bfloat16", "within torch.autocast"), ("no_grad", "Cannot")]
)
def test_a_curated_transformer_does_not_compute_otherwise_unseen(make_nlp, state, message):
    nlp = make_nlp("curated")
    optimizer = initialized(nlp)
    expected = encoded(nlp)
    with SAME[state](), pytest.raises(RuntimeError, match=message):
        nlp("a man") if "autocast" in state else trained(nlp, optimizer)
    check_alike(encoded(nlp), expected, state)


@pytest.mark.parametrize("transform", ["grad", *slow("vmap", "functionalize")])
def test_within_a_function_of_torch_func(build, expected, tmp_path, transform):
    first, losses, last = expected("own")
    pipelines = []

    def run(x):
        nlp = build("own")
        check_alike(encoded(nlp), first, transform)
        check_alike(encoded(reloaded(nlp, tmp_path / "saved")), first, transform)
        check_alike(trained(nlp, initialized(nlp)), losses, transform)
        pipelines.append(nlp)
        return x.sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(torch.func, transform)(run)(torch.ones(2, 2))
    check_alike(encoded(pipelines[0]), last, transform)


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ["own", "albert"])
def test_called_by_a_compiled_function(build, expected, encoder):
    """PyTorch compiles NumPy's functions, too, where they are called: similarities are rounded
    otherwise.
    """
    first, losses, last = expected(encoder)
    nlp = build(encoder)

    @torch.compile(backend="eager")
    def compiled(x):
        used = encoded(nlp)
        optimizer = initialized(nlp)
        return x + 1, used, trained(nlp, optimizer), encoded(nlp)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for found, wanted in zip(compiled(torch.ones(2))[1:], (first, losses, last), strict=True):
            check_alike(found, wanted, next(iter(ROUNDED)))


class Alarm(Exception):
    """What a program's signal handler raises."""


@pytest.mark.parametrize(
    ("error", "is_around"),
    [
        *(
            (kind("some reason"), True)
            for kind in (MemoryError, RecursionError, FloatingPointError, TimeoutError)
        ),
        *(
            (kind("some reason"), True)
            for kind in (DeprecationWarning, UserWarning, ImportError, Alarm)
        ),
        *(
            (kind("some reason"), False)
            for kind in (ValueError, KeyError, RuntimeError, OSError, Exception)
        ),
    ],
)
def test_only_what_files_lead_to_is_put_down_to_them(error, is_around):
    assert is_from_around(error) is is_around


@pytest.mark.parametrize(
    "error", [ValueError("cut"), Alarm(), KeyboardInterrupt(), ImportError("fugashi")]
)
def test_a_missing_package_hides_no_error(error):
    """As protobuf does, which Transformers 4 looks for whenever a tokenizer fails."""
    try:
        try:
            raise error
        except BaseException:
            raise ImportError("requires the protobuf library")  # noqa: B904 (as Transformers has it)
    except ImportError as hiding:
        assert unmasked(hiding) is error
    assert unmasked(error) is error


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such signal")
@pytest.mark.parametrize(
    "part", ["AutoConfig.from_pretrained", "BertTokenizerFast.from_pretrained"]
)
def test_an_alarm_while_loading_is_passed_on(make_nlp, monkeypatch, part):
    kind, method = part.split(".")

    def ring(*args, **kwargs):
        signal.raise_signal(signal.SIGALRM)

    def handle(number, frame):
        raise Alarm("too late")

    before = signal.signal(signal.SIGALRM, handle)
    monkeypatch.setattr(getattr(transformers, kind), method, ring)
    try:
        with pytest.raises(Alarm):
            encoded(make_nlp())
    finally:
        signal.signal(signal.SIGALRM, before)


def test_threads_share_the_settings_of_the_process():
    """The last of several sets them back."""
    entered = threading.Event()
    leave = threading.Event()

    def compute():
        with surroundings.undisturbed():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=compute)
    with dtype(torch.float64)():
        thread.start()
        assert entered.wait(60)
        with surroundings.undisturbed():
            assert torch.get_default_dtype() == torch.float32
        # Of the other thread
        assert torch.get_default_dtype() == torch.float32
        leave.set()
        thread.join()
        assert torch.get_default_dtype() == torch.float64


# What is set before Python starts, or cannot be undone: code and environment
IN_PROCESSES = {
    "hash seed": ("", {"PYTHONHASHSEED": "7"}),
    # Without docstrings transformers 5 is not imported
    "optimized": ("", {"PYTHONOPTIMIZE": "1"}),
    "plain locale": ("", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    "offline": (
        "",
        {"TRANSFORMERS_OFFLINE": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"},
    ),
    "tensor type": ("import torch; torch.set_default_tensor_type(torch.DoubleTensor)", {}),
    "device": ("import torch; torch.set_default_device('meta')", {}),
    "gradients": ("import torch; torch.set_grad_enabled(False)", {}),
    "frozen": ("import gc; gc.disable(); gc.freeze()", {}),
    "denormals": ("import torch; torch.set_flush_denormal(True)", {}),
    "streams": ("import sys; sys.stdin = sys.stderr = None", {}),
    "thread": ("THREAD", {}),
}
PROGRAM = """
import sys, threading
def main():
    import spacy
    from spacy_sbert import find_sbert
    nlp = spacy.blank("xx")
    nlp.add_pipe("sbert", config={"model": {"name": sys.argv[1]}})
    doc = nlp("A man is eating food.")
    vectors = find_sbert(nlp).encode(["A man is eating food."])
    print(vectors.tobytes().hex(), doc.vector.tobytes().hex())
    print(find_sbert(nlp).fingerprint())
"""


@pytest.mark.parametrize("state", slow(*IN_PROCESSES))
def test_processes(tiny_bert, monkeypatch, state):
    code, environment = IN_PROCESSES[state]
    call = (
        "t = threading.Thread(target=main, daemon=True); t.start(); t.join()"
        if code == "THREAD"
        else "main()"
    )
    setup = "" if code == "THREAD" else code

    def run(program):
        argv = [sys.executable, "-c", program, str(tiny_bert)]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    expected = run(PROGRAM + "main()")
    for key, value in environment.items():
        monkeypatch.setenv(key, value)
    assert run(setup + PROGRAM + call) == expected


FORKED = """
import os, sys, spacy
from spacy_sbert import find_sbert
nlp = spacy.blank("xx")
nlp.add_pipe("sbert", config={"model": {"name": sys.argv[1]}})
texts = ["a man", "the cat sat", "he can go"] * 20
expected = find_sbert(nlp).encode(texts)
if not os.fork():
    os._exit(0 if (find_sbert(nlp).encode(texts) == expected).all() else 1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("value", ["true", "false", None])
def test_a_forked_process_does_not_wait_for_threads_of_tokenizers(tiny_bert, monkeypatch, value):
    if value is None:
        monkeypatch.delenv("TOKENIZERS_PARALLELISM", raising=False)
    else:
        monkeypatch.setenv("TOKENIZERS_PARALLELISM", value)
    monkeypatch.setenv("RAYON_NUM_THREADS", "2")
    argv = [sys.executable, "-c", FORKED, str(tiny_bert)]
    assert (
        subprocess.run(argv, capture_output=True, text=True, check=True, timeout=120).stdout
        == "0\n"
    )


@pytest.mark.parametrize(
    "encoder", ["own", "bilstm", *slow("reference", "bfloat16", "albert", "shared", "reranker")]
)
def test_weights_in_shared_memory_are_not_trained(build, expected, encoder):
    """PyTorch puts them there when a pipeline is pickled for another process, which has the same
    memory.
    """
    _, losses, last = expected(encoder)
    nlp = build(encoder)
    encoded(nlp)
    optimizer = initialized(nlp)
    shims = [
        shim for _, pipe in nlp.components for node in pipe.model.walk() for shim in node.shims
    ]
    shared = [
        weight.detach() for shim in shims for weight in shim._model.share_memory().parameters()
    ]
    before = [weight.clone() for weight in shared]
    check_alike(trained(nlp, optimizer), losses, "shared")
    check_alike(encoded(nlp), last, "shared")
    assert before
    assert all(map(torch.equal, shared, before))


@pytest.mark.parametrize(
    "encoder", ["own", "bilstm", "reranker", *slow("reference", "albert", "static", "tokens")]
)
def test_an_interrupted_update_leaves_no_gradient(build, expected, encoder):
    """What is trained afterwards is the same as if it had not been."""
    _, losses, last = expected(encoder)
    nlp = build(encoder)
    optimizer = initialized(nlp)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        nlp.update(scored_pairs(nlp), sgd=interrupted)
    check_alike(trained(nlp, optimizer), losses, "interrupted")
    check_alike(encoded(nlp), last, "interrupted")


def test_nowhere_to_write_is_named(build, monkeypatch, tmp_path):
    nlp = build("own")
    encoded(nlp)
    monkeypatch.setattr(tempfile, "tempdir", str(Path(tmp_path) / "missing"))
    with pytest.raises(OSError, match="missing"):
        nlp.to_disk(tmp_path / "saved")


@pytest.mark.parametrize("state", SAME)
@pytest.mark.parametrize("method", METHODS)
def test_a_meta_embedding_of_arrays_is_the_same(method, state):
    rng = numpy.random.default_rng(0)
    views = [rng.normal(size=(40, width)).astype("float32") for width in (6, 4)]
    settings = {"epochs": 3} if method == "ae" else {}
    size = 3 if method in ("svd", "gcca", "ae") else None
    fitted = make_estimator(method, size=size, **settings).fit(views, ["a", "b"])
    expected = fitted.transform(views)
    with inside(STATES[state]):
        numpy.testing.assert_array_equal(fitted.transform(views), expected)
        loaded = estimator_from_bytes(fitted.to_bytes())
        numpy.testing.assert_array_equal(loaded.transform(views), expected)
        again = make_estimator(method, size=size, **settings)
        if method == "ae" and state in no_gradients:
            with pytest.raises(RuntimeError, match="gradients are turned off"):
                again.fit(views, ["a", "b"])
            return
        again.fit(views, ["a", "b"])
    numpy.testing.assert_allclose(again.transform(views), expected, atol=1e-6)
