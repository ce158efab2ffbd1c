/* io/take.c - tensors of a file as variables: where they lie, or copied into rows of elements of
 * this machine.
 *
 *     plain, aligned        jot_array_borrow: the file stays mapped as long as the variable is
 *     plain, or bools       jot_array copies them
 *     blocks                unpacked as f32
 *     deflated              inflated whole, its header left out
 *     strided, swapped      element by element
 *
 * Read before: io/file.c. After: io/blocks.c. */
#ifndef JOT_NO_HOST
#include "io/parts.h"

enum { TAKE_TOLD = 1024 };

/* The file, if there is one that is whole; NULL: told. */
static IoFile *
take_file(jot_Ctx *ctx, jot_File *file)
{
    if (file && !file->status)
        return io_of(file);
    jot_raise(ctx, file ? file->status : JOT_EMEM, "%s", file ? file->message :
              "no memory for a file");
    return NULL;
}

/* Its tensor k; NULL: told. */
static const jot_Stored *
take_tensor(jot_Ctx *ctx, jot_File *file, int64_t k)
{
    IoFile *f = take_file(ctx, file);

    if (f && k >= 0 && k < f->is.count)
        return &f->tensor[k];
    if (f)
        jot_raise(ctx, JOT_ERANGE, "%s: tensor %lld asked, %lld found%s", f->name, (long long)k,
                  (long long)f->is.count, k == -1 ? " (none of that name)" : "");
    return NULL;
}

static size_t
take_nbytes(const jot_Stored *t)
{
    size_t n = jot_dtype_nbytes(t->dtype);

    for (int d = 0; d < t->rank; d++)
        n *= (size_t)t->shape[d];
    return n;
}

static void
take_blocks(const IoPacking *packing, float *to, const uint8_t *from, size_t blocks)
{
    for (size_t k = 0; k < blocks; k++)
        packing->unpack(to + k * (size_t)packing->block, from + k * (size_t)packing->nbytes);
}

/* Elements of `each` bytes, dimension by dimension; returns where the next one goes. */
static uint8_t *
take_strided(uint8_t *to, const uint8_t *from, const jot_Stored *t, const int64_t *stride, int d)
{
    size_t each = (size_t)t->block_nbytes;

    if (d == t->rank) {
        memcpy(to, from, each);
        return to + each;
    }
    for (int64_t k = 0; k < t->shape[d]; k++)
        to = take_strided(to, from + (size_t)k * (size_t)stride[d] * each, t, stride, d + 1);
    return to;
}

static void
take_swap(uint8_t *p, size_t n, size_t each)
{
    for (size_t at = 0; at < n; at += each)
        for (size_t k = 0; k < each / 2; k++) {
            uint8_t kept = p[at + k];
            p[at + k] = p[at + each - 1 - k];
            p[at + each - 1 - k] = kept;
        }
}

/* What a deflated one becomes, its header and all; NULL: told. */
static uint8_t *
take_inflated(jot_Ctx *ctx, const IoFile *f, const jot_Stored *t, const IoLayout *l)
{
    uint8_t *p = malloc(l->inflated ? l->inflated : 1);

    if (!p)
        jot_raise(ctx, JOT_EMEM, "%s: tensor %s: no memory for %zu bytes", f->name, t->name,
                  l->inflated);
    else if (!io_inflate(ctx, f, t, l, p)) {
        free(p);
        p = NULL;
    }
    return p;
}

/* nbytes: of its elements */
static bool
take_to(jot_Ctx *ctx, const IoFile *f, const jot_Stored *t, uint8_t *to, size_t nbytes)
{
    const IoLayout *l = &f->layout[t - f->tensor];
    const uint8_t *from = f->bytes.p + t->offset;
    uint8_t *inflated = NULL;

    if (!nbytes)
        return true;
    if (l->deflated && !(inflated = take_inflated(ctx, f, t, l)))
        return false;
    if (inflated)
        from = inflated + l->skip;
    if (t->block > 1)
        take_blocks(io_packing(t->type), (float *)(void *)to, from,
                    t->nbytes / (size_t)t->block_nbytes);
    else if (l->strided)
        take_strided(to, from, t, l->stride, 0);
    else
        memcpy(to, from, nbytes);
    if (l->swapped)
        take_swap(to, nbytes, (size_t)t->block_nbytes);
    free(inflated);
    return true;
}

