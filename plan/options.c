/* plan/options.c - what a context's options ask of its plans: dumps, which go to the log, and
 * schedules that are drawn; where they do, what is planned is not known by its key alone.
 *
 * Read before: plan/parts.h. After: plan/plan.c, plan/text.c, plan/known/known.c. */
#include "plan/parts.h"

JOT_FN bool
jot_plan_dumps(const jot_Ctx *ctx, char letter)
{
    const char *s = ctx->config.dump;

    for (; s && *s; s++)
        if (*s == letter)
            return true;
    return false;
}

JOT_FN void
jot_plan_log(jot_Ctx *ctx, Text *text)
{
    if (text->n && ctx->mem.hooks.log)
        ctx->mem.hooks.log(ctx->mem.hooks.ud, text->s, text->n);
    jot_text_free(text);
}

JOT_FN bool
jot_plan_dump_known(char letter)
{
    static const char own[] = "?gfyprt";
    int i;

    for (i = 0; own[i]; i++)
        if (own[i] == letter)
            return true;
    for (i = 0; i < jot_emit_passes_n; i++)
        if (jot_emit_passes[i].letter == letter)
            return true;
    return false;
}

JOT_FN void
jot_plan_dump_letters(jot_Ctx *ctx)
{
    Text t = {&ctx->mem, NULL, 0, 0};
    int i;

    jot_text_f(&t, "letters of JOT_DUMP:\n  g graph: the nodes that are needed\n"
                   "  f fusion: groups, and the edges left between them\n"
                   "  y layouts: of temporaries, and which variables are copied into others\n"
                   "  r reasons: of each kernel, why strategies of schedules refused it\n"
                   "  p plan: launches, and where temporaries lie\n"
                   "  t time: of every launch\n");
    for (i = 0; i < jot_emit_passes_n; i++)
        jot_text_f(&t, "  %c %s: %s\n", jot_emit_passes[i].letter, jot_emit_passes[i].name,
                   jot_emit_passes[i].what);
    jot_plan_log(ctx, &t);
}

JOT_FN bool
jot_plan_random(const Make *m)
{
    const char *word = m->ctx->config.schedule;

    return word && word[0] == 'r' && word[1] == 'a';
}

JOT_FN bool
jot_plan_known_fits(const Make *m)
{
    int i;

    for (i = 0; i < jot_emit_passes_n; i++) /* what is not built cannot be shown */
        if (jot_plan_dumps(m->ctx, jot_emit_passes[i].letter))
            return false;
    return !m->plan->dialect && !m->plan->ends && !jot_plan_random(m);
}
