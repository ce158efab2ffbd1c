#!/bin/sh
# tests/test_cuda_sanitize.sh BUILD - kernels on a GPU of NVIDIA under compute-sanitizer: accesses outside, races
# in a group's memory, barriers that not all items reach, memory read before it is written. Skipped, with
# the reason, where there is no such tool or no device.
cd "$(dirname "$0")/.." || exit 1
build=$1
tool=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
why=$(JOT_BACKEND=cuda "$build/examples/01_first" 2>&1 | grep "^failed: ")
[ -n "$tool" ] || why="failed: no compute-sanitizer here"
if [ -n "$why" ]; then
    echo "skipped: ${why#failed: }"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0; failed=0
for check in memcheck racecheck synccheck initcheck; do
    for test in "test_tiles cuda" "test_run cuda" "test_wide cuda" "test_squares cuda" "test_grid cuda"; do
        if "$tool" --tool $check --error-exitcode 9 "$build/tests/"$test >"$log" 2>&1; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "$check, $test:"
            tail -n 20 "$log"
        fi
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
