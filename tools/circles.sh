#!/bin/sh
# tools/circles.sh BUILD - files that need each other, by the symbols of the objects in BUILD: a file
# needs those that define what its own leaves undefined. Prints the circles, of those above five the
# arrows with their symbols, and fails where there is one.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build}
most=5
rooms="prelude target ops nn expr speculate data io onnx fuse ccode plan backends save"
# shellcheck disable=SC2086
objects=$(for c in *.c $(find $rooms -name '*.c' | sort); do
    [ -f "$build/${c%.c}.o" ] && echo "$build/${c%.c}.o"
done)
[ -n "$objects" ] || { echo "circles: no objects in $build"; exit 1; }
# shellcheck disable=SC2086
{ nm -A -P -g $objects || echo failed; } | awk -v at="$build/" -v most=$most '
$1 == "failed" {
    failed = 1
    next
}
{
    file = substr($1, length(at) + 1)
    sub(/\.o:$/, "", file)
    if (!(file in number)) {
        number[file] = ++files
        name[files] = file
    }
    if ($3 == "U")
        needs[++uses] = number[file] " " $2
    else
        home[$2] = number[file]
}
# who is reached from v along `to`, of those without a circle yet
function reach(v, to, set,    stack, top, w, i, parts) {
    stack[top = 1] = v
    set[v] = 1
    while (top) {
        w = stack[top--]
        for (i = split(to[w], parts); i > 0; i--)
            if (!(parts[i] in set) && !circle[parts[i]]) {
                set[parts[i]] = 1
                stack[++top] = parts[i]
            }
    }
}
END {
    if (failed || !files) {
        print "circles: the objects cannot be read"
        exit 1
    }
    for (i = 1; i <= uses; i++) {
        split(needs[i], use)
        if (!(use[2] in home) || home[use[2]] == use[1])
            continue
        arrow = use[1] " " home[use[2]]
        if (!(arrow in symbols)) {
            to[use[1]] = to[use[1]] " " home[use[2]]
            from[home[use[2]]] = from[home[use[2]]] " " use[1]
        }
        symbols[arrow] = symbols[arrow] " " use[2]
    }
    for (v = 1; v <= files; v++) {
        if (circle[v])
            continue
        split("", ahead)
        split("", behind)
        reach(v, to, ahead)
        reach(v, from, behind)
        n = 0
        text = ""
        for (w = 1; w <= files; w++)
            if ((w in ahead) && (w in behind)) {
                circle[w] = v
                text = text " " name[w]
                n++
            }
        if (n > 1)
            print n ":" text
        if (n > largest)
            largest = n
        for (a = 1; a <= files && n > most; a++)
            for (b = 1; b <= files; b++)
                if (circle[a] == v && circle[b] == v && ((a " " b) in symbols))
                    print "    " name[a] " -> " name[b] ":" symbols[a " " b]
    }
    print "circles: " files " files, " largest " in the largest circle; " most " are allowed"
    exit largest > most
}'
