/* Loads and launches `@FUNC@` through the CUDA driver, which is found at run time.
   Made by tilewright @TOOL@. */
#define _GNU_SOURCE
#define TILEWRIGHT_@NAME@_DEFINED
#include "@NAME@.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum {
  BUFFERS = @BUFFER_COUNT@,
  PARAMS = @PARAM_COUNT@,
  DIMS = @DIM_COUNT@,
  LAUNCHES = @LAUNCH_COUNT@,
  ARCH = @ARCH_NUMBER@, /* compute capability times ten */
  ARCH_SUFFIX = @ARCH_SUFFIX@
};

/* The part of cuda.h that is used here. */
typedef void *handle;
enum {
  FUNCTION_THREADS = 0,
  FUNCTION_STATIC_SHARED = 1,
  FUNCTION_DYNAMIC_SHARED = 8,
  FUNCTION_LARGE_CLUSTER = 14,
  DEVICE_MAJOR = 75,
  DEVICE_MINOR = 76,
  DEVICE_SHARED = 97
};

static struct {
  int (*get_current)(handle *context);
  int (*get_device)(int *device);
  int (*device_attribute)(int *value, int which, int device);
  int (*load)(handle *module, const void *image);
  int (*unload)(handle module);
  int (*function)(handle *function, handle module, const char *name);
  int (*function_attribute)(int *value, int which, handle function);
  int (*set_function_attribute)(handle function, int which, int value);
  int (*launch)(handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, handle stream, void **arguments, void **extra);
  int (*alloc)(uint64_t *address, size_t bytes);
  int (*release)(uint64_t address);
  int (*range)(uint64_t *base, size_t *bytes, uint64_t address);
  int (*set)(uint64_t address, unsigned char value, size_t bytes, handle stream);
@MORE_FUNCTIONS@
} cuda;

static _Thread_local int last_code;

static int driver(int code) {
  if (code == 0) return @UPPER@_OK;
  last_code = code;
  return @UPPER@_DRIVER;
}

static int find_driver(void) {
  static const char *const names[] = {
      "cuCtxGetCurrent", "cuCtxGetDevice", "cuDeviceGetAttribute", "cuModuleLoadData", "cuModuleUnload",
      "cuModuleGetFunction", "cuFuncGetAttribute", "cuFuncSetAttribute", "cuLaunchKernel", "cuMemAlloc_v2",
      "cuMemFree_v2", "cuMemGetAddressRange_v2", "cuMemsetD8Async"@MORE_NAMES@};
  void *found[sizeof names / sizeof *names];
  _Static_assert(sizeof found == sizeof cuda, "a name for each function");
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return @UPPER@_NO_DRIVER;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    found[i] = dlsym(library, names[i]);
    if (found[i] == NULL) return @UPPER@_NO_DRIVER;
  }
  memcpy(&cuda, found, sizeof cuda);
  return @UPPER@_OK;
}

struct @NAME@ {
  handle context, module, functions[LAUNCHES];
  /* The temporaries that kernels share; never smaller than what was needed so far. */
  uint64_t workspace[BUFFERS];
  size_t workspace_bytes[BUFFERS];
};

/* Machine code runs on its own generation from its own model on, PTX on all later ones; code with a suffix is for one
   model (`a`) or one generation (`f`). */
static int runs_on(const void *image, int capability) {
  const int is_machine_code = strncmp(image, "\177ELF", 4) == 0;
  if (ARCH_SUFFIX == 'a') return capability == ARCH;
  if (ARCH_SUFFIX == 'f' || is_machine_code) return capability / 10 == ARCH / 10 && capability >= ARCH;
  return capability >= ARCH;
}

static const char *const entries[LAUNCHES] = {@ENTRIES@};
static const int shared_bytes[LAUNCHES] = {@SHARED@};
static const int block_threads[LAUNCHES] = {@THREADS@};
static const int large_cluster[LAUNCHES] = {@LARGE_CLUSTER@};

