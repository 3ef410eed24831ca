# `make` builds the launcher to link, `make shared` the one to load, `make check` runs the kernel against the reference.
# No CUDA toolkit is needed.
CC ?= cc
CFLAGS ?= @OPTIONS@

lib@NAME@.a: @NAME@.o
	ar rcs $@ $^

shared: lib@NAME@.so

lib@NAME@.so: @NAME@.pic.o
	$(CC) $(CFLAGS) -shared -o $@ $^ -ldl

verify: main.o reference.o lib@NAME@.a
	$(CC) $(CFLAGS) -o $@ $^ -lm -ldl

check: verify
	./verify

%.pic.o: %.c $(wildcard *.h)
	$(CC) $(CFLAGS) -fPIC -c -o $@ $<

%.o: %.c $(wildcard *.h)
	$(CC) $(CFLAGS) -c -o $@ $<

clean:
	rm -f *.o lib@NAME@.a lib@NAME@.so verify

.PHONY: shared check clean
