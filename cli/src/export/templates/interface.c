/* The C function around @NAME@_kernel.c: arguments are checked, temporaries are made, parallel loops get threads.
   Made by tilewright @TOOL@. */
#define _POSIX_C_SOURCE 200809L
#define TILEWRIGHT_@NAME@_DEFINED
#include "@NAME@.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As in @NAME@_kernel.c. */
typedef struct tw_runtime tw_runtime;
struct tw_runtime {
  void (*parallel)(const tw_runtime *rt, int64_t n, void (*body)(void *ctx, int64_t i), void *ctx);
  void *pool;
};

#if defined(__GNUC__)
#pragma GCC visibility push(hidden)
#endif
@PROTOTYPES@
#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

/* Threads that wait for loops. One loop at a time has them; `owner` is held by the call whose loop that is. */
enum { MAX_THREADS = 1024 };

static struct {
  pthread_mutex_t owner, lock;
  pthread_cond_t wake, done;
  pid_t process;
  int started, wanted, working;
  uint64_t loop;
  _Atomic int64_t next;
  int64_t n;
  void (*body)(void *ctx, int64_t i);
  void *ctx;
} pool = {.owner = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .wake = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER};

static void take_iterations(void) {
  for (int64_t i; (i = atomic_fetch_add(&pool.next, 1)) < pool.n;) pool.body(pool.ctx, i);
}

static void *worker(void *number) {
  const int me = (int)(intptr_t)number;
  uint64_t seen = 0;
  pthread_mutex_lock(&pool.lock);
  for (;;) {
    while (pool.loop == seen || me >= pool.wanted) {
      seen = pool.loop;
      pthread_cond_wait(&pool.wake, &pool.lock);
    }
    seen = pool.loop;
    pthread_mutex_unlock(&pool.lock);
    take_iterations();
    pthread_mutex_lock(&pool.lock);
    if (--pool.working == 0) pthread_cond_signal(&pool.done);
  }
  return NULL;
}

