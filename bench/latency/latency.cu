// Latencies and rates of one GPU in clock cycles, for the table in ir/src/arch.
//
//     nvcc -O3 -arch=sm_90a -o latency latency.cu && ./latency > h200.json
//
// It prints one JSON object. A latency is the median over ROUNDS of a chain in which each operation waits for the one before; a rate
// is what one multiprocessor moves or computes in a cycle while all (global memory) or one (everything else) are at it.
// sm_80 and later compile; what an architecture lacks is null.

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                             \
    do {                                                                                        \
        cudaError_t status = (call);                                                            \
        if (status != cudaSuccess) {                                                            \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(status)); \
            std::exit(1);                                                                       \
        }                                                                                       \
    } while (0)

constexpr int ROUNDS = 31;
constexpr int STEPS = 512;
constexpr int WARP = 32;
constexpr size_t MIB = size_t(1) << 20;

// The clock, which neither waits for nor is overtaken by what stands around it.
__device__ __forceinline__ long long now() {
    long long at;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(at)::"memory");
    return at;
}

__device__ __forceinline__ uint32_t shared_address(const void *it) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(it));
}

// ---- Chains of loads

// Each element holds the place of the next.
__global__ void link(uint32_t *chain, uint32_t count, uint32_t stride) {
    for (uint32_t at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x)
        chain[size_t(at) * stride] = (at + 1) % count * stride;
}

// Cycles a load that misses the first-level cache.
__global__ void chase_global(const uint32_t *chain, int steps, long long *cycles, uint32_t *sink) {
    uint32_t at = 0;
    const long long start = now();
    for (int i = 0; i < steps; ++i) asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    sink[0] = at;
    cycles[0] = (now() - start) / steps;
}

// The same, where the first-level cache keeps all.
__global__ void chase_near(const uint32_t *chain, int steps, long long *cycles, uint32_t *sink) {
    uint32_t at = 0;
    for (int i = 0; i < steps; ++i) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    const long long start = now();
    for (int i = 0; i < steps; ++i) asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    sink[0] = at;
    cycles[0] = (now() - start) / steps;
}

__global__ void chase_shared(long long *cycles, uint32_t *sink) {
    __shared__ uint32_t chain[256];
    const uint32_t base = shared_address(chain);
    for (int i = 0; i < 256; ++i) chain[i] = base + 4 * ((i + 33) % 256);
    __syncthreads();
    uint32_t at = base;
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < STEPS; ++i) asm volatile("ld.shared.u32 %0, [%0];" : "+r"(at)::"memory");
    sink[0] = at;
    cycles[0] = (now() - start) / STEPS;
}

// The matrices are zero, so that what is loaded and added changes no address; the hardware does not know that.
__global__ void chase_ldmatrix(long long *cycles, uint32_t *sink) {
    __shared__ __align__(128) uint32_t rows[WARP * 4];
    for (int i = 0; i < 4; ++i) rows[threadIdx.x * 4 + i] = 0;
    __syncthreads();
    uint32_t at = shared_address(rows + threadIdx.x * 4), a, b, c, d;
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < STEPS; ++i) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                     : "r"(at)
                     : "memory");
        at += a;
    }
    if (threadIdx.x == 0) cycles[0] = (now() - start) / STEPS;
    sink[threadIdx.x] = at + b + c + d;
}

// Cycles a barrier of all threads of a block that come at the same time.
__global__ void barrier(long long *cycles) {
    __syncthreads();
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < STEPS; ++i) __syncthreads();
    if (threadIdx.x == 0) cycles[0] = (now() - start) / STEPS;
}

// ---- Arithmetic

__global__ void chain_fma(long long *cycles, float *sink, float a, float b) {
    float x = a;
    const long long start = now();
#pragma unroll 16
    for (int i = 0; i < STEPS; ++i) asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
    const long long end = now();
    sink[threadIdx.x] = x;
    if (threadIdx.x == 0) cycles[0] = (end - start) / STEPS;
}

// So many independent chains of products of each warp.
template <int CHAINS>
__global__ void chain_mma(long long *cycles, float *sink, uint32_t factor) {
    float sums[CHAINS][4] = {};
    const uint32_t a[4] = {factor, factor, factor, factor}, b[2] = {factor, factor};
    __syncthreads();
    const long long start = now();
#pragma unroll 4
    for (int i = 0; i < STEPS; ++i)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain) {
            float *c = sums[chain];
            asm volatile(
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                "{%0, %1, %2, %3};"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
        }
    float all = 0;
    for (int chain = 0; chain < CHAINS; ++chain) all += sums[chain][0] + sums[chain][1] + sums[chain][2] + sums[chain][3];
    sink[threadIdx.x] = all;
    __syncthreads();
    if (threadIdx.x == 0) cycles[0] = (now() - start);
}

