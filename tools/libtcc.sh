#!/bin/sh
# tools/libtcc.sh OUT [ARCHIVE] - make a shared libtcc out of the static archive of Debian's
# libtcc-dev, for backends/cpu/tcc.c to open at run time. Exits 1, saying why, where it cannot be done.
#
# The archive was compiled for position-independent programs, not libraries: it reaches its variables
# directly. That is sound when all of them are inside, so everything but the interface is made local,
# and the C library's stdout, stderr and environ, which are outside, are replaced by copies of the
# pointers that a constructor fills in.
set -e
out=$1
archive=${2:-$(ls /usr/lib/*/libtcc.a /usr/lib/libtcc.a /usr/local/lib/libtcc.a 2>/dev/null | head -n 1)}
cc=${CC:-cc}
[ -n "$out" ] || { echo "usage: $0 OUT [ARCHIVE]"; exit 1; }
[ -n "$archive" ] || { echo "no libtcc.a (apt install libtcc-dev)"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat > "$work/copies.c" <<'C'
#include <stdio.h>
extern char **environ;
FILE *__wrap_stdout, *__wrap_stderr;
char **__wrap_environ;
__attribute__((constructor)) static void
copy(void)
{
    __wrap_stdout = stdout;
    __wrap_stderr = stderr;
    __wrap_environ = environ;
}
C
cat > "$work/names" <<'C'
{ global: tcc_new; tcc_delete; tcc_set_*; tcc_get_*; tcc_define_symbol; tcc_undefine_symbol;
  tcc_add_include_path; tcc_add_sysinclude_path; tcc_add_file; tcc_add_library_path;
  tcc_add_library; tcc_add_symbol; tcc_compile_string; tcc_output_file; tcc_run; tcc_relocate;
  tcc_list_symbols; _tcc_setjmp; local: *; };
C
$cc -fPIC -fvisibility=hidden -c "$work/copies.c" -o "$work/copies.o"
$cc -shared -o "$work/libtcc.so" "$work/copies.o" -Wl,--version-script="$work/names" \
    -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    -Wl,--wrap=stdout,--wrap=stderr,--wrap=environ -ldl
mv "$work/libtcc.so" "$out"
