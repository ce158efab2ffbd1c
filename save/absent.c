/* save/absent.c - a build without files of tensors (JOT_NO_IO): who saves or loads a graph is told.
 *
 * Read before: core.h. After: save/file.c. */
#include "save/save.h"

#if defined JOT_NO_IO && !defined JOT_NO_HOST
bool
jot_save(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const char *path)
{
    (void)inputs, (void)outputs, (void)path;
    return ctx && jot_fail(ctx, JOT_EUSE, "save: this build has none (JOT_NO_IO)");
}

bool
jot_load(jot_Ctx *ctx, const char *path, unsigned how, jot_Saved *saved)
{
    (void)path, (void)how;
    if (saved)
        memset(saved, 0, sizeof *saved);
    return ctx && jot_fail(ctx, JOT_EUSE, "load: this build has none (JOT_NO_IO)");
}

bool
jot_load_memory(jot_Ctx *ctx, const char *name, const void *bytes, size_t nbytes, unsigned how,
                jot_Saved *saved)
{
    (void)bytes, (void)nbytes;
    return jot_load(ctx, name, how, saved);
}

bool
jot_saved_write(const jot_Saved *saved, const char *path)
{
    (void)saved, (void)path;
    return false;
}

void
jot_saved_free(jot_Saved *saved)
{
    (void)saved;
}
#endif
