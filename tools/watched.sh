#!/bin/sh
# tools/watched.sh PROGRAM [ARGUMENT..] - a test built with sanitizers, or by tcc: without OpenCL's devices, whose
# drivers are others' and leak; leaks of others are in tests/lsan.supp. The library is what is watched: a kernel that no
# other program had compiled is not optimised (tools/plain.sh).
#
# gcc 12's leak checker guesses where a library opened at run time keeps its thread-local storage (the OpenCL
# loader has some), and crashes on a wrong guess: intercept_tls_get_addr=0 takes the guessing away. To keep 30 callers of
# each allocation takes an eighth of the time: who wants them runs it again with malloc_context_size=30.
export OCL_ICD_VENDORS=/no/devices
export ASAN_OPTIONS=detect_leaks=1:intercept_tls_get_addr=0:malloc_context_size=4
export LSAN_OPTIONS=suppressions=tests/lsan.supp:print_suppressions=0
export TEST_CC_FLAGS=-O0
exec "$@"
