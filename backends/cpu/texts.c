/* backends/cpu/texts.c - texts of kernels that a plan keeps, in the cache of what is compiled: an
 * entry whose key is that of the compiler's objects, the file of the library's own code, and what
 * the plan says that its texts depend on.
 *
 * The code that prints texts is in no key of theirs, and a text is nothing that the compiler's
 * answer could show to be stale. So an entry is one of this very file: path, number, size, times of
 * change. Where the system does not tell, nothing is kept.
 *
 * Read before: backends/cpu/cc.h, plan/tier/kept.c. After: backends/cpu/cache.c. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include "backends/cpu/cc.h"
#ifndef JOT_NO_HOST
#include <string.h>

/* The file as it is at the first plan: what takes its place later is not what runs. */
static bool
texts_self(jot_Ctx *ctx, CcState *cc)
{
    char self[1200];

    cc->self.mem = &ctx->mem;
    if (!cc->self.n && jot_library_self(self, sizeof self))
        jot_text_put(&cc->self, self, strlen(self)); /* all or nothing */
    return cc->self.n > 0;
}

/* False: the compiler was not asked for its version yet. */
static bool
texts_key(jot_Ctx *ctx, CcState *cc, const Text *plan, Text *key)
{
    char why[CC_WHY];

    key->mem = &ctx->mem;
    if (!cc->key.n && !jot_cc_identify(ctx, cc, false, why, sizeof why))
        return false;
    jot_text_f(key, "texts\n%s\n%s\n", cc->key.s, cc->self.s);
    jot_text_put(key, plan->s, plan->n);
    return !ctx->mem.failed; /* else a part of it */
}

static Bytes
texts_bytes(const Text *t)
{
    Bytes bytes;

    bytes.p = t->s;
    bytes.n = t->n;
    return bytes;
}

JOT_FN bool
jot_cc_kept(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, Text *out,
            size_t *at)
{
    CcState *cc = backend->state;
    Text all = {0};
    Bytes entry, found;

    if (cc->cache.fd < 0 || !texts_self(ctx, cc))
        return false;
    if (texts_key(ctx, cc, key, &all)
        && jot_cache_find(&cc->cache, ctx, texts_bytes(&all), texts_bytes(of), &entry, &found)) {
        out->s = entry.p;
        out->n = entry.n;
        out->cap = entry.n + 1;
        *at = (size_t)(found.p - entry.p);
    }
    jot_text_free(&all);
    return true;
}

JOT_FN bool
jot_cc_keep(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, const Text *what)
{
    CcState *cc = backend->state;
    Text all = {0};
    bool ok = texts_key(ctx, cc, key, &all);

    if (ok)
        jot_cache_keep(&cc->cache, ctx, texts_bytes(&all), texts_bytes(of), texts_bytes(what));
    jot_text_free(&all);
    return ok;
}

#endif
