#!/bin/sh
# tools/ld-bare.sh ARGUMENT.. - the linker for the tests of one run (tools/run-tests.sh puts it on PATH as ld): PoCL
# links each kernel with the libraries of C and mathematics, which every program has; to read these takes a fifth of what a kernel costs
# there. All else is the linker's, BARE_LD.
case "$*" in
*/tempfile_*.so.o*) ;;
*) exec "$BARE_LD" "$@" ;;
esac
for a; do
    shift
    case $a in -lc | -lm | -lgcc_s | --as-needed | --no-as-needed) ;; *) set -- "$@" "$a" ;; esac
done
exec "$BARE_LD" "$@"
