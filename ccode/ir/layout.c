/* ccode/ir/layout.c - where the elements of a buffer lie, apart from its logical shape.
 *
 *     shape [5, 3], parts (0,2) (1,1) (0,1)     rows in panels of 2, the last panel half empty
 *     address of [i, j] = i/2 * 6 + j * 2 + i%2
 *
 * Positions of a dimension count from its halo's beginning: c = index + halo_lo. A part of step s
 * whose next coarser part has step S contributes (c / s) % (S / s) times its stride; the coarsest
 * one contributes c / s.
 *
 * Read before: ccode/ir/ir.h. After: ccode/lower/walk.c (access). */
#include "ccode/ir/ir.h"

/* Sizes of the parts from their steps; false where steps do not nest. */
static bool
size_parts(Layout *l)
{
    int64_t last[JOT_MAX_RANK], done[JOT_MAX_RANK];
    for (int d = 0; d < l->rank; d++)
        last[d] = 0, done[d] = 0;
    for (int i = 0; i < l->n; i++) {
        int d = l->part[i].dim;
        int64_t step = l->part[i].step, total;
        if (d >= l->rank || step < 1 || (last[d] && last[d] % step != 0))
            return false;
        total = l->halo_lo[d] + l->ext[d];
        if (!jot_add_ok(total, l->halo_hi[d], &total))
            return false;
        l->first[i] = last[d] == 0;
        l->size[i] = last[d] ? last[d] / step : total / step + (total % step != 0);
        last[d] = step;
        done[d] = step == 1;
    }
    for (int d = 0; d < l->rank; d++)
        if (!done[d])
            return false;
    return true;
}

/* Strides of the parts from their sizes; false: too many elements. */
static bool
stride_parts(Layout *l)
{
    l->nelem = 1;
    for (int i = l->n - 1; i >= 0; i--) {
        l->stride[i] = l->nelem;
        if (!jot_mul_ok(l->nelem, l->size[i], &l->nelem))
            return false;
    }
    return l->nelem < INT64_MAX / 64;
}

JOT_FN bool
jot_layout_make(Layout *l, int rank, const int64_t *ext, int n, const LayoutPart *part,
                const int64_t *halo_lo, const int64_t *halo_hi)
{
    memset(l, 0, sizeof *l);
    if (rank < 0 || rank > JOT_MAX_RANK || n < 0 || n > LAYOUT_PARTS)
        return false;
    l->rank = rank;
    l->n = part ? n : rank;
    for (int d = 0; d < rank; d++) {
        l->ext[d] = ext[d];
        l->halo_lo[d] = halo_lo ? halo_lo[d] : 0;
        l->halo_hi[d] = halo_hi ? halo_hi[d] : 0;
        if (ext[d] < 0 || l->halo_lo[d] < 0 || l->halo_hi[d] < 0)
            return false;
        if (!part)
            l->part[d].dim = (uint8_t)d, l->part[d].step = 1;
    }
    if (part && n > 0)
        memcpy(l->part, part, (size_t)n * sizeof *part);
    return size_parts(l) && stride_parts(l);
}

JOT_FN bool
jot_layout_rowmajor(Layout *l, int rank, const int64_t *ext)
{
    return jot_layout_make(l, rank, ext, 0, NULL, NULL, NULL);
}

JOT_FN bool
jot_layout_random(Layout *l, int rank, const int64_t *ext, uint64_t seed, bool may_halo)
{
    LayoutPart part[LAYOUT_PARTS];
    int64_t lo[JOT_MAX_RANK], hi[JOT_MAX_RANK];
    uint64_t r = jot_hash_u64(seed, 77);
    int n = 0, blocked = -1;
    for (int d = 0; d < rank; d++) {
        int at = (int)((r = jot_hash_u64(r, (uint64_t)d)) % (uint64_t)(d + 1));
        for (int i = n++; i > at; i--)
            part[i] = part[i - 1];
        part[at].dim = (uint8_t)d;
        part[at].step = 1;
        lo[d] = may_halo ? (int64_t)(r >> 20 & 3) % 3 : 0;
        hi[d] = may_halo ? (int64_t)(r >> 24 & 3) % 3 : 0;
    }
    if (rank > 0 && (r >> 40 & 1)) {
        blocked = (int)((r >> 41) % (uint64_t)rank);
        part[n] = part[blocked];
        part[blocked].step = 2 + (int64_t)(r >> 50 & 7);
        n++;
    }
    return jot_layout_make(l, rank, ext, n, rank ? part : NULL, lo, hi);
}

