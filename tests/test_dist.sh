#!/bin/sh
# tests/test_dist.sh DIR PROGRAM - DIR/jot.c and jot.h compile without a warning under gcc, clang and
# tcc as C99, and PROGRAM, built against them with the libraries that README.md names, runs. So does it
# under clang's sanitizer of pointers, which knows more than gcc's, that the suite has besides: NULL + 0. Builds without devices, tuner
# or exported functions (JOT_NO_DEVICES, JOT_NO_TUNE, JOT_NO_EXPORT) run, and refuse what they lack. Neither file sends its
# reader to a file that is not one of the two.
libs=$(sed -n 's/.*program\.c jot\.c \(\(-l[a-z]* *\)*\).*/\1/p' README.md)
dir=$1; program=$2; passed=0; failed=0; skipped=0
printf 'int main(void) { return 0; }\n' >"$dir/none.c"
ub="-fsanitize=pointer-overflow -fno-sanitize-recover=all" # of clang's one build, where it has it
# shellcheck disable=SC2086
{ clang $ub "$dir/none.c" -o "$dir/none" && "$dir/none"; } 2>/dev/null || ub=
# in make test, beside clang, gcc looks at the text alone, and has the build without parts below
quick=; [ -z "$TEST_SHORT" ] || ! command -v clang >/dev/null || quick=-fsyntax-only
for cc in "gcc -Wno-misleading-indentation" "clang $ub" tcc; do # which takes gcc 10 s in so long a file; clang asks it
    warns=$cc; cc=${cc%% *}
    if ! command -v $cc >/dev/null; then
        echo "skipped: no $cc here"; skipped=$((skipped + 1)); continue
    fi
    sed 's/#include "core.h"/#include "jot.h"/' "$program" > "$dir/program.c"
    if $warns -std=c99 -Wall -Wextra -Wpedantic -I"$dir" $([ $cc != gcc ] || echo $quick) -c "$dir/jot.c" -o "$dir/jot_$cc.o" 2>"$dir/log_$cc" \
        && [ ! -s "$dir/log_$cc" ] \
        && { [ "$cc$quick" = gcc-fsyntax-only ] || { $warns -std=c99 -I"$dir" "$dir/program.c" "$dir/jot_$cc.o" -o "$dir/program_$cc" $libs \
        && "$dir/program_$cc" >"$dir/out_$cc" 2>&1; }; }; then
        passed=$((passed + 1))
    else
        echo "$cc: one-file build failed or warned"; head -n 20 "$dir/log_$cc"; failed=$((failed + 1))
    fi
done
cat >"$dir/scalar.c" <<END
#include "jot.h"
int
main(void)
{
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_param(c, JOT_F32, JOT_SHAPE(), NULL); /* kernels without an index or a number */
    jot_Var none = jot_sum(jot_zeros(c, JOT_F32, JOT_SHAPE(0)), JOT_ALL_DIMS);
    jot_Var all = jot_sum(jot_param(c, JOT_F32, JOT_SHAPE(3), NULL), JOT_ALL_DIMS); /* no index of a map */
    jot_Var y = jot_mul(jot_cos(x), jot_exp(x)), g;

    jot_grad(y, JOT_VARS(x), &g);
    jot_assign(x, jot_sub(x, jot_scale(g, 0.5)));
    if (jot_item(y) != 1 || jot_item(x) != -0.5 || jot_item(none) != 0 || jot_item(all) != 0)
        return 1;
    jot_close(c);
    return 0;
}
END
if [ -z "$ub" ]; then
    echo "skipped: no clang with sanitizers here"; skipped=$((skipped + 1))
elif clang $ub -std=c99 -I"$dir" "$dir/scalar.c" "$dir/jot_clang.o" -o "$dir/scalar_ub" $libs \
    && "$dir/scalar_ub" >"$dir/out_ub" 2>&1 \
    && JOT_BACKEND=interp "$dir/scalar_ub" >"$dir/out_ub" 2>&1 \
    && JOT_LAYOUT=random:3 "$dir/scalar_ub" >"$dir/out_ub" 2>&1; then
    passed=$((passed + 1))
else
    echo "undefined behaviour, or not to be built"; head -n 20 "$dir/out_ub"; failed=$((failed + 1))
