#!/bin/sh
# docs/walk.sh PROGRAM [--check] - put what examples/02_conv (PROGRAM) prints into docs/walk.md.
#
# Its output is cut into parts with names: the heading, what the part is, and, for what there is once
# per kernel, a number. A line <!-- dump: NAME --> in walk.md names the part that the block behind it
# holds. --check: change nothing, show what would change, exit 1 if there is something. What is said
# about a line of a dump by hand stands behind <!-- written for: LINE -->: without that line, exit 1.
#
#     forward graph | forward groups | forward kernel 1 | forward schedule 1 | forward loops 1 |
#     forward text 1 | forward plan | backward graph | ... | results
cd "$(dirname "$0")/.." || exit 1
page=docs/walk.md
new=$(mktemp) || exit 1
trap 'rm -f "$new" "$new.out"' EXIT
# what the text depends on, whatever the caller's environment says
unset JOT_DUMP JOT_LIBTCC JOT_THREADS
JOT_BACKEND=cc JOT_LANES=1 JOT_POLICY=paper JOT_LAYOUT=rowmajor JOT_SCHEDULE=default \
    "$1" >"$new.out" || { cat "$new.out"; exit 1; }
awk -v output="$new.out" '
    function part(name) { at = name }
    BEGIN {
        while ((getline line <output) > 0) {
            if (line ~ /^==== /) { split(line, word, " "); run = word[2]; n = 0; part(run); continue }
            if (line == "") continue
            if (line ~ /^graph:/) part(run " graph")
            if (line ~ /^group 1 /) part(run " groups")
            if (line ~ /^kernel /) part(run " kernel " ++n)
            if (line ~ /^schedule$/) part(run " schedule " n)
            if (line ~ /^loops$/) part(run " loops " n)
            if (line ~ /^\/\* jot_k_/) part(run " text " n)
            if (line ~ /^plan:/) part(run " plan")
            text[at] = text[at] line "\n"
        }
    }
    block { if (/^```/ && block++ == 2) block = 0; next }       # the old text of a block
    { print }
    /^<!-- written for: .* -->$/ {
        want = substr($0, 19, length($0) - 22)
        for (name in text) if (index(text[name], want)) want = ""
        if (want != "") { print FILENAME ": written for text that is no more: " want >"/dev/stderr"; bad = 1 }
    }
    /^<!-- dump: .* -->$/ {
        name = substr($0, 12, length($0) - 15)
        if (!(name in text)) { print "no part \"" name "\" in the output" >"/dev/stderr"; bad = 1 }
        printf "```%s\n%s```\n", name ~ / text / ? "c" : "", text[name]
        block = 1
    }
    END { exit bad }
' "$page" >"$new" || bad=1
if [ "$2" = --check ]; then
    diff "$page" "$new" >"$new.out" && exit ${bad:-0}
    head -n 20 "$new.out"
    echo "docs/walk.md is not what examples/02_conv prints: make docs"
    exit 1
fi
cmp -s "$page" "$new" || cat "$new" >"$page"
exit ${bad:-0}
