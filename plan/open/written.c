/* plan/open/written.c - a function with open extents as one C file: the extents are its arguments.
 *
 *     NAME(arena, n0, in0, .., out0, ..)     out of bounds: 1 + which, nothing is done
 *       n0 >= 2:  NAME_p0                    inputs laid into the arena as large as at most, and
 *                                            the extents; NAME_p0m; results taken from there
 *       n0 == 1:  NAME_p1                    kernels of one size
 *
 * Ranges that calls of a function would try one by one are tried at once; what has no plan with
 * others is a function of one size, if there are few. Tables and kernels are there once.
 *
 * Read before: plan/function/export.h, plan/open/range.c. After: backends/files/export.c. */
#include "plan/function/export.h"
#include "plan/open/masked.h"

enum { EXPORT_SIZES = 16 };   /* functions of one size, at most */

/* A function of the file, for extents within bounds. */
typedef struct {
    Export e;
    char name[80];
    Func *own;                /* of one size; NULL: range->masked */
    const Open *range;
    const OpenMasked *masked;
    size_t at;                /* in the arena: the variables of the most extents */
    char most_name[80];
    int64_t least[OPEN_MOST], most[OPEN_MOST];
} OpenPiece;

typedef struct {
    Open *root;
    const char *name;
    Vec(OpenPiece) pieces;
    int sizes;
} OpenFile;

/* ---- the pieces ---------------------------------------------------------------------------- */

static bool
pieces_add(OpenFile *x, const Open *range, Func *own, const int64_t *least, const int64_t *most)
{
    OpenPiece *p;

    if (!jot_vec_reserve(&x->root->ctx->mem, x->pieces, 1)) {
        jot_func_end(own);
        return jot_fail_memory(x->root->ctx, "export");
    }
    p = &x->pieces.v[x->pieces.n++];
    memset(p, 0, sizeof *p);
    p->own = own;
    p->range = range;
    p->masked = range ? range->masked : NULL;
    memcpy(p->least, least, sizeof p->least);
    memcpy(p->most, most, sizeof p->most);
    return true;
}

/* Each size of the space by itself. */
static bool
pieces_sizes(OpenFile *x, const OpenSpace *s, const char *why)
{
    static const FuncFor of = {.op = "export", .dialect = "c"};
    int64_t at[OPEN_MOST] = {0};
    char bounds[200];
    Text t = {NULL, bounds, 0, sizeof bounds};
    Func *f;
    int d;

    memcpy(at, s->least, sizeof at);
    jot_open_between(x->root, s->least, s->most, &t);
    for (d = 0; d < s->n;) {
        if (++x->sizes > EXPORT_SIZES)
            return jot_fail(x->root->ctx, JOT_EUSE, "export: each size of %s has a plan of its "
                            "own, and a file has no more than %d such%s%s", bounds, EXPORT_SIZES,
                            *why ? ": " : "", why);
        if (!(f = jot_open_build(x->root, at, &of)) || !pieces_add(x, NULL, f, at, at))
            return false;
        for (d = 0; d < s->n && (at[d] += s->step[d]) > s->most[d]; d++)
            at[d] = s->least[d];
    }
    return true;
}

static bool pieces_of(OpenFile *x, Open *o, int depth);

/* What is within a range, there where the extents are. */
static bool
pieces_within(OpenFile *x, Open *o, const int64_t *extent, int depth)
{
    Open **at, *range;
    OpenSpace s;

    if (!jot_open_range(x->root, extent, &range))
        return false;
    jot_open_within(o, extent, &at, &s);
    return at && *at && depth < OPEN_RANGES ? pieces_of(x, *at, depth + 1)
                                            : pieces_sizes(x, &s, o->why);
}

