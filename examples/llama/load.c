/* load.c - models out of files: llama2.c's own form, two files, of numbers and of words.
 *
 *     numbers   7 int32: dim, hidden, layers, heads, key/value heads, vocabulary (negative: the
 *               classifier is a table of its own), length; then f32 weights, a kind at a time
 *     words     int32 longest; for each token f32 score, int32 length, bytes */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "load.h"

bool
load_no(Load *f, const char *format, ...)
{
    va_list args;
    int n = snprintf(f->why, f->room, "%s: ", f->path);

    va_start(args, format);
    if (n >= 0 && (size_t)n < f->room)
        vsnprintf(f->why + n, f->room - (size_t)n, format, args);
    va_end(args);
    return false;
}

bool
load_open(Load *f)
{
    long size = -1;
    FILE *in;

    errno = 0;
    in = fopen(f->path, "rb");
    if (in && !fseek(in, 0, SEEK_END) && (size = ftell(in)) >= 0 && !fseek(in, 0, SEEK_SET)
        && (f->p = malloc((size_t)size + 1)) != NULL)
        f->n = fread(f->p, 1, (size_t)size, in);
    if (!in || size < 0 || (f->p && f->n != (size_t)size))
        load_no(f, "%s", errno ? strerror(errno) : "read in part");
    else if (!f->p)
        load_no(f, "no memory for its %ld bytes", size);
    if (in)
        fclose(in);
    return f->p && f->n == (size_t)size;
}

/* The next nbytes of the file; NULL: it ends before, as is said. */
static const void *
load_take(Load *f, size_t nbytes, const char *what)
{
    const char *p = f->p + f->at;

    if (nbytes > f->n - f->at) {
        load_no(f, "%s: %zu bytes asked at %zu, %zu found", what, nbytes, f->at, f->n - f->at);
        return NULL;
    }
    f->at += nbytes;
    return p;
}

/* ---- numbers ---- */

/* `count` matrices, one a layer, into the weights at `to`, which are `apart` bytes apart. */
static bool
load_matrices(Load *f, jot_Ctx *c, const char *what, int64_t count, int64_t out, int64_t in,
              void *to, size_t apart)
{
    for (int64_t i = 0; i < count; i++) {
        jot_Ints shape = out ? JOT_SHAPE(out, in) : JOT_SHAPE(in);
        const void *p = load_take(f, (size_t)((out ? out : 1) * in) * sizeof(float), what);
        jot_Var x;
        if (!p)
            return false;
        x = jot_param(c, JOT_F32, shape, p);
        if (out)
            *(LlamaWeight *)((char *)to + (size_t)i * apart) = (LlamaWeight){.data = x};
        else
            *(jot_Var *)((char *)to + (size_t)i * apart) = x;
    }
    return true;
}

static bool
load_sizes(Load *f, LlamaSizes *of, bool *tied)
{
    const void *p = load_take(f, 7 * sizeof(int32_t), "sizes");
    int32_t v[7];

    if (!p)
        return false;
    memcpy(v, p, sizeof v);
    *tied = v[5] > 0;
    v[5] = v[5] < 0 && v[5] > INT32_MIN ? -v[5] : v[5];
    for (int i = 0; i < 7; i++)
        if (v[i] < 1 || v[i] > 1 << 24)
            return load_no(f, "size %d of 7: 1 to 2^24 asked, %d found", i + 1, (int)v[i]);
    if (v[0] % v[3] || v[0] / v[3] % 2 || v[3] % v[4] || v[2] > LLAMA_LAYERS)
        return load_no(f, "heads that divide the width into even parts and at most %d layers "
                       "asked, width %d, %d heads, %d of keys, %d layers found", LLAMA_LAYERS,
                       (int)v[0], (int)v[3], (int)v[4], (int)v[2]);
    *of = (LlamaSizes){.dim = v[0], .hidden = v[1], .layers = v[2], .heads = v[3],
                       .kv_heads = v[4], .head_dim = v[0] / v[3], .vocab = v[5], .length = v[6],
                       .eps = 1e-5, .base = 10000, .neighbours = true};
    return true;
}

