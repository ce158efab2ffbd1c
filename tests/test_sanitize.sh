#!/bin/sh
# tests/test_sanitize.sh BUILD - what kernels do, watched by AddressSanitizer and UndefinedBehaviorSanitizer:
# their text is compiled with both, under the programs that compare values. Kernels may read and write
# their buffers and scratch alone, at addresses that fit the types; no index overflows.
#
# JOT_CC names a script that adds the flags. What is undefined ends the program by a signal, whose line
# AddressSanitizer names, since gcc takes half the time for that; the sanitizers come into the process by LD_PRELOAD, so the
# library needs no build of its own (make check-asan has that one).
cd "$(dirname "$0")/.." || exit 1
build=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
gcc=$(command -v gcc)
asan=$([ -n "$gcc" ] && gcc -print-file-name=libasan.so)

cat >"$dir/cc" <<END
#!/bin/sh
: >"$dir/used"
unset LD_PRELOAD # the compiler itself is not watched
exec gcc "\$@" -g1 -O0 -fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fno-sanitize=float-cast-overflow,float-divide-by-zero
END
chmod +x "$dir/cc"
printf 'int main(int n, char **v) { int a[2] = {0}; (void)v; return a[n]; }\n' >"$dir/t.c"
if [ ! -f "$asan" ] || ! "$dir/cc" -o "$dir/t" "$dir/t.c" 2>/dev/null || ! "$dir/t" || "$dir/t" over 2>/dev/null; then
    echo "skipped: no gcc with sanitizers here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi

# run PROGRAM [argument...]: the program on the compiler with sanitizers, no kernel from a cache
rm -f "$dir/used"
status=0
passed=0
failed=0
run() {
    env LD_PRELOAD="$asan" ASAN_OPTIONS=detect_leaks=0:handle_sigill=1 OCL_ICD_VENDORS=/no/devices \
        JOT_LIBTCC=/no/libtcc JOT_CC="$dir/cc" JOT_CACHE_DIR="$dir/cache" "$@" >"$dir/log" 2>&1
    code=$?
    line=$(tail -n 1 "$dir/log")
    case $line in
    *" 0 failed"*) [ $code = 0 ] && passed=$((passed + 1)) && return ;;
    esac
    failed=$((failed + 1))
    status=1
    echo "$*: $code"
    grep -v '^skipped' "$dir/log" | grep -A 20 -m 1 'ERROR\|runtime error\|not ' | cut -c 1-300 || tail -n 5 "$dir/log"
}

run "$build/tests/test_fuzz" "${2:-$([ "$TEST_SHORT" ] && echo 3 || echo 8)}" 77001
run "$build/tests/test_line_buffer"
run "$build/tests/test_demanded" 89 cc
run env IR_CC="$dir/cc -std=gnu99 -march=native -w" "$build/tests/test_stencil" # which asks for compilers by itself

# What a program finds of the machine all others read: the probe's loops have the same vectors, and
# calls, in a build that is not optimised, or is watched.
probe() {
    gcc -std=gnu99 -fno-pic -S -I. "$@" backends/host/probe.c -o - | awk '/^probe_(peak|read)[0-9]*:/,/\.size/' |
        grep '^probe\|mm[0-9]\|call' | sed 's/\.LC[0-9]*/LC/g; s/r[a-z]*[0-9]*[,)]/r/g' | sort
}
probe -O2 >"$dir/probe"
grep -q probe_peak16 "$dir/probe" || { echo "no loop of the probe is found"; failed=$((failed + 1)); status=1; }
for flags in "-O0" "-O0 -fsanitize=address,undefined"; do
    # shellcheck disable=SC2086
    if probe $flags | cmp -s - "$dir/probe"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1)) status=1
        echo "backends/host/probe.c, $flags: its loops are not those of -O2"
    fi
done
[ -e "$dir/used" ] || { echo "no kernel was compiled with sanitizers"; failed=$((failed + 1)); status=1; }
echo "$passed passed, $failed failed, 0 skipped"
exit $status
