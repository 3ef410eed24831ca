"""The programs that random schedules are of: each with its inputs and arrays of the shapes of its outputs."""

import numpy
import tvm
from tvm.script import tirx as T

RANDOM = numpy.random.default_rng(0)


def normal(*shape):
    return RANDOM.standard_normal(shape).astype("float32")


def product():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((24, 20), "float32"), B: T.Buffer((20, 28), "float32"), C: T.Buffer((24, 28), "float32")):
        for i, j, k in T.grid(24, 28, 20):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    return tvm.IRModule({"main": main})


def product_with_bias():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 18), "float32"), B: T.Buffer((18, 24), "float32"), S: T.Buffer((24,), "float32"), R: T.Buffer((16, 24), "float32")):
        P = T.sblock_alloc_buffer((16, 24), "float32")
        Q = T.sblock_alloc_buffer((16, 24), "float32")
        for i, j, k in T.grid(16, 24, 18):
            with T.sblock("P"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    P[vi, vj] = T.float32(0)
                P[vi, vj] = P[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 24):
            with T.sblock("Q"):
                vi, vj = T.axis.remap("SS", [i, j])
                Q[vi, vj] = P[vi, vj] + S[vj]
        for i, j in T.grid(16, 24):
            with T.sblock("R"):
                vi, vj = T.axis.remap("SS", [i, j])
                R[vi, vj] = T.max(Q[vi, vj], T.float32(0))

    return tvm.IRModule({"main": main})


def rows():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((12, 30), "float32"), O: T.Buffer((12, 30), "float32")):
        M = T.sblock_alloc_buffer((12,), "float32")
        E = T.sblock_alloc_buffer((12, 30), "float32")
        S = T.sblock_alloc_buffer((12,), "float32")
        for i, k in T.grid(12, 30):
            with T.sblock("M"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    M[vi] = T.float32(-1000)
                M[vi] = T.max(M[vi], A[vi, vk])
        for i, j in T.grid(12, 30):
            with T.sblock("E"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = T.exp(A[vi, vj] - M[vi])
        for i, k in T.grid(12, 30):
            with T.sblock("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + E[vi, vk]
        for i, j in T.grid(12, 30):
            with T.sblock("O"):
                vi, vj = T.axis.remap("SS", [i, j])
                O[vi, vj] = E[vi, vj] / S[vi]

    return tvm.IRModule({"main": main})


def stencil():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((20, 24), "float32"), O: T.Buffer((20, 24), "float32")):
        X = T.sblock_alloc_buffer((22, 26), "float32")
        V = T.sblock_alloc_buffer((20, 26), "float32")
        for i, j in T.grid(22, 26):
            with T.sblock("X"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = T.if_then_else(1 <= vi and vi < 21 and 1 <= vj and vj < 25, A[vi - 1, vj - 1], T.float32(0))
        for i, j, r in T.grid(20, 26, 3):
            with T.sblock("V"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    V[vi, vj] = T.float32(0)
                V[vi, vj] = V[vi, vj] + X[vi + vr, vj]
        for i, j, r in T.grid(20, 24, 3):
            with T.sblock("O"):
                vi, vj, vr = T.axis.remap("SSR", [i, j, r])
                with T.init():
                    O[vi, vj] = T.float32(0)
                O[vi, vj] = O[vi, vj] + V[vi, vj + vr]

    return tvm.IRModule({"main": main})


PROGRAMS = {
    "product": (product, [normal(24, 20), normal(20, 28)], [normal(24, 28)]),
    "product_with_bias": (product_with_bias, [normal(16, 18), normal(18, 24), normal(24)], [normal(16, 24)]),
    "rows": (rows, [normal(12, 30)], [normal(12, 30)]),
    "stencil": (stencil, [normal(20, 24)], [normal(20, 24)]),
}
