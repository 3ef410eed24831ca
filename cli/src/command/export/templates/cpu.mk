# `make` builds the library, `make check` runs it against the reference.
CC ?= cc
CFLAGS ?= @OPTIONS@

lib@NAME@.a: kernel.o tilewright_kernel.o
	ar rcs $@ $^

verify: main.o reference.o lib@NAME@.a
	$(CC) $(CFLAGS) -o $@ $^ -lm -pthread

check: verify
	./verify

%.o: %.c $(wildcard *.h)
	$(CC) $(CFLAGS) -c -o $@ $<

clean:
	rm -f *.o lib@NAME@.a verify

.PHONY: check clean