static bool
take_can(jot_Ctx *ctx, const IoFile *f, const jot_Stored *t)
{
    if (t->dtype == JOT_DTYPES)
        jot_raise(ctx, JOT_EDTYPE, "%s: tensor %s is of type %s, which no dtype is", f->name,
                  t->name, t->type);
    return t->dtype != JOT_DTYPES;
}

bool
jot_file_copy(jot_Ctx *ctx, jot_File *file, int64_t k, void *to, size_t nbytes)
{
    const jot_Stored *t = take_tensor(ctx, file, k);

    if (!t || !take_can(ctx, io_of(file), t))
        return false;
    if (nbytes == take_nbytes(t))
        return take_to(ctx, io_of(file), t, to, nbytes);
    jot_raise(ctx, JOT_ESHAPE, "%s: tensor %s has %zu bytes, room for %zu found", file->name,
              t->name, take_nbytes(t), nbytes);
    return false;
}

static void
take_release(void *user, const void *data)
{
    (void)data;
    io_let_go(user);
}

static void
take_free(void *user, const void *data)
{
    (void)user;
    free((void *)(uintptr_t)data);
}

/* data: in f, which stays as long as the variable does */
static jot_Var
take_borrow(jot_Ctx *ctx, IoFile *f, jot_DType dtype, jot_Ints shape, const void *data)
{
    f->users++;
    jot_Var v = jot_array_borrow(ctx, dtype, shape, data, take_release, f);
    if (!jot_ok(v))
        io_let_go(f);
    return v;
}

static bool
take_aligned(const jot_Stored *t)
{
    return t->data && (uintptr_t)t->data % jot_dtype_nbytes(t->dtype) == 0;
}

jot_Var
jot_file_var(jot_Ctx *ctx, jot_File *file, int64_t k)
{
    const jot_Stored *t = take_tensor(ctx, file, k);
    IoFile *f = io_of(file);

    if (!t || !take_can(ctx, f, t))
        return jot_raise(NULL, JOT_EIO, "");
    size_t nbytes = take_nbytes(t);
    jot_Ints shape = jot_ints(t->rank, t->shape);
    if (t->block == 1 && take_aligned(t) && t->dtype != JOT_BOOL && nbytes && !f->copies)
        return take_borrow(ctx, f, t->dtype, shape, t->data);
    if (t->block == 1 && t->data)
        return jot_array(ctx, t->dtype, shape, t->data);
    uint8_t *p = malloc(nbytes ? nbytes : 1);
    if (!p)
        return jot_raise(ctx, JOT_EMEM, "%s: tensor %s: no memory for %zu bytes", f->name, t->name,
                         nbytes);
    jot_Var v = jot_raise(NULL, JOT_EIO, "");
    bool fine = take_to(ctx, f, t, p, nbytes), lies = t->dtype != JOT_BOOL && nbytes;
    if (fine)
        v = lies ? jot_array_borrow(ctx, t->dtype, shape, p, take_free, NULL)
                 : jot_array(ctx, t->dtype, shape, p);
    if (!lies || !jot_ok(v))
        free(p);
    return v;
}

jot_Var
jot_file_blocks(jot_Ctx *ctx, jot_File *file, int64_t k)
{
    const jot_Stored *t = take_tensor(ctx, file, k);
    int64_t shape[JOT_MAX_RANK];

    if (!t)
        return jot_raise(NULL, JOT_EIO, "");
    if (!t->data || t->rank == JOT_MAX_RANK || !t->block_nbytes)
        return jot_raise(ctx, JOT_EUSE, "%s: tensor %s of type %s does not lie there in blocks",
                         file->name, t->name, t->type);
    memcpy(shape, t->shape, sizeof shape);
    if (t->rank)
        shape[t->rank - 1] /= t->block;
    shape[t->rank] = t->block_nbytes;
    jot_Ints s = jot_ints(t->rank + 1, shape);
    return t->nbytes ? take_borrow(ctx, io_of(file), JOT_U8, s, t->data)
                     : jot_array(ctx, JOT_U8, s, NULL);
}

