#!/bin/sh
# tests/test_device.sh BUILD BACKEND - the programs that compare values, and examples,
# on a device. test_run, test_types, test_extremes and test_fuzz know opencl by themselves.
cd "$(dirname "$0")/.." || exit 1
build=$1
export JOT_BACKEND="$2"
if why=$("$build/examples/01_first" 2>&1 | grep "^failed: "); then
    echo "skipped: ${why#failed: }"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
log=$(mktemp); passed=0; failed=0
for test in test_ref test_nn test_grad test_element test_lazy; do
    "$build/tests/"$test >"$log" 2>&1
    rc=$?
    n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$log" | tail -n 1)
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | tail -n 1)
    [ $rc -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    passed=$((passed + ${n:-0})); failed=$((failed + ${f:-0}))
    [ "${f:-0}" = 0 ] || { echo "$test (rc $rc):"; grep -v '^skipped' "$log" | tail -n 8; }
done
for example in 01_first 02_conv 04_instance_norm; do
    if "$build/examples/$example" >"$log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "$example:"; tail -n 4 "$log"; failed=$((failed + 1))
    fi
done
rm -f "$log"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
