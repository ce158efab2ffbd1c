#!/bin/sh
# tools/nvrtc.sh DIR - NVRTC, the compiler of CUDA text, for tests/test_cuda.c: the one that the system
# has, else the wheel nvidia-cuda-nvrtc-cu12 in a virtual environment DIR. Prints the library's path.
# Without a network it prints why there is none, and the test is skipped.
dir=$1
for found in /usr/local/cuda/lib64/libnvrtc.so /usr/lib/x86_64-linux-gnu/libnvrtc.so.1[1-9]* \
             "$dir"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[1-9]; do
    [ -e "$found" ] && { echo "$found"; exit 0; }
done
command -v python3 >/dev/null 2>&1 || { echo "skipped: NVRTC: no python3 here" >&2; exit 1; }
python3 -m venv "$dir" >/dev/null 2>&1 && "$dir/bin/pip" -q install nvidia-cuda-nvrtc-cu12 >/dev/null 2>&1
for found in "$dir"/lib/python3*/site-packages/nvidia/*/lib/libnvrtc.so.1[1-9]; do
    [ -e "$found" ] && { echo "$found"; exit 0; }
done
echo "skipped: NVRTC: its wheel could not be installed (network, python3-venv?)" >&2
exit 1
