/* What launchers in C and in Rust need of the CUDA driver: it runs nothing and tells what it is told. The environment says how many
   tensor maps a kernel takes (MAPS), and how many 64-bit arguments after them (ARGUMENTS). Each allocation has 2^50 bytes. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH (UINT64_C(1) << 50)
static int context;
static char names[16][64];
static int functions, allocations;

static void tell(const char *what, const uint64_t *all, unsigned count) {
  printf("%s", what);
  for (unsigned i = 0; i < count; i++) printf(" %llu", (unsigned long long)all[i]);
}

/* A map holds the address of its tensor. */
int cuTensorMapEncodeTiled(uint64_t *map, unsigned type, unsigned rank, void *start, const uint64_t *dims,
                           const uint64_t *distances, const uint32_t *box, const uint32_t *steps, unsigned interleave,
                           unsigned swizzle, unsigned promotion, unsigned fill) {
  if ((uintptr_t)map % 128 != 0) return 1;
  printf("map of %#llx: type %u, sizes", (unsigned long long)(uintptr_t)start, type);
  tell("", dims, rank);
  tell(", distances", distances, rank - 1);
  printf(", box");
  for (unsigned i = 0; i < rank; i++) printf(" %u", box[i]);
  for (unsigned i = 0; i < rank; i++) {
    if (steps[i] != 1) return 1;
  }
  printf(", interleave %u, swizzle %u, promotion %u, fill %u\n", interleave, swizzle, promotion, fill);
  fflush(stdout);
  memset(map, 0, 128);
  map[0] = (uint64_t)(uintptr_t)start;
  return 0;
}

static int launch(void *function, const unsigned *size, unsigned shared, void *stream, void **arguments, int is_early) {
  const int maps = atoi(getenv("MAPS")), more = atoi(getenv("ARGUMENTS"));
  printf("%s on %ux%ux%u blocks of %ux%ux%u threads with %u bytes, %s:", (char *)function, size[0], size[1], size[2], size[3],
         size[4], size[5], shared, is_early ? "early" : "in turn");
  for (int i = 0; i < maps + more; i++) {
    if (i < maps && (uintptr_t)arguments[i] % 128 != 0) return 1;
    printf(i < maps ? " map of %#llx" : " %llu", (unsigned long long)*(uint64_t *)arguments[i]);
  }
  printf("\n");
  fflush(stdout);
  return stream != NULL;
}

int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **arguments, void **extra) {
  const unsigned size[6] = {gx, gy, gz, bx, by, bz};
  return extra != NULL || launch(function, size, shared, stream, arguments, 0);
}

typedef struct {
  unsigned size[6], shared;
  void *stream;
  struct {
    int id;
    union {
      int allowed;
      uint64_t all[8];
    } value;
  } *attributes;
  unsigned count;
} configuration;
_Static_assert(sizeof *((configuration *)0)->attributes == 72, "as in cuda.h");

int cuLaunchKernelEx(const configuration *it, void *function, void **arguments, void **extra) {
  const int is_early = it->count == 1 && it->attributes->id == 6 && it->attributes->value.allowed == 1;
  return extra != NULL || launch(function, it->size, it->shared, it->stream, arguments, is_early);
}

/* The version of CUDA that it is for: DRIVER, or 13.0. */
int cuDriverGetVersion(int *out) {
  const char *it = getenv("DRIVER");
  *out = it == NULL ? 13000 : atoi(it);
  return 0;
}

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int *out, int ordinal) { return *out = ordinal; }
int cuDeviceGetAttribute(int *out, int which, int device) {
  *out = which == 75 ? 9 : which == 97 ? 232448 : 0;
  return device;
}
int cuDevicePrimaryCtxRetain(void **out, int device) { *out = &context; return device; }
int cuDevicePrimaryCtxRelease_v2(int device) { return device; }
int cuCtxSetCurrent(void *it) { return it != &context; }
int cuCtxGetCurrent(void **out) { *out = &context; return 0; }
int cuCtxGetDevice(int *out) { return *out = 0; }
int cuCtxSynchronize(void) { return 0; }
int cuStreamSynchronize(void *stream) { return stream != NULL; }
int cuEventCreate(void **out, unsigned flags) { *out = &context; return flags > 2; }
int cuEventRecord(void *event, void *stream) { return event == NULL || stream != NULL; }
int cuEventSynchronize(void *event) { return event == NULL; }
int cuEventDestroy_v2(void *event) { return event == NULL; }
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) { return event == NULL || stream != NULL || flags; }
int cuModuleLoadData(void **out, const void *image) { *out = (void *)image; return 0; }
int cuModuleUnload(void *module) { return module == NULL; }
int cuModuleGetFunction(void **out, void *module, const char *name) {
  strncpy(names[functions], name, 63);
  *out = names[functions++];
  return module == NULL;
}
int cuFuncGetAttribute(int *out, int which, void *function) { *out = which == 0 ? 1024 : 0; return function == NULL; }
int cuFuncSetAttribute(void *function, int which, int value) { return function == NULL || which < 0 || value < 0; }
int cuMemAlloc_v2(uint64_t *out, size_t bytes) { *out = ++allocations * EACH; return bytes > EACH; }
int cuMemFree_v2(uint64_t address) { return address % EACH != 0; }
int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t at) { *base = at / EACH * EACH; *bytes = EACH; return 0; }
int cuMemsetD8Async(uint64_t at, unsigned char value, size_t bytes, void *stream) { return at == 0 || value || !bytes || stream; }
