// ---- mbarriers

struct __align__(64) Map { u64 words[16]; };
#define MAP const __grid_constant__ Map map

__forceinline__ void init(u32 barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__forceinline__ void arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

__forceinline__ void expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__forceinline__ void await(u32 barrier, u32 parity) {
    u32 done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done)
                     : "r"(barrier), "r"(parity)
                     : "memory");
}

__forceinline__ void fence_init() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Two warps answer each other: a step is two hand-overs.
KERNEL hand_over(ARGUMENTS) {
    __shared__ __align__(8) u64 barriers[2];
    const u32 there = shared_address(barriers), back = there + 8;
    if (threadIdx.x == 0) {
        init(there, 1);
        init(back, 1);
        fence_init();
    }
    __syncthreads();
    const long long start = now();
    if (threadIdx.x == 0)
        for (u32 i = 0; i < steps; ++i) {
            arrive(there);
            await(back, i & 1);
        }
    if (threadIdx.x == 32)
        for (u32 i = 0; i < steps; ++i) {
            await(there, i & 1);
            arrive(back);
        }
    if (threadIdx.x == 0) cycles[0] = now() - start;
}

// The same between two blocks of a cluster.
KERNEL __cluster_dims__(2, 1, 1) hand_over_remote(ARGUMENTS) {
    __shared__ __align__(8) u64 barrier;
    const u32 own = shared_address(&barrier);
    u32 rank, other;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(rank ^ 1));
    if (threadIdx.x == 0) {
        init(own, 1);
        fence_init();
    }
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
    const long long start = now();
    if (threadIdx.x == 0)
        for (u32 i = 0; i < steps; ++i) {
            if (rank == 1) await(own, i & 1);
            asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(other) : "memory");
            if (rank == 0) await(own, i & 1);
        }
    if (threadIdx.x == 0) cycles[blockIdx.x] = now() - start;
    asm volatile("barrier.cluster.arrive.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.aligned;" ::: "memory");
}

// ---- Copies by the copy engine

__forceinline__ void load(u32 to, const char *from, u32 bytes, u32 full) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(full)
                 : "memory");
}

__forceinline__ void load_box(u32 to, const Map &map, u32 row, u32 full) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(&map), "r"(0), "r"(row), "r"(full)
                 : "memory");
}

// So many contiguous bytes, completed by an mbarrier, from so many bytes further on each time.
KERNEL copy_bulk(ARGUMENTS) {
    extern __shared__ __align__(1024) char to[];
    __shared__ __align__(8) u64 barrier;
    const u32 full = shared_address(&barrier);
    init(full, 1);
    fence_init();
    const long long start = now();
    for (long long i = 0; i < steps; ++i) {
        expect(full, bytes);
        load(shared_address(to), memory + i * stride, bytes, full);
        await(full, i & 1);
    }
    cycles[0] = now() - start;
    sink[0] = to[0];
}

// Boxes of rows of 128 bytes, as tensor maps describe them, one after the other.
extern "C" __global__ void copy_box(MAP, ARGUMENTS) {
    extern __shared__ __align__(1024) char to[];
    __shared__ __align__(8) u64 barrier;
    const u32 full = shared_address(&barrier);
    init(full, 1);
    fence_init();
    const long long start = now();
    for (long long i = 0; i < steps; ++i) {
        expect(full, bytes);
        load_box(shared_address(to), map, i * stride, full);
        await(full, i & 1);
    }
    cycles[0] = now() - start;
    sink[0] = to[0];
}

// A ring of eight boxes of 128 rows (16 KiB), filled again as soon as each is full; `stride` blocks that follow each other ask for the same,
// of `bytes` bytes in all.
extern "C" __global__ void rate_box(MAP, ARGUMENTS) {
    extern __shared__ __align__(1024) char to[];
    __shared__ __align__(8) u64 barriers[8];
    const u32 ring = shared_address(to), full = shared_address(barriers);
    for (int i = 0; i < 8; ++i) init(full + 8 * i, 1);
    fence_init();
    const u32 boxes = bytes / 16384, first = blockIdx.x / stride * 37;
    const long long start = now();
    for (u32 i = 0; i < steps + 8; ++i) {
        const u32 slot = i % 8;
        if (i >= 8) await(full + 8 * slot, (i / 8 + 1) & 1);
        if (i < steps) {
            expect(full + 8 * slot, 16384);
            load_box(ring + 16384 * slot, map, (first + i) % boxes * 128, full + 8 * slot);
        }
    }
    cycles[blockIdx.x] = now() - start;
    sink[blockIdx.x] = to[0];
}

// ---- And stores by it

__forceinline__ void store(char *to, u32 from, u32 bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Each store waited for, until what it reads may be written again.
KERNEL store_bulk(ARGUMENTS) {
    extern __shared__ __align__(1024) char from[];
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) from[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    const long long start = now();
    for (long long i = 0; i < steps; ++i) {
        store(memory + i * stride, shared_address(from), bytes);
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    cycles[0] = now() - start;
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// All blocks at it, two stores of 16 KiB under way in each, to `bytes` bytes in all.
KERNEL rate_store(ARGUMENTS) {
    extern __shared__ __align__(1024) char from[];
    for (int i = threadIdx.x; i < 16384; i += blockDim.x) from[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    const long long start = now();
    for (long long i = 0; i < steps; ++i) {
        store(memory + (i * gridDim.x + blockIdx.x) * 16384 % bytes, shared_address(from), 16384);
        asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    cycles[blockIdx.x] = now() - start;
}
