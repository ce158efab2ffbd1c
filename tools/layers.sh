#!/bin/sh
# tools/layers.sh - the include order of the house, strictly downward:
#   core.h < base.h < ops/ < fuse/ < ccode/ < backends/ < core.c
# A file may include its own layer and lower ones. Compositions include core.h alone. The prelude
# (text and functions, no graph) counts as part of base.
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0
rank() {
    case "$1" in
    core.h) echo 0 ;;
    base.*|base_mem.c|ccode/prelude.*) echo 1 ;;
    ops/*) echo 2 ;;
    fuse/*) echo 3 ;;
    ccode/*) echo 4 ;;
    backends/*) echo 5 ;;
    core.c) echo 6 ;;
    *) echo 9 ;;
    esac
}
for f in core.h core.c base.h base.c base_mem.c ops/*.[ch] fuse/*.[ch] ccode/*.[ch] backends/*.[ch]; do
    [ -f "$f" ] || continue
    mine=$(rank "$f")
    for inc in $(sed -n 's/^#[ ]*include "\([^"]*\)".*/\1/p' "$f"); do
        theirs=$(rank "$inc")
        case "$f" in
        ops/math.c|ops/conv.c|ops/nn.c|ops/loss.c|ops/optim.c)
            [ "$inc" = core.h ] || { echo "$f includes $inc: a composition uses core.h alone"; bad=1; } ;;
        esac
        if [ "$theirs" -gt "$mine" ]; then
            echo "$f includes $inc, which is above it"
            bad=1
        fi
    done
done
[ $bad = 0 ] && echo "layers: every include points downward"
exit $bad
