#!/bin/sh
# tests/test_ports.sh BUILD [all] - other processors than this one, by cross compilers and qemu.
#
#   Cortex-M4, -M7, -M3   exported networks without an operating system or a C library: compiled
#                         without a warning, the interpreter's values, weights in flash (ports_bare.c);
#                         on -M7 the language model of tinystories, its letters (ports_llama_bare.c)
#   aarch64               the library and programs that compare values, kernels with NEON's vectors by
#                         a cross compiler that runs here
#
# Wants, each for its part: gcc-arm-none-eabi, qemu-system-arm; gcc-aarch64-linux-gnu,
# libc6-dev-arm64-cross, qemu-user.
cd "$(dirname "$0")/.." || exit 1
build=$1
passed=0; failed=0; skipped=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
here() { for name; do # the first of these that is here
    command -v "$name" && return
done; return 1; }
skip() { echo "skipped: $1"; skipped=$((skipped + 1)); }
lose() { echo "not $1"; failed=$((failed + 1)); }
count() { # what a log's closing line says, and the exit code
    n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$2" | tail -n 1)
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$2" | tail -n 1)
    [ "$3" -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    [ "${n:-0}" = 0 ] && f=1
    passed=$((passed + ${n:-0})); failed=$((failed + ${f:-0}))
    [ "${f:-0}" = 0 ] || { echo "$1 (rc $3):"; grep -v '^skipped' "$2" | tail -n 8; }
}

# ---- no operating system ----
bare() { # board, processor, flags
    board=$1; core=$2; shift 2
    arm="arm-none-eabi-gcc -std=c99 -Os -Wall -Wextra -Wpedantic -Werror -ffreestanding -nostdlib -mcpu=$core -mthumb $*"
    for name in lenet mixed learn; do
        $arm -c "$dir/$name.c" -o "$dir/$name.o" || { lose "$core: $name.c compiles"; return; }
    done
    $arm -I. -I"$dir" tests/ports_bare.c "$dir"/lenet.o "$dir"/mixed.o "$dir"/learn.o -T tests/ports_bare.ld \
        -o "$dir/bare.elf" -lgcc || { lose "$core: links"; return; }
    timeout 60 "$qemu" -M "$board" -icount shift=0 -nographic -semihosting -kernel "$dir/bare.elf" \
        >"$dir/log" 2>&1 </dev/null
    count "$core" "$dir/log" $?
    # shellcheck disable=SC2046
    set -- $(arm-none-eabi-size "$dir/lenet.o" | tail -n 1)
    echo "$core: flash $1, data $2; $(grep instructions "$dir/log")"
    [ "$2" = 0 ] && [ "$3" = 0 ] && passed=$((passed + 1)) || lose "$core: weights stay in flash"
}
story="Once upon a time, there was a little girl named Lily. She loved to play outside in the park."
speaks() { # the language model, where it is there: the same letters
    [ -r ../shared/models/tinystories/stories260K.bin ] || { skip "Cortex-M: no ../shared/models/tinystories"; return; }
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c99 -Wall -Wextra -O1 -D_GNU_SOURCE -I. tests/ports_llama.c examples/llama/*.c "$build/libjot.a" \
        -o "$dir/llama" $(${MAKE:-make} -s data-libs) -ldl -lpthread -lm \
        && "$dir/llama" "$dir" || { lose "the language model is exported"; return; }
    arm="arm-none-eabi-gcc -std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -ffreestanding -nostdlib -mcpu=cortex-m7 -mthumb -mfpu=fpv5-sp-d16 -mfloat-abi=hard"
    $arm -c "$dir/llama.c" -o "$dir/llama.o" && $arm -I. -I"$dir" tests/ports_llama_bare.c "$dir/llama.o" -T tests/ports_bare.ld -o "$dir/llama.elf" -lgcc \
        || { lose "the language model compiles and links"; return; }
    timeout 120 "$qemu" -M mps2-an500 -icount shift=0 -nographic -semihosting -kernel "$dir/llama.elf" >"$dir/log" 2>&1 </dev/null
    # shellcheck disable=SC2046
    set -- $(arm-none-eabi-size "$dir/llama.elf" | tail -n 1)
    echo "llama: flash $1, data $2, zeros $3; $(grep instructions "$dir/log")"
    grep -q "^$story" "$dir/log" && passed=$((passed + 1)) || { lose "what the language model says"; head -n 3 "$dir/log"; }
}
if ! here arm-none-eabi-gcc >/dev/null || ! qemu=$(here qemu-system-arm); then
    skip "Cortex-M: no arm-none-eabi-gcc or qemu-system-arm here"
elif ! ${CC:-cc} -std=c99 -Wall -Wextra -O1 -I. tests/ports_export.c "$build/libjot.a" -o "$dir/export" -ldl -lpthread -lm \
    || ! "$dir/export" "$dir"; then
    lose "networks are exported"
else
    bare mps2-an386 cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard
    bare mps2-an500 cortex-m7 -mfpu=fpv5-sp-d16 -mfloat-abi=hard
    bare mps2-an385 cortex-m3
    speaks
fi

# ---- aarch64 ----
if ! here aarch64-linux-gnu-gcc >/dev/null || ! qemu=$(here qemu-aarch64 qemu-aarch64-static) \
    || ! echo 'int main(void) { return 0; }' | aarch64-linux-gnu-gcc -x c - -o "$dir/none" 2>/dev/null; then
    skip "aarch64: no aarch64-linux-gnu-gcc, its C library or qemu-aarch64 here"
else
    # a cross compiler knows no native processor
    cat >"$dir/cc" <<'END'
#!/bin/sh
for word; do
    shift
    [ "$word" = -mcpu=native ] && word=-mcpu=cortex-a72
    set -- "$@" "$word"
done
exec aarch64-linux-gnu-gcc "$@" $PORTS_CC_FLAGS
END
    chmod +x "$dir/cc"
    export JOT_CC="$dir/cc" JOT_CACHE_DIR="$dir/cache" QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
    unset JOT_LIBTCC
    mkdir "$dir/cache"
    b=$build/aarch64
    tests="test_machine test_element test_run" flags="-O0 -DJOT_CHECKED -DJOT_NO_DATA -DJOT_NO_IO -DJOT_NO_DEVICES -DJOT_NO_TUNE -DJOT_NO_EXPORT"
    export PORTS_CC_FLAGS=-O0 # of kernels: that compiler's optimiser is left to `all`
    [ "$2" != all ] || { PORTS_CC_FLAGS= tests="$tests test_threads test_half" flags="-O1 -DJOT_CHECKED"; b=$b-all; }
    # shellcheck disable=SC2046,SC2086
    if ! ${MAKE:-make} -s -j"$(nproc)" CC=aarch64-linux-gnu-gcc CFLAGS="$flags" B="$b" \
        $(for t in $tests test_fuzz; do echo "$b/tests/$t"; done) >"$dir/log" 2>&1; then
        tail -n 5 "$dir/log"; lose "built for aarch64"
    else
        for t in $tests "test_fuzz $([ "$TEST_SHORT" ] && echo 6 || echo 12) 1 cc"; do
            # shellcheck disable=SC2086
            "$qemu" "$b"/tests/$t >"$dir/log" 2>&1
            count "aarch64: $t" "$dir/log" $?
        done
    fi
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
