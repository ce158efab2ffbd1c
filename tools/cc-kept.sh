# tools/cc-kept.sh - a compiler for the tests of one run: the scripts that tools/run-tests.sh puts on PATH as cc and
# cross compilers read it, with KEPT_CC, the compiler itself. A text of a test's own - one source outside of the checkout, without
# files of its own to include or libraries but those of C - with the same flags is compiled once, or each time where the
# compiler said a word: KEPT is the folder of what came out, of these compilers on this machine. All else is the
# compiler's. Kernels get the flags of TEST_CC_FLAGS, too (tools/plain.sh), unless the text is there without them: who
# asks for these takes either.
[ "$*" = --version ] && [ "$KEPT_IS" ] && { echo "$KEPT_IS"; exit; } # each context asks once
from=; to=; before=; flags=$KEPT_CC
for a; do
    case $before in -o) to=$a; before=; continue ;; esac
    case $a in
    -o) ;;
    -lm | -lgcc) flags="$flags $a" ;;
    -I* | -M* | -i* | -l* | @* | *.o | *.a | *.so) exec "$KEPT_CC" "$@" ;;
    *.c) [ -z "$from" ] || exec "$KEPT_CC" "$@"; from=$a ;;
    *) flags="$flags $a" ;;
    esac
    before=$a
done
[ "$from" ] && [ "$to" ] || exec "$KEPT_CC" "$@"
case $from in /*) ;; *) from=$PWD/$from ;; esac
case $from in "$KEPT_NOT"/*) exec "$KEPT_CC" "$@" ;; esac
! grep -q '^ *# *include *"' "$from" || exec "$KEPT_CC" "$@"
case $from in */kernel.c) more=$TEST_CC_FLAGS ;; *) more= ;; esac
sum=$({ echo "$flags"; cat "$from"; } | sha1sum)
name=$KEPT/${sum%% *}
cp "$name" "$to" 2>/dev/null && exit 0
[ -z "$more" ] || {
    name=$name$more
    cp "$name" "$to" 2>/dev/null && exit 0
}
# shellcheck disable=SC2086
"$KEPT_CC" "$@" $more 2>"$name.$$.said" || { rc=$?; cat "$name.$$.said" >&2; rm -f "$name.$$.said"; exit $rc; }
if [ -s "$name.$$.said" ]; then
    cat "$name.$$.said" >&2
elif [ "$(ulimit -f)" = unlimited ]; then # else it may be a part of one, which a test has asked for
    cp "$to" "$name.$$" 2>/dev/null && mv "$name.$$" "$name"
fi
rm -f "$name.$$.said"
exit 0
