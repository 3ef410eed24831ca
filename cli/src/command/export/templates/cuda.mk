# `make` builds the launcher, `make check` runs it against the reference. No CUDA toolkit is needed.
CC ?= cc
CFLAGS ?= @OPTIONS@

lib@NAME@.a: launcher.o
	ar rcs $@ $^

verify: main.o reference.o lib@NAME@.a
	$(CC) $(CFLAGS) -o $@ $^ -lm -ldl

check: verify
	./verify

%.o: %.c $(wildcard *.h)
	$(CC) $(CFLAGS) -c -o $@ $<

clean:
	rm -f *.o lib@NAME@.a verify

.PHONY: check clean
