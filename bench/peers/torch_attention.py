"""Times PyTorch's scaled_dot_product_attention by each of its backends. One JSON object a line; the median of 30, in microseconds.

Arguments are shapes, batch x heads x keys."""

import json
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def median_us(f):
    for _ in range(3):
        f()
    torch.cuda.synchronize()
    times = []
    for _ in range(30):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        f()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1000)
    return sorted(times)[15]


def told(b, h, s, d, causal):
    q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=torch.float16) for _ in range(3))
    flops = 4 * b * h * s * s * d / (2 if causal else 1)
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel(backend):
                us = median_us(lambda: scaled_dot_product_attention(q, k, v, is_causal=causal))
        except RuntimeError as err:
            print(json.dumps({"backend": name, "error": str(err)[:100]}))
            continue
        shape = {"batch": b, "heads": h, "keys": s, "depth": d, "causal": causal}
        print(json.dumps({"backend": name, **shape, "us": round(us, 1), "tflops": round(flops / us / 1e6, 1)}), flush=True)


if __name__ == "__main__":
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    for depth in (128, 64):
        for shape in sys.argv[1:] or ("4x48x1024", "4x48x2048", "4x48x4096", "4x48x8192"):
            batch, heads, size = (int(it) for it in shape.split("x"))
            for causal in (False, True):
                told(batch, heads, size, depth, causal)
