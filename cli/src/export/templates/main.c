/* Runs `@FUNC@` on random inputs, compares it with the reference and times it. Made by tilewright @TOOL@.

   usage: verify [DIM=SIZE]... [--seed N]@USAGE@

   Exit code: 0 right, 1 wrong, 2 the kernel or the request is refused, @NO_DEVICE@. */
#define _POSIX_C_SOURCE 200809L
@INCLUDES@
#include "reference.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RIGHT = 0, WRONG = 1, REFUSED = 2, NO_DEVICE = 77 };

typedef struct {
  int64_t dims[TW_DIMS + 1];
  uint64_t seed;
  int threads;
  const char *image;
} options;

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

@DEVICE@
/* splitmix64 (Steele, Lea and Flood, 2014). */
static uint64_t random_bits(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static int64_t random_below(uint64_t *state, int64_t bound) {
  return (int64_t)(random_bits(state) % (uint64_t)bound);
}

/* Floats are standard normal, by Box and Muller; integers are small. */
static double random_element(uint64_t *state, tw_dtype dtype) {
  switch (dtype) {
    case TW_BOOL: return (double)(random_bits(state) & 1);
    case TW_U8:
    case TW_U16:
    case TW_U32: return (double)random_below(state, 9);
    case TW_I8:
    case TW_I16:
    case TW_I32:
    case TW_I64: return (double)(random_below(state, 9) - 4);
    default: break;
  }
  const double u = ((double)(random_bits(state) >> 11) + 1.0) / 9007199254740992.0;
  const double v = (double)(random_bits(state) >> 11) / 9007199254740992.0;
  return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

typedef struct {
  int64_t elements, compared, wrong;
  double worst, scale, tolerance;
} verdict;

/* Which elements are compared: all where that is little work, else random ones, and more in each face. */
static int64_t *places(const options *o, const int64_t *shape, int rank, int64_t elements, int64_t *count) {
  const int is_all = (double)elements * fmax(tw_steps(o->dims), 1.0) <= 4194304.0 || elements <= 1024;
  int64_t n = is_all ? elements : 1024 + 64 * rank;
  int64_t *out = malloc((size_t)n * sizeof *out);
  uint64_t state = o->seed ^ UINT64_C(0x5851f42d4c957f2d);
  *count = 0;
  if (out == NULL) return NULL;
  for (int64_t i = 0; i < n; i++) {
    if (is_all) {
      out[i] = i;
      continue;
    }
    const int64_t face = i < 1024 ? -1 : (i - 1024) / 32;
    int64_t at = 0;
    for (int axis = 0; axis < rank; axis++) {
      int64_t x = random_below(&state, shape[axis]);
      if (face == 2 * axis) x = 0;
      if (face == 2 * axis + 1) x = shape[axis] - 1;
      at = at * shape[axis] + x;
    }
    out[i] = at;
  }
  *count = n;
  return out;
}

static double expected_at(tw_reference *r, int param, const int64_t *shape, int64_t flat) {
  int64_t at[TW_MAX_RANK + 1] = {0};
  for (int axis = tw_params[param].rank - 1; axis >= 0; axis--) {
    at[axis] = flat % shape[axis];
    flat /= shape[axis];
  }
  return tw_reference_at(r, param, at);
}

static int compare_one(verdict *v, double got, double expected) {
  const int same = got == expected || (isnan(got) && isnan(expected));
  const double error = same ? 0.0 : fabs(got - expected);
  v->compared++;
  if (!(error <= v->tolerance)) v->wrong++;
  if (!(error <= v->worst)) {
    v->worst = isnan(error) ? INFINITY : error;
    return 1;
  }
  return 0;
}

static int check(const options *o, tw_reference *r, int param, const void *data, verdict *v) {
  int64_t shape[TW_MAX_RANK + 1], count, worst = 0;
  const tw_param *p = &tw_params[param];
  if (!tw_shape(param, o->dims, shape)) return 0;
  memset(v, 0, sizeof *v);
  v->elements = 1;
  for (int axis = 0; axis < p->rank; axis++) v->elements *= shape[axis];
  int64_t *sample = places(o, shape, p->rank, v->elements, &count);
  double *expected = malloc((size_t)(count > 0 ? count : 1) * sizeof *expected);
  if (sample == NULL || expected == NULL) return 0;
  for (int64_t i = 0; i < count; i++) {
    expected[i] = expected_at(r, param, shape, sample[i]);
    if (isfinite(expected[i])) v->scale = fmax(v->scale, fabs(expected[i]));
  }
  v->tolerance = p->dtype >= TW_F16 ? tw_tolerance(o->dims) * v->scale : 0.0;
  for (int64_t i = 0; i < count; i++) {
    if (compare_one(v, tw_decode(p->dtype, data, sample[i]), expected[i])) worst = sample[i];
  }
  /* Every element is looked at; what is not a number was perhaps never written. */
  for (int64_t i = 0, doubtful = 0; i < v->elements && doubtful < 64; i++) {
    const double got = tw_decode(p->dtype, data, i);
    if (!isnan(got)) continue;
    doubtful++;
    if (compare_one(v, got, expected_at(r, param, shape, i))) worst = i;
  }
  printf("%s: %lld of %lld elements compared, largest error %.3g of %.3g allowed\n", p->name,
         (long long)v->compared, (long long)v->elements, v->worst, v->tolerance);
  if (v->wrong > 0) {
    printf("%s: %lld are wrong; the element at offset %lld is %.9g and should be %.9g\n", p->name, (long long)v->wrong,
           (long long)worst, tw_decode(p->dtype, data, worst), expected_at(r, param, shape, worst));
  }
  free(sample);
  free(expected);
  return 1;
}

static int run(const options *o) {
  void *data[TW_PARAMS] = {0};
  size_t bytes[TW_PARAMS];
  uint64_t state = o->seed;
  double each = 0.0, share = 0.0;
  int is_right = 1;
  for (int i = 0; i < TW_PARAMS; i++) {
    int64_t shape[TW_MAX_RANK + 1], elements = 1;
    if (!tw_shape(i, o->dims, shape)) {
      fprintf(stderr, "error: `%s` has no such size\n", tw_params[i].name);
      return REFUSED;
    }
    for (int axis = 0; axis < tw_params[i].rank; axis++) elements *= shape[axis];
    bytes[i] = (size_t)elements * tw_element_bytes(tw_params[i].dtype);
    data[i] = aligned_alloc(256, (bytes[i] + 255) / 256 * 256);
    if (data[i] == NULL) {
      fprintf(stderr, "error: no memory for `%s`\n", tw_params[i].name);
      return REFUSED;
    }
    /* An output full of ones is a NaN in every type of float, so that what is not written shows. */
    memset(data[i], 0xff, (bytes[i] + 255) / 256 * 256);
    if (tw_params[i].is_output) continue;
    const int64_t below = tw_below(i, o->dims);
    for (int64_t at = 0; at < elements; at++) {
      const double element =
          below > 0 ? (double)random_below(&state, below) : random_element(&state, tw_params[i].dtype);
      tw_encode(tw_params[i].dtype, element, data[i], at);
    }
  }
  const int code = run_kernel(o, data, bytes, &each);
  if (code != RIGHT) return code;
  tw_reference *r = tw_reference_new(o->dims, data);
  if (r == NULL) {
    fprintf(stderr, "error: no memory for the reference\n");
    return REFUSED;
  }
  for (int i = 0; i < TW_PARAMS; i++) {
    verdict v;
    if (!tw_params[i].is_output) continue;
    if (!check(o, r, i, data[i], &v)) return REFUSED;
    is_right = is_right && v.wrong == 0;
    if (v.worst > 0.0) share = fmax(share, v.worst / v.tolerance);
  }
  printf("max error %.3g of the tolerance\n", share);
  printf("%.4g ms, %.4g GFLOPS\n%s\n", 1e3 * each, 1e-9 * tw_flops(o->dims) / each, is_right ? "OK" : "WRONG");
  tw_reference_free(r);
  for (int i = 0; i < TW_PARAMS; i++) free(data[i]);
  return is_right ? RIGHT : WRONG;
}

static int refuse(const char *word) {
  fprintf(stderr, "error: `%s` is no option; there is [DIM=SIZE]... [--seed N]@USAGE@\n", word);
  return REFUSED;
}

int main(int argc, char **argv) {
  options o = {.seed = 1, .threads = 0, .image = "kernel.cubin"};
  memcpy(o.dims, tw_dim_defaults, sizeof o.dims);
  for (int i = 1; i < argc; i++) {
    const char *const equals = strchr(argv[i], '=');
    int found = 0;
    for (int d = 0; d < TW_DIMS && equals != NULL; d++) {
      const size_t length = (size_t)(equals - argv[i]);
      if (strlen(tw_dim_names[d]) != length || strncmp(argv[i], tw_dim_names[d], length) != 0) continue;
      o.dims[d] = strtoll(equals + 1, NULL, 10);
      found = 1;
    }
    if (found) continue;
    if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) o.seed = strtoull(argv[++i], NULL, 10);
@OPTIONS@
    else return refuse(argv[i]);
  }
  return run(&o);
}
