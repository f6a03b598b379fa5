"""Whether CuPy and PyTorch find a GPU, compute there, and hand arrays to one another: what `make
gpu` begins with.

Usage: python scripts/check_gpu.py [--gpu-id 0]
Prints the GPU and the versions.
"""

import argparse
from importlib.metadata import version
from typing import Any

import torch
from thinc.api import get_current_ops, require_gpu, torch2xp, xp2torch
from thinc.compat import cupy

NO_CUPY = (
    "spaCy finds no GPU: {reason}. Install CuPy with the libraries of CUDA: pip install -e '.[gpu]'"
)
NO_TORCH = (
    "PyTorch {version} finds no GPU: expected a build for CUDA ({built}), and a driver that is new "
    "enough for it"
)


def check(gpu_id: int) -> str:
    """Compute on a GPU with CuPy, a kernel of Thinc, and PyTorch, on the same memory.

    RETURNS (str): the GPU, and the versions.
    RAISES (RuntimeError): if one of them cannot.
    """
    try:
        require_gpu(gpu_id)
    except ValueError as error:
        raise RuntimeError(NO_CUPY.format(reason=error)) from error
    if not torch.cuda.is_available():
        built = (
            f"it is one for {torch.version.cuda}" if torch.version.cuda else "it is one for the CPU"
        )
        raise RuntimeError(NO_TORCH.format(version=torch.__version__, built=built))
    ops: Any = get_current_ops()
    sums = ops.reduce_sum(ops.xp.arange(6, dtype="float32").reshape(3, 2), ops.asarray1i([1, 2]))
    # On the memory of sums
    xp2torch(sums).mul_(2)
    found = ops.to_numpy(torch2xp(xp2torch(sums) + 1)).tolist()
    if found != [[1.0, 3.0], [13.0, 17.0]]:
        raise RuntimeError(f"CuPy and PyTorch do not share memory on the GPU: {found}")
    runtime = cupy.cuda.runtime.runtimeGetVersion()
    return (
        f"{torch.cuda.get_device_name(gpu_id)}; torch {torch.__version__} (CUDA "
        f"{torch.version.cuda}), CuPy {cupy.__version__} (CUDA {runtime}), thinc {version('thinc')}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gpu-id", type=int, default=0)
    args = parser.parse_args()
    try:
        print(check(args.gpu_id))
    except RuntimeError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
