"""The tests marked gpu, where there is no GPU: each comes as far as the GPU, and ends there, and
nowhere before.
"""

import runpy
from collections import Counter

import pytest
import torch
from helpers.objectives import OBJECTIVES
from helpers.pipelines import ROOT, TRANSFORMERS
from helpers.workflows import CONFIGS
from thinc.util import has_gpu

from spacy_sbert.models.private_attributes import is_installed

# Most of these start processes of their own
SLOW = {
    "test_workflows_of_the_project",
    "test_the_command_that_encodes",
    "test_joint_training_of_a_shared_transformer",
    "test_every_shipped_config_trains",
}

pytestmark = pytest.mark.skipif(has_gpu, reason="about machines without a GPU")


class GpuTests:
    """Run tests/gpu in this process, and keep what was collected, and the outcomes; quick: one case
    of each test.
    """

    def __init__(self, folder, *options, quick=False):
        self.collected = []
        self.reports = []
        self.quick = quick
        plain = ["-q", "-s", "-m", "gpu", f"--basetemp={folder}", str(ROOT / "tests" / "gpu")]
        without = [
            part
            for name in ("cacheprovider", "xdist", "faulthandler")
            for part in ("-p", f"no:{name}")
        ]
        self.code = pytest.main([*plain, *without, *options], plugins=[self])

    def pytest_collection_modifyitems(self, items):
        self.collected = [(item.originalname, getattr(item, "callspec", None)) for item in items]
        if self.quick:
            first = {
                item.originalname: item for item in reversed(items) if item.originalname not in SLOW
            }
            items[:] = first.values()

    def pytest_runtest_logreport(self, report):
        if report.failed or report.when == "call" or (report.skipped and report.when == "setup"):
            self.reports.append(report)


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_each_ends_at_the_gpu(tmp_path, quick):
    found = GpuTests(tmp_path / "gpu", quick=quick)
    counts = Counter(name for name, _ in found.collected)
    assert counts["test_every_objective_as_on_the_cpu"] == len(TRANSFORMERS) * len(OBJECTIVES)
    assert counts["test_every_shipped_config_trains"] == len(CONFIGS)
    assert len(found.reports) > 6
    assert found.code == 0
    reasons = [
        report.longrepr[2] if report.skipped else str(report.longrepr) for report in found.reports
    ]
    missing = (
        "Skipped: no GPU: Cannot use GPU",
        "Skipped: no GPU: No ",
        "Skipped: no GPU: There is no GPU",
    )
    missing += () if is_installed() else ("Skipped: spacy-transformers is not installed",)
    assert [reason for reason in reasons if not reason.startswith(missing)] == []


@pytest.mark.slow
def test_they_pass_on_a_cpu_in_place_of_the_gpu(tmp_path):
    """That they are right themselves: what they compare is then the CPU with itself."""
    found = GpuTests(tmp_path / "gpu", "--gpu-id=-1")
    # Those of spacy-transformers
    expected = {"passed"} if is_installed() else {"passed", "skipped"}
    assert found.code == 0
    assert {report.outcome for report in found.reports} == expected


def test_check_before_the_gpu_tests(monkeypatch):
    """`make gpu` begins with it: without CuPy, and with the build of PyTorch without CUDA."""
    check = runpy.run_path(str(ROOT / "scripts" / "check_gpu.py"))["check"]
    with pytest.raises(RuntimeError, match=r"Install CuPy"):
        check(0)
    check.__globals__["require_gpu"] = lambda gpu_id: True
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RuntimeError, match=r"it is one for the CPU"):
        check(0)
