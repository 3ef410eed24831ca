"""Times PyTorch at shapes that the other scripts here have not: long rows, few vectors times a matrix, attention with heads that share keys, and windows.

Lines of JSON, in microseconds, as `torch_ops.py` measures them.
"""
import torch
from torch.nn import functional

from torch_ops import told

ROWS = ((2048, 16384), (1024, 32768), (512, 65536), (256, 131072), (128, 262144))
MATRICES = ((4096, 4096), (8192, 8192), (11008, 4096), (4096, 14336), (28672, 4096))
TYPES = ((torch.float32, "f32"), (torch.float16, "f16"))


def rows(m, n, dtype, word):
    x, weight = torch.randn(m, n, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype)
    y = torch.empty_like(x)
    told(f"copy {m}x{n} {word}", lambda: y.copy_(x))
    told(f"softmax {m}x{n} {word}", lambda: torch.softmax(x, 1))
    told(f"layer_norm {m}x{n} {word}", lambda: functional.layer_norm(x, (n,), weight, weight))


def product(m, n, k):
    a, b, c = (torch.randn(*shape, device="cuda", dtype=torch.bfloat16) for shape in ((m, k), (n, k), (m, n)))
    told(f"matmul bf16 {m} {n} {k}", lambda: torch.mm(a, b.t(), out=c))


def attention(heads, group, length, causal):
    q = torch.randn(1, heads, length, 128, device="cuda", dtype=torch.float16)
    k, v = (torch.randn(1, heads // group, length, 128, device="cuda", dtype=torch.float16) for _ in range(2))
    call = functional.scaled_dot_product_attention
    told(f"sdpa 1x{heads}x{length} group {group} causal {causal}", lambda: call(q, k, v, is_causal=causal, enable_gqa=True))


def windows(batch, height, channels, dtype, word):
    last = torch.channels_last
    x = torch.randn(batch, channels, height, height, device="cuda", dtype=dtype).to(memory_format=last)
    w = torch.randn(channels, 1, 3, 3, device="cuda", dtype=dtype).to(memory_format=last)
    what = f"{batch} {height} {channels} {word}"
    told(f"depthwise {what}", lambda: functional.conv2d(x, w, padding=1, groups=channels))
    told(f"max_pool2d {what}", lambda: functional.max_pool2d(x, 3, 2, 1))


if __name__ == "__main__":
    for m, n in ROWS:
        for dtype, word in TYPES:
            rows(m, n, dtype, word)
    for m in (1, 2, 4, 8, 16, 32):
        for n, k in MATRICES:
            product(m, n, k)
    for it in ((32, 4, 2048, False), (32, 4, 2048, True), (64, 8, 4096, True)):
        attention(*it)
    for batch, height, channels in ((32, 112, 64), (32, 28, 256)):
        for dtype, word in TYPES:
            windows(batch, height, channels, dtype, word)
