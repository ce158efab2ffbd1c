#!/bin/sh
# tests/test_modes.sh BUILD MODE - the programs that compare values, run again as whoever develops a pass
# would: with the other policy of fusion (paper), with a drawn layout of every temporary (layout), with a
# drawn schedule of every kernel (schedule), with four lanes spelled in scalar C (lanes), and with the last
# three together (three). In the process (tcc), since every kernel is new.
cd "$(dirname "$0")/.." || exit 1
build=$1
[ -e "$build/tests/test_run" ] || { echo "no tests in $build"; exit 1; }
export JOT_CC=/no/compiler JOT_BACKEND=tcc OCL_ICD_VENDORS=/no/devices
if "$build/tests/test_run" tcc | grep -q '^skipped'; then
    echo "skipped: no tcc"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
case $2 in
paper) mode="JOT_POLICY=paper" ;;
layout) mode="JOT_LAYOUT=random:11" ;;
schedule) mode="JOT_SCHEDULE=random:12" ;;
lanes) mode="JOT_LANES=4" ;;
three) mode="JOT_LAYOUT=random:13 JOT_SCHEDULE=random:14 JOT_LANES=4" ;;
*) echo "no mode $2"; exit 1 ;;
esac
log=$(mktemp); passed=0; failed=0
for test in test_nn test_ref test_run test_grad test_types test_code test_element "test_fuzz 60"; do
    # shellcheck disable=SC2086
    env $mode "$build/tests/"$test >"$log" 2>&1
    rc=$?
    n=$(sed -n 's/^\([0-9]*\) passed, .*/\1/p' "$log" | tail -n 1)
    f=$(sed -n 's/^[0-9]* passed, \([0-9]*\) failed.*/\1/p' "$log" | tail -n 1)
    [ $rc -ne 0 ] && [ "${f:-0}" = 0 ] && f=1
    passed=$((passed + ${n:-0})); failed=$((failed + ${f:-0}))
    [ "${f:-0}" = 0 ] || { echo "$mode $test (rc $rc):"; grep -v '^skipped' "$log" | tail -n 8; }
done
rm -f "$log"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
