/* tests/scribe.h - a backend that writes down what it is to compile and runs nothing: plans and
 * texts of any machine, here, without its compiler. */
#ifndef JOT_TEST_SCRIBE_H
#define JOT_TEST_SCRIBE_H
#include "backends/backend.h"
#include "plan/device/device.h"
#include "plan/plan.h"
#include "tests/idle_device.h"

enum { NAMES = 4096 };

typedef struct {
    char *text;
    size_t n, cap;
    uint64_t name[NAMES]; /* of each kernel and its text */
    int names;
} Notes;

static void
note(Notes *to, const char *s, size_t n)
{
    if (to->n + n + 1 > to->cap) {
        to->cap = to->cap * 2 + n + 1;
        to->text = realloc(to->text, to->cap);
    }
    memcpy(to->text + to->n, s, n);
    to->text[to->n += n] = 0;
}

static void
note_name(Notes *to, const KernelSym *sym)
{
    uint64_t h = jot_hash(1, sym->name, strlen(sym->name));

    if (sym->text)
        h = jot_hash(h, sym->text, strlen(sym->text));
    if (to->names < NAMES)
        to->name[to->names++] = h;
}

static void
forget_notes(Notes *notes)
{
    notes->n = (size_t)(notes->names = 0);
    note(notes, "", 0);
}

static Notes *scribe; /* who writes now */

static void
idle_kernel(void *const *buf, const int64_t *ints, const jot_Scalar *scalars, void *scratch,
            int64_t phase, int64_t lo, int64_t hi)
{
    (void)buf, (void)ints, (void)scalars, (void)scratch, (void)phase, (void)lo, (void)hi;
}

static bool
scribe_compile(Backend *backend, jot_Ctx *ctx, const char *what, const char *text, size_t nbytes,
               KernelSym *sym, int n, void **module)
{
    (void)ctx;
    note(scribe, what, strlen(what));
    note(scribe, text, nbytes);
    for (int i = 0; i < n; i++) {
        note_name(scribe, &sym[i]);
        sym[i].fn = backend->device ? jot_plan_no_fn : idle_kernel;
        sym[i].kernel = scribe;
    }
    *module = scribe;
    return true;
}

static void
scribe_unload(Backend *backend, jot_Ctx *ctx, void *module)
{
    (void)backend, (void)ctx, (void)module;
}

/* What is compiled in the context from now on is text of that dialect, for a device or the host. */
static void
scribe_attach(jot_Ctx *c, const char *dialect, bool device)
{
    c->backend->dialect = dialect;
    c->backend->compile = scribe_compile;
    c->backend->unload = scribe_unload;
    if (device) {
        c->target.blocks = false;
        c->backend->device = &idle;
        jot_data_attach(c);
    }
}

#endif
