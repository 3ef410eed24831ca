
/* Tensor maps: by them the copy engine of the GPU (TMA) finds boxes of tensors. Kernels take them by value, before the
   addresses of their buffers. Dimensions are innermost first, distances in bytes. */
enum { MAPS = @MAP_COUNT@, MAP_DIMS = @MOST_DIMS@ };

typedef struct {
  _Alignas(128) uint64_t opaque[16];
} tensor_map;

typedef struct {
  int buffer;
  unsigned rank, type, swizzle; /* the last two as cuda.h numbers them */
  uint32_t box[MAP_DIMS];
} map_kind;

typedef struct {
  int64_t dims[MAP_DIMS], strides[MAP_DIMS];
} map_size;

static const map_kind map_kinds[MAPS] = {
@MAP_KINDS@
};

/* Whether the copy engine takes tensors of this size: @SIZE_RULE@; distances in bytes that are @DISTANCE_RULE@. */
static int check_map(const map_kind *kind, const map_size *size) {
  for (unsigned i = 0; i < kind->rank; i++) {
    const int64_t distance = size->strides[i];
    if (size->dims[i] < 1 || size->dims[i] > INT64_C(@LARGEST@)) return @UPPER@_MAP;
    if (i > 0 && (distance < 1 || distance >= INT64_C(@FARTHEST@) || distance % @UNIT@ != 0)) return @UPPER@_MAP;
  }
  return @UPPER@_OK;
}

static int encode(tensor_map *out, const map_kind *kind, const map_size *size, uint64_t start) {
  static const uint32_t steps[MAP_DIMS] = {1, 1, 1, 1, 1};
  uint64_t dims[MAP_DIMS], distances[MAP_DIMS];
  for (unsigned i = 0; i < kind->rank; i++) {
    dims[i] = (uint64_t)size->dims[i];
    if (i > 0) distances[i - 1] = (uint64_t)size->strides[i]; /* that of the innermost is not told */
  }
  return driver(cuda.encode(out, kind->type, kind->rank, (void *)(uintptr_t)start, dims, distances, kind->box, steps,
                            @INTERLEAVE_NUMBER@ /* @INTERLEAVE@ */, kind->swizzle,
                            @PROMOTION_NUMBER@ /* @PROMOTION@ */,
                            @FILL_NUMBER@ /* @FILL@ */));
}
