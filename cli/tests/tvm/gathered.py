# Elements of an input as subscripts, conditions on indices and on data, and integers of several widths.
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def gathered(ids: T.Buffer((8, 4), "int64"), E: T.Buffer((1000, 16), "float32"), O: T.Buffer((8, 4, 16), "float32"), M: T.Buffer((8, 16), "int32")):
    for i, j, k in T.grid(T.int64(8), T.int64(4), T.int64(16)):
        with T.sblock("O"):
            vi, vj, vk = T.axis.remap("SSS", [i, j, k])
            masked: T.let[T.float32] = T.if_then_else(vj < vi or vj == 0, E[ids[vi, vj], vk], T.float32("-inf"))
            O[vi, vj, vk] = T.Select(masked > 1.0 and not masked < 2.0, masked, masked * 2)
    for i, k in T.grid(8, 16):
        with T.sblock("M"):
            vi, vk = T.axis.remap("SS", [i, k])
            M[vi, vk] = vi * 16 + (vk & 7) + T.Cast("int32", ids[vi, 0])