static bool
pieces_of(OpenFile *x, Open *o, int depth)
{
    const OpenSpace *s = &o->space;
    int64_t at[OPEN_MOST];
    int d, k;

    if (!jot_open_try(o, x->root))
        return false;
    if (!o->masked)
        return o->whole ? pieces_sizes(x, s, o->why)
                        : pieces_within(x, o, s->least, depth)
                       && pieces_within(x, o, s->most, depth);
    if (!pieces_add(x, o, NULL, o->low, s->most))
        return false;
    for (d = 0; d < s->n; d++) {
        for (k = 0; k < s->n; k++)
            at[k] = k < d ? o->low[k] : s->least[k];
        if (o->low[d] > s->least[d] && !pieces_within(x, o, at, depth))
            return false;
    }
    return true;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* c*u0*... + ..., of binomials. */
static void
file_polynomial(Text *t, const OpenSpace *s, const OpenFit *fit)
{
    int i, d, rest, terms = 0;

    for (i = 0; i < s->grid; i++) {
        if (!fit->term[i])
            continue;
        jot_text_f(t, "%s%lldll", terms++ ? " + " : "", (long long)fit->term[i]);
        for (rest = i, d = s->n; d-- > 0; rest /= s->points[d])
            if (rest % s->points[d] == 1)
                jot_text_f(t, "*u%d", d);
            else if (rest % s->points[d] == 2)
                jot_text_f(t, "*(u%d*(u%d - 1)/2)", d, d);
    }
    if (!terms)
        jot_text_f(t, "0");
}

static void
file_literal(Export *e, const OpenSpace *s, const OpenLiteral *how)
{
    char over[40];

    if (how->ratio) {
        jot_text_float(over, how->over, false);
        jot_text_f(&e->t, "%s / (double)", over);
    }
    jot_text_f(&e->t, how->ratio ? "(" : "");
    file_polynomial(&e->t, s, &how->fit);
    jot_text_f(&e->t, how->ratio ? ")" : "");
}

/* ---- the file ------------------------------------------------------------------------------- */

static void
file_arguments(const OpenFile *x, Export *e, bool types)
{
    const Func *f = x->pieces.v[0].e.f;
    int d, i;

    for (d = 0; d < x->root->space.n; d++)
        jot_text_f(&e->t, ", %sn%d", types ? "long long " : "", d);
    for (i = 0; i < x->root->nin; i++) {
        jot_text_f(&e->t, types ? ", const %s *" : ", ", jot_export_types[f->input[i].shape.dtype]);
        jot_text_f(&e->t, "in%d", i);
    }
    for (i = 0; i < x->root->nout; i++) {
        jot_text_f(&e->t, types ? ", %s *" : ", ", jot_export_types[f->output[i].shape.dtype]);
        jot_text_f(&e->t, "out%d", i);
    }
    jot_text_f(&e->t, ")");
}

static void
file_shape(const OpenFile *x, Export *e, const char *what, uint32_t k, const FuncShape *shape)
{
    const OpenPiece *p = &x->pieces.v[0];
    const OpenMasked *m = p->masked;
    const MaskedVar *v = !m ? NULL : what[0] == 'i' ? &m->in[k] : &m->out[k];
    int r;

    jot_text_f(&e->t, " *   %s%u  %s (", what, k, jot_dtype_name(shape->dtype));
    for (r = 0; r < shape->rank; r++) {
        jot_text_f(&e->t, "%s", r ? ", " : "");
        if (v && v->size[r])
            file_polynomial(&e->t, &p->range->space, &m->size[v->size[r] - 1]);
        else
            jot_text_f(&e->t, "%lld", (long long)shape->ext[r]);
    }
    jot_text_f(&e->t, ")\n");
}

static void
file_head(const OpenFile *x, Export *e, size_t arena)
{
    const OpenSpace *s = &x->root->space;
    const Open *range = x->pieces.v[0].range;
    int d, i;

    jot_text_f(&e->t, "/* %s - C99 made by jot; it needs no library.\n *\n", x->name);
    for (d = 0; d < s->n; d++) {
        jot_text_f(&e->t, " *   n%d   %s, %lld to %lld in steps of %lld", d, x->root->name[d],
                   (long long)s->least[d], (long long)s->most[d], (long long)s->step[d]);
        if (range)
            jot_text_f(&e->t, "; u%d = (n%d - %lld)/%lld", d, d, (long long)range->space.base[d],
                       (long long)range->space.step[d]);
        jot_text_f(&e->t, "\n");
    }
    for (i = 0; i < x->root->nin; i++)
        file_shape(x, e, "in", (uint32_t)i, &e->f->input[i].shape);
    for (i = 0; i < x->root->nout; i++)
        file_shape(x, e, "out", (uint32_t)i, &e->f->output[i].shape);
    jot_text_f(&e->t, " *\n * Elements are row-major; outputs do not overlap inputs. arena: "
               "%s_ARENA bytes to work in\n * (%s_arena has the number), enough for all extents, "
               "aligned as a double is; what it holds\n * between two calls does not matter. "
               "Returns 0, or 1 + k where nk is out of its bounds:\n * then nothing is read or "
               "written. */\n", x->name, x->name);
    jot_text_f(&e->t, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
               "enum { %s_ARENA = %zu };\nextern const unsigned long %s_arena;\n"
               "extern int %s(void *arena", x->name, arena, x->name, x->name);
    file_arguments(x, e, true);
    jot_text_f(&e->t, ";\n#ifdef __cplusplus\n}\n#endif\n\n#ifndef %s_HEADER\n", x->name);
}

/* The function's head, and its extents as steps from the base. */
static void
file_begins(const OpenFile *x, OpenPiece *p)
{
    const OpenSpace *s = p->range ? &p->range->space : NULL;
    Export *e = &p->e;
    int d;

    jot_text_f(&e->t, "static void\n%s(void *arena", p->name);
    file_arguments(x, e, true);
    jot_text_f(&e->t, "\n{\n");
    for (d = 0; s && d < s->n; d++)
        jot_text_f(&e->t, "    const long long u%d = (n%d - %lld)/%lld;\n", d, d,
                   (long long)s->base[d], (long long)s->step[d]);
    for (d = 0; d < x->root->space.n; d++)
        jot_text_f(&e->t, "    (void)%s%d;\n", s ? "u" : "n", d);
}

static size_t
file_room(size_t nbytes)
{
    return (nbytes + 63) / 64 * 64;
}

/* Between the caller's elements and those of the most extents, which are 0 beyond the caller's. */
static void
file_laid(const OpenFile *x, Export *e)
{
    jot_text_f(&e->t, "static void\n%s_lay(unsigned char *most, unsigned char *own, int rank, "
               "const jot_i64 *all,\n    const jot_i64 *ext, jot_i64 size, jot_i64 nbytes, int in)"
               "\n{\n    jot_i64 at[%d] = {0}, run = rank ? ext[rank - 1]*size : size, from, i;\n"
               "    int d = nbytes ? 0 : -1;\n\n    for (i = 0; in && i < nbytes; i++)\n"
               "        most[i] = 0;\n    for (i = 0; i < rank; i++)\n"
               "        d = ext[i] ? d : -1;\n    while (d >= 0) {\n"
               "        for (from = d = 0; d < rank; d++)"
               "\n            from = from*all[d] + (d + 1 < rank ? at[d] : 0);\n"
               "        for (i = 0; i < run; i++)\n            if (in)\n"
               "                most[from*size + i] = own[i];\n            else\n"
               "                own[i] = most[from*size + i];\n        own += run;\n"
               "        for (d = rank - 1; d-- > 0 && ++at[d] == ext[d];)\n            at[d] = 0;\n"
               "    }\n}\n\n", x->name, JOT_MAX_RANK + 1);
}

static void
file_lay(const OpenFile *x, OpenPiece *p, const char *what, int k, const MaskedVar *v, size_t at)
{
    Export *e = &p->e;
    int d;

    jot_text_f(&e->t, "    {\n    const jot_i64 all[] = {");
    for (d = 0; d < v->shape.rank; d++)
        jot_text_f(&e->t, "%lldll, ", (long long)v->shape.ext[d]);
    jot_text_f(&e->t, "1}, ext[] = {");
    for (d = 0; d < v->shape.rank; d++) {
        if (v->size[d])
            file_polynomial(&e->t, &p->range->space, &p->masked->size[v->size[d] - 1]);
        else
            jot_text_f(&e->t, "%lldll", (long long)v->shape.ext[d]);
        jot_text_f(&e->t, ", ");
    }
    jot_text_f(&e->t, "1};\n\n    %s_lay(a + %zu, (unsigned char *)(void *)%s%d, %d, all, ext, "
               "%zu, %zu, %d);\n    }\n", x->name, at, what, k, v->shape.rank,
               jot_dtype_nbytes(v->shape.dtype), v->shape.nbytes, what[0] == 'i');
}

/* Inputs to the arena, what follows the extents, the function for the most, and outputs back. */
static void
file_masked(const OpenFile *x, OpenPiece *p)
{
    const OpenMasked *m = p->masked;
    size_t sizes = p->at, reals = sizes + MASKED_SIZES * 8, at = reals + MASKED_SIZES * 4, var;
    Export *e = &p->e;
    int i;

    jot_text_f(&e->t, "static void\n%s(void *arena", e->name);
    jot_export_parameters(e);
    jot_text_f(&e->t, "\n{\n");
    jot_export_body(e);
    jot_text_f(&e->t, "\n");
    file_begins(x, p);
    jot_text_f(&e->t, "    unsigned char *a = arena;\n    jot_i64 *sizes = (jot_i64 *)(void *)(a + "
               "%zu);\n    float *reals = (float *)(void *)(a + %zu);\n\n    (void)reals;\n", sizes,
               reals);
    for (i = 0; i < m->nsizes; i++) {
        jot_text_f(&e->t, "    sizes[%d] = ", i);
        file_polynomial(&e->t, &p->range->space, &m->size[i]);
        jot_text_f(&e->t, ";\n");
    }
    for (i = 0; i < m->nreals; i++) {
        jot_text_f(&e->t, "    reals[%d] = (float)(", i);
        file_literal(e, &p->range->space, &m->real[i]);
        jot_text_f(&e->t, ");\n");
    }
    for (i = 0, var = at; i < m->nin; var += file_room(m->in[i++].shape.nbytes))
        file_lay(x, p, "in", i, &m->in[i], var);
    jot_text_f(&e->t, "    %s(arena", e->name);
    for (i = 0, var = at; i < m->nin; var += file_room(m->in[i++].shape.nbytes))
        jot_text_f(&e->t, ", (const %s *)(void *)(a + %zu)",
                   jot_export_types[m->in[i].shape.dtype], var);
    jot_text_f(&e->t, ", sizes%s", m->nreals ? ", reals" : "");
    for (i = 0, at = var; i < m->nout; var += file_room(m->out[i++].shape.nbytes))
        jot_text_f(&e->t, ", (%s *)(void *)(a + %zu)", jot_export_types[m->out[i].shape.dtype],
                   var);
    jot_text_f(&e->t, ");\n");
    for (i = 0, var = at; i < m->nout; var += file_room(m->out[i++].shape.nbytes))
        file_lay(x, p, "out", i, &m->out[i], var);
    jot_text_f(&e->t, "}\n");
}

static void
file_piece(const OpenFile *x, OpenPiece *p)
{
    Export *e = &p->e;

    jot_export_data(e);
    if (p->masked) {
        file_masked(x, p);
    } else {
        file_begins(x, p);
        jot_export_body(e);
    }
    jot_export_flush(e, 0);
}

/* Bounds, then the piece whose they are. */
static void
file_dispatch(const OpenFile *x, Export *e)
{
    const OpenSpace *s = &x->root->space;
    uint32_t i;
    int d;

    jot_text_f(&e->t, "\nconst unsigned long %s_arena = %s_ARENA;\n\nint\n%s(void *arena", x->name,
               x->name, x->name);
    file_arguments(x, e, true);
    jot_text_f(&e->t, "\n{\n");
    for (d = 0; d < s->n; d++)
        jot_text_f(&e->t, "    if (n%d < %lld || n%d > %lld || (n%d - %lld) %% %lld)\n"
                   "        return %d;\n", d, (long long)s->least[d], d, (long long)s->most[d], d,
                   (long long)s->least[d], (long long)s->step[d], d + 1);
    for (i = 0; i < x->pieces.n; i++) {
        const OpenPiece *p = &x->pieces.v[i];

        jot_text_f(&e->t, "    %sif (", i ? "else " : "");
        for (d = 0; d < s->n; d++)
            jot_text_f(&e->t, "%sn%d >= %lld && n%d <= %lld", d ? " && " : "", d,
                       (long long)p->least[d], d, (long long)p->most[d]);
        jot_text_f(&e->t, ")\n        %s(arena", p->name);
        file_arguments(x, e, false);
        jot_text_f(&e->t, ";\n");
    }
    jot_text_f(&e->t, "    return 0;\n}\n#endif\n");
    jot_export_flush(e, 0);
}

/* Of a masked function: sizes, literals, inputs and outputs as large as at most. */
static size_t
file_most(const OpenMasked *m)
{
    size_t nbytes = MASKED_SIZES * (8 + 4);
    int i;

    for (i = 0; i < m->nin; i++)
        nbytes += file_room(m->in[i].shape.nbytes);
    for (i = 0; i < m->nout; i++)
        nbytes += file_room(m->out[i].shape.nbytes);
    return nbytes;
}

static bool
file_begin(OpenFile *x, size_t *arena, jot_WriteFn *write, void *user)
{
    size_t nbytes;
    uint32_t i;

    for (i = 0, *arena = 0; i < x->pieces.n; i++) {
        OpenPiece *p = &x->pieces.v[i];
        Text t = {NULL, p->name, 0, sizeof p->name};

        jot_text_f(&t, "%s_p%u", x->name, i);
        t = (Text){NULL, p->most_name, 0, sizeof p->most_name};
        jot_text_f(&t, "%s_p%um", x->name, i);
        p->e.name = p->masked ? p->most_name : p->name;
        p->e.f = p->own ? p->own : p->masked->f;
        p->e.before = i ? &x->pieces.v[i - 1].e : NULL;
        p->e.write = write;
        p->e.user = user;
        if (!jot_export_begin(&p->e))
            return false;
        p->at = file_room(p->e.arena_nbytes);
        nbytes = p->masked ? p->at + file_most(p->masked) : p->e.arena_nbytes;
        *arena = nbytes > *arena ? nbytes : *arena;
    }
    return true;
}

static bool
file_text(OpenFile *x, jot_WriteFn *write, void *user)
{
    jot_Ctx *ctx = x->root->ctx;
    Text kernels = {&ctx->mem, NULL, 0, 0};
    Export *first;
    size_t arena;
    uint32_t i;

    if (!file_begin(x, &arena, write, user))
        return false;
    first = &x->pieces.v[0].e;
    file_head(x, first, arena);
    for (i = 0; i < x->pieces.n; i++)
        jot_export_kernels(&x->pieces.v[i].e, &kernels);
    if (!ctx->mem.failed && jot_emit_prelude(jot_dialect_find("c"), kernels.s ? kernels.s : "",
                                             kernels.n, &first->t)) {
        jot_text_put(&first->t, kernels.s, kernels.n);
        for (i = 0; i < x->pieces.n && !x->pieces.v[i].masked; i++)
            ;
        if (i < x->pieces.n)
            file_laid(x, first);
        for (i = 0; i < x->pieces.n && !ctx->mem.failed; i++)
            file_piece(x, &x->pieces.v[i]);
        file_dispatch(x, first);
    }
    jot_text_free(&kernels);
    return !ctx->mem.failed || jot_fail_memory(ctx, "export");
}

bool
jot_export_open_text(jot_Ctx *ctx, const char *name, const jot_Builder *builder,
                     jot_WriteFn *write, void *user)
{
    Arena arena = {0};
    OpenFile x;
    uint32_t i;
    bool ok;

    if (!ctx || ctx->status || !jot_export_name_ok(ctx, name))
        return false;
    if (!write)
        return jot_fail(ctx, JOT_EUSE, "export: write is NULL");
    memset(&x, 0, sizeof x);
    arena.mem = &ctx->mem;
    x.name = name;
    if (!(x.root = jot_mem_new(&ctx->mem, 1, sizeof *x.root)))
        return jot_fail_memory(ctx, "export");
    x.root->ctx = ctx;
    x.root->op = "export";
    x.root->dialect = "c";
    ok = jot_plan_run(ctx, NULL, 0) && jot_open_begin(x.root, &arena, builder)
      && pieces_of(&x, x.root, 0) && file_text(&x, write, user);
    for (i = 0; i < x.pieces.n; i++) {
        jot_vec_free(&ctx->mem, x.pieces.v[i].e.kernels);
        jot_text_free(&x.pieces.v[i].e.t);
        jot_func_end(x.pieces.v[i].own);
    }
    jot_vec_free(&ctx->mem, x.pieces);
    jot_open_end(x.root);
    jot_arena_free(&arena);
    return ok;
}
