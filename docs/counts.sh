#!/bin/sh
# docs/counts.sh [--check] - put the kernel counts that tests/test_fuse.c asserts (the rows of
# tests/fuse_graphs.h) into the table of docs/fusion.md. Each asserted row needs a line there.
cd "$(dirname "$0")/.." || exit 1
page=docs/fusion.md
new=$(mktemp) || exit 1
trap 'rm -f "$new" "$new.rows"' EXIT
sed -n 's/^ *{"\([^"]*\)", g_[a-z0-9_]*, [A-Z0-9_]*, \([1-9][0-9]*\), \([0-9]*\), .*/\1	\2 | \3/p' tests/fuse_graphs.h >"$new.rows"
awk -F '\t' -v page="$page" '
    FNR == NR { count[$1] = $2; left[$1] = 1; next }
    { n = split($0, cell, " [|] "); name = substr(cell[1], 3)
      if (/^[|] / && name in count) {
          delete left[name]
          $0 = "| " name " | " count[name] " |" substr($0, length(cell[1]) + length(cell[2]) + length(cell[3]) + 9)
      }
      print }
    END { for (name in left) { print page ": no line for \"" name "\"" >"/dev/stderr"; bad = 1 } exit bad }
' "$new.rows" "$page" >"$new" || exit 1
if [ "$1" = --check ]; then
    cmp -s "$page" "$new" && exit 0
    diff "$page" "$new" | head -n 10
    echo "docs/fusion.md does not have the counts of tests/fuse_graphs.h: make docs"
    exit 1
fi
cmp -s "$page" "$new" || cat "$new" >"$page"
