#!/bin/sh
# tests/test_onnx_export.sh BUILD [DRAWN] - graphs that jot_onnx_export writes (tests/onnx_shelf.h, and so many drawn
# ones) by onnx's checker, with shape inference, and by ONNX Runtime: the same values. PEERS names a virtual
# environment with numpy, onnx and onnxruntime. A minute or two.
cd "$(dirname "$0")/.." || exit 1
build=$1
python=${PEERS:-/no/venv}/bin/python
skip() { echo "skipped: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
[ -x "$build/tests/test_onnx_export" ] || skip "$build has no test_onnx_export"
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || skip "PEERS names no virtual environment with onnx and onnxruntime"
folder=$(mktemp -d) && trap 'rm -rf "$folder"' EXIT && mkdir "$folder/cases" || exit 1
"$build/tests/test_onnx_export" "$folder/cases" "${2:-300}" >"$folder/said" || { cat "$folder/said"; exit 1; }
! grep -q '^skipped: ' "$folder/said" || skip "$(sed -n 's/^skipped: //p' "$folder/said")"
"$python" tests/onnx/exported.py "$folder/cases"
