/* plan/function/tables.c - elements of parameters and other arrays, as tables of an exported file.
 *
 * Decimal numbers that read back exactly; where one has no number (an infinity), bits. A table that
 * several functions of one file have is there once.
 *
 * Read before: plan/function/export.h. After: plan/function/export.c. */
#include "plan/function/export.h"

enum { EXPORT_PIECE = 1 << 16 };

const char *const jot_export_types[JOT_DTYPES] = {
    "unsigned char", "signed char", "short", "int", "long long", "unsigned char", "unsigned short",
    "unsigned", "unsigned long long", "unsigned short", "unsigned short", "float", "double"
};

JOT_FN bool
jot_export_finite(jot_DType dtype, const Buffer *data)
{
    size_t size = jot_dtype_nbytes(dtype), at;

    for (at = 0; (dtype == JOT_F32 || dtype == JOT_F64) && at < data->nbytes; at += size) {
        double v = jot_scalar_read((const char *)data->p + at, dtype).f;

        if (v - v != 0)
            return false;
    }
    return true;
}

static void
export_element(Export *e, jot_DType dtype, const void *p, bool bits)
{
    jot_Scalar v = jot_scalar_read(p, dtype);
    char buf[40];

    if (dtype == JOT_F16 || dtype == JOT_BF16) {
        jot_text_f(&e->t, "0x%x", (unsigned)jot_scalar_read(p, JOT_U16).u);
    } else if (dtype == JOT_F32 && bits) {
        jot_text_f(&e->t, "0x%xu", (unsigned)jot_scalar_read(p, JOT_U32).u);
    } else if (dtype == JOT_F64 && bits) {
        jot_text_f(&e->t, "%lluull", (unsigned long long)jot_scalar_read(p, JOT_U64).u);
    } else if (dtype == JOT_F32 || dtype == JOT_F64) {
        jot_text_float(buf, v.f, dtype == JOT_F32);
        jot_text_f(&e->t, "%s", buf);
    } else if (dtype == JOT_U64 || dtype == JOT_U32) {
        jot_text_f(&e->t, "%lluu%s", (unsigned long long)v.u, dtype == JOT_U64 ? "ll" : "");
    } else if (dtype == JOT_I64 && v.i == INT64_MIN) {
        jot_text_f(&e->t, "-9223372036854775807ll - 1");
    } else {
        jot_text_f(&e->t, "%lld%s", (long long)v.i, dtype == JOT_I64 ? "ll" : "");
    }
}

JOT_FN Buffer *
jot_export_buffer(const Func *f, const FuncLeaf *leaf)
{
    NodeId id = leaf->kind == LEAF_STATE ? f->ctx->slots.v[leaf->slot].node : leaf->node;

    return jot_node(f->ctx, id)->data;
}

JOT_FN const FuncUpdate *
jot_export_update_of(const Func *f, const FuncLeaf *leaf)
{
    uint32_t i;

    for (i = 0; leaf->kind == LEAF_STATE && i < f->updates.n; i++)
        if (f->updates.v[i].slot == leaf->slot)
            return &f->updates.v[i];
    return NULL;
}

/* Elements as decimal numbers that read back exactly; where one has no number, as bits. */
static void
export_elements(Export *e, const char *name, jot_DType dtype, const Buffer *data, bool constant)
{
    size_t size = jot_dtype_nbytes(dtype);
    int64_t n = (int64_t)(data->nbytes / size), i;
    bool bits = !jot_export_finite(dtype, data);
    const char *words = dtype == JOT_F64 ? "unsigned long long" : "unsigned";

    jot_text_f(&e->t, "static %s", constant ? "const " : "");
    if (bits)
        jot_text_f(&e->t, "union { %s bits[%lld]; %s v[%lld]; } %s = {{", words, (long long)n,
                   jot_export_types[dtype], (long long)n, name);
    else
        jot_text_f(&e->t, "%s %s[%lld] = {", jot_export_types[dtype], name, (long long)(n ? n : 1));
    if (!n)
        jot_text_f(&e->t, "0");
    for (i = 0; i < n; i++) {
        jot_text_f(&e->t, "%s", i % 8 ? " " : "\n    ");
        export_element(e, dtype, (const char *)data->p + (size_t)i * size, bits);
        jot_text_f(&e->t, "%s", i + 1 < n ? "," : "");
        jot_export_flush(e, EXPORT_PIECE);
    }
    jot_text_f(&e->t, "\n}%s;\n\n", bits ? "}" : "");
}

/* The name of a leaf's table; true: one of before is it. */
JOT_FN bool
jot_export_table(const Export *e, uint32_t number, Text *t)
{
    const FuncLeaf *leaf = &e->f->leaves.v[number];
    const Export *other;
    uint32_t i;

    for (other = e->before; other; other = other->before)
        for (i = 0; i < other->f->leaves.n; i++)
            if (other->f->leaves.v[i].kind != LEAF_INPUT
                && jot_export_buffer(other->f, &other->f->leaves.v[i])
                       == jot_export_buffer(e->f, leaf))
                return jot_export_table(other, i, t) || true;
    jot_text_f(t, "%s_t%u", e->name, number);
    return false;
}

JOT_FN void
jot_export_tables_of(Export *e)
{
    const Func *f = e->f;
    uint32_t i;

    for (i = 0; i < f->leaves.n; i++) {
        const FuncLeaf *leaf = &f->leaves.v[i];
        char name[96];
        Text t = {NULL, name, 0, sizeof name};

        if (leaf->kind == LEAF_INPUT || jot_export_table(e, i, &t))
            continue;
        export_elements(e, name, leaf->dtype, jot_export_buffer(f, leaf),
                        !jot_export_update_of(f, leaf));
    }
}
