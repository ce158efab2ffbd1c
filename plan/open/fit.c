/* plan/open/fit.c - numbers of a graph as functions of its open extents.
 *
 *     samples   8 9 10      a stride   64 72 80      differences   64   8   0
 *     extent n = 8 + u      64 + 8 u + 0 u (u - 1) / 2
 *
 * Extents, and numbers of maps, are sums and products of the extents, so polynomials; each extent
 * occurs at most squared (a row of scores for each of n rows). Three samples side by side along
 * each extent determine them; the others must lie on them, or the number is none that is followed.
 * A literal may be a constant divided by one: the weight of a mean.
 *
 * Read before: plan/open/open.h. After: plan/open/follow.c. */
#include "plan/open/open.h"

/* ---- samples ------------------------------------------------------------------------------- */

static void
space_add(OpenSpace *s, const int64_t *extent, uint8_t level)
{
    int i, d;

    for (i = 0; i < s->samples; i++) {
        for (d = 0; d < s->n && s->at[i][d] == extent[d]; d++)
            ;
        if (d == s->n)
            return;
    }
    memcpy(s->at[i], extent, sizeof s->at[0]);
    s->level[i] = level;
    s->samples++;
}

static void
space_grid(OpenSpace *s)
{
    int64_t extent[OPEN_MOST] = {0};
    int i, d, rest;

    for (i = 0; i < s->grid; i++) {
        for (rest = i, d = s->n; d-- > 0; rest /= s->points[d])
            extent[d] = s->base[d] + rest % s->points[d] * s->step[d];
        space_add(s, extent, 0);
    }
}

/* All extents low, and each with the others high. */
static void
space_low(OpenSpace *s, uint8_t level)
{
    int64_t extent[OPEN_MOST] = {0};
    int d, k;

    for (d = 0; d < s->n; d++) {
        int64_t most = (s->most[d] - s->least[d]) / s->step[d];
        int64_t at = level ? ((int64_t)1 << (2 * level - 1)) - 1 : 0;

        s->low[level][d] = s->least[d] + (at < most ? at : most) * s->step[d];
    }
    space_add(s, s->low[level], level + 1);
    for (d = 0; d < s->n && s->n > 1; d++) {
        for (k = 0; k < s->n; k++)
            extent[k] = k == d ? s->low[level][k] : s->base[k];
        space_add(s, extent, level + 1);
    }
}

/* Level 0: every plan needs the sample; l + 1: those for extents from low[l] on and below. */
JOT_FN void
jot_open_space(OpenSpace *s)
{
    int64_t middle[OPEN_MOST] = {0}, odd[OPEN_MOST] = {0};
    uint8_t level;
    int d;

    s->grid = 1;
    s->samples = 0;
    for (d = 0; d < s->n; d++) {
        int64_t values = (s->most[d] - s->least[d]) / s->step[d] + 1;

        s->points[d] = values < OPEN_POINTS ? (int)values : OPEN_POINTS;
        s->base[d] = s->least[d] + (values - s->points[d]) * s->step[d];
        s->grid *= s->points[d];
        middle[d] = s->least[d] + values / 2 * s->step[d];
        odd[d] = s->least[d] + values * (5 + d) / 7 * s->step[d];
        odd[d] = odd[d] > s->most[d] ? s->most[d] : odd[d];
    }
    space_grid(s);
    space_add(s, middle, 0);
    space_add(s, odd, 0);
    for (level = 0; level < OPEN_LEVELS; level++)
        space_low(s, level);
}

JOT_FN uint8_t
jot_open_level(const OpenSpace *s, const bool *good)
{
    uint8_t level = 0;
    int i;

    for (i = 0; i < s->samples; i++)
        if (!good[i] && (!s->level[i] || s->level[i] > level))
            level = s->level[i] ? s->level[i] : OPEN_LEVELS;
    return level;
}

/* ---- polynomials --------------------------------------------------------------------------- */

