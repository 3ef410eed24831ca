// What all of these have in common. Each kernel takes where its cycles go, where what it computed goes, so that nothing is left out,
// some memory, and up to three numbers. A latency is measured by operations of which each waits for the one before.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define KERNEL extern "C" __global__ void
#define ARGUMENTS long long *cycles, u32 *sink, char *memory, long long steps, long long stride, long long bytes

// The clock, which neither waits for nor is overtaken by what stands around it.
__forceinline__ long long now() {
    long long at;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(at)::"memory");
    return at;
}

__forceinline__ u32 shared_address(const void *it) { return static_cast<u32>(__cvta_generic_to_shared(it)); }

// The cycles since a block started, by its first thread, once all of its threads are here.
__forceinline__ void tell(long long *cycles, long long start) {
    __syncthreads();
    if (threadIdx.x == 0) cycles[blockIdx.x] = now() - start;
}
