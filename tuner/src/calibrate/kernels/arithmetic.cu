// ---- Arithmetic in f32

KERNEL chain_fma(ARGUMENTS) {
    float x = static_cast<float>(steps), a = static_cast<float>(stride);
    const long long start = now();
#pragma unroll
    for (int i = 0; i < 512; ++i) asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(x) : "f"(a));
    const long long end = now();
    sink[threadIdx.x] = __float_as_uint(x);
    if (threadIdx.x == 0) cycles[0] = end - start;
}

KERNEL chain_exp2(ARGUMENTS) {
    float x = static_cast<float>(stride);
    const long long start = now();
#pragma unroll
    for (int i = 0; i < 512; ++i) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(x));
    const long long end = now();
    sink[threadIdx.x] = __float_as_uint(x);
    if (threadIdx.x == 0) cycles[0] = end - start;
}

// Eight independent chains of each thread.
KERNEL rate_fma(ARGUMENTS) {
    float sums[8], a = static_cast<float>(stride);
    for (int i = 0; i < 8; ++i) sums[i] = a * i;
    __syncthreads();
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < 512; ++i)
#pragma unroll
        for (int chain = 0; chain < 8; ++chain)
            asm volatile("fma.rn.f32 %0, %0, %1, %1;" : "+f"(sums[chain]) : "f"(a));
    float all = 0;
    for (int i = 0; i < 8; ++i) all += sums[i];
    sink[threadIdx.x] = __float_as_uint(all);
    tell(cycles, start);
}

KERNEL rate_exp2(ARGUMENTS) {
    float sums[8];
    for (int i = 0; i < 8; ++i) sums[i] = static_cast<float>(stride * i);
    __syncthreads();
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < 512; ++i)
#pragma unroll
        for (int chain = 0; chain < 8; ++chain) asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(sums[chain]));
    float all = 0;
    for (int i = 0; i < 8; ++i) all += sums[i];
    sink[threadIdx.x] = __float_as_uint(all);
    tell(cycles, start);
}
