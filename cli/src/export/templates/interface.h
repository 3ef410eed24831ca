/* `@FUNC@` for the processor, as a C function. Made by tilewright @TOOL@.

   Buffers are row-major and belong to the caller; an output must not overlap another buffer. Any number of threads may
   call at the same time; the threads of the pool serve one call at a time, and others run alone. */
#ifndef TILEWRIGHT_@UNIQUE@_H
#define TILEWRIGHT_@UNIQUE@_H

#ifdef TILEWRIGHT_@NAME@_H
#error "two bundles are called `@NAME@`: export one of them with another --name"
#endif
#define TILEWRIGHT_@NAME@_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What @NAME@ returns. Nothing was written unless it is 0. */
enum {
  @UPPER@_OK = 0,
  @UPPER@_NULL = 1,       /* a buffer is NULL */
  @UPPER@_MISALIGNED = 2, /* a buffer does not start at a multiple of the size of its elements */
  @UPPER@_DIMENSION = 3,  /* a dimension is below 1 */
  @UPPER@_SIZE = 4,       /* a buffer would be larger than memory can be */
  @UPPER@_OVERLAP = 5,    /* an output overlaps another buffer */
  @UPPER@_MEMORY = 6,     /* there is no memory for temporaries */
  @UPPER@_THREADS = 7     /* the number of threads is negative, or more than 1024 */
};

/* @SIGNATURE_DOC@

   `threads`: how many threads to use at most, 0 for one a core. */
int @UNIQUE@(@ARGS@int threads);

/* The same by its short name. A caller gets the kernel of this header, whatever else in the program has that name; two
   bundles of one name in one program do not link. */
#ifdef TILEWRIGHT_@NAME@_DEFINED
int @NAME@(@ARGS@int threads);
#else
static inline int @NAME@(@ARGS@int threads) { return @UNIQUE@(@PASS@threads); }
#endif

/* What a code means, in words. */
const char *@NAME@_error(int code);

#ifdef __cplusplus
}
#endif

#endif
