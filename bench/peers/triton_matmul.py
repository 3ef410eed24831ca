"""Times Triton's matmul with tensor descriptors, persistent or not, autotuned, beside cuBLAS in one process.

C[m, n] = A[m, k] · B[n, k]^T in bf16 with N(0, 1) data. Lines of JSON: median times of batches that alternate.
"""
import json, statistics, sys, time
import torch, triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def boxes(nargs):
    m, n, k = nargs["BM"], nargs["BN"], nargs["BK"]
    nargs["a"].block_shape = [m, k]
    nargs["b"].block_shape = [n, k]
    nargs["c"].block_shape = [m, n // 2 if nargs["HALVES"] else n]


def configs():
    out = []
    for m, n in [(128, 256), (128, 128), (256, 128), (64, 128), (64, 256), (128, 192), (128, 64), (64, 64)]:
        if n == 192:
            continue  # Blocks are powers of two.
        for stages in (3, 4, 6):
            for warps in (4, 8):
                if m * n // warps > 4096 or (m * n < 16384 and warps == 8):
                    continue
                for group in (8,):
                    for halves in ((False, True) if m * n == 32768 else (False,)):
                        meta = dict(BM=m, BN=n, BK=64, GROUP=group, HALVES=halves)
                        if (m + n) * 128 * stages + m * n * 2 // (2 if halves else 1) > 227 * 1024:
                            continue
                        out.append(triton.Config(meta, num_stages=stages, num_warps=warps, pre_hook=boxes))
    return out


@triton.jit
def place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    group = tile // (GROUP * tiles_n)
    first = group * GROUP
    rows = min(tiles_m - first, GROUP)
    inside = tile % (GROUP * tiles_n)
    return first + inside % rows, inside // rows


@triton.jit
def leave(c, acc, at_m, at_n, BM: tl.constexpr, BN: tl.constexpr, HALVES: tl.constexpr):
    if HALVES:
        both = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
        left, right = tl.split(both)
        c.store([at_m, at_n], left.to(tl.bfloat16))
        c.store([at_m, at_n + BN // 2], right.to(tl.bfloat16))
    else:
        c.store([at_m, at_n], acc.to(tl.bfloat16))


@triton.autotune(configs=configs(), key=["M", "N", "K"], warmup=5, rep=30)
@triton.jit
def one_tile(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, HALVES: tl.constexpr):
    at_m, at_n = place(tl.program_id(0), tl.cdiv(M, BM), tl.cdiv(N, BN), GROUP)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(tl.cdiv(K, BK)):
        acc = tl.dot(a.load([at_m * BM, k * BK]), b.load([at_n * BN, k * BK]).T, acc)
    leave(c, acc, at_m * BM, at_n * BN, BM, BN, HALVES)


@triton.autotune(configs=configs(), key=["M", "N", "K"], warmup=5, rep=30)
@triton.jit
def persistent(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, HALVES: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, SMS, flatten=True):
        at_m, at_n = place(tile, tiles_m, tiles_n, GROUP)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([at_m * BM, k * BK]), b.load([at_n * BN, k * BK]).T, acc)
        leave(c, acc, at_m * BM, at_n * BN, BM, BN, HALVES)


@triton.autotune(configs=[it for it in configs() if it.kwargs["BM"] == 128], key=["M", "N", "K"], warmup=5, rep=30)
@triton.jit
def specialised(a, b, c, M, N, K, SMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, HALVES: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, SMS, warp_specialize=True):
        at_m, at_n = place(tile, tiles_m, tiles_n, GROUP)
        acc = tl.zeros((BM, BN), dtype=tl.float32)
        for k in range(tl.cdiv(K, BK)):
            acc = tl.dot(a.load([at_m * BM, k * BK]), b.load([at_n * BN, k * BK]).T, acc)
        leave(c, acc, at_m * BM, at_n * BN, BM, BN, HALVES)


FAILED = set()


def seconds(run, count):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(count):
        run()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3 / count


def measure(m, n, k, rounds=15):
    a, b = torch.randn(m, k, device="cuda").bfloat16(), torch.randn(n, k, device="cuda").bfloat16()
    c = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    da, db, dc = (TensorDescriptor.from_tensor(x, [1, 1]) for x in (a, b, c))
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    blocks = lambda meta: triton.cdiv(m, meta["BM"]) * triton.cdiv(n, meta["BN"])
    out = torch.empty_like(c)
    runs = {
        "cublas": lambda: torch.mm(a, b.t(), out=out),
        "one_tile": lambda: one_tile[lambda meta: (blocks(meta),)](da, db, dc, m, n, k),
        "persistent": lambda: persistent[lambda meta: (min(sms, blocks(meta)),)](da, db, dc, m, n, k, sms),
        "specialised": lambda: specialised[lambda meta: (min(sms, blocks(meta)),)](da, db, dc, m, n, k, sms),
    }
    runs["cublas"]()
    kept = {}
    for name in [it for it in runs if it not in FAILED]:
        try:
            runs[name]()
            torch.cuda.synchronize()
            if name != "cublas":
                assert torch.allclose(c.float(), out.float(), rtol=2e-2, atol=1e-2 * k**0.5), name
                tuned = {"one_tile": one_tile, "persistent": persistent, "specialised": specialised}[name].best_config
                kept[name] = str(tuned)
                # The launcher in Python takes longer than a short kernel: a graph of launches does not.
        except Exception as err:
            print(json.dumps({"shape": [m, n, k], "name": name, "error": str(err)[:300]}), flush=True)
            FAILED.add(name)
    runs = {name: it for name, it in runs.items() if name not in FAILED}
    graphs, flops = {}, 2 * m * n * k
    count = max(1, min(200, int(2e-3 / (flops / 6e14 + 2e-6))))
    for name, run in runs.items():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(count):
                run()
        graphs[name] = graph
    times = {name: [] for name in graphs}
    for _ in range(rounds):
        for name, graph in graphs.items():
            time.sleep(0.03)
            seconds(graph.replay, 1)
            times[name].append(seconds(graph.replay, 1) / count)
    for name, all in times.items():
        middle = statistics.median(all)
        print(json.dumps({"shape": [m, n, k], "name": name, "us": round(middle * 1e6, 3), "tflops": round(flops / middle / 1e12, 1), "config": kept.get(name)}), flush=True)


if __name__ == "__main__":
    print(json.dumps({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "triton": triton.__version__, "cuda": torch.version.cuda}))
    for line in sys.stdin:
        if line.strip():
            measure(*map(int, line.split()))