static int prepare(@NAME@ *kernel, int device) {
  int most, code = driver(cuda.device_attribute(&most, DEVICE_SHARED, device));
  for (int i = 0; i < LAUNCHES && code == @UPPER@_OK; i++) {
    int fixed, threads;
    code = driver(cuda.function(&kernel->functions[i], kernel->module, entries[i]));
    if (code != @UPPER@_OK) break;
    code = driver(cuda.function_attribute(&fixed, FUNCTION_STATIC_SHARED, kernel->functions[i]));
    if (code == @UPPER@_OK) code = driver(cuda.function_attribute(&threads, FUNCTION_THREADS, kernel->functions[i]));
    if (code != @UPPER@_OK) break;
    if (shared_bytes[i] + fixed > most || block_threads[i] > threads) return @UPPER@_SHARED;
    if (shared_bytes[i] + fixed > 48 * 1024) {
      code = driver(cuda.set_function_attribute(kernel->functions[i], FUNCTION_DYNAMIC_SHARED, shared_bytes[i]));
    }
    if (code == @UPPER@_OK && large_cluster[i]) {
      code = driver(cuda.set_function_attribute(kernel->functions[i], FUNCTION_LARGE_CLUSTER, 1));
    }
  }
  return code;
}

int @UNIQUE@_open(const void *image, @NAME@ **out) {
  int device, major, minor;
  if (image == NULL || out == NULL) return @UPPER@_NULL;
  *out = NULL;
  int code = find_driver();
  if (code != @UPPER@_OK) return code;
  @NAME@ *kernel = calloc(1, sizeof *kernel);
  if (kernel == NULL) return @UPPER@_MEMORY;
  if (cuda.get_current(&kernel->context) != 0 || kernel->context == NULL) code = @UPPER@_NO_CONTEXT;
  if (code == @UPPER@_OK) code = driver(cuda.get_device(&device));
  if (code == @UPPER@_OK) code = driver(cuda.device_attribute(&major, DEVICE_MAJOR, device));
  if (code == @UPPER@_OK) code = driver(cuda.device_attribute(&minor, DEVICE_MINOR, device));
  if (code == @UPPER@_OK && !runs_on(image, 10 * major + minor)) code = @UPPER@_ARCH;
  if (code == @UPPER@_OK) code = driver(cuda.load(&kernel->module, image));
  if (code == @UPPER@_OK) code = prepare(kernel, device);
  if (code == @UPPER@_OK) {
    *out = kernel;
  } else {
    if (kernel->module != NULL) cuda.unload(kernel->module);
    free(kernel);
  }
  return code;
}

int @NAME@_open(const void *image, @NAME@ **out) { return @UNIQUE@_open(image, out); }

/* Sizes, in arithmetic that notices when it leaves 62 bits. */
static inline int64_t tw_size_add(int *bad, int64_t a, int64_t b) {
  const int64_t limit = INT64_C(1) << 62, sum = a + b;
  if (sum < limit && sum > -limit) return sum;
  *bad = 1;
  return 1;
}

static inline int64_t tw_size_mul(int *bad, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) *bad = 1;
  return *bad ? 1 : tw_size_add(bad, product, 0);
}

static inline int64_t tw_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
static inline int64_t tw_mod(int64_t a, int64_t b) { return a - b * tw_div(a, b); }
static inline int64_t tw_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t tw_max(int64_t a, int64_t b) { return a > b ? a : b; }

typedef struct {
  uint64_t start;
  int64_t bytes, align;
  int is_written, is_zeroed;
} span;

/* Whether all of a buffer is memory of the device, in one allocation or in several that follow each other. */
static int is_there(const span *it) {
  const uint64_t end = it->start + (uint64_t)it->bytes;
  for (uint64_t at = it->start; at < end;) {
    uint64_t base;
    size_t bytes;
    if (cuda.range(&base, &bytes, at) != 0 || base + bytes <= at) return 0;
    at = base + bytes;
  }
  return 1;
}

static int check(const span *all) {
  for (int i = 0; i < PARAMS; i++) {
    if (all[i].start == 0) return @UPPER@_NULL;
    if (all[i].start % (uint64_t)all[i].align != 0) return @UPPER@_MISALIGNED;
    if (!is_there(&all[i])) return @UPPER@_TOO_SHORT;
    for (int j = 0; j < i; j++) {
      const int meet = all[i].start < all[j].start + (uint64_t)all[j].bytes &&
                       all[j].start < all[i].start + (uint64_t)all[i].bytes;
      if (meet && (all[i].is_written || all[j].is_written)) return @UPPER@_OVERLAP;
    }
  }
  return @UPPER@_OK;
}