JOT_FN Ix
jot_layout_addr(const Layout *l, IxPool *ix, const Ix *index, const Space *space)
{
    Ix sum = jot_ix_const(ix, 0);
    for (int i = 0; i < l->n; i++) {
        int d = l->part[i].dim;
        Ix c = jot_ix_add(ix, index[d], jot_ix_const(ix, l->halo_lo[d]));
        if (l->part[i].step > 1)
            c = jot_ix_div(ix, c, jot_ix_const(ix, l->part[i].step), space);
        if (!l->first[i])
            c = jot_ix_mod(ix, c, jot_ix_const(ix, l->size[i]), space);
        sum = jot_ix_add(ix, sum, jot_ix_scale(ix, c, l->stride[i]));
    }
    return sum;
}

JOT_FN int64_t
jot_layout_addr_at(const Layout *l, const int64_t *index)
{
    int64_t sum = 0;
    for (int i = 0; i < l->n; i++) {
        int64_t c = (index[l->part[i].dim] + l->halo_lo[l->part[i].dim]) / l->part[i].step;
        sum += (l->first[i] ? c : c % l->size[i]) * l->stride[i];
    }
    return sum;
}

JOT_FN bool
jot_layout_is_rowmajor(const Layout *l)
{
    if (l->n != l->rank)
        return false;
    for (int d = 0; d < l->rank; d++)
        if (l->part[d].dim != d || l->halo_lo[d] || l->halo_hi[d] || l->size[d] != l->ext[d])
            return false;
    return true;
}

JOT_FN bool
jot_layout_eq(const Layout *a, const Layout *b)
{
    if (a->rank != b->rank || a->n != b->n)
        return false;
    for (int d = 0; d < a->rank; d++)
        if (a->ext[d] != b->ext[d] || a->halo_lo[d] != b->halo_lo[d] ||
            a->halo_hi[d] != b->halo_hi[d])
            return false;
    for (int i = 0; i < a->n; i++)
        if (a->part[i].dim != b->part[i].dim || a->part[i].step != b->part[i].step)
            return false;
    return a->halo_value.u == b->halo_value.u;
}

/* ---- text ---- */

JOT_FN void
jot_layout_print(const Layout *l, Text *t)
{
    const char *gap = "";
    bool halo = false;
    if (jot_layout_is_rowmajor(l))
        return;
    for (int i = 0; i < l->n; i++, gap = " ") {
        jot_text_f(t, "%s%d", gap, l->part[i].dim);
        if (l->part[i].step > 1)
            jot_text_f(t, ":%lld", (long long)l->part[i].step);
    }
    for (int d = 0; d < l->rank; d++)
        if (l->halo_lo[d] || l->halo_hi[d]) {
            jot_text_f(t, "%s %d:%lld,%lld", halo ? "" : " halo", d, (long long)l->halo_lo[d],
                       (long long)l->halo_hi[d]);
            halo = true;
        }
    if (halo && l->halo_value.u)
        jot_text_f(t, " value %llu", (unsigned long long)l->halo_value.u); /* as bits */
}

static bool
read_number(const char **s, const char *end, uint64_t *value)
{
    const char *from = *s;
    for (*value = 0; *s < end && **s >= '0' && **s <= '9'; ++*s)
        *value = *value * 10 + (uint64_t)(**s - '0');
    return *s > from;
}

static bool
read_word(const char **s, const char *end, const char *word)
{
    size_t n = jot_str_len(word);
    if ((size_t)(end - *s) < n || memcmp(*s, word, n) != 0)
        return false;
    *s += n;
    return true;
}

JOT_FN bool
jot_layout_read(Layout *l, int rank, const int64_t *ext, const char *s, size_t nbytes)
{
    const char *end = s + nbytes;
    LayoutPart part[LAYOUT_PARTS];
    int64_t lo[JOT_MAX_RANK] = {0}, hi[JOT_MAX_RANK] = {0};
    jot_Scalar value;
    uint64_t d, a, b;
    bool halo = false;
    int n = 0;
    value.u = 0;
    while (s < end) {
        if (*s == ' ') { s++; continue; }
        if (read_word(&s, end, "halo")) { halo = true; continue; }
        if (read_word(&s, end, "value ")) {
            if (!read_number(&s, end, &value.u))
                return false;
            continue;
        }
        a = 1;
        if (!read_number(&s, end, &d) || d >= (uint64_t)rank || n >= LAYOUT_PARTS)
            return false;
        if (s < end && *s == ':' && (s++, !read_number(&s, end, &a)))
            return false;
        if (!halo) {
            part[n].dim = (uint8_t)d;
            part[n++].step = (int64_t)a;
        } else {
            if (s >= end || *s++ != ',' || !read_number(&s, end, &b))
                return false;
            lo[d] = (int64_t)a, hi[d] = (int64_t)b;
        }
    }
    if (!jot_layout_make(l, rank, ext, n, n ? part : NULL, lo, hi))
        return false;
    l->halo_value = value;
    return true;
}