template <int CHAINS>
__global__ void rate_fma(long long *cycles, float *sink, float a, float b) {
    float sums[CHAINS];
    for (int i = 0; i < CHAINS; ++i) sums[i] = a * i;
    __syncthreads();
    const long long start = now();
#pragma unroll 4
    for (int i = 0; i < STEPS; ++i)
#pragma unroll
        for (int chain = 0; chain < CHAINS; ++chain)
            asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(sums[chain]) : "f"(a), "f"(b));
    float all = 0;
    for (int i = 0; i < CHAINS; ++i) all += sums[i];
    sink[threadIdx.x] = all;
    __syncthreads();
    if (threadIdx.x == 0) cycles[0] = now() - start;
}

// A product of a warpgroup, 64 x 64 x 16 in f16 from shared memory, IN_FLIGHT of them between waits.
template <int IN_FLIGHT>
__global__ void chain_wgmma(long long *cycles, float *sink) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ __align__(1024) uint32_t factors[64 * 16 * 2 / 2];
    for (int i = threadIdx.x; i < 64 * 16; i += blockDim.x) factors[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    // Without swizzle: matrices of 8 rows of 16 bytes, 128 bytes apart one way and 256 the other.
    const uint64_t place = (shared_address(factors) & 0x3ffff) >> 4;
    const uint64_t a = place | uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32, b = a;
    float c[32] = {};
    const long long start = now();
    for (int i = 0; i < STEPS; ++i) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int n = 0; n < IN_FLIGHT; ++n)
            asm volatile(
                "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
                "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                "%32, %33, 1, 1, 1, 0, 0;"
                : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7]),
                  "+f"(c[8]), "+f"(c[9]), "+f"(c[10]), "+f"(c[11]), "+f"(c[12]), "+f"(c[13]), "+f"(c[14]),
                  "+f"(c[15]), "+f"(c[16]), "+f"(c[17]), "+f"(c[18]), "+f"(c[19]), "+f"(c[20]), "+f"(c[21]),
                  "+f"(c[22]), "+f"(c[23]), "+f"(c[24]), "+f"(c[25]), "+f"(c[26]), "+f"(c[27]), "+f"(c[28]),
                  "+f"(c[29]), "+f"(c[30]), "+f"(c[31])
                : "l"(a), "l"(b));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    }
    const long long end = now();
    float all = 0;
    for (int i = 0; i < 32; ++i) all += c[i];
    sink[threadIdx.x] = all;
    if (threadIdx.x == 0) cycles[0] = (end - start) / STEPS;
#else
    if (threadIdx.x == 0) cycles[0] = -1;
#endif
}

// ---- Copies to shared memory, each waited for

// 16 bytes a lane of one warp, from so many bytes further on each time.
__global__ void copy_async(const char *from, size_t stride, int steps, long long *cycles, uint32_t *sink) {
    __shared__ __align__(128) uint4 to[WARP];
    const uint32_t place = shared_address(to + threadIdx.x);
    const long long start = now();
    for (int i = 0; i < steps; ++i) {
        const char *source = from + i * stride + threadIdx.x * sizeof(uint4);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(place), "l"(source) : "memory");
        asm volatile("cp.async.commit_group;" ::: "memory");
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    const long long end = now();
    sink[threadIdx.x] = to[threadIdx.x].x;
    if (threadIdx.x == 0) cycles[0] = (end - start) / steps;
}

// So many bytes by the copy engine, completed by an mbarrier, from so many bytes further on each time.
__global__ void copy_bulk(const char *from, size_t stride, uint32_t bytes, int steps, long long *cycles, uint32_t *sink) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    extern __shared__ __align__(128) char to[];
    __shared__ __align__(8) uint64_t barrier;
    const uint32_t place = shared_address(to), full = shared_address(&barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(full) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    const long long start = now();
    for (int i = 0; i < steps; ++i) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(bytes) : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(place),
                     "l"(from + i * stride), "r"(bytes), "r"(full)
                     : "memory");
        uint32_t done = 0;
        while (!done)
            asm volatile(
                "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                : "=r"(done)
                : "r"(full), "r"(i & 1)
                : "memory");
    }
    const long long end = now();
    sink[0] = to[0];
    cycles[0] = (end - start) / steps;
#else
    cycles[0] = -1;
#endif
}

// ---- Rates of memory

