"""The tests marked gpu, where there is no GPU: each comes as far as the GPU, and ends there, and nowhere before."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from test_objectives import OBJECTIVES
from test_training_loop import CONFIGS
from thinc.util import has_gpu

ROOT = Path(__file__).parent.parent.parent
SLOW = "workflows or command or joint or shared"  # the first three are processes of their own
pytestmark = pytest.mark.skipif(has_gpu, reason="about machines without a GPU")


def gpu_tests(*options):
    """What pytest says of them."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "tests/gpu", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_tested():
    named = re.findall(r"^tests/gpu/(\w+\.py)::(\w+)(?:\[(.*)\])?$", gpu_tests("--collect-only"), re.MULTILINE)
    assert {file for file, *_ in named} == {"test_training.py", "test_vectors.py"}

    def cases(test):
        return [case for _, name, case in named if name == test]

    assert cases("test_every_objective_as_on_the_cpu") == [f"{n}-{e}" for n in OBJECTIVES for e in ("own", "shared")]
    assert cases("test_every_shipped_config_trains") == [file.stem for file in CONFIGS]
    assert cases("test_workflows_of_the_project") == ["train", "joint", "reranker"]
    assert cases("test_encode_on_several_gpus") == ["1", "2"]
    assert len(cases("test_half_precision_learns")) == 6 and len(cases("test_docs_are_those_of_the_cpu")) == 14


@pytest.mark.spacy_transformers
@pytest.mark.parametrize("chosen", [f"not ({SLOW})", pytest.param(SLOW, marks=pytest.mark.slow)])
def test_each_ends_at_the_gpu(chosen):
    said = gpu_tests("-rs", "-k", chosen)
    reasons = re.findall(r"^SKIPPED \[(\d+)\] .*?: (.*)$", said, re.MULTILINE)
    assert {re.sub(r"(, CuPy is not installed|s? devices detected| 0).*", "", reason) for _, reason in reasons} <= {
        "no GPU: Cannot use GPU",
        "no GPU: No GPU",
        "no GPU: There is no GPU",
    }
    n_skipped = sum(int(n) for n, _ in reasons)
    assert n_skipped > 5 and re.search(rf"^{n_skipped} skipped, \d+ deselected", said, re.MULTILINE), said


@pytest.mark.slow
def test_they_pass_on_a_cpu_in_place_of_the_gpu():
    """That they are right themselves: what they compare is then the CPU with itself."""
    assert re.search(r"^\d+ passed", gpu_tests("--gpu-id", "-1"), re.MULTILINE)


def test_the_check_before():
    """What `make gpu` begins with says what is missing, and fails."""
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check_gpu.py"], capture_output=True, text=True)
    assert done.returncode == 1
    assert re.match(r"spaCy finds no GPU: .*\. Install CuPy with the libraries of CUDA: ", done.stderr)


def test_the_check_of_pytorch(monkeypatch):
    """Where CuPy finds the GPU, and PyTorch is the build without CUDA."""
    script = runpy.run_path(str(ROOT / "scripts" / "check_gpu.py"))
    script["check"].__globals__["require_gpu"] = lambda gpu_id: True
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RuntimeError, match=r"finds no GPU: expected a build for CUDA \(it is one for the CPU\), and"):
        script["check"](0)
