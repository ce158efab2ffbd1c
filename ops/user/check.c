/* ops/user/check.c - positions that are looked at (jot_Config.check): an index goes through user
 * code of the library's own, a function of the host that copies it and notes the first element
 * that is outside. Who ran a plan asks afterwards, before anything is handed over.
 *
 *     index -> check -> take            what is read or written, and by which kernels, is the same
 *
 * A note's place stands for an operator and a dtype, so that the graph of a next step finds its
 * plan: host and user pointer are a part of what plans are known by.
 *
 * Read before: ops/user/code.h, code.c. After: plan/plan.c. */
#include "ops/graph.h"
#include "ops/user/code.h"

struct CheckPlace {
    struct CheckPlace *next;
    jot_Ctx *ctx;
    const char *op;
    jot_DType dtype;
};

/* Extents in turn, one for each position of the last dimension. */
static void
check_run(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars)
{
    const struct CheckPlace *place = user;
    jot_Ctx *ctx = place->ctx;
    size_t size = jot_dtype_nbytes(place->dtype);
    int64_t n = (int64_t)scalars[0].f, extents = (int64_t)scalars[1].f, i;

    (void)nbuf;
    memcpy(buf[1], buf[0], (size_t)n * size);
    for (i = 0; i < n && !ctx->outside.place; i++) {
        jot_Scalar v = jot_scalar_read((const char *)buf[0] + (size_t)i * size, place->dtype);
        int64_t extent = (int64_t)scalars[2 + i % extents].f;

        if ((v.i >= 0 || !jot_dtype_signed(place->dtype)) && v.u < (uint64_t)extent)
            continue;
        ctx->outside.place = place;
        ctx->outside.value = v;
        ctx->outside.extent = extent;
        ctx->outside.at = i;
    }
}

static struct CheckPlace *
check_place(jot_Ctx *ctx, const char *op, jot_DType dtype)
{
    struct CheckPlace *p = ctx->checks;

    while (p && (p->dtype != dtype || !jot_str_eq(p->op, op)))
        p = p->next;
    if (p || !(p = jot_arena_new(&ctx->strings, 1, sizeof *p)))
        return p;
    p->ctx = ctx;
    p->op = jot_arena_copy(&ctx->strings, op, jot_str_len(op));
    p->dtype = dtype;
    if (!p->op)
        return NULL;
    p->next = ctx->checks;
    ctx->checks = p;
    return p;
}

jot_Var
jot_check_index(jot_Var index, jot_Ints extents, const char *op)
{
    static const char *const in_name = "index";
    static const char *const names[2 + JOT_MAX_RANK] = {
        "n", "extents", "e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9", "e10", "e11",
        "e12", "e13", "e14", "e15"
    };
    jot_CodeOut out = {.name = "same", .like = "index"};
    jot_CodeScalar scalar[2 + JOT_MAX_RANK];
    jot_Code code = {.name = op, .inputs = 1, .in = &index, .in_names = &in_name, .outputs = 1,
                     .out = &out, .scalar = scalar, .host = check_run};
    jot_Ctx *ctx = index.ctx;
    jot_Var checked;
    int k;

    if (!ctx || !ctx->config.check || !jot_check(ctx, index, op, "index") || !jot_nelem(index) ||
        jot_dtype_class(jot_dtype(index)) != CLASS_INT)
        return index;
    if (extents.n < 1 || extents.n > JOT_MAX_RANK || !extents.v ||
        (extents.n > 1 && jot_extent(index, -1) != extents.n))
        return jot_raise(ctx, JOT_ESHAPE, "%s: %d extents for the last dimension of an index", op,
                         extents.n);
    code.user = check_place(ctx, op, jot_dtype(index));
    if (!code.user)
        return jot_fail_memory(ctx, op), JOT_POISON(ctx);
    for (k = 0; k < 2 + extents.n; k++) {
        scalar[k].name = names[k];
        scalar[k].value = k == 0 ? (double)jot_nelem(index) : k == 1 ? extents.n
                                                                     : (double)extents.v[k - 2];
    }
    code.scalars = 2 + extents.n;
    return jot_code(ctx, &code, &checked) ? checked : JOT_POISON(ctx);
}

JOT_FN bool
jot_check_passed(jot_Ctx *ctx)
{
    const struct CheckPlace *p = ctx->outside.place;
    char found[32];
    Text t = {NULL, found, 0, sizeof found};

    if (!p)
        return true;
    ctx->outside.place = NULL;
    if (jot_dtype_signed(p->dtype))
        jot_text_f(&t, "%lld", (long long)ctx->outside.value.i);
    else
        jot_text_f(&t, "%llu", (unsigned long long)ctx->outside.value.u);
    return jot_fail(ctx, JOT_ERANGE, "%s: index: 0..%lld asked, %s found (element %lld)", p->op,
                    (long long)ctx->outside.extent - 1, found, (long long)ctx->outside.at);
}
