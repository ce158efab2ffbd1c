#!/bin/sh
# tests/test_device.sh BUILD BACKEND [PROGRAM..] - the programs that compare values, and examples, the demo
# among them (or these alone), on a device. test_run, test_types, test_extremes and test_fuzz know opencl by
# themselves.
#
# Nearly all of its time is the device's compiler, which takes 60 to 100 ms for each of some thousand
# kernels: so as many programs run at a time as there are processors.
cd "$(dirname "$0")/.." || exit 1
build=$1
export JOT_BACKEND="$2"
if why=$("$build/examples/01_first" 2>&1 | grep "^failed: "); then
    echo "skipped: ${why#failed: }"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
export build logs
shift 2
[ $# -gt 0 ] || # the longest first
    set -- tests/test_ref 'examples/07_digits --quick' tests/test_nn tests/test_grad \
        tests/test_element examples/01_first examples/02_conv examples/04_instance_norm
printf '%s\n' "$@" | xargs -P "$(nproc 2>/dev/null || echo 2)" -I {} sh -c \
    'set -- {}; log=$logs/$(basename "$1"); "$build/$1" $2 >"$log" 2>&1; echo $? >"$log.rc"'
passed=0; failed=0
for log in "$logs"/*; do
    case $log in *.rc) continue ;; esac
    rc=$(cat "$log.rc")
    case $log in
    */test_*)
        n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$log" | tail -n 1)
        f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | tail -n 1) ;;
    *) n=1; f=0 ;; # an example
    esac
    [ "$rc" -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    passed=$((passed + ${n:-0})); failed=$((failed + ${f:-0}))
    [ "${f:-0}" = 0 ] || { echo "$(basename "$log") (rc $rc):"; grep -v '^skipped' "$log" | tail -n 8; }
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
