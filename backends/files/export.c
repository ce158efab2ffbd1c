/* backends/files/export.c - jot_export, jot_export_open: the text of plan/function/export.c, or of
 * plan/open/written.c, into a file.
 *
 * Written beside its place and renamed, so that a file of that name is whole; what is there and no
 * file (/dev/stdout, a pipe) is written to.
 *
 * Read before: plan/function/export.c, plan/open/written.c. */
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

typedef struct { FILE *file; bool bad; } ExportFile;

static void
export_piece(void *user, const char *text, size_t nbytes)
{
    ExportFile *out = user;

    if (fwrite(text, 1, nbytes, out->file) != nbytes)
        out->bad = true;
}

static bool
export_io(jot_Ctx *ctx, const char *path, const char *beside)
{
    jot_fail(ctx, JOT_EIO, "export: %s: %s", path, strerror(errno));
    if (beside)
        remove(beside);
    return false;
}

/* builder NULL: of inputs and outputs. */
static bool
export_file(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
            const jot_Builder *builder, const char *path)
{
    char beside[4096];
    ExportFile out = {NULL, false};
    struct stat there;
    bool direct, blocked, ok;

    if (!ctx || ctx->status)
        return false;
    if (!path || snprintf(beside, sizeof beside, "%s.part", path) >= (int)sizeof beside)
        return jot_fail(ctx, JOT_EUSE, "export: the path is %s", path ? "too long" : "NULL");
    direct = !stat(path, &there) && !S_ISREG(there.st_mode);
    if (!(out.file = fopen(direct ? path : beside, "w")))
        return export_io(ctx, path, NULL);
    blocked = jot_host_limit_begin();
    ok = builder ? jot_export_open_text(ctx, name, builder, export_piece, &out)
                 : jot_export_text(ctx, name, inputs, outputs, export_piece, &out);
    out.bad |= fclose(out.file) != 0;
    jot_host_limit_end(blocked);
    if (!ok && !direct)
        remove(beside);
    if (ok && (out.bad || (!direct && rename(beside, path))))
        return export_io(ctx, path, direct ? NULL : beside);
    return ok;
}

bool
jot_export(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs, const char *path)
{
    return export_file(ctx, name, inputs, outputs, NULL, path);
}

bool
jot_export_open(jot_Ctx *ctx, const char *name, const jot_Builder *builder, const char *path)
{
    if (ctx && !ctx->status && !builder)
        return jot_fail(ctx, JOT_EUSE, "export: builder is NULL");
    return export_file(ctx, name, JOT_NONE_VARS, JOT_NONE_VARS, builder, path);
}
#else
typedef int jot_export_nothing;
#endif
