"""Times PyTorch's losses, lookups, windows, sparse rows and attention, in microseconds, beside its copy of as many bytes.

Lines of JSON as those of torch_ops.py, by the same measurement.
"""
import json
import torch
from torch_ops import DTYPES, told

torch.backends.cudnn.benchmark = True
functional = torch.nn.functional


def rows(m, n, dtype, word):
    x = torch.randn(m, n, device="cuda", dtype=dtype)
    y = torch.empty_like(x)
    label = torch.randint(n, (m,), device="cuda")
    what = f"{m}x{n} {word}"
    told(f"copy {what}", lambda: y.copy_(x))
    told(f"argmax {what}", lambda: x.argmax(1))
    told(f"cross_entropy {what}", lambda: functional.cross_entropy(x, label, reduction="none"))


def lookup(m, n, count, dtype, word):
    table = torch.randn(count, n, device="cuda", dtype=dtype)
    ids = torch.randint(count, (m,), device="cuda", dtype=torch.int32)
    told(f"embedding {m}x{n} of {count} {word}", lambda: functional.embedding(ids, table))


def windows(b, h, c, dtype, word):
    last = torch.channels_last
    x = torch.randn(b, c, h, h, device="cuda", dtype=dtype).to(memory_format=last)
    w = torch.randn(c, 1, 3, 3, device="cuda", dtype=dtype).to(memory_format=last)
    told(f"max_pool2d {b} {h} {c} {word}", lambda: functional.max_pool2d(x, 3, 2, 1))
    told(f"depthwise_conv2d {b} {h} {c} {word}", lambda: functional.conv2d(x, w, padding=1, groups=c))


def attention(b, h, s, d, causal):
    q, k, v = (torch.randn(b, h, s, d, device="cuda", dtype=torch.float16) for _ in range(3))
    mask = "causal" if causal else "none"
    told(f"attention {b} {h} {s} {d} {mask}", lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal))


def sparse(m, k, n, count):
    a = torch.zeros(m, k, device="cuda")
    a.scatter_(1, torch.randint(k, (m, count), device="cuda"), torch.randn(m, count, device="cuda"))
    a, b = a.to_sparse_csr(), torch.randn(k, n, device="cuda")
    told(f"csr_matmul {m} {k} {n} {count}", lambda: a @ b)


if __name__ == "__main__":
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    for dtype, word in DTYPES:
        for m, n in ((16384, 1000), (16384, 4096), (4096, 16384), (4096, 32000), (2048, 131072)):
            rows(m, n, dtype, word)
        lookup(16384, 4096, 32000, dtype, word)
        windows(32, 112, 64, dtype, word)
        windows(32, 28, 256, dtype, word)
    for causal in (False, True):
        for b, h, s, d in ((4, 16, 1024, 64), (4, 16, 2048, 128), (2, 16, 4096, 128)):
            attention(b, h, s, d, causal)
    for it in ((16384, 4096, 64, 32), (4096, 4096, 256, 64)):
        try:
            sparse(*it)
        except RuntimeError as err:
            print(json.dumps({"name": f"csr_matmul {it}", "error": str(err)[:100]}))
