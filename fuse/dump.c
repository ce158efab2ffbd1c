/* fuse/dump.c - groups and the edges between them as text, for JOT_DUMP=f.
 *
 *     group 1 over (4096, 1000): 2 nodes
 *         stored  %5 max f32 (4096, 1) ...
 *     left %5 -> group 2, 16384 bytes: rule 2: nothing is fused after a reindex-reduce
 *     3 groups, 2 edges between them of 32768 bytes
 *
 * Read before: fuse/fuse.h. */
#include "fuse/fuse.h"

static const char *
dump_place(int place)
{
    return place == PLACE_STORED ? "stored"
         : place == PLACE_INSIDE ? "inside" : "cloned";
}

static void
dump_node(jot_Ctx *ctx, const FuseAsk *ask, const Fusion *fusion, uint32_t i, Text *text)
{
    jot_text_f(text, "    %s  ", dump_place(fusion->place[i]));
    jot_node_text(ctx, ask->node[i], text);
    jot_text_f(text, "\n");
}

static void
dump_group(jot_Ctx *ctx, const FuseAsk *ask, const Fusion *fusion, uint32_t g, Text *text)
{
    const FuseGroup *group = &fusion->groups[g];
    uint32_t k;

    jot_text_f(text, "group %u over ", g);
    jot_shape_text(text, (int)group->rank, group->ext);
    jot_text_f(text, ": %u node%s%s\n", group->n, group->n == 1 ? "" : "s",
               group->contraction ? ", a contraction" : "");
    for (k = 0; k < group->n; k++)
        dump_node(ctx, ask, fusion, fusion->member[group->first + k], text);
}

JOT_FN void
jot_fuse_dump(jot_Ctx *ctx, const FuseAsk *ask, const Fusion *fusion, Text *text)
{
    uint32_t g, i, k;
    long long sum = 0;
    bool any = false;

    for (g = 1; g <= fusion->ngroups; g++)
        dump_group(ctx, ask, fusion, g, text);
    for (i = 0; i < fusion->n; i++)
        if (fusion->place[i] == PLACE_CLONED && fusion->real[i] == i) {
            jot_text_f(text, any ? "" : "in each group that needs it\n");
            any = true;
            dump_node(ctx, ask, fusion, i, text);
        }
    for (k = 0; k < fusion->nedge; k++) {
        const FuseEdge *e = &fusion->edge[k];

        jot_text_f(text, "left %%%u -> group %u at %%%u, %lld bytes: %s\n", ask->node[e->from],
                   e->group, ask->node[e->to], (long long)e->nbytes, jot_fuse_why(e->why));
        sum += e->nbytes;
    }
    jot_text_f(text, "%u group%s, %u edge%s between them of %lld bytes\n", fusion->ngroups,
               fusion->ngroups == 1 ? "" : "s", fusion->nedge, fusion->nedge == 1 ? "" : "s", sum);
}
