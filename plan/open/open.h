/* plan/open/open.h - functions with open extents: one plan for many.
 *
 *     builder(1000), builder(999), ...   -> graphs         which agree but for numbers
 *     a number                           -> a polynomial   of the extents, by samples
 *     the graph of the most extents      -> one plan       masked (plan/open/masked.h)
 *
 * Read before: plan/function/function.h. After: plan/open/open.c, plan/open/range.c,
 * plan/open/masked.h, plan/open/fit.c. */
#ifndef JOT_OPEN_H
#define JOT_OPEN_H
#include "plan/function/function.h"

enum {
    OPEN_MOST = JOT_OPEN_EXTENTS, /* open extents of a function */
    OPEN_POINTS = 3,         /* samples along each: polynomials of degree 2 */
    OPEN_TERMS = 27,         /* OPEN_POINTS to the power OPEN_MOST */
    OPEN_LEVELS = 4,         /* least extents that are tried: the first 1, 2, 8 and 32 of each */
    OPEN_SAMPLES = OPEN_TERMS + 2 + OPEN_LEVELS * (1 + OPEN_MOST),
    OPEN_KEPT = 64,          /* sizes that are remembered */
    OPEN_RANGES = 8,         /* ranges that are tried, beside the whole */
    OPEN_FEW = 4,            /* sizes that are no range */
    OPEN_OFTEN = 3,          /* calls of a size after which it gets kernels of its own, ... */
    OPEN_SHARE = 8           /* ... if it is one of so many calls */
};

/* The extents, and where they are sampled: on a grid at their upper end, which determines the
 * polynomials, then below it, which checks them. */
typedef struct {
    int n;                           /* open extents */
    int64_t least[OPEN_MOST], most[OPEN_MOST], step[OPEN_MOST], base[OPEN_MOST];
    int points[OPEN_MOST];
    int grid, samples;
    int64_t at[OPEN_SAMPLES][OPEN_MOST];
    uint8_t level[OPEN_SAMPLES];     /* who needs it: plans for extents from this level on */
    int64_t low[OPEN_LEVELS][OPEN_MOST];
} OpenSpace;

/* Of u = (extent - base) / step: the sum of term[a, b, c] * binomial(u0, a) * ... An integer for
 * integers, as samples at consecutive points are. */
typedef struct { int64_t term[OPEN_TERMS]; } OpenFit;

/* How a constant follows: as a polynomial, or (ratio) as `over` divided by one; narrow: as f32. */
typedef struct {
    bool ratio, narrow;
    double over;
    OpenFit fit;
} OpenLiteral;

/* What a step takes one thread, from which the number of threads follows; of a profile. */
typedef struct { double seconds; KernelCost cost; int64_t count; } OpenCost;

/* A size that was asked for: its function, once it has one. */
typedef struct { int64_t extent[OPEN_MOST]; Func *f; uint32_t calls; uint64_t used; } OpenSize;

typedef struct OpenMasked OpenMasked;
struct Open {
    jot_Ctx *ctx;
    const char *op, *dialect; /* for messages; of a text, NULL: the backend compiles it */
    OpenSpace space;
    const char *name[OPEN_MOST];
    jot_BuildFn *build;
    void *user;
    jot_Var *in, *out;       /* room for what the builder makes */
    jot_DType *dtype;        /* of outputs, as it made them last */
    int nin, nout;
    OpenMasked *masked;      /* the plan for all extents from low on; NULL: there is none */
    int64_t shown[JOT_MAX_RANK]; /* the shape that was asked for last */
    int64_t low[OPEN_MOST], now[OPEN_MOST];
    Vec(OpenSize) sizes;
    uint64_t clock;          /* calls so far */
    char why[240];           /* there is no plan for all extents: why */
    bool tried, whole;       /* masked is what can be; ranges within would be no better */
    /* Ranges within, once a call fell into them: below low, extent by extent; where there is no
     * plan for all, the lower and the upper half. */
    Open *below[OPEN_MOST], *half[2];
    int ranges;              /* of the whole: within it */
    char told[600];          /* ... what jot_open_why says */
};

/* plan/open/fit.c */
JOT_FN void jot_open_space(OpenSpace *s);
/* The level from which on samples that are no good are not needed; OPEN_LEVELS: they always are. */
JOT_FN uint8_t jot_open_level(const OpenSpace *s, const bool *good);
/* The polynomial through v[0..grid). */
JOT_FN void jot_open_fit(const OpenSpace *s, const int64_t *v, OpenFit *fit);
JOT_FN int64_t jot_open_value(const OpenSpace *s, const OpenFit *fit, const int64_t *extent);
JOT_FN bool jot_open_constant(const OpenSpace *s, const OpenFit *fit);
/* A literal, a float, through v[0..samples), where valid says so; false: none of these forms is. */
JOT_FN bool jot_open_literal(const OpenSpace *s, const jot_Scalar *v, const bool *valid,
                             OpenLiteral *how);
JOT_FN jot_Scalar jot_open_literal_at(const OpenSpace *s, const OpenLiteral *how,
                                      const int64_t *extent);

/* plan/open/sample.c: "batch = 8, length = 5"; the graph and the function for some extents. NULL,
 * false: failed. */
JOT_FN void jot_open_extents(const Open *o, const int64_t *extent, Text *out);
JOT_FN void jot_open_between(const Open *o, const int64_t *least, const int64_t *most, Text *t);
JOT_FN bool jot_open_graph(Open *o, const int64_t *extent, const char *op); /* o->in, o->out */
JOT_FN Func *jot_open_build(Open *o, const int64_t *extent, const FuncFor *of);

/* plan/open/open.c: the whole, of what the caller asks. False: refused. */
JOT_FN bool jot_open_begin(Open *o, Arena *arena, const jot_Builder *b);

/* plan/open/range.c: what a step costs at most extents; then at others as much less as it has less
 * to do. NULL: memory was refused. */
JOT_FN OpenCost *jot_open_costs(Arena *arena, const Plan *plan);
JOT_FN void jot_open_cost(PlanStep *step, const OpenCost *most);
/* The range whose plan serves these extents, tried now if need be; NULL: there is none. False:
 * failed. */
JOT_FN bool jot_open_range(Open *root, const int64_t *extent, Open **range);
/* Which range within the extents are in, its space; *at: where it is kept, NULL: none. */
JOT_FN void jot_open_within(Open *o, const int64_t *extent, Open ***at, OpenSpace *s);
JOT_FN bool jot_open_try(Open *o, Open *root); /* the range itself; false: failed */
JOT_FN void jot_open_end(Open *o);

#endif