// All blocks read all of it, 16 bytes a thread, several loads under way; the slowest block's cycles.
__global__ void read_global(const uint4 *from, size_t count, int times, long long *cycles, uint32_t *sink) {
    uint32_t all = 0;
    const size_t first = blockIdx.x * size_t(blockDim.x) + threadIdx.x, step = gridDim.x * size_t(blockDim.x);
    const long long start = now();
    for (int time = 0; time < times; ++time)
#pragma unroll 8
        for (size_t at = first; at < count; at += step) {
            uint4 it;
            asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(it.x), "=r"(it.y), "=r"(it.z), "=r"(it.w)
                         : "l"(from + at));
            all ^= it.x ^ it.y ^ it.z ^ it.w;
        }
    __syncthreads();
    if (threadIdx.x == 0) cycles[blockIdx.x] = now() - start;
    sink[first] = all;
}

__global__ void read_shared(long long *cycles, uint32_t *sink) {
    __shared__ __align__(128) uint4 cells[1024];
    cells[threadIdx.x] = uint4{0, 0, 0, 0};
    __syncthreads();
    const uint32_t place = shared_address(cells + threadIdx.x);
    uint32_t all = 0;
    const long long start = now();
#pragma unroll 8
    for (int i = 0; i < STEPS; ++i) {
        uint4 it;
        asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(it.x), "=r"(it.y), "=r"(it.z), "=r"(it.w)
                     : "r"(place));
        all ^= it.x ^ it.y ^ it.z ^ it.w;
    }
    __syncthreads();
    if (threadIdx.x == 0) cycles[0] = now() - start;
    sink[threadIdx.x] = all;
}

// ---- The host

struct Bench {
    long long *cycles;
    uint32_t *sink;
    int units;
    bool first = true;

    // The median of what the first, or the slowest, of so many blocks says.
    template <typename Run>
    double median(Run run, int blocks = 1) {
        std::vector<double> all;
        for (int round = 0; round < ROUNDS; ++round) {
            run();
            CHECK(cudaGetLastError());
            CHECK(cudaDeviceSynchronize());
            std::vector<long long> host(blocks);
            CHECK(cudaMemcpy(host.data(), cycles, blocks * sizeof(long long), cudaMemcpyDeviceToHost));
            all.push_back(double(*std::max_element(host.begin(), host.end())));
        }
        std::sort(all.begin(), all.end());
        return all[all.size() / 2];
    }

    void print(const char *name, double value) {
        std::printf("%s  \"%s\": ", first ? "" : ",\n", name);
        if (value < 0)
            std::printf("null");
        else
            std::printf("%.1f", value);
        first = false;
    }

    float *floats() { return reinterpret_cast<float *>(sink); }
};

static void chains(Bench &bench, char *memory, char *other, size_t other_bytes) {
    uint32_t *chain = reinterpret_cast<uint32_t *>(memory);
    // 512 KiB of lines stay in the second-level cache, 8 KiB in the first.
    link<<<64, 256>>>(chain, 4096, 32);
    bench.median([&] { chase_global<<<1, 1>>>(chain, 4096, bench.cycles, bench.sink); });
    bench.print("global_l2_hit", bench.median([&] { chase_global<<<1, 1>>>(chain, 4096, bench.cycles, bench.sink); }));
    // Lines 4 KiB apart, after the cache was filled with something else.
    link<<<64, 256>>>(chain, STEPS, 1024);
    bench.print("global_dram", bench.median([&] {
        CHECK(cudaMemset(other, 1, other_bytes));
        chase_global<<<1, 1>>>(chain, STEPS, bench.cycles, bench.sink);
    }));
    link<<<1, 64>>>(chain, 64, 32);
    bench.print("global_l1_hit", bench.median([&] { chase_near<<<1, 1>>>(chain, STEPS, bench.cycles, bench.sink); }));
    bench.print("shared_load", bench.median([&] { chase_shared<<<1, 1>>>(bench.cycles, bench.sink); }));
    bench.print("ldmatrix_x4", bench.median([&] { chase_ldmatrix<<<1, WARP>>>(bench.cycles, bench.sink); }));
    for (int threads : {32, 128, 256, 512}) {
        char name[32];
        std::snprintf(name, sizeof name, "barrier_%d_threads", threads);
        bench.print(name, bench.median([&] { barrier<<<1, threads>>>(bench.cycles); }));
    }
}

