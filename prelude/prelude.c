/* prelude/prelude.c - the text of prelude.def as a table, and the search by name.
 *
 * The body is stringified as it stands (#__VA_ARGS__ expands nothing), so what a kernel compiles is
 * what the library compiled. The table stays in the order of prelude.def, in which every function
 * comes after those it uses: printing a subset in this order needs no declarations in front.
 *
 * Read before: prelude.h. After: ccode/emit/emit.c. */
#define JOT_PRELUDE_TEXT
#include "prelude/prelude.h"
#undef JOT_PRELUDE_TEXT

#define FN(name, ret, params, uses, ...) {#name, #ret, #params, uses, #__VA_ARGS__},
static const PreludeFn prelude_fns[] = {
#include "prelude/prelude.def"
};
#undef FN

JOT_FN const PreludeFn *
jot_prelude_table(int *count)
{
    *count = (int)(sizeof prelude_fns / sizeof *prelude_fns);
    return prelude_fns;
}

static int
prelude_is(const char *name, const char *s, size_t n)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (name[i] == 0 || name[i] != s[i])
            return 0;
    return name[n] == 0;
}

JOT_FN const PreludeFn *
jot_prelude_find(const char *name, size_t n)
{
    size_t i;

    if (n < 5 || !prelude_is("jotm_", name, 5)) /* as all begin: most words do not */
        return NULL;
    for (i = 0; i < sizeof prelude_fns / sizeof *prelude_fns; i++)
        if (prelude_is(prelude_fns[i].name + 5, name + 5, n - 5))
            return &prelude_fns[i];
    return NULL;
}
