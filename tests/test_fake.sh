#!/bin/sh
# tests/test_fake.sh BUILD - the CUDA backend and the text of its kernels without a GPU: on a driver
# and a compiler that run them on the processor (tests/fake_cuda.c, fake_ptx.c), as several
# architectures. Wants g++.
#
# tests/test_fake.sh BUILD all - the whole suite of a device there, and each of its texts compiled by NVRTC for
# the architectures of tests/test_cuda.c. Long: some thousand kernels.
cd "$(dirname "$0")/.." || exit 1
build=$1
if ! command -v g++ >/dev/null; then
    echo "skipped: no g++ here"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
mkdir -p "$build/fake"
fake=$build/fake/libcuda.so.1
make_fake() { # with what of its own
    ${CC:-cc} -std=gnu99 -O1 -fPIC -shared -fvisibility=hidden -I. $1 tests/fake_cuda.c tests/fake_ptx.c -o "$fake" -ldl -lm || exit 1
}
make_fake
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
if [ "$2" = all ]; then
    nvrtc=${JOT_NVRTC:-$(sh tools/nvrtc.sh build/nvrtc)}
    [ -e "$nvrtc" ] || { echo "0 passed, 0 failed, 1 skipped"; exit 0; }
    case $build in /*) at=$build ;; *) at=$PWD/$build ;; esac
    FAKE_CHECK="JOT_NVRTC=$nvrtc $at/tests/test_cuda --text"
    export FAKE_CHECK
fi
export LD_LIBRARY_PATH="$build/fake" JOT_NVRTC="$fake" JOT_CACHE_DIR="$cache"
if [ "$2" = all ]; then
    tools/run-tests.sh "tests/test_device.sh $build cuda" "$build/tests/test_run cuda" "$build/tests/test_types cuda" \
        "$build/tests/test_extremes cuda" "$build/tests/test_fuzz 100 1 cuda"
    exit
fi
log=$(mktemp); passed=0; failed=0
run_tests() { for test; do
    "$build/tests/"$test >"$log" 2>&1
    rc=$?
    n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$log" | tail -n 1)
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | tail -n 1)
    [ $rc -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    [ "${n:-0}" = 0 ] && f=1
    passed=$((passed + ${n:-0})); failed=$((failed + ${f:-0}))
    [ "${f:-0}" = 0 ] || { echo "$test (rc $rc):"; tail -n 8 "$log"; }
done; }
run_tests "test_fetch cuda" "test_wide cuda" "test_tiles cuda" "test_run cuda" "test_opencl cuda" "test_fuzz 30 1 cuda" \
    "test_extremes cuda"
for arch in 75 80 90; do # matrices by the instructions of each
    FAKE_CUDA_ARCH=$arch
    export FAKE_CUDA_ARCH
    run_tests "test_tiles cuda"
done
unset FAKE_CUDA_ARCH
make_fake -DFAKE_NO_GRAPHS # as drivers before 11.4
JOT_TEST_GRAPHS=0
export JOT_TEST_GRAPHS
run_tests "test_opencl cuda"
rm -f "$log"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
