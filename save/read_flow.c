/* save/read_flow.c - a branch or loop out of a file: a spec as jot_cond, jot_while, jot_for and
 * gradients of these would have made it.
 *
 *     nodes              a list of the bodies' own: holes, and what stands on these alone
 *     holes, results     are counted and fit: a hole its operand, or the slice of one, what is
 *                        carried on its hole, one body of a branch the other
 *
 * A loop ends: it has trips, or a test.
 *
 * Read before: save/read.c, ops/flow/flow.h. After: save/file.c. */
#include "save/save.h"
#if !defined JOT_NO_HOST && defined JOT_CJSON
#include "ops/flow/flow.h"
#include <string.h>

enum { FF_KIND, FF_TRIPS, FF_CARRIES, FF_STACKED, FF_SAVED, FF_COUNTER, FF_COUNTED,
       FF_REVERSE, FF_SLICED, FF_HOLES, FF_OTHERWISE, FF_THEN, FF_TEST, FF_BODY, FF_NODES, FF_ALL };
static const char *const loadflow_fields[FF_ALL] = {
    "kind", "trips", "carries", "stacked", "saved", "counter", "counted", "reverse", "sliced",
    "holes", "otherwise", "then", "test", "body", "nodes"
};
static const char *const loadflow_kinds[] = {"cond", "while", "for"};

/* ---- what it says ------------------------------------------------------------------------- */

static bool
loadflow_whole(Loading *l, cJSON *const *f, int field, int64_t most, int64_t *to)
{
    return !f[field] || jot_load_whole(l, f[field], loadflow_fields[field], 1, most, to);
}

static bool
loadflow_head(Loading *l, FlowMake *m, cJSON *const *f, const char *kind)
{
    int64_t v[FF_SLICED] = {0};
    bool branch = jot_str_eq(kind, loadflow_kinds[0]);
    int k = 0;

    while (k < 3 && !jot_str_eq(kind, loadflow_kinds[k]))
        k++;
    if (k == 3)
        return jot_load_bad(l, "there is no branch or loop \"%.*s\"", 40, kind);
    jot_flow_open(m, l->ctx, loadflow_kinds[k], branch ? FLOW_COND : FLOW_LOOP);
    for (k = branch ? FF_TRIPS : FF_OTHERWISE; k <= (branch ? FF_SLICED : FF_THEN); k++)
        if (f[k])
            return jot_load_bad(l, "a %s has no field \"%s\"", m->op, loadflow_fields[k]);
    v[FF_TRIPS] = INT64_MAX;
    if (!loadflow_whole(l, f, FF_TRIPS, (int64_t)1 << 53, &v[FF_TRIPS])
        || !loadflow_whole(l, f, FF_CARRIES, FLOW_MOST, &v[FF_CARRIES])
        || !loadflow_whole(l, f, FF_STACKED, FLOW_MOST, &v[FF_STACKED])
        || !loadflow_whole(l, f, FF_SAVED, FLOW_MOST, &v[FF_SAVED])
        || !loadflow_whole(l, f, FF_COUNTER, FLOW_MOST, &v[FF_COUNTER])
        || !loadflow_whole(l, f, FF_COUNTED, 1, &v[FF_COUNTED])
        || !loadflow_whole(l, f, FF_REVERSE, 1, &v[FF_REVERSE]))
        return false;
    m->flow.most = v[FF_TRIPS];
    m->flow.carries = (int)v[FF_CARRIES];
    m->flow.stacked = (int)v[FF_STACKED];
    m->flow.saved = (int)v[FF_SAVED];
    m->flow.counter = (int)v[FF_COUNTER];
    m->flow.counted = v[FF_COUNTED];
    m->flow.reverse = v[FF_REVERSE];
    return true;
}

/* Operands before those of the bodies. */
static int
loadflow_lead(const FlowMake *m)
{
    return m->flow.kind == FLOW_COND || m->flow.counted;
}