JOT_FN void
jot_open_fit(const OpenSpace *s, const int64_t *v, OpenFit *fit)
{
    int d, i, k, stride = s->grid;

    memset(fit, 0, sizeof *fit);
    memcpy(fit->term, v, (size_t)s->grid * sizeof *v);
    for (d = 0; d < s->n; d++) {
        stride /= s->points[d];
        for (k = 1; k < s->points[d]; k++)
            for (i = s->grid - 1; i >= 0; i--)
                if (i / stride % s->points[d] >= k)
                    fit->term[i] = (int64_t)((uint64_t)fit->term[i]
                                             - (uint64_t)fit->term[i - stride]);
    }
}

static uint64_t
fit_binomial(int64_t u, int k)
{
    return k == 0 ? 1 : k == 1 ? (uint64_t)u : (uint64_t)(u * (u - 1) / 2);
}

JOT_FN int64_t
jot_open_value(const OpenSpace *s, const OpenFit *fit, const int64_t *extent)
{
    uint64_t sum = 0;
    int i, d, rest;

    for (i = 0; i < s->grid; i++) {
        uint64_t term = (uint64_t)fit->term[i];

        for (rest = i, d = s->n; term && d-- > 0; rest /= s->points[d])
            term *= fit_binomial((extent[d] - s->base[d]) / s->step[d], rest % s->points[d]);
        sum += term;
    }
    return (int64_t)sum;
}

JOT_FN bool
jot_open_constant(const OpenSpace *s, const OpenFit *fit)
{
    int i;

    for (i = 1; i < s->grid && !fit->term[i]; i++)
        ;
    return i >= s->grid;
}

/* ---- literals ------------------------------------------------------------------------------ */

JOT_FN jot_Scalar
jot_open_literal_at(const OpenSpace *s, const OpenLiteral *how, const int64_t *extent)
{
    int64_t v = jot_open_value(s, &how->fit, extent);
    jot_Scalar r;

    r.f = how->ratio ? how->over / (double)v : (double)v;
    if (how->narrow)
        r.f = (float)r.f;
    return r;
}

static bool
literal_holds(const OpenSpace *s, const jot_Scalar *v, const bool *valid, const OpenLiteral *how)
{
    int i;

    for (i = 0; i < s->samples; i++)
        if (valid[i] && jot_open_literal_at(s, how, s->at[i]).u != v[i].u)
            return false;
    return true;
}

/* x is an integer, near enough. */
static bool
literal_integer(double x, int64_t *v)
{
    double error;

    if (!(x > -4e15 && x < 4e15))
        return false;
    *v = (int64_t)(x < 0 ? x - 0.5 : x + 0.5);
    error = x - (double)*v;
    return error < 1e-3 && error > -1e-3;
}

static bool
literal_ratio(const OpenSpace *s, const jot_Scalar *v, const bool *valid, OpenLiteral *how)
{
    static const double over[] = {1, -1, 2, -2, 0.5, -0.5};
    int64_t k[OPEN_TERMS];
    size_t c;
    int i;

    how->ratio = true;
    for (c = 0; c < sizeof over / sizeof over[0]; c++) {
        how->over = over[c];
        for (i = 0; i < s->grid && v[i].f != 0 && literal_integer(over[c] / v[i].f, &k[i]); i++)
            ;
        if (i < s->grid)
            continue;
        jot_open_fit(s, k, &how->fit);
        for (how->narrow = false;; how->narrow = true) {
            if (literal_holds(s, v, valid, how))
                return true;
            if (how->narrow)
                break;
        }
    }
    return false;
}

JOT_FN bool
jot_open_literal(const OpenSpace *s, const jot_Scalar *v, const bool *valid, OpenLiteral *how)
{
    int64_t k[OPEN_TERMS];
    int i;

    memset(how, 0, sizeof *how);
    for (i = 0; i < s->grid && literal_integer(v[i].f, &k[i]); i++)
        ;
    if (i == s->grid) {
        jot_open_fit(s, k, &how->fit);
        if (literal_holds(s, v, valid, how))
            return true;
    }
    return literal_ratio(s, v, valid, how);
}
