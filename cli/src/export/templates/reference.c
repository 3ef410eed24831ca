/* What `@FUNC@` must compute: the unscheduled program, element by element where it is asked, floats of every type in
   double and integers as machines wrap them. Made by tilewright @TOOL@. */
#include "reference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const tw_param tw_params[TW_PARAMS] = {
@PARAM_TABLE@
};
const char *const tw_dim_names[TW_DIMS + 1] = {@DIM_NAMES@};
const int64_t tw_dim_defaults[TW_DIMS + 1] = {@DIM_DEFAULTS@};

/* Elements. Small floats have `precision` significant bits, the least normal exponent `least`, and a largest value;
   what is beyond it becomes infinite, or the largest of types without infinities. */
typedef struct {
  int bits, precision, least;
  double max;
  int saturates;
} small_float;

static const small_float *small(tw_dtype dtype) {
  static const small_float f16 = {16, 11, -14, 65504.0, 0};
  static const small_float bf16 = {16, 8, -126, 3.3895313892515355e38, 0};
  static const small_float f8e4m3 = {8, 4, -6, 448.0, 1};
  static const small_float f8e5m2 = {8, 3, -14, 57344.0, 1};
  switch (dtype) {
    case TW_F16: return &f16;
    case TW_BF16: return &bf16;
    case TW_F8E4M3: return &f8e4m3;
    case TW_F8E5M2: return &f8e5m2;
    default: return NULL;
  }
}

static double round_to(double x, int precision, int least) {
  int exponent;
  if (x == 0.0 || !isfinite(x)) return x;
  (void)frexp(x, &exponent);
  exponent = exponent - 1 < least ? least : exponent - 1;
  const int quantum = exponent - (precision - 1);
  return ldexp(nearbyint(ldexp(x, -quantum)), quantum);
}

static unsigned small_bits(const small_float *f, tw_dtype dtype, double x) {
  const int mantissa = f->precision - 1;
  const unsigned sign = signbit(x) ? 1u << (f->bits - 1) : 0u;
  const unsigned top = (1u << (f->bits - 1)) - (1u << mantissa);
  if (isnan(x)) return sign | (dtype == TW_F8E4M3 ? 0x7fu : top | 1u << (mantissa - 1));
  double y = fabs(round_to(x, f->precision, f->least));
  if (y > f->max) {
    if (!f->saturates) return sign | top;
    y = f->max;
  }
  if (y == 0.0) return sign;
  int exponent;
  (void)frexp(y, &exponent);
  exponent -= 1;
  if (exponent < f->least) return sign | (unsigned)ldexp(y, mantissa - f->least);
  return sign + ((unsigned)(exponent - f->least) << mantissa) + (unsigned)ldexp(y, mantissa - exponent);
}

static double small_value(const small_float *f, tw_dtype dtype, unsigned bits) {
  const int mantissa = f->precision - 1;
  const unsigned exponent = (bits & ((1u << (f->bits - 1)) - 1u)) >> mantissa;
  const unsigned rest = bits & ((1u << mantissa) - 1u);
  const unsigned top = (1u << (f->bits - 1 - mantissa)) - 1u;
  double y;
  if (dtype == TW_F8E4M3 && exponent == top && rest == 7u) y = NAN;
  else if (dtype != TW_F8E4M3 && exponent == top) y = rest == 0u ? INFINITY : NAN;
  else if (exponent == 0u) y = ldexp((double)rest, f->least - mantissa);
  else y = ldexp((double)(rest + (1u << mantissa)), (int)exponent - 1 + f->least - mantissa);
  return bits >> (f->bits - 1) ? -y : y;
}

/* A scale has an exponent and nothing else: the magnitude is rounded to a power of two, from 2^-127 to 2^127. */
static double scale_value(uint8_t bits) { return bits == 255 ? NAN : ldexp(1.0, bits - 127); }

static uint8_t scale_bits(double x) {
  int exponent;
  if (isnan(x)) return 255;
  const double y = fabs(x);
  if (y <= ldexp(1.0, -127)) return 0;
  if (y >= ldexp(1.0, 127)) return 254;
  (void)frexp(round_to(y, 1, -127), &exponent);
  return (uint8_t)(exponent - 1 + 127);
}

size_t tw_element_bytes(tw_dtype dtype) {
  static const size_t bytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 2, 2, 4, 1, 1, 1, 4, 8};
  return bytes[dtype];
}