/* ---- lists ---- */

static bool
take_name(jot_Ctx *ctx, const jot_File *file, jot_Named *out, const char *name)
{
    if (strlen(name) >= sizeof out->name) {
        jot_raise(ctx, JOT_ERANGE, "%s: tensor %s: a name of at most %d bytes asked, %d found",
                  file->name, name, (int)sizeof out->name - 1, (int)strlen(name));
        return false;
    }
    strcpy(out->name, name);
    return true;
}

int
jot_file_named(jot_Ctx *ctx, jot_File *file, jot_Named *out, int most)
{
    IoFile *f = take_file(ctx, file);

    if (!f || f->is.count > INT32_MAX)
        return 0;
    for (int k = 0; out && k < most && k < f->is.count; k++) {
        if (!take_name(ctx, file, &out[k], f->tensor[k].name))
            return 0;
        out[k].var = jot_file_var(ctx, file, k);
        if (!jot_ok(out[k].var))
            return 0;
    }
    return (int)f->is.count;
}

static bool
take_float(jot_DType d)
{
    return d >= JOT_F16 && d <= JOT_F64;
}

/* PyTorch counts batches beside each norm; nothing here does. */
static bool
take_passed(const char *name)
{
    static const char end[] = "num_batches_tracked";
    size_t n = strlen(name);

    return n >= sizeof end - 1 && !strcmp(name + n - (sizeof end - 1), end);
}

/* Those of the file whose names begin with prefix, as the net has them, to out. Returns how many;
 * -1: told. */
static int
take_for_net(jot_Net net, jot_Trainer trainer, jot_File *file, const char *prefix, jot_Named *out)
{
    jot_Ctx *ctx = net.state.ctx;
    size_t begin = strlen(prefix);
    int n = 0;

    for (int64_t k = 0; k < file->count; k++) {
        const char *name = file->tensor[k].name;
        if (strncmp(name, prefix, begin) || (!trainer.state.ctx && take_passed(name + begin)))
            continue;
        if (!take_name(ctx, file, &out[n], name + begin))
            return -1;
        jot_Var v = jot_file_var(ctx, file, k), is = jot_net_find(net, out[n].name);
        if (jot_ok(v) && is.ctx && jot_ok(is) && take_float(jot_dtype(is))
            && take_float(jot_dtype(v)))
            v = jot_cast(v, jot_dtype(is));
        if (!jot_ok(v))
            return -1;
        out[n++].var = v;
    }
    return n;
}

/* What was raised, and of which file. */
static void
take_tell(jot_Ctx *ctx, const char *name)
{
    jot_Status status = jot_error(ctx);
    char why[TAKE_TOLD];

    snprintf(why, sizeof why, "%s", jot_message(ctx));
    jot_clear(ctx);
    jot_raise(ctx, status, "%s: %s", name, why);
}

bool
jot_file_restore(jot_Net net, jot_Trainer trainer, jot_File *file, const char *prefix)
{
    jot_Ctx *ctx = net.state.ctx;
    IoFile *f = take_file(ctx, file);

    if (!f || !ctx)
        return false;
    jot_Named *named = malloc(((size_t)f->is.count + 1) * sizeof *named);
    if (!named) {
        jot_raise(ctx, JOT_EMEM, "%s: no memory for %lld tensors", f->name,
                  (long long)f->is.count);
        return false;
    }
    bool before = jot_error(ctx);
    jot_push(ctx);
    int n = take_for_net(net, trainer, file, prefix ? prefix : "", named);
    bool fine = n >= 0 && jot_net_restore(net, trainer, named, n);
    jot_pop(ctx);
    free(named);
    if (n >= 0 && !fine && !before)
        take_tell(ctx, f->name);
    return fine;
}
#endif
