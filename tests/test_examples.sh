#!/bin/sh
# tests/test_examples.sh DIR - every numbered example runs and exits with 0; the demo on few digits.
dir=$1; passed=0; failed=0
mkdir -p out
for e in "$dir"/[0-9]*; do
    case $e in *.*) continue ;; esac
    args=""
    case $e in */07_digits) args="--quick" ;; esac
    if $e $args >"$e.out" 2>&1; then passed=$((passed + 1))
    else echo "$e $args: exit $?"; tail -n 5 "$e.out"; failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
