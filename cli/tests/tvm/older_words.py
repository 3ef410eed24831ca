# The words of older versions, handles, constants from outside, and a loop that does not begin at zero.
from tvm.script import tir as T

N = 24


@T.prim_func
def shifted(a: T.handle, b: T.handle) -> None:
    """Adds neighbours."""
    T.func_attr({"tir.noalias": True})
    A = T.match_buffer(a, [N, 8], dtype="float32")
    B = T.match_buffer(b, (N, 8))
    S = T.alloc_buffer([N, 8], "float32", scope="shared.dyn")
    for i in T.parallel(0, N):
        for j in T.vectorized(8):
            with T.block("S"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.block_attr({"buffer_dim_align": [[0, 0, 16, 4]], "double_buffer_scope": 0})
                S[vi, vj] = T.exp(A[vi, vj]) + 1
    for i in T.serial(2, N, annotations={"stage": [0, 1], "unit": "row"}):
        for j in range(8):
            with T.block("B"):
                vi = T.axis.S((2, N), i)
                vj = T.axis.S(8, j)
                B[vi, vj] = T.max(S[vi, vj], S[vi - 2, vj]) / T.float32(2)
    for i, j in T.grid(2, 8):
        if i < 1 and j < 8:
            with T.block("first"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = -A[vi, vj]
        with T.block("second"):
            vj = T.axis.S(8, j)
            B[1, vj] = T.Select(A[0, vj] < 0.0, T.float32(0), A[0, vj])
