#!/bin/sh
# tools/freestanding.sh - the core without a C library: the one-file build, compiled with only the freestanding
# headers in reach, may want memcpy, memmove, memset and memcmp from outside and nothing else.
# Use: tools/freestanding.sh CC DIR, where jot.c and jot.h are
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
inc=$("$1" -print-file-name=include)
: > "$dir/limits.h" # gcc's own limits.h goes on to the system's: let it find an empty one
# of indents the other builds warn, file by file: in so long a file gcc takes as long again for that
"$1" -std=c99 -O0 -fno-pic -ffreestanding -nostdinc -isystem "$inc" -isystem "$dir" -I"$2" -DJOT_NO_HOST -DJOT_FREESTANDING \
    -Wall -Wextra -Wpedantic -Wno-misleading-indentation -Werror -c "$2/jot.c" -o "$dir/jot.o"
extra=$(nm -u "$dir/jot.o" | awk '{print $NF}' | grep -vxE 'memcpy|memmove|memset|memcmp' || true)
if [ -n "$extra" ]; then
    echo "freestanding: unexpected undefined symbols:"
    echo "$extra"
    exit 1
fi
echo "freestanding: the core wants nothing but memcpy, memmove, memset, memcmp"