double tw_decode(tw_dtype dtype, const void *elements, int64_t at) {
  switch (dtype) {
    case TW_BOOL: return ((const uint8_t *)elements)[at] != 0;
    case TW_I8: return ((const int8_t *)elements)[at];
    case TW_I16: return ((const int16_t *)elements)[at];
    case TW_I32: return ((const int32_t *)elements)[at];
    case TW_I64: return (double)((const int64_t *)elements)[at];
    case TW_U8: return ((const uint8_t *)elements)[at];
    case TW_U16: return ((const uint16_t *)elements)[at];
    case TW_U32: return ((const uint32_t *)elements)[at];
    case TW_F16:
    case TW_BF16: return small_value(small(dtype), dtype, ((const uint16_t *)elements)[at]);
    case TW_F8E4M3:
    case TW_F8E5M2: return small_value(small(dtype), dtype, ((const uint8_t *)elements)[at]);
    case TW_F8E8M0: return scale_value(((const uint8_t *)elements)[at]);
    case TW_TF32:
    case TW_F32: return (double)((const float *)elements)[at];
    case TW_F64: return ((const double *)elements)[at];
  }
  return NAN;
}

void tw_encode(tw_dtype dtype, double value, void *elements, int64_t at) {
  switch (dtype) {
    case TW_BOOL: ((uint8_t *)elements)[at] = value != 0.0; return;
    case TW_I8: ((int8_t *)elements)[at] = (int8_t)value; return;
    case TW_I16: ((int16_t *)elements)[at] = (int16_t)value; return;
    case TW_I32: ((int32_t *)elements)[at] = (int32_t)value; return;
    case TW_I64: ((int64_t *)elements)[at] = (int64_t)value; return;
    case TW_U8: ((uint8_t *)elements)[at] = (uint8_t)value; return;
    case TW_U16: ((uint16_t *)elements)[at] = (uint16_t)value; return;
    case TW_U32: ((uint32_t *)elements)[at] = (uint32_t)value; return;
    case TW_F16:
    case TW_BF16: ((uint16_t *)elements)[at] = (uint16_t)small_bits(small(dtype), dtype, value); return;
    case TW_F8E4M3:
    case TW_F8E5M2: ((uint8_t *)elements)[at] = (uint8_t)small_bits(small(dtype), dtype, value); return;
    case TW_F8E8M0: ((uint8_t *)elements)[at] = scale_bits(value); return;
    case TW_TF32: ((float *)elements)[at] = (float)round_to(value, 11, -126); return;
    case TW_F32: ((float *)elements)[at] = (float)value; return;
    case TW_F64: ((double *)elements)[at] = value; return;
  }
}

/* Sizes, in arithmetic that notices when it leaves 62 bits. */
enum { TW_LIMIT_BITS = 62 };

int64_t tw_size_add(int *bad, int64_t a, int64_t b);
int64_t tw_size_mul(int *bad, int64_t a, int64_t b);
int64_t tw_div(int64_t a, int64_t b);
int64_t tw_mod(int64_t a, int64_t b);
int64_t tw_min(int64_t a, int64_t b);
int64_t tw_max(int64_t a, int64_t b);

static int64_t within_limit(int *bad, int64_t value) {
  const int64_t limit = INT64_C(1) << TW_LIMIT_BITS;
  if (value < limit && value > -limit) return value;
  *bad = 1;
  return 1;
}

int64_t tw_size_add(int *bad, int64_t a, int64_t b) { return within_limit(bad, a + b); }

int64_t tw_size_mul(int *bad, int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) product = INT64_MAX;
  return within_limit(bad, product);
}

