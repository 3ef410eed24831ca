// ---- Copies by threads (`cp.async`), each waited for: 16 bytes a lane of one warp, from so many bytes further on each time.
KERNEL copy_async(ARGUMENTS) {
    __shared__ __align__(128) uint4 to[32];
    const u32 place = shared_address(to + threadIdx.x);
    const long long start = now();
    for (long long i = 0; i < steps; ++i) {
        const char *source = memory + i * stride + threadIdx.x * sizeof(uint4);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(source) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    const long long end = now();
    sink[threadIdx.x] = to[threadIdx.x].x;
    if (threadIdx.x == 0) cycles[0] = end - start;
}

// All blocks at it: 4 KiB by 256 threads, of which each has eight under way.
KERNEL rate_async(ARGUMENTS) {
    __shared__ __align__(128) uint4 to[8 * 256];
    const long long start = now();
    for (long long i = 0; i < steps; ++i) {
        const long long from = ((i + blockIdx.x * 37LL) * 256 + threadIdx.x) * 16 % bytes;
        const u32 place = shared_address(to + (i % 8) * 256 + threadIdx.x);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(memory + from) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 7;" ::: "memory");
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    tell(cycles, start);
    sink[threadIdx.x] = to[threadIdx.x].x;
}
