/* plan/function/absent.c - a build without exported functions (JOT_NO_EXPORT): who asks for one
 * is told.
 *
 * Read before: core.h. After: plan/function/function.c. */
#include "plan/function/function.h"

#ifdef JOT_NO_EXPORT
bool
jot_export_text(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
                jot_WriteFn *write, void *user)
{
    (void)name, (void)inputs, (void)outputs, (void)write, (void)user;
    return ctx && jot_fail(ctx, JOT_EUSE, "export: this build has none (JOT_NO_EXPORT)");
}

bool
jot_export_open_text(jot_Ctx *ctx, const char *name, const jot_Builder *builder,
                     jot_WriteFn *write, void *user)
{
    (void)builder;
    return jot_export_text(ctx, name, JOT_NONE_VARS, JOT_NONE_VARS, write, user);
}

#ifndef JOT_NO_HOST
bool
jot_export(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs, const char *path)
{
    (void)path;
    return jot_export_text(ctx, name, inputs, outputs, NULL, NULL);
}

bool
jot_export_open(jot_Ctx *ctx, const char *name, const jot_Builder *builder, const char *path)
{
    (void)path;
    return jot_export_open_text(ctx, name, builder, NULL, NULL);
}
#endif
#endif
