"""What a call costs the host, beside PyTorch's own and Triton's: ``python launch_overhead.py [--json FILE]``.

Kernels on 1024 elements, which a GPU has done before the next is started, so that the time is that of the host. Each figure is the
median of batches; between two batches the device is waited for, outside of the time, so that its queue is never full.
"""

import argparse
import json
import statistics
import sys
import time

import tilewright
import torch

SIZE = 1024
BATCH = 200
BATCHES = 60


def microseconds(call):
    """The median over batches of the host's time for one call."""
    for _ in range(BATCH):
        call()
    found = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(BATCH):
            call()
        found.append((time.perf_counter() - begin) / BATCH * 1e6)
    torch.cuda.synchronize()
    return statistics.median(found)


def of_triton(a, b, c):
    """A launch of a Triton kernel that adds."""
    import triton
    import triton.language as tl

    @triton.jit
    def add(a, b, c, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        inside = at < n
        tl.store(c + at, tl.load(a + at, mask=inside) + tl.load(b + at, mask=inside), mask=inside)

    return lambda: add[(1,)](a, b, c, SIZE, BLOCK=SIZE)


WORKLOAD = """workload(
    name: "add",
    about: "A sum, element by element.",
    params: {"n": size(default: 1024)},
    axes: {"i": "n"},
    tensors: {
        "A": input(dtype: "f32", shape: ["n"]),
        "B": input(dtype: "f32", shape: ["n"]),
        "C": output(dtype: "f32", shape: ["n"]),
    },
    stages: ["C[i] = A[i] + B[i]"],
)
"""


def main():
    """Measures and prints; fails where a call costs more than 1.3 of Triton's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the figures there, too")
    options = parser.parse_args()
    import pathlib
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "add.ron"
        path.write_text(WORKLOAD)
        kernel = tilewright.auto(str(path), n=SIZE)
        symbolic = tilewright.auto(str(path), n="N")
    a, b, c = (torch.rand(SIZE, device="cuda") for _ in range(3))
    kernel(a, b, out=c)
    torch.testing.assert_close(c, a + b)
    symbolic(a, b, out=c)
    op = kernel.to_torch_op("tilewright_bench::add")
    calls = {
        "tilewright, out=": lambda: kernel(a, b, out=c),
        "tilewright, out= and stream=": lambda stream=torch.cuda.current_stream().cuda_stream: kernel(
            a, b, out=c, stream=stream
        ),
        "tilewright, any size, out=": lambda: symbolic(a, b, out=c),
        "tilewright, new result": lambda: kernel(a, b),
        "tilewright as an operator of PyTorch": lambda: op(a, b),
        "torch.add, out=": lambda: torch.add(a, b, out=c),
        "torch.add, new result": lambda: torch.add(a, b),
    }
    try:
        calls["Triton"] = of_triton(a, b, c)
    except ImportError:
        print("Triton is not installed", file=sys.stderr)
    found = {name: microseconds(call) for name, call in calls.items()}
    for name, it in found.items():
        print(f"{name:<40} {it:6.2f} us")
    ratio = found["tilewright, out="] / found["Triton"] if "Triton" in found else None
    if options.json:
        machine = torch.cuda.get_device_name()
        versions = {"torch": torch.__version__, "python": sys.version.split()[0]}
        with open(options.json, "w") as file:
            json.dump({"machine": machine, "versions": versions, "microseconds": found, "of_triton": ratio}, file)
    if ratio is not None:
        print(f"{ratio:.2f} of Triton's launch; at most 1.30 is wanted")
        return 0 if ratio <= 1.3 else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
