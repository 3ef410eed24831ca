"""Products of fp8 in PyTorch: with one scale, and with scales of blocks. Prints a line of JSON for each.

Ten calls are recorded in a graph, so that launches cost nothing, and the graph is timed forty times; the median counts.
"""

import datetime
import json

import torch

SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192), (4096, 7168, 2048), (4096, 2112, 7168))


def microseconds(call, rounds=40):
    for _ in range(10):
        call()
    torch.cuda.synchronize()
    graph, times = torch.cuda.CUDAGraph(), []
    with torch.cuda.graph(graph):
        for _ in range(10):
            call()
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e2)
    return sorted(times)[rounds // 2]


def tell(what, m, n, k, us):
    found = {"peer": "torch " + torch.__version__, "what": what, "m": m, "n": n, "k": k, "us": round(us, 2)}
    found["tflops"] = round(2 * m * n * k / us / 1e6, 1)
    found |= {"device": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    print(json.dumps(found | {"date": datetime.date.today().isoformat()}), flush=True)


one = torch.tensor(1.0, device="cuda")
for m, n, k in SHAPES:
    a, b = (torch.randn(rows, k, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n))
    for fast in (True, False):
        call = lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=fast
        )
        tell(f"scaled_mm, {'fast' if fast else 'full'} accumulation", m, n, k, microseconds(call))
    rows = torch.rand(k // 128, m, device="cuda").t()
    blocks = torch.rand((n + 127) // 128, k // 128, device="cuda").t()
    call = lambda: torch._scaled_mm(a, b.t(), scale_a=rows, scale_b=blocks, out_dtype=torch.bfloat16)
    tell("scaled_mm, blocks of scales", m, n, k, microseconds(call))
