#!/bin/sh
# tests/test_extend.sh - the diffs of docs/extend.md, one after the other, fit a copy of the sources; the
# copy compiles, and the programs pass that stand behind them as <!-- run: PROGRAM ARGUMENTS -->.
# By tcc where it is there, which takes a second for all; else by CC without optimisation.
cd "$(dirname "$0")/.." || exit 1
passed=0; failed=0; skipped=0
ok() { passed=$((passed + 1)); }
bad() { echo "$*"; failed=$((failed + 1)); }
close() { echo "$passed passed, $failed failed, $skipped skipped"; [ $failed = 0 ]; exit; }
command -v patch >/dev/null || { echo "skipped: no patch here"; skipped=1; close; }
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
cp -r Makefile ./*.[ch] prelude target ops nn expr data io onnx save command fuse ccode plan backends tests examples tools "$dir" || exit 1

awk -v out="$dir" '
    /^## / { section = tolower(substr($0, 4)); gsub(/[^a-z]/, "_", section) }
    /^```/ && !inside { inside = 1; diff = /^```diff$/; if (diff) { n++; print section >(out "/sections") }; next }
    /^```/ { inside = diff = 0; next }
    diff { print >(out "/" section ".diff") }
    /^<!-- run: .* -->$/ && !inside { print substr($0, 11, length($0) - 14) >(out "/programs") }
    END { exit !n }
' docs/extend.md || bad "docs/extend.md has no diff"
cd "$dir" || exit 1
while read -r section; do
    patch -p1 --no-backup-if-mismatch <"$section.diff" >patched 2>&1 && ! grep -q fuzz patched && ok || {
        cat patched; bad "docs/extend.md: the diff of \"$section\" does not fit"
    }
done <sections

cc=$(command -v tcc || echo "${CC:-cc}")
[ "${cc##*/}" = tcc ] && flags=-g || flags=-O0
programs=$(sed 's/ .*//; s|^|out/tests/|' programs | sort -u)
# shellcheck disable=SC2086
OCL_ICD_VENDORS=/no/devices make -s CC="$cc" CFLAGS="$flags" B=out $programs >made 2>&1 && ok || {
    tail -n 20 made; bad "docs/extend.md: what its diffs make does not compile"
}
grep -q warning: made && { grep warning: made; bad "docs/extend.md: warnings"; }
while read -r program; do
    # shellcheck disable=SC2086
    OCL_ICD_VENDORS=/no/devices out/tests/$program >ran 2>&1 && ok || {
        tail -n 20 ran; bad "docs/extend.md: $program"
    }
    grep '^skipped: ' ran | sort -u
done <programs
close
