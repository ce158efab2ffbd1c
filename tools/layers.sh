#!/bin/sh
# tools/layers.sh - the include order of the house, strictly downward: a file includes files of its own
# rank and of lower ones. Compositions (nn/, expr/, speculate/; data/ and onnx/, which have nn.h too; io/,
# layer.h) include core.h and their own headers alone (onnx/ maps files as io/ does; onnx/export/ reads nodes, and
# stands with save/); a room has at most some twenty files; a file 600 lines, core.h, the manual, apart,
# and a line 100 columns.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
rank() {
    case "$1" in
    core.h|nn.h|layer.h|expr.h|speculate.h|data.h|io.h|onnx.h) echo 0 ;;
    base.*|base_mem.c) echo 1 ;;
    prelude/*|target/*) echo 2 ;;
    ops/*) echo 3 ;;
    nn/*) echo 3 ;;
    expr/*|speculate/*) echo 3 ;;
    onnx/export/*) echo 19 ;;
    data/*|io/*|onnx/*) echo 3 ;;
    fuse/*) echo 4 ;;
    ccode/emit.h|ccode/ir/*) echo 5 ;;
    ccode/build/*) echo 6 ;;
    ccode/rewrite/*) echo 7 ;;
    ccode/schedule/*) echo 8 ;;
    ccode/contract/*) echo 9 ;;
    ccode/winograd/*|ccode/stencil/*|ccode/verify/*) echo 10 ;;
    ccode/lower/*) echo 11 ;;
    ccode/emit/*) echo 12 ;;
    ccode/device/*) echo 13 ;;
    ccode/strategy/*) echo 14 ;;
    backends/backend.h) echo 15 ;;
    plan/*) echo 16 ;;
    backends/host/*) echo 17 ;;
    backends/files/*|save/*) echo 19 ;;
    backends/*) echo 18 ;;
    config.c|print.c|fail.c) echo 19 ;;
    core.c) echo 20 ;;
    command/*) echo 21 ;;
    onnx.h) echo 0 ;;
    *) echo 99 ;;
    esac
}
for f in core.h nn.h layer.h expr.h speculate.h data.h io.h onnx.h core.c config.c print.c fail.c base.h base.c base_mem.c $(find prelude target ops nn expr speculate data io onnx save fuse ccode plan backends command -name '*.[ch]' | sort); do
    mine=$(rank "$f")
    [ "$mine" != 99 ] || { echo "$f stands in no room"; bad=1; }
    for inc in $(sed -n 's/^#[ ]*include "\([^"]*\)".*/\1/p' "$f"); do
        theirs=$(rank "$inc")
        case "$f" in
        onnx/export/*) ;;
        nn/*|nn.h|layer.h|expr/*|expr.h|speculate/*|speculate.h|data/*|data.h|io/*|io.h|onnx/*|onnx.h) case "${f%%[./]*}:$inc" in
            *:core.h|data:nn.h|io:layer.h|onnx:nn.h|onnx:expr.h|onnx:io/parts.h|layer:nn.h|nn:layer.h|*:"${f%%[./]*}.h"|*:"${f%%/*}"/*) ;;
            *) echo "$f includes $inc: a composition uses core.h alone"; bad=1 ;;
            esac ;;
        esac
        case "$f:$inc:$theirs" in
        command/*:command/*|command/*:0) ;;
        command/*) echo "$f includes $inc: the command is built on the public headers"; bad=1 ;;
        esac
        if [ "$theirs" -gt "$mine" ]; then
            echo "$f includes $inc, which is above it"
            bad=1
        fi
    done
done
for room in $(find prelude target ops nn expr speculate data io onnx save fuse ccode plan backends command -type d | sort); do
    n=$(find "$room" -maxdepth 1 -type f | wc -l)
    [ "$n" -le 21 ] || { echo "$room has $n files side by side"; bad=1; }
done
awk 'FNR > 600 && FILENAME != "./core.h" && !long[FILENAME]++ { print FILENAME " has more than 600 lines"; bad = 1 }
    length > 100 { print FILENAME ":" FNR ": " length " columns"; bad = 1 }
    END { exit bad }' ./*.[ch] $(find prelude target ops nn expr speculate data io onnx save fuse ccode plan backends command -name '*.[ch]') || bad=1
[ $bad = 0 ] && echo "layers: every include points downward"
exit $bad
