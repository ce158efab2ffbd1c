#!/bin/sh
# tests/test_valgrind.sh BUILD - small programs under valgrind: no error, nothing lost.
b=$1; passed=0; failed=0
if ! command -v valgrind >/dev/null; then
    echo "skipped: no valgrind here"; echo "0 passed, 0 failed, 1 skipped"; exit 0
fi
for p in tests/test_graph examples/01_first examples/06_second_order; do
    [ -x "$b/$p" ] || continue
    for backend in interp tcc; do
        if JOT_GIVE_BACK=1 JOT_BACKEND=$backend valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite \
            "$b/$p" >"$b/valgrind.log" 2>&1; then passed=$((passed + 1))
        else echo "$p on $backend:"; tail -n 15 "$b/valgrind.log"; failed=$((failed + 1)); fi
    done
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
