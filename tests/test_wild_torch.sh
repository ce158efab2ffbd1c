#!/bin/sh
# tests/test_wild_torch.sh BUILD N FIRST - drawn networks and their gradients, to second order, against
# PyTorch's, which PEERS=venv names a virtual environment of (pip install torch; no GPU is used).
cd "$(dirname "$0")/.." || exit 1
python=${PEERS:-/no/venv}/bin/python
if [ ! -x "$python" ]; then
    echo "skipped: no PyTorch: PEERS names no virtual environment"
    echo "0 passed, 0 failed, 1 skipped"
    exit 0
fi
exec "$python" tests/ref/wild.py "$1/tests/test_wild" "${2:-300}" "${3:-1}"
