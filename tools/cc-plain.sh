#!/bin/sh
# tools/cc-plain.sh - gcc without its optimiser, as JOT_CC where a test's values matter and not gcc's code.
exec gcc "$@" -O0
