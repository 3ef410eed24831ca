# As TVM's printer writes a module: the imports are comments, and sizes in quotes are declared below.
# from tvm.script import ir as I
# from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer(("rows", 32), "float16"), B: T.Buffer((32, 48), "float16"), C: T.Buffer((rows, 48), "float32")):
        rows = T.int32()
        T.func_attr({"global_symbol": "scaled_product", "tirx.noalias": True})
        # with T.sblock("root"):
        P = T.sblock_alloc_buffer((rows, 48), scope="local")
        for i_0 in T.thread_binding((rows + 15) // 16, thread="blockIdx.x"):
            for i_1 in T.thread_binding(16, thread="threadIdx.x"):
                for j, k in T.grid(48, 32):
                    with T.sblock("P"):
                        vi = T.axis.spatial(rows, i_0 * 16 + i_1)
                        vj, vk = T.axis.remap("SR", [j, k])
                        T.where(i_0 * 16 + i_1 < rows)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(P[vi, vj])
                        T.sblock_attr({"pragma_note": "kept"})
                        with T.init():
                            P[vi, vj] = T.float32(0.0)
                        P[vi, vj] = P[vi, vj] + T.Cast("float32", A[vi, vk]) * T.Cast("float32", B[vk, vj])
                for j in T.unroll(48):
                    with T.sblock("C"):
                        vi = T.axis.spatial(rows, i_0 * 16 + i_1)
                        vj = T.axis.spatial(48, j)
                        T.where(i_0 * 16 + i_1 < rows)
                        C[vi, vj] = P[vi, vj] * T.float32(0.5)
