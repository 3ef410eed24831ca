/* What `@FUNC@` must compute, in double arithmetic: for main.c alone, no part of the interface.
   Made by tilewright @TOOL@. */
#ifndef TILEWRIGHT_REFERENCE_H
#define TILEWRIGHT_REFERENCE_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
  TW_BOOL, TW_I8, TW_I16, TW_I32, TW_I64, TW_U8, TW_U16, TW_U32,
  TW_F16, TW_BF16, TW_TF32, TW_F8E4M3, TW_F8E5M2, TW_F8E8M0, TW_F32, TW_F64
} tw_dtype;

/* Inputs and outputs, in the order of the interface. */
typedef struct {
  const char *name;
  tw_dtype dtype;
  int is_output;
  int rank;
} tw_param;

enum { TW_PARAMS = @PARAM_COUNT@, TW_DIMS = @DIM_COUNT@, TW_MAX_RANK = @MAX_RANK@ };

extern const tw_param tw_params[TW_PARAMS];
/* Symbolic dimensions: their names, and the sizes that main.c takes where it is given none. */
extern const char *const tw_dim_names[TW_DIMS + 1];
extern const int64_t tw_dim_defaults[TW_DIMS + 1];

size_t tw_element_bytes(tw_dtype dtype);
double tw_decode(tw_dtype dtype, const void *elements, int64_t at);
void tw_encode(tw_dtype dtype, double value, void *elements, int64_t at);

/* The shape of a parameter; 0 where a dimension is below 1 or a size does not fit 62 bits. */
int tw_shape(int param, const int64_t *dims, int64_t *shape);
/* What each element of a parameter is assumed to be less than, and at least 0; 0 where nothing is. */
int64_t tw_below(int param, const int64_t *dims);
/* Arithmetic operations, and how many values are combined in all for one element; 0 where not known. */
double tw_flops(const int64_t *dims);
double tw_steps(const int64_t *dims);
/* The largest allowed difference, relative to the largest magnitude of the output. */
double tw_tolerance(const int64_t *dims);

typedef struct tw_reference tw_reference;
/* `params` are host addresses in the order of `tw_params`; only inputs are read. NULL without memory. */
tw_reference *tw_reference_new(const int64_t *dims, void *const *params);
/* One element of an output. */
double tw_reference_at(tw_reference *r, int param, const int64_t *at);
void tw_reference_free(tw_reference *r);

#endif
