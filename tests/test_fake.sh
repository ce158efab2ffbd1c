#!/bin/sh
# tests/test_fake.sh BUILD PART - the CUDA backend and the text of its kernels without a GPU: on a driver
# and a compiler that run them on the processor (tests/fake_cuda.c, fake_ptx.c), each access to memory looked
# at (tests/fake_check.c). Wants g++.
#
#     tiles         products as each architecture has them, by its matrix instructions
#     drawn         other programs that compare values
#     refused       what only a device has; and as drivers before 11.4 did
#     test_...      that program
#
# tests/test_fake.sh BUILD all - the whole suite of a device there, as 7.0, 8.0 and 9.0, items in another order for
# each and each launch a second time in one more, and each text that came up compiled by NVRTC for the
# architectures of tests/test_cuda.c. What was compiled for one program or one
# architecture is not compiled again for another; as many programs run at a time as there are processors.
cd "$(dirname "$0")/.." || exit 1
build=$(cd "$1" && pwd) || exit 1
if ! command -v g++ >/dev/null; then
    echo "skipped: no g++ here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# what is compiled of a text depends on the stand-in and on g++ alone; all parts share it, and the next run
kept=${KEPT:-$build}/fake/$( { cat tests/fake_*.[ch]; g++ --version; } | cksum | tr ' ' _)
mkdir -p "$dir/cache" "$kept"
fake=$dir/libcuda.so.1
make_fake() { # with what of its own
    ${CC:-cc} -std=gnu99 -O2 -fPIC -shared -fvisibility=hidden -I. $1 tests/fake_cuda.c tests/fake_nvrtc.c \
        tests/fake_items.c tests/fake_ptx.c tests/fake_check.c -o "$fake" -ldl -lm || exit 1
}
make_fake
real=$JOT_NVRTC
export LD_LIBRARY_PATH="$dir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" JOT_NVRTC="$fake" JOT_CACHE_DIR="$dir/cache" FAKE_KEEP="$kept" FAKE_CHECK=1
log=$dir/log; passed=0; failed=0; skipped=0
count() { # what a program's log says, and its exit code
    n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$2" | tail -n 1)
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$2" | tail -n 1)
    [ "$3" -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    [ "${n:-0}" = 0 ] && f=1
    passed=$((passed + ${n:-0})); failed=$((failed + ${f:-0}))
    [ "${f:-0}" = 0 ] || { echo "$1 (rc $3):"; grep -v '^skipped' "$2" | tail -n 8; }
}
run_tests() { for test; do
    "$build/tests/"$test >"$log" 2>&1
    count "$test" "$log" $?
done; }
if [ "$2" = all ]; then
    rm -f "$kept"/*
    FAKE_CHECK=2 FAKE_ORDER=0
    for arch in 70 80 90; do
        FAKE_CUDA_ARCH=$arch FAKE_ORDER=$((FAKE_ORDER + 1))
        export FAKE_CUDA_ARCH FAKE_ORDER build dir
        printf '%s\n' "tests/test_device.sh $build cuda" "$build/tests/test_fuzz 100 1 cuda" "$build/tests/test_run cuda" \
            "$build/tests/test_types cuda" "$build/tests/test_open cuda all" "$build/tests/test_open_draws 20 1 cuda" "$build/tests/test_extremes cuda" "$build/tests/test_tiles cuda" \
            "$build/tests/test_wide cuda" "$build/tests/test_squares cuda" "$build/tests/test_grid cuda" "$build/tests/test_scatter cuda" "$build/tests/test_fetch cuda" "$build/tests/test_refused cuda" \
            "$build/tests/test_opencl cuda" "$build/tests/test_swap cuda" "$build/tests/test_demanded 9 cuda" >"$dir/programs"
        xargs -P "$(nproc 2>/dev/null || echo 2)" -I {} sh -c \
            'log=$dir/log.$(echo "{}" | tr -c "a-z0-9_\n" .); {} >"$log" 2>&1; echo $? >"$log.rc"' <"$dir/programs"
        while read -r program; do
            log=$dir/log.$(echo "$program" | tr -c "a-z0-9_\n" .)
            count "$program as $arch" "$log" "$(cat "$log.rc")"
        done <"$dir/programs"
    done
    [ -n "$real" ] || real=$(env -u LD_LIBRARY_PATH sh tools/nvrtc.sh build/nvrtc)
    if [ -e "$real" ]; then
        ls "$kept"/*.cu | env -u LD_LIBRARY_PATH JOT_NVRTC="$real" xargs -n 60 -P "$(nproc 2>/dev/null || echo 2)" sh -c \
            '"$build/tests/test_cuda" --text "$@" >"$dir/nvrtc.$$" 2>&1; echo $? >"$dir/nvrtc.$$.rc"' sh
        for log in "$dir"/nvrtc.*.rc; do
            count "test_cuda --text" "${log%.rc}" "$(cat "$log")"
        done
        echo "$(ls "$kept"/*.cu | wc -l) texts by $real"
    else
        skipped=1
    fi
    echo "$passed passed, $failed failed, $skipped skipped"
    [ $failed = 0 ]
    exit
fi
case $2 in
tiles) run_tests "test_tiles cuda few 70 75 80 90" ;;
drawn) run_tests "test_flow cuda" "test_run cuda" "test_open cuda" "test_fuzz 12 1 cuda" "test_extremes cuda" "test_wide cuda" "test_squares cuda" "test_grid cuda" "test_scatter cuda" ;;
refused)
    run_tests test_fake_check "test_fetch cuda" "test_refused cuda" "test_opencl cuda" "test_swap cuda few" "test_fork cuda"
    make_fake -DFAKE_NO_GRAPHS # as drivers before 11.4
    export JOT_TEST_GRAPHS=0
    run_tests "test_opencl cuda" "test_swap cuda few" ;;
test_*) run_tests "$2 cuda" ;;
*) echo "no part $2"; exit 1 ;;
esac
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
