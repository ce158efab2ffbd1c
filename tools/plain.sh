#!/bin/sh
# tools/plain.sh PROGRAM [ARGUMENT..] - a test under tools/run-tests.sh, its kernels compiled without optimisation:
# for who asks what a kernel computes, not what a compiler makes of it.
export TEST_CC_FLAGS=-O0
exec "$@"
