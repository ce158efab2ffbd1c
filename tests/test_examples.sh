#!/bin/sh
# tests/test_examples.sh DIR - every numbered example runs and exits with 0; the demo on few digits; libtcc found where the build put it. `make demo`
# prints what the demo does and nothing else.
dir=$1; passed=0; failed=0
mkdir -p out
for e in "$dir"/[0-9]*; do
    case $e in *.*) continue ;; esac
    args=""
    case $e in */07_digits|*/12_mnist|*/14_llama) args="--quick" ;; esac
    if $e $args >"$e.out" 2>&1; then passed=$((passed + 1))
    else echo "$e $args: exit $?"; tail -n 5 "$e.out"; failed=$((failed + 1)); fi
done
# where the build made a shared libtcc, it is found without being named
if [ -e build/libtcc.so ]; then
    if JOT_LIBTCC= "$dir/08_machine" | grep -q 'backend cpu (libtcc, then cc)'; then passed=$((passed + 1))
    else echo "libtcc is not found:"; JOT_LIBTCC= "$dir/08_machine" | head -n 1; failed=$((failed + 1)); fi
fi
# with a compiler that writes a demo of its own
t=$(mktemp -d)
cat >"$t/cc" <<'EOF'
#!/bin/sh
while [ $# -gt 0 ] && [ "$1" != -o ]; do shift; done
[ "$1" ] && printf '#!/bin/sh\necho I am the demo\n' >"$2" && chmod +x "$2"
EOF
chmod +x "$t/cc"
said=$(unset MAKEFLAGS MAKELEVEL; make demo CC="$t/cc" B="$t/build" 2>&1)
if [ "$said" = "I am the demo" ]; then passed=$((passed + 1))
else echo "make demo: $(echo "$said" | head -n 5)"; failed=$((failed + 1)); fi
rm -r "$t"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