/* Which inputs go in slice by slice; not what is carried. */
static bool
loadflow_sliced(Loading *l, const FlowMake *m, const NodeSpec *spec, const cJSON *array,
                uint64_t sliced[4])
{
    int first = loadflow_lead(m) + m->flow.carries;
    const cJSON *item;
    int64_t k = 0;

    if (array && !jot_load_array(l, array, "sliced"))
        return false;
    for (item = array ? array->child : NULL; item; item = item->next) {
        const Node *n;

        if (!jot_load_whole(l, item, "sliced", first, spec->ninputs - 1, &k))
            return false;
        n = jot_node(l->ctx, spec->input[k]);
        if (!n->rank || n->ext[0] != m->flow.most)
            return jot_load_bad(l, "operand %lld has not a slice for each of %lld trips",
                                (long long)k, (long long)m->flow.most);
        sliced[k / 64] |= (uint64_t)1 << k % 64;
    }
    return true;
}

/* ---- its bodies --------------------------------------------------------------------------- */

static bool
loadflow_like(const Node *a, jot_DType dtype, int rank, const int64_t *ext)
{
    return a->dtype == dtype && a->rank == rank
        && !memcmp(a->ext, ext, (size_t)rank * sizeof *ext);
}

static bool
loadflow_one(const Loading *l, NodeId id, jot_DType dtype)
{
    return jot_node(l->ctx, id)->nelem == 1 && jot_node(l->ctx, id)->dtype == dtype;
}

/* Operands with their holes. */
static bool
loadflow_inputs(Loading *l, FlowMake *m, const NodeSpec *spec, const uint32_t *hole, uint32_t holes,
                const uint64_t sliced[4])
{
    int lead = loadflow_lead(m), k, i;

    if (spec->ninputs - lead != (int)holes)
        return jot_load_bad(l, "it has %u holes for %d operands", holes, spec->ninputs - lead);
    if (lead && !loadflow_one(l, spec->input[0], m->flow.counted ? JOT_I64 : JOT_BOOL))
        return jot_load_bad(l, "operand 0 is not one %s", m->flow.counted ? "i64" : "bool");
    if (lead && !jot_flow_lead(m, spec->input[0]))
        return false;
    for (k = lead; k < spec->ninputs; k++) {
        const Node *n = jot_node(l->ctx, spec->input[k]), *h;
        bool slice = flow_bit(sliced, k);
        NodeId id = l->list.id[hole[k - lead]];

        h = jot_node(l->ctx, id);
        if (h->kind != NODE_LEAF
            || !loadflow_like(h, (jot_DType)n->dtype, n->rank - slice, n->ext + slice))
            return jot_load_bad(l, "operand %d is not what goes into its bodies", k);
        for (i = lead; i < k; i++)
            if (m->hole[i] == id)
                return jot_load_bad(l, "operands %d and %d have one hole", i, k);
        if (!jot_flow_input(m, spec->input[k], slice, id))
            return false;
    }
    return true;
}

static bool
loadflow_results(Loading *l, FlowMake *m, int body, const uint32_t *at, uint32_t n)
{
    uint32_t k;

    for (k = 0; k < n; k++) {
        int kind = jot_node(l->ctx, l->list.id[at[k]])->kind;

        if (kind == NODE_CODE || kind == NODE_CUSTOM)
            return jot_load_bad(l, "result %u of a body has no value", k);
        if (!jot_flow_result(m, body, l->list.id[at[k]]))
            return false;
    }
    return true;
}

/* Are results k of a body, and what they are to be like, alike? */
static bool
loadflow_same(Loading *l, const FlowMake *m, int body, int n, const NodeId *like)
{
    int k;

    for (k = 0; k < n; k++) {
        const Node *a = jot_node(l->ctx, like[k]);

        if (!loadflow_like(jot_node(l->ctx, m->result[body][k]), (jot_DType)a->dtype, a->rank,
                           a->ext))
            return jot_load_bad(l, "result %d of a body has another shape or dtype than what %s",
                                k, m->flow.kind == FLOW_COND ? "the other has" : "is carried");
    }
    return true;
}

