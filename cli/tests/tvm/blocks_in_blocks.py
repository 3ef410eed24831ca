# A block of plain blocks is one block with loops; an opaque one is left out, and its guard goes to those in it.
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def tiles(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64,), "float32")):
    for i, j in T.grid(4, 4):
        with T.sblock("tile"):
            vi, vj = T.axis.remap("SS", [i, j])
            for x, y in T.grid(16, 16):
                with T.sblock("element"):
                    wx = T.axis.spatial(64, vi * 16 + x)
                    wy = T.axis.spatial(64, vj * 16 + y)
                    B[wx, wy] = A[wy, wx]
    for i in range(5):
        with T.sblock("part"):
            vi = T.axis.spatial(4, i)
            T.where(i < 4)
            for x, k in T.grid(16, 64):
                with T.sblock("sum"):
                    wx = T.axis.spatial(16, x)
                    wk = T.axis.reduce(64, k)
                    row = T.match_buffer(B[vi * 16 + wx, 0:64], (64,))
                    with T.init():
                        C[vi * 16 + wx] = 0.0
                    C[vi * 16 + wx] = C[vi * 16 + wx] + row[wk]
