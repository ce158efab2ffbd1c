/* tests/save_text.h - graphs to text and back, without a file: what test_save.c and
 * test_save_fuzz.c do with save/. */
#ifndef JOT_TEST_SAVE_TEXT_H
#define JOT_TEST_SAVE_TEXT_H
#include "save/save.h"
#include "tests/hooks.h"
#include "tests/test.h"

/* The text of a graph, in malloc's memory; NULL: the context has the reason. */
static char *
graph_text(jot_Ctx *c, jot_Vars in, jot_Vars out)
{
    Saving s;
    char *text = NULL;

    memset(&s, 0, sizeof s);
    s.ctx = c;
    if (jot_save_graph(&s, in, out)) {
        text = malloc(s.json.n + 1);
        memcpy(text, s.json.s, s.json.n + 1);
    }
    jot_save_end(&s);
    return text;
}

/* Leaves of zeros, whatever their tensors are called, no larger than a test needs. */
static jot_Var
zero_leaf(void *user, const char *name, jot_DType dtype, jot_Ints shape, bool param)
{
    jot_Ctx *c = user;
    int64_t nelem;

    (void)name;
    if (!jot_shape_ok(c, "test", dtype, shape.n, shape.v, &nelem))
        return JOT_POISON(c);
    if (nelem > 1 << 28)
        return jot_raise(c, JOT_EMEM, "test: too large");
    return param ? jot_param(c, dtype, shape, NULL) : jot_array(c, dtype, shape, NULL);
}

typedef struct { jot_Var in[32], out[64]; int nin, nout; } TextGraph;

/* The graph of a text, its updates pending. Handles of inputs and outputs are outside all
 * scopes. */
static bool
text_graph(jot_Ctx *c, const char *text, TextGraph *g)
{
    Loading l;
    bool ok;

    memset(&l, 0, sizeof l);
    memset(g, 0, sizeof *g);
    l.ctx = c;
    l.file = "text";
    l.code = true;
    l.leaf = zero_leaf;
    l.user = c;
    jot_push(c);
    ok = jot_load_graph(&l, text);
    for (uint32_t k = 0; ok && k < l.nin && k < 32; k++)
        g->in[g->nin++] = jot_var_outside(c, l.list.id[l.in[k]]);
    for (uint32_t k = 0; ok && k < l.nout && k < 64; k++)
        g->out[g->nout++] = jot_var_outside(c, l.list.id[l.out[k]]);
    for (uint32_t k = 0; ok && k < l.nupdates; k++) {
        jot_Var value = jot_var_outside(c, l.list.id[l.value[k]]);
        ok = jot_assign(l.params.v[l.old[k]], value);
        jot_free(value);
    }
    for (uint32_t k = 0; !ok && k < l.params.n; k++)
        jot_free(l.params.v[k]);
    c->stream += ok ? l.draws : 0;
    jot_load_end(&l);
    jot_pop(c);
    return ok;
}

/* The file is loaded with each allocation refused in turn, until it is loaded: nothing is left. */
static inline void
load_refused(jot_Ctx *c, Heap *heap, const char *path)
{
    jot_Saved g;
    int loaded = 0;

    for (long k = 1; k < 4000 && !loaded; k += test_many(2, 1)) {
        uint32_t slots = jot_stats(c).live_slots, nodes = jot_stats(c).live_nodes;

        heap->countdown = k;
        loaded = jot_load(c, path, 0, &g);
        heap->countdown = 0;
        CHECK(loaded || jot_error(c) == JOT_EMEM, "allocation %ld: %s", k, jot_message(c));
        jot_clear(c);
        CHECK(loaded || (jot_stats(c).live_slots == slots && jot_stats(c).live_nodes == nodes),
              "allocation %ld leaves %u handles, %u nodes", k, jot_stats(c).live_slots - slots,
              jot_stats(c).live_nodes - nodes);
    }
    CHECK(loaded, "never");
}

#endif
