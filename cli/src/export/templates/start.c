
static int start(handle function, const int64_t *size, int shared, void *stream, void **arguments) {
  return driver(cuda.launch(function, (unsigned)size[0], (unsigned)size[1], (unsigned)size[2], (unsigned)size[3],
                            (unsigned)size[4], (unsigned)size[5], (unsigned)shared, stream, arguments, NULL));
}