fi
# builds that do without a part: without a warning, the program runs, and who asks for the part is told
cat >"$dir/without.c" <<END
#include <stdio.h>
#include <string.h>
#include "jot.h"
static void
ignore(void *user, const char *text, size_t nbytes)
{
    (void)user, (void)text, (void)nbytes;
}
static int
refuses(jot_Ctx *c, const char *message)
{
    int as_told = jot_error(c) == JOT_EUSE && strstr(jot_message(c), message) != NULL;

    if (!as_told)
        printf("\"%s\" expected, \"%s\" said\n", message, jot_message(c));
    jot_close(c);
    return as_told;
}
int
main(void)
{
    jot_Config device = {0}, tune = {0};
    jot_Ctx *c = jot_open(NULL);
    jot_Var x = jot_ones(c, JOT_F32, JOT_SHAPE(2));

    device.backend = "opencl";
    tune.tune = 4;
    if (jot_export_text(c, "f", JOT_VARS(x), JOT_VARS(x), ignore, NULL)
        || !refuses(c, "export: this build has none (JOT_NO_EXPORT)"))
        return 1;
    c = jot_open(&tune);
    if (!refuses(c, "tune: this build times no schedules (JOT_NO_TUNE)"))
        return 1;
    c = jot_open(&device);
    return !refuses(c, "opencl");
}
END
all="-DJOT_NO_DEVICES -DJOT_NO_TUNE -DJOT_NO_EXPORT -DJOT_NO_DATA -DJOT_NO_IO"
cc=$(command -v clang || command -v gcc) # gcc takes fifteen times as long to warn of nothing
has() { printf '#include <stdio.h>\n#include <%s>\n' "$1" | $cc -E - >/dev/null 2>&1 && echo "$2"; }
reads="$(has png.h -DJOT_PNG) $(has jpeglib.h -DJOT_JPEG) $(has zlib.h -DJOT_ZLIB) $(has cjson/cJSON.h -DJOT_CJSON)" # what data.h and io.h read by others
if [ "$quick" ]; then # two at a time, of parts that do not meet
    set -- "-DJOT_NO_DEVICES $reads" "-DJOT_NO_TUNE -DJOT_NO_DATA" "-DJOT_NO_EXPORT -DJOT_NO_THREADS" -DJOT_NO_IO
else
    set -- -DJOT_NO_DEVICES -DJOT_NO_TUNE -DJOT_NO_EXPORT -DJOT_NO_DATA -DJOT_NO_IO -DJOT_NO_THREADS "$reads"
fi
for less in "$@" "-DJOT_NO_HOST $all"; do
    if $cc -std=c99 -Wall -Wextra -Wpedantic -fsyntax-only $less "$dir/jot.c" >"$dir/log_less" 2>&1 && [ ! -s "$dir/log_less" ]; then
        passed=$((passed + 1))
    else
        echo "$less: does not compile, or with warnings"; head -n 20 "$dir/log_less"; failed=$((failed + 1))
    fi
done
[ -z "$quick" ] || cc=gcc
if $cc -std=c99 -I"$dir" $all -c "$dir/jot.c" -o "$dir/jot_less.o" \
    && $cc -std=c99 -I"$dir" "$dir/program.c" "$dir/jot_less.o" -o "$dir/program_less" $libs \
    && $cc -std=c99 -I"$dir" "$dir/without.c" "$dir/jot_less.o" -o "$dir/without" $libs \
    && "$dir/program_less" >"$dir/out_less" 2>&1 && "$dir/without" >>"$dir/out_less" 2>&1; then
    passed=$((passed + 1))
else
    echo "$all: not built, or not as told"; tail -n 20 "$dir/out_less"; failed=$((failed + 1))
fi
# who has these two files has no others: the manual and the messages name none
named=$(grep -nE '[a-z_]+/[a-z_]+\.(c|h|def)|(core|base)\.[ch]|[a-z_]+\.(def|sh|md)([^a-z]|$)' "$dir/jot.h"
    grep -nE '"[^"]*([a-z_]+\.(def|sh|md)[^a-z]|(tools|docs|tests|examples)/)[^"]*"' "$dir/jot.c")
if [ -z "$named" ]; then
    passed=$((passed + 1))
else
    echo "files that are not there are named:"; echo "$named"; failed=$((failed + 1))
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
