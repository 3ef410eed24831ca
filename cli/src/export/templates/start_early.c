
/* Launches a kernel that may start before what is ahead of it in the stream has ended, for which it waits by itself. */
static int start_early(handle function, const int64_t *size, int shared, void *stream, void **arguments) {
  const struct {
    unsigned id;
    union {
      int allowed;
      uint64_t all[8];
    } value;
  } attribute = {6 /* CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION */, {1}};
  const struct {
    unsigned grid[3], block[3], shared;
    void *stream;
    const void *attributes;
    unsigned count;
  } configuration = {{(unsigned)size[0], (unsigned)size[1], (unsigned)size[2]},
                     {(unsigned)size[3], (unsigned)size[4], (unsigned)size[5]},
                     (unsigned)shared,
                     stream,
                     &attribute,
                     1};
  return driver(cuda.launch_early(&configuration, function, arguments, NULL));
}