static void arithmetic(Bench &bench) {
    bench.print("fma_f32", bench.median([&] { chain_fma<<<1, WARP>>>(bench.cycles, bench.floats(), 0.5f, 0.25f); }));
    const double one = bench.median([&] { chain_mma<1><<<1, WARP>>>(bench.cycles, bench.floats(), 0); });
    bench.print("mma_m16n8k16_f16", one / STEPS);
    // Eight warps of eight chains each keep all tensor cores busy.
    const double eight = bench.median([&] { chain_mma<8><<<1, 256>>>(bench.cycles, bench.floats(), 0); });
    bench.print("mma_f16_flops_per_cycle", 8.0 * 8 * STEPS * 2 * 16 * 8 * 16 / eight);
    const double fma = bench.median([&] { rate_fma<8><<<1, 512>>>(bench.cycles, bench.floats(), 0.5f, 0.25f); });
    bench.print("fma_f32_flops_per_cycle", 512.0 * 8 * STEPS * 2 / fma);
    const double single = bench.median([&] { chain_wgmma<1><<<1, 128>>>(bench.cycles, bench.floats()); });
    bench.print("wgmma_m64n64k16_wait", single);
    const double four = bench.median([&] { chain_wgmma<4><<<1, 128>>>(bench.cycles, bench.floats()); });
    bench.print("wgmma_m64n64k16_four_wait", four);
}

static void copies(Bench &bench, char *memory, char *other, size_t other_bytes) {
    const size_t near = 512, apart = 4096;
    auto cold = [&] { CHECK(cudaMemset(other, 1, other_bytes)); };
    auto async = [&](size_t stride) { copy_async<<<1, WARP>>>(memory, stride, STEPS, bench.cycles, bench.sink); };
    async(near);
    bench.print("cp_async_l2_hit", bench.median([&] { async(near); }));
    bench.print("cp_async_dram", bench.median([&] { cold(), async(apart); }));
    for (uint32_t bytes : {2048u, 16384u}) {
        auto bulk = [&] { copy_bulk<<<1, 1, 16384>>>(memory, bytes, bytes, 128, bench.cycles, bench.sink); };
        bulk();
        char name[48];
        std::snprintf(name, sizeof name, "bulk_%u_bytes_l2_hit", bytes);
        bench.print(name, bench.median(bulk));
        std::snprintf(name, sizeof name, "bulk_%u_bytes_dram", bytes);
        bench.print(name, bench.median([&] { cold(), bulk(); }));
    }
}

static void rates(Bench &bench, char *memory, size_t bytes) {
    const uint4 *from = reinterpret_cast<const uint4 *>(memory);
    // Two blocks of 1024 fill each multiprocessor.
    const int blocks = 2 * bench.units;
    auto read = [&](size_t size, int times) {
        const double cycles = bench.median(
            [&] { read_global<<<blocks, 1024>>>(from, size / sizeof(uint4), times, bench.cycles, bench.sink); }, blocks);
        return double(size) * times / cycles / bench.units;
    };
    read(8 * MIB, 8);
    bench.print("l2_bytes_per_cycle_per_sm", read(8 * MIB, 16));
    bench.print("dram_bytes_per_cycle_per_sm", read(bytes, 1));
    const double shared = bench.median([&] { read_shared<<<1, 1024>>>(bench.cycles, bench.sink); });
    bench.print("shared_bytes_per_cycle_per_sm", 1024.0 * sizeof(uint4) * STEPS / shared);
}

int main() {
    cudaDeviceProp card;
    CHECK(cudaGetDeviceProperties(&card, 0));
    int driver = 0, runtime = 0, clock = 0;
    CHECK(cudaDriverGetVersion(&driver));
    CHECK(cudaRuntimeGetVersion(&runtime));
    CHECK(cudaDeviceGetAttribute(&clock, cudaDevAttrClockRate, 0));

    Bench bench{};
    bench.units = card.multiProcessorCount;
    char *memory, *other;
    const size_t bytes = 512 * MIB, other_bytes = 256 * MIB;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMalloc(&other, other_bytes));
    CHECK(cudaMemset(memory, 0, bytes));
    CHECK(cudaMalloc(&bench.cycles, 2 * bench.units * sizeof(long long)));
    CHECK(cudaMalloc(&bench.sink, size_t(2) * bench.units * 1024 * sizeof(uint32_t)));

    std::printf("{\n  \"device\": \"%s\",\n  \"sm\": %d,\n  \"units\": %d,\n  \"clock_mhz\": %d,\n  \"driver\": %d,\n  \"runtime\": %d,\n",
                card.name, card.major * 10 + card.minor, bench.units, clock / 1000, driver, runtime);
    chains(bench, memory, other, other_bytes);
    arithmetic(bench);
    copies(bench, memory, other, other_bytes);
    rates(bench, memory, bytes);
    std::printf("\n}\n");
    return 0;
}
