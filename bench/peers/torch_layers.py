"""Times layers of transformers around products of matrices in f16 with PyTorch, as written and through `torch.compile`, in microseconds.

Lines of JSON, measured as in `torch_ops.py`. Results of compiled layers are compared with those of eager ones first.
"""
import json

import torch

from torch_ops import told


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def rms_norm_matmul(x, weight, w):
    return torch.nn.functional.rms_norm(x, (x.shape[1],), weight) @ w


def gated_mlp(x, weight, w, v, u):
    n = torch.nn.functional.rms_norm(x, (x.shape[1],), weight)
    return x + (torch.nn.functional.silu(n @ w) * (n @ v)) @ u


def int8_matmul(x, w, scale):
    n, k = w.shape
    return x @ (w.view(n, scale.shape[1], -1) * scale[:, :, None]).view(n, k).t()


def both(name, call, *inputs):
    compiled = torch.compile(call)
    torch.testing.assert_close(compiled(*inputs), call(*inputs), rtol=5e-2, atol=5e-1)
    told(f"{name} eager", lambda: call(*inputs))
    told(f"{name} compiled", lambda: compiled(*inputs))


if __name__ == "__main__":
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    with torch.no_grad():
        x, w = randn(4096, 4096), randn(4096, 4096) / 64
        told("matmul 4096", lambda: x @ w)
        both("rms_norm_matmul 4096", rms_norm_matmul, x, randn(4096), w)
        both("gated_mlp 8192 1024 2816", gated_mlp, randn(8192, 1024), randn(1024), *(randn(1024, 2816) / 32 for _ in range(2)), randn(2816, 1024) / 64)
        for m, n in ((4096, 4096), (1, 8192), (2, 8192), (4, 8192), (8, 8192)):
            bytes_ = torch.randint(-128, 128, (n, n), device="cuda", dtype=torch.int8)
            both(f"int8_matmul {m} {n}", int8_matmul, randn(m, n), bytes_, randn(n, n // 128))
        for count in (67_108_864, 134_217_728):
            a, b = torch.randint(0, 255, (count,), device="cuda", dtype=torch.uint8), torch.empty(count, device="cuda", dtype=torch.uint8)
            told(f"copy {count}", lambda: b.copy_(a))
