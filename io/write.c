/* io/write.c - a file of tensors: evaluate -> format's fits -> format's write, as io/out.c writes.
 *
 * Read before: io/out.c. After: io/safetensors.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"

/* ---- what is to be written ---- */

static int
by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether no two of these names are the same; what they are of. */
static bool
write_distinct_of(IoOut *o, const char *what, const char **name, int n)
{
    int k = 1;

    qsort(name, (size_t)n, sizeof *name, by_text);
    while (k < n && by_text(&name[k - 1], &name[k]))
        k++;
    if (k < n)
        jot_raise(o->ctx, JOT_EUSE, "%s: %s %s is there twice", o->path, what, name[k]);
    return k >= n;
}

static bool
write_distinct(IoOut *o)
{
    int n = o->n, metas = o->how->metas;
    const char **name = malloc(((size_t)n + (size_t)metas + 1) * sizeof *name);

    if (!name) {
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for %d tensors", o->path, n);
        return false;
    }
    for (int k = 0; k < n; k++)
        name[k] = o->tensor[k].name;
    for (int k = 0; k < metas; k++)
        name[n + k] = o->how->meta[k].key;
    bool fine = write_distinct_of(o, "tensor", name, n)
             && write_distinct_of(o, "metadata", name + n, metas);
    free(name);
    return fine;
}

/* The tensors' elements, all evaluated at once. */
static bool
write_evaluate(IoOut *o)
{
    size_t n = (size_t)o->n + 1;
    jot_Var *v = malloc(n * sizeof *v);
    bool fine = v && (o->data = calloc(n, sizeof *o->data));

    if (!fine)
        jot_raise(o->ctx, JOT_EMEM, "%s: no memory for %d tensors", o->path, o->n);
    for (int k = 0; fine && k < o->n; k++) {
        v[k] = o->tensor[k].var;
        fine = jot_check(o->ctx, v[k], "file_write", o->tensor[k].name);
    }
    fine = fine && jot_run(o->ctx, jot_vars(o->n, v));
    for (int k = 0; fine && k < o->n; k++)
        fine = (o->data[k] = jot_data(v[k])) != NULL || !jot_nelem(v[k]);
    free(v);
    return fine;
}

bool
jot_file_write(jot_Ctx *ctx, const char *path, const jot_Named *tensors, int n,
               const jot_Writing *how)
{
    static const jot_Writing none;
    const jot_Writing *w = how ? how : &none;
    const IoFormat *format = path ? io_format(w->format, w->format ? NULL : path) : NULL;

    bool asked = path && n >= 0 && (!n || tensors) && w->metas >= 0 && (!w->metas || w->meta);

    if (!ctx || !asked || !format || !format->write) {
        jot_raise(ctx, JOT_EUSE, "file_write: %s: %s", path ? path : "(no name)",
                  asked ? "format safetensors, npy, npz or gguf asked"
                  : "a path, tensors and as many metadata as said asked");
        return false;
    }
    IoOut *o = calloc(1, sizeof *o);
    if (!o) {
        jot_raise(ctx, JOT_EMEM, "%s: no memory to write it", path);
        return false;
    }
    o->ctx = ctx, o->path = path, o->tensor = tensors, o->n = n, o->how = w;
    bool fine = write_distinct(o) && write_evaluate(o) && format->fits(o)
             && io_write(o, format->write);
    free(o->data);
    free(o);
    return fine;
}
#endif
