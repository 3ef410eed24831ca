/* `@FUNC@` for @TARGET@ over the CUDA driver, as C functions. Made by tilewright @TOOL@.

   No CUDA toolkit is needed: libcuda is looked up when a kernel is opened. Buffers are row-major device memory of the
   caller, `uint64_t` is a CUdeviceptr and `void *stream` a CUstream (a cudaStream_t is one). A handle serves one
   stream at a time, since it owns the memory for temporaries; open one for each stream. */
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

/* What the functions return. Nothing was launched unless it is 0. */
enum {
  @UPPER@_OK = 0,
  @UPPER@_NULL = 1,       /* an address is 0, or a pointer NULL */
  @UPPER@_MISALIGNED = 2, /* an address is no multiple of what the kernel needs */
  @UPPER@_DIMENSION = 3,  /* a dimension is below 1 */
  @UPPER@_SIZE = 4,       /* a buffer would be larger than memory can be */
  @UPPER@_OVERLAP = 5,    /* an output overlaps another buffer */
  @UPPER@_MEMORY = 6,     /* there is no memory for temporaries */
  @UPPER@_TOO_SHORT = 7,  /* a buffer is shorter than the sizes say, or is no memory of the device */
  @UPPER@_GRID = 8,       /* the sizes ask for more blocks than a launch has */
  @UPPER@_NO_DRIVER = 9,  /* there is no libcuda, or it lacks a function */
  @UPPER@_NO_CONTEXT = 10, /* no CUDA context is current, or it is not the one of `open` */
  @UPPER@_ARCH = 11,      /* the device does not run code for @ARCH@ */
  @UPPER@_SHARED = 12,    /* the device has too little shared memory, or too few registers for the threads of a block */
@MAP_CODE@
  @UPPER@_DRIVER = 13     /* the driver refused: @NAME@_driver_code tells how */
};

typedef struct @NAME@ @NAME@;

/* Loads an image, the bytes of kernel.cubin or the text of kernel.ptx with a zero at its end, into the current
   context. */
int @UNIQUE@_open(const void *image, @NAME@ **out);

/* The same by its short name. A caller gets the launcher of this header, whatever else in the program has that name; two
   bundles of one name in one program do not link. */
#ifdef TILEWRIGHT_@NAME@_DEFINED
int @NAME@_open(const void *image, @NAME@ **out);
#else
static inline int @NAME@_open(const void *image, @NAME@ **out) { return @UNIQUE@_open(image, out); }
#endif

/* @SIGNATURE_DOC@

   Checks and launches; returns before the kernel has run. */
int @NAME@_launch(@NAME@ *kernel, @ARGS@void *stream);

/* Gives everything back; with the context of `open` current, and after the last launch has run. */
void @NAME@_close(@NAME@ *kernel);

/* What a code means, in words. */
const char *@NAME@_error(int code);

/* The CUresult behind the last @UPPER@_DRIVER of this thread. */
int @NAME@_driver_code(void);

#ifdef __cplusplus
}
#endif

#endif
