from tvm.script import tirx as T


@T.prim_func
def lowered(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in T.serial(16):
        B[i] = A[i]
