# jot - the targets:
#   all            build/libjot.a                demo        train a network on drawn digits
#   test           everything but long campaigns test-long   the campaigns
#   check-asan     tests under ASan and UBSan    check-tcc   the library and its tests built by tcc
#   check-c++      a C++ program on core.h       freestanding, layers, dist: what they say
#   fuzz           random graphs, FUZZ=n of them bench       ratios against peers
#   install        PREFIX=/usr/local             wc          lines of code
CC      = gcc
CFLAGS  = -O2 -g
WARN    = -std=c99 -Wall -Wextra -Wpedantic
B       = build
PREFIX  = /usr/local
MNIST   =
FUZZ    = 300

# core.h < base.h < ops < fuse < ccode < backends < core.c; what needs a C library is HOSTED
HOSTED  = $(wildcard backends/host.c backends/tcc.c backends/cc.c backends/cache.c io/*.c)
CORE    = base.c $(wildcard ops/*.c) $(wildcard fuse/*.c) $(wildcard ccode/*.c) \
          $(filter-out $(HOSTED),$(wildcard backends/*.c)) core.c
SRC     = $(CORE) $(HOSTED)
HDR     = core.h base.h $(wildcard ops/*.h ops/*.def fuse/*.h ccode/*.h ccode/*.def backends/*.h io/*.h)
OBJ     = $(SRC:%.c=$(B)/%.o)
LIBS    = -ldl -lpthread -lm
ZLIB    = $(shell echo 'int main(void){return 0;}' >/tmp/jot_z$$$$.c; $(CC) -include zlib.h /tmp/jot_z$$$$.c -o /dev/null -lz 2>/dev/null && echo -DHAVE_ZLIB -lz; rm -f /tmp/jot_z$$$$.c)
TESTS   = $(patsubst tests/%.c,$(B)/tests/%,$(wildcard tests/test_*.c))
COMMON  = $(wildcard examples/common/*.c)
EXAMPLES = $(patsubst examples/%.c,$(B)/examples/%,$(wildcard examples/0*.c examples/1*.c))

all: $(B)/libjot.a

# POSIX and dlopen in the hosted files
$(HOSTED:%.c=$(B)/%.o): WARN += -D_GNU_SOURCE

$(B)/%.o: %.c $(HDR)
	@mkdir -p $(@D)
	$(CC) $(WARN) $(CFLAGS) -I. -c $< -o $@

$(B)/libjot.a: $(OBJ)
	rm -f $@ && ar rcs $@ $(OBJ)

$(B)/tests/%: tests/%.c $(wildcard tests/*.h tests/ref/*.h) $(B)/libjot.a
	@mkdir -p $(@D)
	$(CC) $(WARN) $(CFLAGS) -D_GNU_SOURCE -I. $< -o $@ $(B)/libjot.a $(LIBS)

$(B)/examples/%: examples/%.c $(COMMON) $(wildcard examples/common/*.h) $(B)/libjot.a
	@mkdir -p $(@D)
	$(CC) $(WARN) $(CFLAGS) -D_GNU_SOURCE -I. $< $(COMMON) -o $@ $(B)/libjot.a $(ZLIB) $(LIBS)

examples: $(EXAMPLES)

demo: $(B)/examples/07_digits
	@mkdir -p out
	$(B)/examples/07_digits $(if $(MNIST),--mnist $(MNIST))

deps:
	@tools/deps.sh

test: deps
	@$(MAKE) -s CFLAGS="$(CFLAGS) -DJOT_CHECKED" B=$(B)/checked checks-then-tests

checks-then-tests: $(TESTS) $(EXAMPLES)
	@tools/run-tests.sh "tools/layers.sh" "$(MAKE) -s freestanding" "$(MAKE) -s dist-check" \
	    "$(MAKE) -s check-c++" $(TESTS) "$(MAKE) -s check-tcc" "$(MAKE) -s check-asan"

freestanding:
	@tools/freestanding.sh $(CC) $(CORE)

layers:
	@tools/layers.sh

dist: $(B)/dist/jot.c $(B)/dist/jot.h
$(B)/dist/jot.h: core.h
	@mkdir -p $(@D)
	cp core.h $@
$(B)/dist/jot.c: $(SRC) $(HDR) tools/amalgamate.awk
	@mkdir -p $(@D)
	awk -f tools/amalgamate.awk $(SRC) > $@

.PHONY: all examples demo deps test checks-then-tests freestanding layers dist dist-check check-asan \
        check-tcc check-c++ fuzz bench install wc clean

clean:
	rm -rf $(B) out
wc:
	@wc -l $(SRC) $(HDR) | sort -n | tail -n 60
install: $(B)/libjot.a
	install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib
	install -m 644 core.h $(DESTDIR)$(PREFIX)/include/jot.h
	install -m 644 $(B)/libjot.a $(DESTDIR)$(PREFIX)/lib/libjot.a
