/* fail.c - failures: the first stays with its context, until jot_clear; whose context it is.
 *
 * Everything reports here, and this asks nothing but the host, which process it is.
 *
 * Read before: ops/graph.h. After: core.c. */
#include "ops/graph.h"
#ifndef JOT_NO_HOST
#include "backends/host/host.h"
#endif

static void
fail_keep(jot_Ctx *ctx, jot_Status status, const char *format, va_list args)
{
    Text text = {NULL, NULL, 0, 0};

    if (ctx->status)
        return;
    ctx->status = status;
    text.s = ctx->message;
    text.cap = sizeof ctx->message;
    jot_text_v(&text, format, args);
}

JOT_FN bool
jot_fail(jot_Ctx *ctx, jot_Status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fail_keep(ctx, status, format, args);
    va_end(args);
    return false;
}

JOT_FN bool
jot_fail_memory(jot_Ctx *ctx, const char *what)
{
    ctx->mem.failed = false; /* told: the next request may succeed */
    return jot_fail(ctx, JOT_EMEM, "%s: out of memory (%zu bytes asked for, %zu in use)", what,
                    ctx->mem.refused_nbytes, ctx->mem.live_nbytes);
}

JOT_FN bool
jot_home(jot_Ctx *ctx)
{
#ifndef JOT_NO_HOST
    ctx->forked = ctx->forked || ctx->forks != jot_host_forks();
#endif
    return !ctx->forked;
}

JOT_FN bool
jot_home_only(jot_Ctx *ctx, const char *what)
{
    return jot_home(ctx)
        || jot_fail(ctx, JOT_EUSE, "%s: another process opened this context, and this one is its "
                    "child (fork): it can read values that are there, and open contexts of its "
                    "own", what);
}

JOT_FN Attempt
jot_attempt(const jot_Ctx *ctx)
{
    Attempt before;

    before.status = ctx->status;
    before.failed = ctx->mem.failed;
    return before;
}

JOT_FN void
jot_give_up(jot_Ctx *ctx, Attempt before)
{
    ctx->mem.failed = before.failed;
    if (before.status) /* the first failure stays */
        return;
    ctx->status = JOT_OK;
    ctx->message[0] = 0;
}

jot_Var
jot_raise(jot_Ctx *ctx, jot_Status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (ctx)
        fail_keep(ctx, status, format ? format : "", args);
    va_end(args);
    return JOT_POISON(ctx);
}

jot_Status
jot_error(const jot_Ctx *ctx)
{
    return ctx ? ctx->status : JOT_EMEM;
}

const char *
jot_message(const jot_Ctx *ctx)
{
    return !ctx ? "jot_open: out of memory, or no realloc hook" : ctx->status ? ctx->message : "";
}
