// ---- Chains of loads

// Each element holds the place of the next: `steps` of them, `stride` elements apart.
KERNEL link(ARGUMENTS) {
    u32 *chain = reinterpret_cast<u32 *>(memory);
    for (long long at = blockIdx.x * blockDim.x + threadIdx.x; at < steps; at += gridDim.x * blockDim.x)
        chain[at * stride] = static_cast<u32>((at + 1) % steps * stride);
}

// Loads that miss the first-level cache.
KERNEL chase_global(ARGUMENTS) {
    const u32 *chain = reinterpret_cast<const u32 *>(memory);
    u32 at = 0;
    const long long start = now();
    for (long long i = 0; i < steps; ++i)
        asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    sink[0] = at;
    cycles[0] = now() - start;
}

// The same, where the first-level cache keeps all.
KERNEL chase_near(ARGUMENTS) {
    const u32 *chain = reinterpret_cast<const u32 *>(memory);
    u32 at = 0;
    for (long long i = 0; i < steps; ++i)
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    const long long start = now();
    for (long long i = 0; i < steps; ++i)
        asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    sink[0] = at;
    cycles[0] = now() - start;
}

KERNEL chase_shared(ARGUMENTS) {
    __shared__ u32 chain[256];
    const u32 base = shared_address(chain);
    for (int i = 0; i < 256; ++i) chain[i] = base + 4 * ((i + 33) % 256);
    __syncthreads();
    u32 at = base;
    const long long start = now();
#pragma unroll
    for (int i = 0; i < 512; ++i) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
    sink[0] = at;
    cycles[0] = now() - start;
}

// A barrier of all threads of a block that come at the same time.
KERNEL barriers(ARGUMENTS) {
    __syncthreads();
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < 512; ++i) __syncthreads();
    if (threadIdx.x == 0) cycles[0] = now() - start;
}

// ---- Rates

// All blocks read all of it, 16 bytes a thread, several loads under way.
KERNEL read_global(ARGUMENTS) {
    const uint4 *from = reinterpret_cast<const uint4 *>(memory);
    const long long count = bytes / 16;
    u32 all = 0;
    const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    const long long apart = gridDim.x * static_cast<long long>(blockDim.x);
    const long long start = now();
    for (long long time = 0; time < steps; ++time)
#pragma unroll 8
        for (long long at = first; at < count; at += apart) {
            uint4 it;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(it.x), "=r"(it.y), "=r"(it.z), "=r"(it.w)
                         : "l"(from + at));
            all ^= it.x ^ it.y ^ it.z ^ it.w;
        }
    sink[first] = all;
    tell(cycles, start);
}

// The same, written.
KERNEL write_global(ARGUMENTS) {
    uint4 *to = reinterpret_cast<uint4 *>(memory);
    const long long count = bytes / 16;
    const long long first = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
    const long long apart = gridDim.x * static_cast<long long>(blockDim.x);
    const long long start = now();
    for (long long time = 0; time < steps; ++time)
#pragma unroll 8
        for (long long at = first; at < count; at += apart)
            asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(to + at), "r"(0) : "memory");
    tell(cycles, start);
}

// Pairs of two bytes as products of warps leave them: 8 rows of 16 bytes a warp, 64 stores a thread, `stride` bytes from row to row. Of each
// sector a half is written at a time.
KERNEL write_parts(ARGUMENTS) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long start = now();
    for (long long time = 0; time < steps; ++time) {
        const long long block = (time * gridDim.x + blockIdx.x) * 512 % stride;
        char *to = memory + (warp * 16 + lane / 4) * stride + lane % 4 * 4 + block;
#pragma unroll
        for (int i = 0; i < 32; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                asm volatile("st.global.u32 [%0], %1;" ::"l"(to + half * 8 * stride + i * 16), "r"(0) : "memory");
    }
    tell(cycles, start);
}

KERNEL read_shared(ARGUMENTS) {
    __shared__ __align__(128) uint4 cells[1024];
    cells[threadIdx.x] = uint4{0, 0, 0, 0};
    __syncthreads();
    const u32 place = shared_address(cells + threadIdx.x);
    u32 all = 0;
    const long long start = now();
#pragma unroll 8
    for (int i = 0; i < 512; ++i) {
        uint4 it;
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(it.x), "=r"(it.y), "=r"(it.z), "=r"(it.w)
                     : "r"(place));
        all ^= it.x ^ it.y ^ it.z ^ it.w;
    }
    sink[threadIdx.x] = all;
    tell(cycles, start);
}

KERNEL write_shared(ARGUMENTS) {
    __shared__ __align__(128) uint4 cells[1024];
    const u32 place = shared_address(cells + threadIdx.x);
    const long long start = now();
#pragma unroll 8
    for (int i = 0; i < 512; ++i)
        asm volatile("st.volatile.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(place), "r"(i) : "memory");
    tell(cycles, start);
    sink[threadIdx.x] = cells[1023 - threadIdx.x].x;
}

// Nothing: what is measured is the time from one start to the next.
KERNEL nothing(ARGUMENTS) {}