static bool
load_numbers(Load *f, Llama *m)
{
    LlamaSizes *of = &m->of;
    LlamaLayer *l = m->layer;
    bool tied;

    if (!load_sizes(f, of, &tied))
        return false;
    int64_t d = of->dim, h = of->hidden, n = of->layers, kv = of->kv_heads * of->head_dim;
    size_t apart = sizeof *l;
    if (!load_matrices(f, m->c, "tokens", 1, of->vocab, d, &m->table, 0)
        || !load_matrices(f, m->c, "norms of attention", n, 0, d, &l->norm, apart)
        || !load_matrices(f, m->c, "wq", n, d, d, &l->wq, apart)
        || !load_matrices(f, m->c, "wk", n, kv, d, &l->wk, apart)
        || !load_matrices(f, m->c, "wv", n, kv, d, &l->wv, apart)
        || !load_matrices(f, m->c, "wo", n, d, d, &l->wo, apart)
        || !load_matrices(f, m->c, "norms of layers", n, 0, d, &l->ff_norm, apart)
        || !load_matrices(f, m->c, "w1", n, h, d, &l->w1, apart)
        || !load_matrices(f, m->c, "w2", n, d, h, &l->w2, apart)
        || !load_matrices(f, m->c, "w3", n, h, d, &l->w3, apart)
        || !load_matrices(f, m->c, "last norm", 1, 0, d, &m->norm, 0)
        || !load_take(f, (size_t)(of->length * of->head_dim) * sizeof(float), "rotations"))
        return false;
    m->out = m->table;
    return tied || load_matrices(f, m->c, "classifier", 1, of->vocab, d, &m->out, 0);
}

/* ---- words ---- */

static bool
load_words(Load *f, LlamaWords *w, int64_t vocab)
{
    if (!load_take(f, sizeof(int32_t), "longest token"))
        return false;
    *w = (LlamaWords){.n = (int32_t)vocab, .bos = 1, .eos = 2, .space = true,
                      .token = calloc((size_t)vocab, sizeof *w->token)};
    w->bytes = f->p; /* the file's own, from now on */
    f->p = NULL;
    for (int32_t i = 0; w->token && i < w->n; i++) {
        LlamaToken *t = &w->token[i];
        if (f->n - f->at < 8)
            return load_no(f, "token %d of %d: 8 bytes asked at %zu, %zu found", (int)i,
                           (int)w->n, f->at, f->n - f->at);
        memcpy(&t->score, w->bytes + f->at, 4);
        memcpy(&t->nbytes, w->bytes + f->at + 4, 4);
        f->at += 8;
        t->text = w->bytes + f->at;
        if (t->nbytes < 0 || (size_t)t->nbytes > f->n - f->at)
            return load_no(f, "token %d of %d: 0 to %zu bytes asked, %d found", (int)i,
                           (int)w->n, f->n - f->at, (int)t->nbytes);
        f->at += (size_t)t->nbytes;
    }
    return (w->token && llama_words_sort(w)) || load_no(f, "no memory for %d tokens", (int)w->n);
}

/* GGUF's and safetensors' first bytes: "GGUF", and a length behind which a { comes. */
static bool
load_is_io(const Load *f)
{
    unsigned char p[9] = {0};
    FILE *in = fopen(f->path, "rb");
    size_t n = in ? fread(p, 1, sizeof p, in) : 0;

    if (in)
        fclose(in);
    return n == sizeof p && (!memcmp(p, "GGUF", 4) || p[8] == '{');
}

bool
llama_open(Llama *m, LlamaWords *w, jot_Ctx *c, const char *path, const char *words, char *why,
           size_t why_nbytes)
{
    Load f = {.path = path, .why = why, .room = why_nbytes}, g = f;
    bool ok;

    *m = (Llama){.c = c};
    *w = (LlamaWords){0};
    g.path = words ? words : path;
    ok = load_is_io(&f) ? load_io(&f, m) : load_open(&f) && load_numbers(&f, m);
    ok = ok && (load_is_io(&g) ? load_io_words(&g, w, m->of.vocab)
                               : load_open(&g) && load_words(&g, w, m->of.vocab));
    free(f.p);
    free(g.p);
    if (ok && jot_error(c))
        ok = load_no(&f, "%s", jot_message(c));
    if (!ok)
        llama_words_close(w);
    return ok;
}
