#!/bin/sh
# tools/freestanding.sh - the core without a C library: the one-file build, compiled with only the freestanding
# headers in reach, may want memcpy, memmove, memset and memcmp from outside and nothing else.
# Use: tools/freestanding.sh CC DIR [QUICK], where jot.c and jot.h are; CC warns, and QUICK, which takes a quarter of gcc's
# time, compiles, where it is given
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
: > "$dir/limits.h" # gcc's own limits.h goes on to the system's: let it find an empty one
compile() { # compiler, folder, flags
    cc=$1 from=$2
    shift 2
    "$cc" -std=c99 -O0 -fno-pic -ffreestanding -nostdinc -isystem "$("$cc" -print-file-name=include)" -isystem "$dir" -I"$from" \
        -DJOT_NO_HOST -DJOT_FREESTANDING "$@" -c "$from/jot.c" -o "$dir/jot.o"
}
# of indents the other builds warn, file by file: in so long a file gcc takes as long again for that
compile "$1" "$2" -Wall -Wextra -Wpedantic -Wno-misleading-indentation -Werror ${3:+-fsyntax-only}
[ -z "${3:-}" ] || compile "$3" "$2" -w
extra=$(nm -u "$dir/jot.o" | awk '{print $NF}' | grep -vxE 'memcpy|memmove|memset|memcmp' || true)
if [ -n "$extra" ]; then
    echo "freestanding: unexpected undefined symbols:"
    echo "$extra"
    exit 1
fi
echo "freestanding: the core wants nothing but memcpy, memmove, memset, memcmp"
