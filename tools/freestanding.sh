#!/bin/sh
# tools/freestanding.sh - the core without a C library: compiled with only the freestanding headers in
# reach, linked together with the interpreter and the plan, it may want memcpy, memmove, memset and
# memcmp from outside and nothing else.
# Use: tools/freestanding.sh CC FILE...
set -eu
cc=$1
shift
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0
inc=$("$cc" -print-file-name=include)
mkdir "$dir/inc"
: > "$dir/inc/limits.h" # gcc's own limits.h goes on to the system's: let it find an empty one
for f in "$@"; do
    n=$((n + 1))
    "$cc" -std=c99 -O0 -fno-pic -ffreestanding -nostdinc -isystem "$inc" -isystem "$dir/inc" -I. -DJOT_NO_HOST -DJOT_FREESTANDING \
        -Wall -Wextra -Wpedantic -Werror -c "$f" -o "$dir/$n.o"
done
ld -r -o "$dir/all.o" "$dir"/[0-9]*.o
extra=$(nm -u "$dir/all.o" | awk '{print $NF}' | grep -vxE 'memcpy|memmove|memset|memcmp' || true)
if [ -n "$extra" ]; then
    echo "freestanding: unexpected undefined symbols:"
    echo "$extra"
    exit 1
fi
echo "freestanding: $n files want nothing but memcpy, memmove, memset, memcmp"
