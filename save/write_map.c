/* save/write_map.c - a map's expressions as text, as jot_reindex takes them.
 *
 *     "index": ["i0", "2*i1 + i2 - 1"], "where": ["i1 < 7"]
 *
 * What is written is parsed once more: what would not be read back is refused now.
 *
 * Read before: save/write.c, ops/maps.h. After: save/read.c. */
#include "save/save.h"
#ifndef JOT_NO_HOST

/* One expression of a map, if what is written is read back. */
static bool
savemap_index(Saving *s, const Node *n, Ix ix, bool first)
{
    IxPool *pool = &s->ctx->ix;
    const Node *over = n->kind == NODE_REDUCE ? jot_node(s->ctx, n->input[0]) : n;
    const int64_t *ext[MAP_MAX_EXTRA];
    int rank[MAP_MAX_EXTRA], k;
    Ix guards[2 * JOT_MAX_RANK * MAP_MAX_EXTRA];
    IxParse parse = {.pool = pool, .space = {over->rank, over->ext, NULL}};
    Text text = {&s->ctx->mem, NULL, 0, 0};
    bool ok;

    for (k = 1; k < n->ninputs; k++) {
        rank[k - 1] = jot_node(s->ctx, n->input[k])->rank;
        ext[k - 1] = jot_node(s->ctx, n->input[k])->ext;
    }
    parse.extra_n = n->ninputs - 1;
    parse.extra_rank = rank;
    parse.extra_ext = ext;
    parse.guards = guards;
    parse.max_guards = (int)(sizeof guards / sizeof *guards);
    jot_ix_print(pool, ix, &text);
    ok = text.s && text.n <= SAVE_EXPRESSION && jot_ix_parse(&parse, text.s);
    if (ok)
        jot_text_f(&s->json, "%s\"%s\"", first ? "" : ", ", text.s);
    else if (text.s && !s->ctx->mem.failed)
        jot_fail(s->ctx, JOT_ERANGE, "save: a map's %.*s cannot be read back: %s", 200, text.s,
                 text.n > SAVE_EXPRESSION ? "it is too long" : parse.message);
    else
        jot_fail_memory(s->ctx, "save");
    jot_text_free(&text);
    return ok;
}

JOT_FN bool
jot_save_map(Saving *s, const Node *n)
{
    int k;

    jot_text_f(&s->json, ", \"index\": [");
    for (k = 0; k < n->nindex; k++)
        if (!savemap_index(s, n, n->index[k], !k))
            return false;
    jot_text_f(&s->json, n->ncond ? "], \"where\": [" : "]");
    for (k = 0; k < n->ncond; k++)
        if (!savemap_index(s, n, n->cond[k], !k))
            return false;
    if (n->ncond)
        jot_text_f(&s->json, "]");
    return true;
}
#else
typedef int jot_save_map_nothing;
#endif