/* Quotients are rounded down; the divisor is positive. */
int64_t tw_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }
int64_t tw_mod(int64_t a, int64_t b) { return a - b * tw_div(a, b); }
int64_t tw_min(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t tw_max(int64_t a, int64_t b) { return a > b ? a : b; }

int tw_shape(int param, const int64_t *dims, int64_t *shape) {
  int bad = 0;
  int64_t elements = 1;
  for (int i = 0; i < TW_DIMS; i++) {
    if (dims[i] < 1) return 0;
  }
  switch (param) {
@SHAPES@
  }
  for (int i = 0; i < tw_params[param].rank; i++) {
    if (shape[i] < 1) return 0;
    elements = tw_size_mul(&bad, elements, shape[i]);
  }
  (void)tw_size_mul(&bad, elements, 8);
  return !bad;
}

int64_t tw_below(int param, const int64_t *dims) {
  int bad = 0;
  int64_t below = 0;
  (void)dims;
  switch (param) {
@BELOW@
    default: break;
  }
  return bad ? 0 : below;
}

double tw_flops(const int64_t *dims) {
  int bad = 0;
  (void)dims;
  const int64_t flops = @FLOPS@;
  return bad ? 0.0 : (double)flops;
}

/* How many values one element of each block combines, and the unit roundoffs of what it writes and of its casts. */
typedef struct {
  double steps, written, casts;
} block_error;

static int blocks(const int64_t *dims, block_error *out) {
  int bad = 0, n = 0;
  (void)dims;
@BLOCK_ERRORS@
  return bad ? 0 : n;
}

double tw_steps(const int64_t *dims) {
  block_error all[@BLOCK_COUNT@];
  double steps = 0.0;
  for (int i = 0, n = blocks(dims, all); i < n; i++) steps += all[i].steps;
  return steps;
}

double tw_tolerance(const int64_t *dims) {
  block_error all[@BLOCK_COUNT@];
  double error = 0.0;
  for (int i = 0, n = blocks(dims, all); i < n; i++) {
    const double root = sqrt(all[i].steps);
    const double growth = all[i].steps > 1.0 ? 4.0 * root : 0.0;
    error += (8.0 + growth) * all[i].written + 8.0 * root * all[i].casts;
  }
  return error;
}

/* Arithmetic of integers as machines do it. */
int64_t tw_wrap(tw_dtype dtype, int64_t x);
int64_t tw_int(tw_dtype dtype, double x);
int64_t tw_int_add(int64_t a, int64_t b);
int64_t tw_int_sub(int64_t a, int64_t b);
int64_t tw_int_mul(int64_t a, int64_t b);
int64_t tw_int_div(int64_t a, int64_t b);
int64_t tw_int_shl(int64_t a, int64_t by);
int64_t tw_int_shr(int64_t a, int64_t by);
double tw_dot_e2m1x2(int64_t a, int64_t b);

int64_t tw_wrap(tw_dtype dtype, int64_t x) {
  switch (dtype) {
    case TW_BOOL: return x != 0;
    case TW_I8: return (int8_t)x;
    case TW_I16: return (int16_t)x;
    case TW_I32: return (int32_t)x;
    case TW_U8: return (uint8_t)x;
    case TW_U16: return (uint16_t)x;
    case TW_U32: return (uint32_t)x;
    default: return x;
  }
}

/* A float to an integer: cut off, and no further than the type reaches; nothing of a NaN. */
int64_t tw_int(tw_dtype dtype, double x) {
  static const double low[] = {0, -128, -32768, -2147483648.0, -9223372036854775808.0, 0, 0, 0};
  static const double high[] = {1, 127, 32767, 2147483647.0, 9223372036854774784.0, 255, 65535, 4294967295.0};
  if (isnan(x)) return 0;
  if (dtype == TW_BOOL) return x != 0.0;
  return (int64_t)fmin(fmax(x, low[dtype]), high[dtype]);
}

int64_t tw_int_add(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }
int64_t tw_int_sub(int64_t a, int64_t b) { return (int64_t)((uint64_t)a - (uint64_t)b); }
int64_t tw_int_mul(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }
int64_t tw_int_div(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? tw_int_sub(0, a) : a / b; }
int64_t tw_int_shl(int64_t a, int64_t by) { return (int64_t)((uint64_t)a << by); }
int64_t tw_int_shr(int64_t a, int64_t by) { return a < 0 ? ~(~a >> by) : a >> by; }

/* The two floats of four bits of a byte times those of another one. */
double tw_dot_e2m1x2(int64_t a, int64_t b) {
  static const double value[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6};
  return value[a & 15] * value[b & 15] + value[a >> 4 & 15] * value[b >> 4 & 15];
}

/* The program. What later stages read of an earlier one is kept. */
struct tw_reference {
  int64_t dims[TW_DIMS + 1];
  void *params[TW_PARAMS];
  struct {
    double *value;
    unsigned char *known;
  } kept[@STAGE_COUNT@];
};

@STAGES@
tw_reference *tw_reference_new(const int64_t *dims, void *const *params) {
  tw_reference *r = calloc(1, sizeof *r);
  int bad = 0;
  if (r == NULL) return NULL;
  for (int i = 0; i < TW_DIMS; i++) r->dims[i] = dims[i];
  memcpy(r->params, params, sizeof r->params);
@KEEP@
  if (!bad) return r;
  tw_reference_free(r);
  return NULL;
}

double tw_reference_at(tw_reference *r, int param, const int64_t *at) {
  switch (param) {
@OUTPUTS@
    default: return NAN;
  }
}

void tw_reference_free(tw_reference *r) {
  for (int i = 0; i < @STAGE_COUNT@; i++) {
    free(r->kept[i].value);
    free(r->kept[i].known);
  }
  free(r);
}