/* Makes the temporaries large enough. Counters are zero at first, and every run leaves them so. */
static int make_workspace(@NAME@ *kernel, span *all, void *stream) {
  for (int i = PARAMS; i < BUFFERS; i++) {
    const size_t bytes = (size_t)all[i].bytes;
    if (kernel->workspace_bytes[i] < bytes) {
      if (kernel->workspace[i] != 0) cuda.release(kernel->workspace[i]);
      kernel->workspace[i] = 0;
      kernel->workspace_bytes[i] = 0;
      if (cuda.alloc(&kernel->workspace[i], bytes) != 0) return @UPPER@_MEMORY;
      kernel->workspace_bytes[i] = bytes;
      if (all[i].is_zeroed && cuda.set(kernel->workspace[i], 0, bytes, stream) != 0) return @UPPER@_MEMORY;
    }
    all[i].start = kernel->workspace[i];
  }
  return @UPPER@_OK;
}

static int fits(const int64_t *size) {
  static const int64_t most[6] = {INT32_MAX, 65535, 65535, 1024, 1024, 64};
  for (int i = 0; i < 6; i++) {
    if (size[i] < 1 || size[i] > most[i]) return @UPPER@_GRID;
  }
  return @UPPER@_OK;
}
@MAPS@
@STARTS@

int @NAME@_launch(@NAME@ *kernel, @ARGS@void *stream) {
  int64_t dims[DIMS + 1] = {@DIM_VALUES@};
  int bad = 0;
  handle context;
  if (kernel == NULL) return @UPPER@_NULL;
  if (cuda.get_current(&context) != 0 || context != kernel->context) return @UPPER@_NO_CONTEXT;
  for (int i = 0; i < DIMS; i++) {
    if (dims[i] < 1) return @UPPER@_DIMENSION;
  }
  span all[BUFFERS] = {
@SPANS@
  };
  const int64_t sizes[LAUNCHES][6] = {
@SIZES@
  };
@MAP_SIZES@
  if (bad) return @UPPER@_SIZE;
  int code = check(all);
  for (int i = 0; i < LAUNCHES && code == @UPPER@_OK; i++) code = fits(sizes[i]);
@MAP_CHECK@
  if (code == @UPPER@_OK) code = make_workspace(kernel, all, stream);
@MAP_ENCODE@
@LAUNCHES@
  return code;
}

void @NAME@_close(@NAME@ *kernel) {
  if (kernel == NULL) return;
  for (int i = PARAMS; i < BUFFERS; i++) {
    if (kernel->workspace[i] != 0) cuda.release(kernel->workspace[i]);
  }
  cuda.unload(kernel->module);
  free(kernel);
}

int @NAME@_driver_code(void) { return last_code; }

const char *@NAME@_error(int code) {
  switch (code) {
    case @UPPER@_OK: return "@NAME@: no error";
    case @UPPER@_NULL: return "@NAME@: an address is 0, or a pointer NULL";
    case @UPPER@_MISALIGNED: return "@NAME@: an address is no multiple of what the kernel needs";
    case @UPPER@_DIMENSION: return "@NAME@: a dimension is below 1";
    case @UPPER@_SIZE: return "@NAME@: a buffer would be larger than memory can be";
    case @UPPER@_OVERLAP: return "@NAME@: an output overlaps another buffer";
    case @UPPER@_MEMORY: return "@NAME@: there is no memory for temporaries";
    case @UPPER@_TOO_SHORT: return "@NAME@: a buffer is shorter than the sizes say, or is no memory of the device";
    case @UPPER@_GRID: return "@NAME@: the sizes ask for more blocks than a launch has";
    case @UPPER@_NO_DRIVER: return "@NAME@: there is no libcuda, or it lacks a function";
    case @UPPER@_NO_CONTEXT: return "@NAME@: no CUDA context is current, or it is not the one the kernel was opened in";
    case @UPPER@_ARCH: return "@NAME@: the device does not run code for @ARCH@";
    case @UPPER@_SHARED: return "@NAME@: the device has too little shared memory, or too few registers for a block";
@MAP_WORDS@
    case @UPPER@_DRIVER: return "@NAME@: the driver refused";
    default: return "@NAME@: no such code";
  }
}