static bool
loadflow_fits(Loading *l, const FlowMake *m)
{
    const Flow *f = &m->flow;
    int tests = m->results[FLOW_TEST];

    if (f->kind == FLOW_COND)
        return (m->results[FLOW_THEN] > 0 && m->results[FLOW_THEN] == tests)
             ? loadflow_same(l, m, FLOW_OTHERWISE, tests, m->result[FLOW_THEN])
             : jot_load_bad(l, "its bodies have %d and %d results", m->results[FLOW_THEN], tests);
    if (m->results[FLOW_TRIP] != f->carries + f->stacked || !m->results[FLOW_TRIP]
        || m->n - f->lead < f->carries)
        return jot_load_bad(l, "%d carried and %d stacked, and its body has %d results of %d "
                            "operands", f->carries, f->stacked, m->results[FLOW_TRIP],
                            m->n - f->lead);
    if (tests > 1 || (tests && !loadflow_one(l, m->result[FLOW_TEST][0], JOT_BOOL)))
        return jot_load_bad(l, "its test is not one bool");
    if (f->most == INT64_MAX && (!tests || f->stacked || f->saved || f->counted))
        return jot_load_bad(l, "it does not say how many trips there are at most");
    if (f->saved && f->saved != f->carries)
        return jot_load_bad(l, "%d of %d carried are saved", f->saved, f->carries);
    if (f->saved && tests && (f->counter >= f->carries
                              || !loadflow_one(l, m->hole[f->lead + f->counter], JOT_I64)))
        return jot_load_bad(l, "number %d of what is carried counts no trips", f->counter);
    return loadflow_same(l, m, FLOW_TRIP, f->carries, m->hole + f->lead);
}

static bool
loadflow_bodies(Loading *l, FlowMake *m, cJSON *const *f, const NodeSpec *spec,
                const uint64_t sliced[4])
{
    const bool branch = m->flow.kind == FLOW_COND;
    const int field[3] = {FF_HOLES, branch ? FF_OTHERWISE : FF_TEST, branch ? FF_THEN : FF_BODY};
    uint32_t at[3][FLOW_MOST], n[3];
    int k;

    if (!jot_load_nodes(l, f[FF_NODES]))
        return false;
    for (k = 0; k < 3; k++) {
        n[k] = jot_load_count(f[field[k]]);
        if (n[k] > FLOW_MOST)
            return jot_load_bad(l, "%s has %u nodes; %d are taken", loadflow_fields[field[k]], n[k],
                                FLOW_MOST);
        if (!jot_load_numbers(l, f[field[k]], loadflow_fields[field[k]], l->list.n, at[k]))
            return false;
    }
    return loadflow_inputs(l, m, spec, at[0], n[0], sliced)
        && loadflow_results(l, m, FLOW_TEST, at[1], n[1])
        && loadflow_results(l, m, FLOW_TRIP, at[2], n[2]) && loadflow_fits(l, m);
}

static CodeSpec *
loadflow_spec(Loading *l, FlowMake *m, cJSON *const *f, const NodeSpec *spec)
{
    LoadList around = l->list;
    uint64_t sliced[4] = {0};
    CodeSpec *s = NULL;
    const char *kind;

    if (!jot_load_string(l, f[FF_KIND], "kind", &kind) || !loadflow_head(l, m, f, kind)
        || !loadflow_sliced(l, m, spec, f[FF_SLICED], sliced)
        || !jot_load_array(l, f[FF_NODES], "nodes"))
        return NULL;
    if (l->depth == SAVE_DEPTH)
        return jot_load_bad(l, "bodies within bodies, more than %d deep", SAVE_DEPTH), NULL;
    l->within[l->depth++] = l->list.at;
    l->list = (LoadList){0};
    if (loadflow_bodies(l, m, f, spec, sliced))
        s = jot_flow_spec(m);
    jot_load_list_free(l);
    l->depth--;
    l->list = around;
    jot_flow_close(m);
    return s;
}

JOT_FN CodeSpec *
jot_load_flow(Loading *l, const cJSON *item, const NodeSpec *spec)
{
    FlowMake *m = jot_mem_new(&l->ctx->mem, 1, sizeof *m);
    cJSON *f[FF_ALL];
    CodeSpec *s;

    if (!m)
        return jot_fail_memory(l->ctx, "load"), NULL;
    s = jot_load_fields(l, item, "its flow", loadflow_fields, FF_ALL, f)
      ? loadflow_spec(l, m, f, spec) : NULL;
    jot_mem_free(&l->ctx->mem, m, sizeof *m);
    return s;
}
#else
typedef int jot_load_flow_nothing;
#endif