/* Starts threads until there are so many beside the caller; fewer where the system refuses. */
static void grow(int threads) {
  pthread_attr_t attributes;
  if (pool.started >= threads || pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  /* Private arrays of kernels live on the stack. */
  pthread_attr_setstacksize(&attributes, 8u << 20);
  while (pool.started < threads) {
    pthread_t thread;
    if (pthread_create(&thread, &attributes, worker, (void *)(intptr_t)pool.started) != 0) break;
    pool.started++;
  }
  pthread_attr_destroy(&attributes);
}

static void alone(const tw_runtime *rt, int64_t n, void (*body)(void *ctx, int64_t i), void *ctx) {
  (void)rt;
  for (int64_t i = 0; i < n; i++) body(ctx, i);
}

static _Thread_local int is_inside;

static void together(const tw_runtime *rt, int64_t n, void (*body)(void *ctx, int64_t i), void *ctx) {
  const int threads = (int)(intptr_t)rt->pool;
  if (n < 2 || threads < 2 || is_inside || pthread_mutex_trylock(&pool.owner) != 0) {
    alone(rt, n, body, ctx);
    return;
  }
  pthread_mutex_lock(&pool.lock);
  if (pool.process != getpid()) {
    /* The child of a fork has none of the threads. */
    pool.started = 0;
    pool.process = getpid();
  }
  grow(threads - 1);
  pool.wanted = n - 1 < threads - 1 ? (int)n - 1 : threads - 1;
  if (pool.wanted > pool.started) pool.wanted = pool.started;
  pool.working = pool.wanted;
  pool.n = n;
  pool.body = body;
  pool.ctx = ctx;
  atomic_store(&pool.next, 0);
  pool.loop++;
  pthread_cond_broadcast(&pool.wake);
  pthread_mutex_unlock(&pool.lock);
  is_inside = 1;
  take_iterations();
  is_inside = 0;
  pthread_mutex_lock(&pool.lock);
  while (pool.working > 0) pthread_cond_wait(&pool.done, &pool.lock);
  pthread_mutex_unlock(&pool.lock);
  pthread_mutex_unlock(&pool.owner);
}

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

enum { BUFFERS = @BUFFER_COUNT@, PARAMS = @PARAM_COUNT@, DIMS = @DIM_COUNT@ };

typedef struct {
  char *start;
  int64_t bytes;
  int64_t align;
  int is_written;
} span;

static int check(const span *all) {
  for (int i = 0; i < PARAMS; i++) {
    if (all[i].start == NULL) return @UPPER@_NULL;
    if ((uintptr_t)all[i].start % (uintptr_t)all[i].align != 0) return @UPPER@_MISALIGNED;
    for (int j = 0; j < i; j++) {
      const uintptr_t a = (uintptr_t)all[i].start, b = (uintptr_t)all[j].start;
      const int meet = a < b + (uintptr_t)all[j].bytes && b < a + (uintptr_t)all[i].bytes;
      if (meet && (all[i].is_written || all[j].is_written)) return @UPPER@_OVERLAP;
    }
  }
  return @UPPER@_OK;
}

/* Memory for temporaries: that of the call before, where it is large enough, since fresh pages cost more than many kernels. Its length
   stands before it. */
enum { MEMORY_ALIGN = 256 };
static _Atomic(char *) spare;

static size_t padded(size_t bytes) { return (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN; }

static char *take_memory(const span *all) {
  size_t bytes = MEMORY_ALIGN;
  for (int i = PARAMS; i < BUFFERS; i++) {
    const size_t more = padded((size_t)all[i].bytes);
    if (more > SIZE_MAX / 2 - bytes) return NULL;
    bytes += more;
  }
  char *memory = atomic_exchange(&spare, NULL);
  if (memory != NULL && *(size_t *)(void *)memory >= bytes) return memory;
  free(memory);
  memory = aligned_alloc(MEMORY_ALIGN, bytes);
  if (memory != NULL) *(size_t *)(void *)memory = bytes;
  return memory;
}

static void give_memory(char *memory) { free(atomic_exchange(&spare, memory)); }

/* The processors that are online, asked once: the answer is read from files, and takes longer than a small kernel. */
static int cores(void) {
  static _Atomic int known;
  int out = atomic_load_explicit(&known, memory_order_relaxed);
  if (out == 0) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    out = online < 1 ? 1 : online > MAX_THREADS ? MAX_THREADS : (int)online;
    atomic_store_explicit(&known, out, memory_order_relaxed);
  }
  return out;
}

int @UNIQUE@(@ARGS@int threads) {
  const int64_t dims[DIMS + 1] = {@DIM_VALUES@};
  int bad = 0;
  if (threads < 0 || threads > MAX_THREADS) return @UPPER@_THREADS;
  for (int i = 0; i < DIMS; i++) {
    if (dims[i] < 1) return @UPPER@_DIMENSION;
  }
  span all[BUFFERS] = {
@SPANS@
  };
  if (bad) return @UPPER@_SIZE;
  const int code = check(all);
  if (code != @UPPER@_OK) return code;
  char *const memory = BUFFERS > PARAMS ? take_memory(all) : NULL;
  if (BUFFERS > PARAMS && memory == NULL) return @UPPER@_MEMORY;
  size_t used = 0;
  for (int i = PARAMS; i < BUFFERS; i++) {
    all[i].start = memory + MEMORY_ALIGN + used;
    const size_t bytes = padded((size_t)all[i].bytes);
    used += bytes;
@ZERO@
  }
  if (threads == 0) threads = cores();
  const tw_runtime rt = {threads == 1 ? alone : together, (void *)(intptr_t)threads};
@LAUNCHES@
  if (memory != NULL) give_memory(memory);
  return @UPPER@_OK;
}

/* A crate has several kernels, and calls them by what no other crate has. */
#ifndef TILEWRIGHT_UNIQUE_ONLY
int @NAME@(@ARGS@int threads) { return @UNIQUE@(@PASS@threads); }

const char *@NAME@_error(int code) {
  switch (code) {
    case @UPPER@_OK: return "@NAME@: no error";
    case @UPPER@_NULL: return "@NAME@: a buffer is NULL";
    case @UPPER@_MISALIGNED: return "@NAME@: a buffer does not start at a multiple of the size of its elements";
    case @UPPER@_DIMENSION: return "@NAME@: a dimension is below 1";
    case @UPPER@_SIZE: return "@NAME@: a buffer would be larger than memory can be";
    case @UPPER@_OVERLAP: return "@NAME@: an output overlaps another buffer";
    case @UPPER@_MEMORY: return "@NAME@: there is no memory for temporaries";
    case @UPPER@_THREADS: return "@NAME@: the number of threads is negative, or more than 1024";
    default: return "@NAME@: no such code";
  }
}
#endif
