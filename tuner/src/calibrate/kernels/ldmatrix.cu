// The matrices are zero, so that what is loaded and added changes no address; the hardware does not know that.
KERNEL chase_ldmatrix(ARGUMENTS) {
    __shared__ __align__(128) u32 rows[32 * 4];
    for (int i = 0; i < 4; ++i) rows[threadIdx.x * 4 + i] = 0;
    __syncthreads();
    u32 at = shared_address(rows + threadIdx.x * 4), a, b, c, d;
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < 512; ++i) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at)
                     : "memory");
        at += a;
    }
    if (threadIdx.x == 0) cycles[0] = now() - start;
    sink[threadIdx.x] = at + b + c + d;
}
