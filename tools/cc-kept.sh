#!/bin/sh
# tools/cc-kept.sh ARGUMENT.. - the C compiler for the tests of one run (tools/run-tests.sh puts it on PATH as cc):
# a kernel's text with the same flags is compiled once, KEPT is the folder of objects; all else is the
# compiler's, KEPT_CC. Programs without a cache of their own meet each other's kernels there. Kernels get the flags
# of TEST_CC_FLAGS, too (tools/plain.sh), unless the text is there without them: who asks for these takes either.
[ "$*" = --version ] && [ "$KEPT_VERSION" ] && { echo "$KEPT_VERSION"; exit; } # each context asks once
from=; to=; before=; flags=
for a; do
    case $before in -o) to=$a ;; esac
    case $a in */kernel.c) from=$a ;; "$to") ;; *) flags="$flags $a" ;; esac
    before=$a
done
[ "$from" ] && [ "$to" ] || exec "$KEPT_CC" "$@"
sum=$({ echo "$flags"; cat "$from"; } | sha1sum)
name=$KEPT/${sum%% *}
cp "$name" "$to" 2>/dev/null && exit 0
[ -z "$TEST_CC_FLAGS" ] || {
    name=$name$TEST_CC_FLAGS
    cp "$name" "$to" 2>/dev/null && exit 0
}
# shellcheck disable=SC2086
"$KEPT_CC" "$@" $TEST_CC_FLAGS || exit
cp "$to" "$name.$$" 2>/dev/null && mv "$name.$$" "$name"
