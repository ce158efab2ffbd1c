#!/bin/sh
# tools/run-tests.sh - run each given command (one argument each), add up their closing lines
# 'N passed, N failed, N skipped' and close with the sum. A program that dies, or closes with no such
# line, counts as one failure, and so does one that takes longer than TEST_LIMIT seconds: a device's driver may
# wait for ever (PoCL 3.1 did so once, in clFinish). What failed is said once more at the end.
cd "$(dirname "$0")/.." || exit 1
# Debian has libtcc as an archive only; a shared one is made of it for the tests
[ -e build/libtcc.so ] || { mkdir -p build && sh tools/libtcc.sh build/libtcc.so >/dev/null 2>&1; }
[ -e build/libtcc.so ] && export JOT_LIBTCC="${JOT_LIBTCC:-$PWD/build/libtcc.so}"
limit=${TEST_LIMIT:-3600}
watch=$(command -v timeout >/dev/null 2>&1 && echo "timeout $limit")
passed=0; failed=0; skipped=0
log=$(mktemp)
again=$(mktemp)
for cmd in "$@"; do
    start=$(date +%s)
    $watch sh -c "$cmd" >"$log" 2>&1
    rc=$?
    [ $rc = 124 ] && echo "ended after $limit s" >>"$log"
    line=$(grep -E '^[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$' "$log" | tail -n 1)
    p=$(echo "$line" | sed -n 's/^\([0-9]*\) passed.*/\1/p'); f=$(echo "$line" | sed -n 's/.* \([0-9]*\) failed.*/\1/p')
    s=$(echo "$line" | sed -n 's/.* \([0-9]*\) skipped.*/\1/p')
    p=${p:-0}; f=${f:-0}; s=${s:-0}
    if [ $rc -ne 0 ] && [ "$f" = 0 ]; then f=1; fi
    if [ -z "$line" ] && [ $rc -eq 0 ]; then p=1; fi
    printf '%-44s %6d passed %3d failed %3d skipped %4ds\n' "$cmd" "$p" "$f" "$s" $(($(date +%s) - start))
    grep -E '^skipped: ' "$log" | sort | uniq -c | sed 's/^ *\([0-9]*\) /    \1 x /' | head -n 12
    [ "$f" = 0 ] || {
        echo "    ---- rc $rc"; tail -n 40 "$log" | sed 's/^/    /'
        { echo "failed: $cmd"; grep -E ':[0-9]+: not |FAIL|^ *failed: |ERROR: |runtime error' "$log" | cut -c1-300 | head -n 8 | sed 's/^ */    /'; } >>"$again"
    }
    passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + s))
done
cat "$again"
rm -f "$log" "$again"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
