#!/bin/sh
# tests/test_onnx_nodes.sh BUILD [PYTHON] - onnx.backend.test's node suite: each case that has tensors of jot's dtypes
# for inputs and outputs is run, on the interpreter; at least 95 % give what is asked, and what does not is listed
# in docs/onnx.md, which this script writes (WRITE=1) or compares. PYTHON has onnx; else one is fetched into a
# virtual environment under BUILD. Without a network it is skipped, with the reason.
cd "$(dirname "$0")/.." || exit 1
build=$1
python=${2:-$build/onnx-venv/bin/python}
skip() { echo "skipped: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
[ -x "$build/tests/onnx/run" ] || skip "this build reads no ONNX"
if ! "$python" -c 'import onnx' 2>/dev/null; then
    [ $# -lt 2 ] || skip "$python has no onnx"
    python3 -m venv "$build/onnx-venv" >/dev/null 2>&1 || skip "python3 makes no virtual environment"
    "$python" -m pip install -q onnx==1.23.2 >/dev/null 2>&1 || skip "onnx cannot be fetched"
fi
nodes=$build/onnx-nodes
"$python" tests/onnx/nodes.py "$nodes" 2>/dev/null || skip "the suite cannot be made by this onnx"
JOT_BACKEND=interp "$build/tests/onnx/run" "$nodes" - <"$nodes/list" >"$nodes/out" 2>"$nodes/err"
ok=$(grep -c '^ok ' "$nodes/out")
all=$(awk '$4 == "plain"' "$nodes/list" | wc -l)
version=$("$python" -c 'import onnx; print(onnx.__version__)')
{
    echo "Of $(wc -l <"$nodes/list") cases of onnx $version $((all)) have tensors of jot's dtypes for inputs and outputs;"
    echo "$ok of these, $(awk "BEGIN { printf \"%.1f\", 100 * $ok / $all }") %, give what is asked. The others:"
    echo
    echo "| cases | why |"
    echo "|---|---|"
    grep -v '^ok ' "$nodes/out" | sed 's/: onnx: [^ ]*model.onnx: /: /; s/; operands:.*//; s/: node [^ ]* (opset [0-9]*): /: /' |
        awk '{ name = $2; sub(/:$/, "", name); sub(/^test_/, "", name); why = $0; sub(/^[a-z]* [^ ]* /, "", why)
               if ($1 == "wrong") why = "another value: " why
               if (!(why in n)) order[++k] = why
               names[why] = names[why] (n[why]++ ? ", " : "") "`" name "`" }
             END { for (i = 1; i <= k; i++) print "| " names[order[i]] " | " order[i] " |" }'
    echo
    echo "Beside them are cases with: $(awk '$4 != "plain" { print $4 }' "$nodes/list" | sort | uniq -c |
        sort -k1,1rn -k2 | awk '{ printf "%s%s (%d)", n++ ? ", " : "", $2, $1 } END { print "." }')"
} >"$nodes/table"
splice() { awk -v t="$nodes/table" '/^<!-- nodes -->/ { print; while ((getline l <t) > 0) print l; skip = 1 }
                                    /^<!-- end -->/ { skip = 0 } !skip || /^<!-- end -->/ { if (!/^<!-- nodes -->/) print }' docs/onnx.md; }
failed=0
[ $((ok * 100)) -ge $((all * 95)) ] || { echo "fewer than 95 %: $ok of $all"; failed=1; }
if [ -n "${WRITE:-}" ]; then
    splice >"$nodes/page" && cp "$nodes/page" docs/onnx.md
else
    splice | diff - docs/onnx.md || { echo "docs/onnx.md is not what the suite says (WRITE=1 writes it)"; failed=$((failed + 1)); }
fi
echo "$ok passed, $failed failed, 0 skipped"
[ $failed = 0 ]
