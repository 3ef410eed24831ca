"""Times PyTorch's row operations, transposes and convolutions beside its copy of as many bytes, in microseconds.

Lines of JSON: medians of nine CUDA graphs of twenty calls each. Arguments such as 512x65536 are matrices to take instead, for rows alone.
"""
import json, statistics, sys, time
import torch

torch.backends.cudnn.benchmark = True
DTYPES = ((torch.float32, "f32"), (torch.float16, "f16"))
SHAPES = ((16384, 4096), (65536, 1024), (4096, 16384), (16384, 4097), (2048, 65536), (4096, 4096), (8192, 8192), (8191, 4097), (16384, 1000), (65536, 1000))
# Batch, height and width, channels, filters, kernel, stride, padding.
CONVOLUTIONS = ((32, 56, 64, 64, 3, 1, 1), (32, 28, 128, 128, 3, 1, 1), (32, 14, 256, 256, 3, 1, 1), (64, 28, 128, 512, 1, 1, 0), (8, 28, 128, 192, 3, 1, 1), (32, 56, 64, 128, 3, 2, 1), (16, 112, 3, 64, 7, 2, 3))


def micros(call, count=20):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    times = []
    for _ in range(9):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        time.sleep(0.02)
        graph.replay()
        start.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / count * 1e3)
    return round(statistics.median(times), 2)


def told(name, call):
    print(json.dumps({"name": name, "us": micros(call)}), flush=True)


def rows(m, n, dtype, word):
    x = torch.randn(m, n, device="cuda", dtype=dtype)
    y, z, weight = torch.empty_like(x), torch.empty(n, m, device="cuda", dtype=dtype), torch.randn(n, device="cuda", dtype=dtype)
    what = f"{m}x{n} {word}"
    told(f"copy {what}", lambda: y.copy_(x))
    told(f"softmax {what}", lambda: torch.softmax(x, 1))
    told(f"log_softmax {what}", lambda: torch.log_softmax(x, 1))
    told(f"layer_norm {what}", lambda: torch.nn.functional.layer_norm(x, (n,), weight, weight))
    told(f"rms_norm {what}", lambda: torch.nn.functional.rms_norm(x, (n,), weight))
    told(f"row_sum {what}", lambda: x.sum(1))
    told(f"col_sum {what}", lambda: x.sum(0))
    told(f"cumsum {what}", lambda: torch.cumsum(x, 1))
    told(f"cumsum_0 {what}", lambda: torch.cumsum(x, 0))
    told(f"transpose {what}", lambda: z.copy_(x.t()))


def convolution(b, h, c, f, k, stride, pad):
    last = torch.channels_last
    x = torch.randn(b, c, h, h, device="cuda", dtype=torch.float16).to(memory_format=last)
    w = torch.randn(f, c, k, k, device="cuda", dtype=torch.float16).to(memory_format=last)
    told(f"conv2d {b} {h} {c} {f} {k} {stride} {pad}", lambda: torch.nn.functional.conv2d(x, w, stride=stride, padding=pad))


if __name__ == "__main__":
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__}))
    given = [tuple(map(int, it.split("x"))) for it in sys.argv[1:]]
    for dtype, word in DTYPES:
        for m, n in given or SHAPES:
            rows(m, n, dtype, word)
    for it in () if given else CONVOLUTIONS:
        convolution(*it)
