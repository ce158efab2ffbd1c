#!/bin/sh
# tests/test_onnx_models.sh BUILD [WORD...] - real networks (tests/onnx/models.py: torchvision's, transformers',
# silero-vad, rapidocr's, quantised ones) against ONNX Runtime's values, within 1e-4 of the largest;
# examples/18_speech on silero-vad's, and what examples/19_read draws read by rapidocr's; TIMES=1: by turns with ONNX
# Runtime and OpenVINO, batch 1 and 8, one thread and two (tests/onnx/times.py). PEERS names a virtual environment with
# onnx, onnxruntime, onnxscript, torch, torchvision and what else is there. Minutes, and gigabytes.
cd "$(dirname "$0")/.." || exit 1
build=$1
shift
python=${PEERS:-/no/venv}/bin/python
skip() { echo "skipped: $*"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
[ -x "$build/tests/onnx/run" ] || skip "this build reads no ONNX"
"$python" -c 'import onnx, onnxruntime' 2>/dev/null || skip "PEERS names no virtual environment with onnx and onnxruntime"
models=${MODELS:-$build/onnx-models}
[ -d "$models" ] || "$python" tests/onnx/models.py "$models" "$@" | grep 'left out'
[ -z "${TIMES:-}" ] || exec "$python" tests/onnx/times.py "$build/tests/onnx/run" "$models" "$@"
ok=0 bad=0
for model in "$models"/*/; do
    name=$(basename "$model")
    [ -e "$model/output_0.pb" ] || continue
    if "$build/tests/onnx/run" "$models" "$name"; then ok=$((ok + 1)); else bad=$((bad + 1)); fi
done
# the example listens to what it makes: no speech before what espeak-ng says, which is heard where it is
vad=$(find "$PEERS" -name silero_vad.onnx | head -n 1)
if [ -z "$vad" ] || [ ! -x "$build/examples/18_speech" ]; then echo "left out: examples/18_speech on ${vad:-no silero_vad.onnx}"
else
    if heard=$("$build/examples/18_speech" "$vad") && echo "$heard" | awk '
        / s: noise/ { noise = 1 }
        / s: speech/ { said = $1 }
        /^speech from/ { heard++; if (!said || $3 < said - 0.2) wrong = 1 }
        /^no speech/ { none = 1 }
        END { exit !(noise && !wrong && (said ? heard > 0 : none)) }'; then ok=$((ok + 1))
    else bad=$((bad + 1)); echo "examples/18_speech: $heard"; fi
fi
# the picture that the example draws, its second line upside down
folder=$("$python" -c 'import os, rapidocr; print(os.path.dirname(rapidocr.__file__) + "/models")' 2>/dev/null)
if [ -x "$build/examples/19_read" ] && ls "$folder"/*_rec_*.onnx >/dev/null 2>&1; then
    said=$("$build/examples/19_read" "$folder" 2>&1)
    if [ "$(echo "$said" | sed -n 's/^[01]\.[0-9]*  //p')" = "HELLO FROM C
JOT READS 1984" ]; then ok=$((ok + 1)); else echo "19_read: $said"; bad=$((bad + 1)); fi
else echo "19_read: left out, without rapidocr's models or the example"; fi
echo "$ok passed, $bad failed, 0 skipped"
[ $bad = 0 ]
