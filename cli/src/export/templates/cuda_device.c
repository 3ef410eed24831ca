/* The part of cuda.h that this program needs beside the launcher. */
static struct {
  int (*init)(unsigned flags);
  int (*device)(int *device, int ordinal);
  int (*retain)(void **context, int device);
  int (*set_current)(void *context);
  int (*alloc)(uint64_t *address, size_t bytes);
  int (*to_device)(uint64_t to, const void *from, size_t bytes);
  int (*to_host)(void *to, uint64_t from, size_t bytes);
  int (*wait)(void);
} cu;

static int find_device(void) {
  static const char *const names[] = {"cuInit",        "cuDeviceGet",     "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                      "cuMemAlloc_v2", "cuMemcpyHtoD_v2", "cuMemcpyDtoH_v2",          "cuCtxSynchronize"};
  void *found[sizeof names / sizeof *names], *context;
  _Static_assert(sizeof found == sizeof cu, "a name for each function");
  void *const library = dlopen("libcuda.so.1", RTLD_NOW);
  int device;
  if (library == NULL) return 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    found[i] = dlsym(library, names[i]);
    if (found[i] == NULL) return 0;
  }
  memcpy(&cu, found, sizeof cu);
  return cu.init(0) == 0 && cu.device(&device, 0) == 0 && cu.retain(&context, device) == 0 &&
         cu.set_current(context) == 0;
}

/* A whole file with a zero behind it. */
static char *contents(const char *path) {
  FILE *const file = fopen(path, "rb");
  char *out = NULL;
  long length;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0 && (length = ftell(file)) >= 0 && fseek(file, 0, SEEK_SET) == 0) {
    out = calloc((size_t)length + 1, 1);
    if (out != NULL && fread(out, 1, (size_t)length, file) != (size_t)length) {
      free(out);
      out = NULL;
    }
  }
  fclose(file);
  return out;
}

static int refused(int code) {
  fprintf(stderr, "error: %s (driver code %d)\n", @NAME@_error(code), @NAME@_driver_code());
  return REFUSED;
}

static int run_kernel(const options *o, void *const *data, const size_t *bytes, double *each) {
  uint64_t address[TW_PARAMS];
  @NAME@ *kernel;
  if (!find_device()) {
    fprintf(stderr, "no NVIDIA driver or GPU is here\n");
    return NO_DEVICE;
  }
  char *const image = contents(o->image);
  if (image == NULL) {
    fprintf(stderr, "error: %s cannot be read\n", o->image);
    return REFUSED;
  }
  int code = @NAME@_open(image, &kernel);
  if (code != 0) return refused(code);
  for (int i = 0; i < TW_PARAMS; i++) {
    if (cu.alloc(&address[i], bytes[i]) != 0 || cu.to_device(address[i], data[i], bytes[i]) != 0) {
      fprintf(stderr, "error: no GPU memory for `%s`\n", tw_params[i].name);
      return REFUSED;
    }
  }
  /* The first launches are no measure; then as many as take a fifth of a second. */
  double begin = 0.0;
  int calls = 3, measured = 0;
  while (measured < 2) {
    if (cu.wait() != 0) break;
    begin = seconds();
    for (int i = 0; i < calls && code == 0; i++) code = @CALL@;
    if (code != 0) return refused(code);
    if (cu.wait() != 0) break;
    *each = (seconds() - begin) / calls;
    calls = (int)fmin(fmax(0.2 / fmax(*each, 1e-7), 3.0), 100000.0);
    measured++;
  }
  for (int i = 0; i < TW_PARAMS && measured == 2; i++) {
    if (tw_params[i].is_output && cu.to_host(data[i], address[i], bytes[i]) != 0) measured = 0;
  }
  if (measured < 2) {
    fprintf(stderr, "error: the kernel failed on the GPU\n");
    return WRONG;
  }
  @NAME@_close(kernel);
  free(image);
  return RIGHT;
}
