#!/bin/sh
# tools/deps.sh - what the tests use beside a C compiler and make. Installs it with apt-get where that
# is allowed (root, Debian or Ubuntu), says so, and otherwise prints the one line to run.
# DEPS=skip: install nothing. A missing tool later shows up as a skipped test with its reason.
want=""
have() { command -v "$1" >/dev/null 2>&1; }
have tcc || want="$want tcc"
[ -e /usr/include/libtcc.h ] || ls /usr/lib/*/libtcc.so* >/dev/null 2>&1 || want="$want libtcc-dev"
have clang || want="$want clang"
have g++ || want="$want g++"
have valgrind || want="$want valgrind"
ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1 || want="$want ocl-icd-libopencl1 pocl-opencl-icd"
[ -e /usr/include/zlib.h ] || want="$want zlib1g-dev"
[ -e /usr/include/png.h ] || want="$want libpng-dev"
[ -e /usr/include/jpeglib.h ] || want="$want libjpeg-dev"
[ -e /usr/include/cjson/cJSON.h ] || want="$want libcjson-dev"
[ -z "$want" ] && exit 0
if [ "${DEPS:-}" = skip ]; then
    echo "deps: not installed, as asked (DEPS=skip):$want"
elif [ "$(id -u)" = 0 ] && have apt-get; then
    echo "deps: installing$want (DEPS=skip to refuse)"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $want; } \
        >/dev/null 2>&1 || echo "deps: apt-get failed; try: apt-get update && apt-get install -y$want"
else
    echo "deps: for all tests: sudo apt-get update && sudo apt-get install -y$want"
fi
exit 0
