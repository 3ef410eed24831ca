static int run_kernel(const options *o, void *const *data, const size_t *bytes, double *each) {
  (void)bytes;
  const double begin = seconds();
  int calls = 0;
  do {
    const int code = @CALL@;
    if (code != 0) {
      fprintf(stderr, "error: %s\n", @NAME@_error(code));
      return REFUSED;
    }
    calls++;
    /* The first call is no measure: it starts threads and finds pages. */
    if (calls == 1) *each = seconds();
  } while (calls < 2 || (seconds() - begin < 0.1 && calls < 1000000));
  *each = (seconds() - *each) / (calls - 1);
  return RIGHT;
}
