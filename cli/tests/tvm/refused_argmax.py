# Two results that are chosen together: what is read of the first is old when the second is chosen.
from tvm.script import tirx as T


@T.prim_func(s_tir=True)
def argmax(X: T.Buffer((8, 32), "float32"), V: T.Buffer((8,), "float32"), I: T.Buffer((8,), "int32")):
    for i, k in T.grid(8, 32):
        with T.sblock("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                V[vi] = T.min_value("float32")
                I[vi] = -1
            best: T.let[T.float32] = T.Select(V[vi] >= X[vi, vk], V[vi], X[vi, vk])
            V[vi] = best
            I[vi] = T.Select(best == X[vi, vk], vk, I[vi])
