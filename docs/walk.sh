#!/bin/sh
# docs/walk.sh BUILD [--check] - put what BUILD/examples/02_conv and docs/walk.c print into docs/walk.md.
# BUILD has libjot.a, for docs/walk.c is compiled here.
#
# Their output is cut into parts with names: the heading, what the part is, and, for what there is once
# per kernel, a number. A line <!-- dump: NAME --> in walk.md names the part that the block behind it
# holds; lines <!-- keep: FROM .. TO --> behind it choose what of it, one piece after the other: from the
# next line that has FROM to the next that has TO (without .. TO: that line alone), and "..." stands for
# what is left out. --check: change nothing, show what would change, exit 1 if there is something. What is
# said about a line of a dump by hand stands behind <!-- written for: LINE -->: without that line, exit 1.
#
#     forward graph | forward groups | forward kernel 1 | forward schedule 1 | forward loops 1 |
#     forward text 1 | forward plan | backward graph | ... | results | convolutions layouts | ...
cd "$(dirname "$0")/.." || exit 1
page=docs/walk.md
new=$(mktemp) || exit 1
trap 'rm -f "$new" "$new".*' EXIT
# what the text depends on, whatever the caller's environment says
env -i PATH="$PATH" HOME="$HOME" JOT_BACKEND=cc JOT_LANES=1 JOT_POLICY=paper JOT_LAYOUT=rowmajor \
    "$1/examples/02_conv" >"$new.out" || { cat "$new.out"; exit 1; }
# shellcheck disable=SC2086
${CC:-cc} -std=c99 -Wall -Wextra -Wno-unused-function -Wno-unused-variable -D_GNU_SOURCE -I. docs/walk.c \
    -o "$new.walk" "$1/libjot.a" -ldl -lpthread -lm || exit 1
env -i PATH="$PATH" "$new.walk" >>"$new.out" || { tail "$new.out"; exit 1; }
awk -v output="$new.out" '
    function part(name) { at = name }
    function complain(what) { print what >"/dev/stderr"; bad = 1 }
    # of the part in hand from the next line that has `from` to the next that has `to`
    function keep(from, to,    first, i) {
        for (i = said + 1; i <= lines && !index(line_of[i], from); i++) ;
        first = i
        for (; i <= lines && !index(line_of[i], to); i++) ;
        if (i > lines) { complain("no lines \"" from " .. " to "\" in the part \"" name "\""); return }
        if (first > said + 1) { match(line_of[first], /^ */); printf "%*s...\n", RLENGTH, "" }
        for (said = first - 1; said < i; said++) print line_of[said + 1]
    }
    function close_part() {
        if (!name) return
        if (!kept) printf "%s", text[name]
        else if (said < lines) print "..."
        print "```"
        name = ""
        block = 1
    }
    BEGIN {
        while ((getline line <output) > 0) {
            if (line ~ /^==== /) { split(line, word, " "); run = word[2]; n = 0; part(run); continue }
            if (line == "") continue
            if (line ~ /^graph:/) part(run " graph")
            if (line ~ /^group 1 /) part(run " groups")
            if (line ~ /^layouts:$/) part(run " layouts")
            if (line ~ /^kernel /) part(run " kernel " ++n)
            if (line ~ /^schedule$/) part(run " schedule " n)
            if (line ~ /^loops$/) part(run " loops " n)
            if (line ~ /^\/\* jot_k_/) part(run " text " n)
            if (line ~ /^plan:/) part(run " plan")
            text[at] = text[at] line "\n"
        }
    }
    name && /^<!-- keep: .* -->$/ {
        print
        pieces[++kept] = substr($0, 12, length($0) - 15)
        next
    }
    name {                                                     # the block of the part begins
        printf "```%s\n", name ~ / text / ? "c" : ""
        lines = split(text[name], line_of, "\n") - 1
        said = 0
        for (i = 1; i <= kept; i++) {
            n = index(pieces[i], " .. ")
            keep(n ? substr(pieces[i], 1, n - 1) : pieces[i], n ? substr(pieces[i], n + 4) : pieces[i])
        }
        close_part()
    }
    block { if (/^```/ && block++ == 2) block = 0; next }      # the old text of a block
    { print }
    /^<!-- written for: .* -->$/ {
        want = substr($0, 19, length($0) - 22)
        for (known in text) if (index(text[known], want)) want = ""
        if (want != "") complain(FILENAME ": written for text that is no more: " want)
    }
    /^<!-- dump: .* -->$/ {
        name = substr($0, 12, length($0) - 15)
        kept = 0
        if (!(name in text)) complain("no part \"" name "\" in the output")
    }
    END { exit bad }
' "$page" >"$new" || bad=1
if [ "$2" = --check ]; then
    diff "$page" "$new" >"$new.out" && exit ${bad:-0}
    head -n 20 "$new.out"
    echo "docs/walk.md is not what examples/02_conv and docs/walk.c print: make docs"
    exit 1
fi
[ "$bad" ] || cmp -s "$page" "$new" || cat "$new" >"$page"
exit ${bad:-0}
