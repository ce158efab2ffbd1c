/* save/write_flow.c - a branch or loop as text: its bodies are a list of nodes of their own.
 *
 *     "flow": {"kind": "for", "trips": 20, "carries": 1, "stacked": 1, "saved": 1, "sliced": [1],
 *              "holes": [0, 1], "test": [], "body": [5, 5],
 *              "nodes": [
 *              {"op": "hole", "dtype": "f32", "shape": [8]},
 *              ...]}
 *
 * Numbers are places in that list. A branch has "otherwise" and "then" for "test" and "body".
 *
 * Read before: save/write.c, ops/flow/flow.h. After: save/read_flow.c. */
#include "save/save.h"
#ifndef JOT_NO_HOST
#include "ops/flow/flow.h"

static void
saveflow_head(Saving *s, const CodeSpec *c)
{
    const Flow *f = c->flow;
    bool any = false;
    int k;

    jot_text_f(&s->json, ", \"flow\": {\"kind\": \"%s\"", c->name);
    jot_save_number(s, "trips", f->most, INT64_MAX);
    jot_save_number(s, "carries", f->carries, 0);
    jot_save_number(s, "stacked", f->stacked, 0);
    jot_save_number(s, "saved", f->saved, 0);
    jot_save_number(s, "counter", f->counter, 0);
    jot_save_number(s, "counted", f->counted, 0);
    jot_save_number(s, "reverse", f->reverse, 0);
    for (k = 0; k < c->inputs; k++)
        if (flow_bit(f->sliced, k)) {
            jot_text_f(&s->json, any ? ", %d" : ", \"sliced\": [%d", k);
            any = true;
        }
    jot_text_f(&s->json, any ? "]" : "");
}

/* Holes first, then what the bodies are of. */
static bool
saveflow_bodies(Saving *s, const CodeSpec *c)
{
    static const char *const field[][FLOW_BODIES] = {
        {", \"otherwise\"", ", \"then\""}, {", \"test\"", ", \"body\""}
    };
    const Flow *f = c->flow;
    int holes = c->inputs - f->lead, b;
    NodeList root = {0, 0, NULL};
    bool ok = true;

    for (b = 0; ok && b < holes; b++)
        ok = jot_vec_add(s->ctx, root, f->hole[f->lead + b], "save");
    for (b = 0; ok && b < FLOW_BODIES; b++)
        for (int k = 0; ok && k < f->body[b].n; k++)
            ok = jot_vec_add(s->ctx, root, f->body[b].result[k], "save");
    ok = ok && jot_save_list(s, root.v, root.n);
    if (ok) {
        jot_save_places(s, ", \"holes\"", root.v, (uint32_t)holes);
        for (b = 0; b < FLOW_BODIES; b++)
            jot_save_places(s, field[f->kind][b], f->body[b].result, (uint32_t)f->body[b].n);
        jot_text_f(&s->json, ",\n");
        ok = jot_save_nodes(s);
    }
    jot_list_free(s->ctx, &root);
    return ok;
}

JOT_FN bool
jot_save_flow(Saving *s, const Node *n)
{
    SaveList around = s->list;
    bool ok;

    if (s->depth == SAVE_DEPTH)
        return jot_fail(s->ctx, JOT_ERANGE, "save: bodies within bodies, more than %d deep",
                        SAVE_DEPTH);
    s->list = (SaveList){0};
    s->depth++;
    saveflow_head(s, n->code);
    ok = saveflow_bodies(s, n->code);
    jot_text_f(&s->json, "}");
    jot_save_list_free(s);
    s->depth--;
    s->list = around;
    jot_graph_number(s->ctx, &s->list.all);
    return ok;
}
#else
typedef int jot_save_flow_nothing;
#endif
