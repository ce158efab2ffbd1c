#!/bin/sh
# tests/test_fake_opencl.sh BUILD - the OpenCL backend on devices that are not here: a loader that plays
# their limits on the device that is (tests/fake_opencl.c), and refuses calls.
cd "$(dirname "$0")/.." || exit 1
build=$(cd "$1" && pwd) || exit 1
real=$( { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null | sed -n 's/.*libOpenCL\.so\.1 .*=> //p' | head -n 1)
if [ -z "$real" ]; then
    echo "skipped: no OpenCL loader"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
mkdir -p "$build/fake_opencl"
# it stays loaded: the real one has its name and would be found in its place
${CC:-cc} -std=gnu99 -O1 -fPIC -shared -fvisibility=hidden -Wl,-z,nodelete tests/fake_opencl.c \
    -o "$build/fake_opencl/libOpenCL.so.1" -ldl || exit 1
export LD_LIBRARY_PATH="$build/fake_opencl" FAKE_OPENCL_REAL="$real"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
passed=0; failed=0; skipped=0
for test in test_limits test_refused; do
    "$build/tests/$test" >"$log" 2>&1
    rc=$?
    line=$(grep '^[0-9]* passed, [0-9]* failed, [0-9]* skipped' "$log" | tail -n 1)
    f=$(echo "$line" | sed 's/.* passed, \([0-9]*\) .*/\1/')
    [ "$rc" -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    passed=$((passed + $(echo "${line:-0}" | sed 's/ .*//'))); failed=$((failed + ${f:-0}))
    skipped=$((skipped + $(echo "${line:-0}" | sed 's/.*, \([0-9]*\) skipped/\1/')))
    [ "${f:-0}" = 0 ] || { echo "$test (rc $rc):"; tail -n 8 "$log"; }
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
