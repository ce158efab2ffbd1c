/* ccode/ir/ir.h - the kernel IR: what one kernel computes, in which order and place, and where its
 * buffers' elements lie.
 *
 *   Kernel   axes, buffers, scalars, values, stores        what is computed: no order, no place
 *   Sched    stages (a value or a store, its loops, its places), derived axes, lanes, layouts
 *   Layout   where the elements of a buffer lie: order of (dimension, step) parts, halo
 *   Tree     Kernel + Sched lowered: loops, conditions and leaves         (ccode/lower/lower.c)
 *   text     Tree walked and printed by a Dialect                         (ccode/emit.h)
 *
 *     kernel                        schedule                     text
 *     axes i:3 j:4                  %2: i:1p | j                 for (i = lo; i < hi; i++) {
 *     in f32 x[3, 4]                !0: i:1p                         float s = 0;
 *     out f32 y[3]                                                   for (j = 0; j < 4; j++)
 *     %1 = f32 x[i, j]                                                   s = s + x[i*4 + j];
 *     %2 = f32 reduce add over j of %1                               y[i] = s;
 *     !0 y[i] = %2                                               }
 *
 * Index expressions are Ix of ops/index/index.h: axis number a of an Ix is kernel axis a.
 * Everything is a small record in an array with 32-bit references; record 0 is poison, what a
 * refused allocation or a refused operand gives. Functions that build return 0 (or false, -1) then
 * and never crash.
 *
 * Read before: ops/index/index.h, ops/graph.h (EwOp). After: ccode/emit.h, ccode/lower/lower.c. */
#ifndef JOT_IR_H
#define JOT_IR_H
#include "base.h"
#include "ops/graph.h"
#include "ops/index/index.h"

#define KERNEL_AXES 24   /* axes of a kernel; with derived axes of a schedule: SCHED_AXES */
#define SCHED_AXES 32    /* a kernel may gain axes when a schedule has derived ones: they count from
                            KERNEL_AXES */
#define KERNEL_VALUES 4096
#define VALUE_DEPTH 256  /* deepest value tree: the verifier refuses deeper ones */
#define VALUE_ARGS 32    /* most operands of a value */

/* ---- layouts ------------------------------------------------------------------------------ */

/* Physical order of a buffer: parts from slowest to fastest. A dimension may occur several times:
 * its coarse part first, finer parts (smaller steps) later.
 *     shape [o, i]  parts (0,32) (1,1) (0,1)      o / 32, i, o % 32: panels of 32 outputs
 *     shape [n, c, h, w]  parts (0,1) (2,1) (3,1) (1,1)      channels last
 * halo: elements before and after a dimension that exist in memory and hold `halo_value` (written
 * by the kernel that writes the buffer, or by who packs it). Positions of a dimension count from
 * -halo_lo; what the last block of a part has beyond its end exists and holds anything. */
#define LAYOUT_PARTS 24
typedef struct { uint8_t dim; int64_t step; } LayoutPart;
typedef struct {
    int rank, n;                        /* dimensions; parts */
    int64_t ext[JOT_MAX_RANK];          /* logical shape */
    int64_t halo_lo[JOT_MAX_RANK], halo_hi[JOT_MAX_RANK];
    LayoutPart part[LAYOUT_PARTS];
    int64_t size[LAYOUT_PARTS];         /* positions of each part */
    int64_t stride[LAYOUT_PARTS];       /* elements between two positions of it */
    bool first[LAYOUT_PARTS];           /* coarsest part of its dimension */
    int64_t nelem;                      /* elements of memory in all */
    jot_Scalar halo_value;              /* .f for floats, .i / .u for integers and bool */
} Layout;

/* Fill *layout. parts NULL (n 0): row-major. halo_lo, halo_hi may be NULL (none). False: the
 * parts do not cover each dimension (each needs a last part of step 1, each step a multiple of the
 * next one of the dimension), or sizes overflow. */
JOT_FN bool jot_layout_make(Layout *layout, int rank, const int64_t *ext, int n,
                            const LayoutPart *part, const int64_t *halo_lo,
                            const int64_t *halo_hi);
JOT_FN bool jot_layout_rowmajor(Layout *layout, int rank, const int64_t *ext);
/* A random legal layout: order of axes, blocking, halo (only if may_halo). */
JOT_FN bool jot_layout_random(Layout *layout, int rank, const int64_t *ext, uint64_t seed,
                              bool may_halo);
/* Address, in elements, of the logical element index[0..rank) (any Ix over the axes of space). */
JOT_FN Ix jot_layout_addr(const Layout *layout, IxPool *ix, const Ix *index, const Space *space);
JOT_FN int64_t jot_layout_addr_at(const Layout *layout, const int64_t *index); /* of one element */
JOT_FN bool jot_layout_is_rowmajor(const Layout *layout); /* same memory as the row-major layout */
JOT_FN bool jot_layout_eq(const Layout *a, const Layout *b);
/* "0:32 1 0 halo 2:1,1", "" for row-major; reads back. */
JOT_FN void jot_layout_print(const Layout *layout, Text *text);
JOT_FN bool jot_layout_read(Layout *layout, int rank, const int64_t *ext, const char *text,
                            size_t n);

/* ---- kernels ------------------------------------------------------------------------------ */

/* SCRATCH: private to a call. SHARED: of one launch, seen by all its calls and phases. GROUP: of a
 * device's work-group, while it is at one step of the grid. */
typedef enum { BUF_INPUT, BUF_OUTPUT, BUF_SCRATCH, BUF_SHARED, BUF_GROUP } BufRole;

typedef struct {
    const char *name;       /* owned by the kernel's arena */
    uint8_t dtype, role, rank;
    bool may_alias;         /* its memory may be another buffer's too (updates in place): no
                               restrict, every load stays in program order */
    uint8_t over;           /* OUTPUT: the input that it may overwrite, element for element, without
                               changing the result (ccode/emit/alias.c); 0: none */
    bool ends;              /* ... with which a scatter begins, and which ends here */
    bool begins;            /* OUTPUT: it must begin as `over` is: what stays is not stored */
    bool bordered;          /* its halo is written outside of this kernel */
    bool placed;            /* INPUT: where it begins is an argument (ccode/ir/view.c) ... */
    int64_t from;           /* ... so many elements later */
    bool bytes;             /* INPUT: u32 are words of what others have as bytes, at any address */
    const int64_t *ext;     /* rank logical extents, in the arena */
    const Layout *layout;   /* never NULL; set by jot_kernel_layout */
} KBuf;

/* REST: the short axis r of i = by * h + r, contiguous in memory, so stores walk it innermost.
 * LINE: the position in a line (ccode/rewrite/line_buffer.c); only the line's own loops run over
 * it. CLEAR: an index of a buffer being cleared (ccode/rewrite/scatter.c); only that store's loops
 * run over it. */
typedef enum { AXIS_PLAIN, AXIS_REST, AXIS_LINE, AXIS_CLEAR } AxisKind;
typedef struct {
    const char *name;
    int64_t ext;
    uint8_t kind;
    Ix end;           /* what is stored along it is looked at before there alone; 0: everywhere */
    int64_t ended;    /* ... while it is so long: one that was cut since does not end there */
} KAxis;
typedef struct { const char *name; uint8_t dtype; } KScalar;

typedef enum {
    VAL_POISON,
    VAL_LOAD,    /* buf[index...] where all conditions hold, else c (never read then) */
    VAL_CONST,   /* c */
    VAL_SCALAR,  /* run-time scalar number `buf` */
    VAL_INDEX,   /* an index expression as an integer (or float) value */
    VAL_EW,      /* ops/scalar.def operator `ew` of a[0..n) */
    VAL_REDUCE,  /* over `axes`, with operator `ew`, of a[0], for the points where all conditions
                    hold; times c.f if `scaled`. With two operands: `ew` is MAX or MIN, and a
                    second accumulator holds a[1] at the extreme of a[0]; among equal extremes
                    the a[1] that is extreme by `tie` */
    VAL_SECOND,  /* the second accumulator of reduction a[0] */
    VAL_AT,      /* a[0] with axis ax[i] replaced by an index expression */
    VAL_TABLE,   /* constant table number `buf` at index...; a 0 means "no term": in a sum of
                    table * x the term is omitted where the index is a constant */
    VAL_CALL,    /* the function of that name, the user's or a device's */
    VAL_DOT,     /* of words a[0], a[1] (u32): the sum of the products of the elements that lie in
                    them, as row `ew` of jot_target_dots has it; read by a sum alone */
    VAL_RUN      /* `ew` of a[0] along the one axis of `axes`, from its beginning up to each point
                    and with it; `ordered`: without it, which begins with the identity */
} ValOp;

/* Value dtypes are what is computed in: f32 for f16 and bf16. */
typedef struct {
    uint8_t op, dtype, ew;
    uint8_t nidx;           /* LOAD, TABLE: index expressions; AT: replaced axes */
    uint8_t ncond;          /* LOAD, REDUCE: conditions, stored after the index expressions */
    uint8_t round;          /* CAST to f16, bf16: that dtype (the value is rounded to it); else
                               dtype */
    bool scaled;            /* REDUCE: multiply by c.f at the end */
    uint8_t tie;            /* REDUCE of two: MAX or MIN; c is what the second begins with */
    bool ordered;           /* ... and by `tie` each a[1] is worse than those before it. RUN */
    uint8_t narg;           /* operands */
    uint32_t buf;           /* LOAD: buffer; SCALAR, TABLE: number */
    uint32_t at;            /* first of its expressions in kernel.ixs */
    uint32_t arg;           /* first of its operands in kernel.args */
    uint64_t axes;          /* REDUCE: bit a: over axis a. RUN: along. AT: replaced axes */
    uint64_t free;          /* axes the value depends on */
    jot_Scalar c;           /* CONST: value; LOAD: what is outside; REDUCE: scale. f for floats,
                               i for signed, u for unsigned and bool */
    const char *name;       /* NULL: none; names show up in dumps and in C */
    const char *call;       /* CALL: the function */
    uint8_t ax[JOT_MAX_RANK]; /* AT: the replaced axes */
} Value;

typedef struct {
    uint32_t buf, value;
    uint8_t nidx, ncond;
    uint8_t acc;            /* EW_NONE: plain; else buf[index] = buf[index] acc value, the buffer
                               set to the operator's identity first */
    bool onto;              /* ... acc: it is set already, by a store before */
    uint32_t at;            /* expressions in kernel.ixs: indices, then conditions */
    uint64_t free;          /* axes of index, conditions and value; if acc: all axes made so far */
} KStore;

typedef struct {
    uint8_t rank;
    const int64_t *ext;
    const double *v;        /* row-major */
} KTable;

typedef struct {
    Mem *mem;
    IxPool *ix;             /* not owned: where the index expressions live; emission adds to it */
    Arena arena;            /* names, extents, layouts, texts */
    const char *name;       /* NULL or what it computes, for comments */
    Vec(KAxis) axes;
    Vec(KBuf) bufs;         /* bufs.v[0] is poison; numbers start at 1 */
    Vec(KScalar) scalars;   /* numbers start at 0 */
    Vec(KTable) tables;
    Vec(Value) values;      /* values.v[0] is poison; operands come before their users */
    Vec(KStore) stores;     /* numbers start at 0 */
    Vec(Ix) ixs;
    Vec(uint32_t) args;
    Vec(uint32_t) slots;    /* integer variable @e<k> of index expressions -> buffer */
} Kernel;

JOT_FN bool jot_kernel_open(Kernel *k, Mem *mem, IxPool *ix);
JOT_FN void jot_kernel_close(Kernel *k);
/* A copy, to be scheduled in another way. It shares the names and layouts of `from` and must be
 * closed before it. False: out of memory; close it all the same. */
JOT_FN bool jot_kernel_copy(Kernel *k, const Kernel *from);
/* Make k again what it was when `was` was copied from it (unless memory is refused); closes
 * `was`. */
JOT_FN void jot_kernel_restore(Kernel *k, Kernel *was);
/* k is from now on what became of its copy. */
JOT_FN void jot_kernel_take(Kernel *k, Kernel *copy);
/* A copy that lives as long as the kernel; NULL of NULL, and where memory is refused. */
JOT_FN const char *jot_kernel_string(Kernel *k, const char *text);
/* Names may be any text; the emitter makes them C names. -1 on failure. */
JOT_FN int jot_kernel_axis(Kernel *k, const char *name, int64_t ext);
JOT_FN int jot_kernel_axis_f(Kernel *k, int64_t ext, const char *format, ...) JOT_PRINTF(3, 4);
/* Row-major until jot_kernel_layout. The function's buf[] holds the inputs and outputs in this
 * order: buf[0] is the first. */
JOT_FN uint32_t jot_kernel_buf(Kernel *k, const char *name, jot_DType dtype, BufRole role,
                               int rank, const int64_t *ext);
/* ccode/ir/view.c: where inputs are read at one place along a dimension, the place becomes an
 * argument. */
JOT_FN void jot_kernel_views(Kernel *k);
JOT_FN void jot_kernel_layout(Kernel *k, uint32_t buf, const Layout *layout); /* copied */
JOT_FN int jot_kernel_scalar(Kernel *k, const char *name, jot_DType dtype);
/* Index expressions of this kernel that load @e<slot> read this buffer. */
JOT_FN void jot_kernel_slot(Kernel *k, int slot, uint32_t buf);

/* Compute anew which axes values and stores depend on, after index expressions were replaced. */
JOT_FN void jot_kernel_refresh(Kernel *k);

/* Builders of values. Equal records are shared. idx: one Ix per dimension of the buffer. */
JOT_FN uint32_t jot_v_load(Kernel *k, uint32_t buf, const Ix *idx, int ncond, const Ix *cond,
                           jot_Scalar outside);
JOT_FN uint32_t jot_v_const(Kernel *k, jot_DType dtype, jot_Scalar value);
JOT_FN uint32_t jot_v_constf(Kernel *k, jot_DType dtype, double value); /* converted to dtype */
JOT_FN uint32_t jot_v_scalar(Kernel *k, int number);
JOT_FN uint32_t jot_v_index(Kernel *k, jot_DType dtype, Ix ix);
/* dtype: of the result (f16, bf16 give f32; a CAST to them rounds). Operands not used: 0. Operands
 * have one dtype (SELECT: bool, then two of dtype; UNIFORM, NORMAL: u64, u64). */
JOT_FN uint32_t jot_v_ew(Kernel *k, EwOp op, jot_DType dtype, uint32_t a, uint32_t b, uint32_t c);
JOT_FN uint32_t jot_v_cast(Kernel *k, jot_DType dtype, uint32_t a); /* a if it is of dtype */
/* op: ADD MUL MAX MIN AND OR XOR BITAND BITOR BITXOR. axes: mask. cond: points that count. scale:
 * 1.0 for none (floats only). */
JOT_FN uint32_t jot_v_reduce(Kernel *k, EwOp op, uint64_t axes, uint32_t body, int ncond,
                             const Ix *cond, double scale);
/* The reduction as one over the axis, of one over its others. */
JOT_FN uint32_t jot_v_twice(Kernel *k, uint32_t reduce, int axis);
/* The extreme (op MAX or MIN) of body, and for jot_v_second the value of `second` at that point.
 * Among equals (NaN is the most extreme value, and equal to itself) the extreme of `second` by
 * `tie`. begin: the second's initial value; ordered: `second` never improves along the one axis. */
JOT_FN uint32_t jot_v_extreme(Kernel *k, EwOp op, uint64_t axes, uint32_t body, uint32_t second,
                              EwOp tie, bool ordered, int64_t begin);
JOT_FN uint32_t jot_v_second(Kernel *k, uint32_t reduce);
/* op along the axis over body at each point and at those before it; before: at these alone. */
JOT_FN uint32_t jot_v_run(Kernel *k, EwOp op, int axis, uint32_t body, bool before);
/* A reduction of the terms up to each point of an axis, which is one that runs along it: reduced
 * axis `over` in the place of `along`, the two as long, body what is reduced (ccode/ir/running.c).
 * load: it is a load, and counts where its condition number `cond` holds. */
typedef struct {
    int along, over, cond;
    bool before, reverse;       /* without the point's own; from the end */
    bool load;
    uint32_t body;
} Running;
JOT_FN bool jot_v_runs(const Kernel *k, uint32_t reduce, Running *r);
JOT_FN uint32_t jot_v_at(Kernel *k, uint32_t body, int n, const int *axis, const Ix *ix);
JOT_FN uint32_t jot_v_table(Kernel *k, jot_DType dtype, int rank, const int64_t *ext,
                            const double *v, const Ix *idx);
JOT_FN uint32_t jot_v_call(Kernel *k, jot_DType dtype, const char *name, int n,
                           const uint32_t *arg);
/* The list of an access or a reduction, whose expressions begin at *at, longer by conditions. */
JOT_FN bool jot_kernel_ask(Kernel *k, uint32_t *at, int nidx, uint8_t *ncond, int n,
                           const Ix *cond);
/* A half as it lies in memory, u16; 0 where the conditions do not hold. */
JOT_FN uint32_t jot_v_bits(Kernel *k, uint32_t buf, const Ix *idx, int ncond, const Ix *cond);
JOT_FN uint32_t jot_v_dot(Kernel *k, int row, uint32_t a, uint32_t b);
JOT_FN void jot_v_name(Kernel *k, uint32_t value, const char *name);
/* Rebuild everything that reads value `from`, stores too, to read `to`. Returns the value that
 * replaces `what`; 0 on failure. */
JOT_FN uint32_t jot_v_replace(Kernel *k, uint32_t from, uint32_t to, uint32_t what);
/* Number of the store, -1 on failure. Stores run in the order of the schedule's stages. An
 * accumulating store walks all axes that the kernel has by then. */
JOT_FN int jot_kernel_store(Kernel *k, uint32_t buf, const Ix *idx, uint32_t value, EwOp acc,
                            int ncond, const Ix *cond);

JOT_FN uint32_t jot_v_arg(const Kernel *k, uint32_t value, int i); /* its argument number i */
JOT_FN uint64_t jot_value_axes(const Value *v); /* axes that it depends on or reduces over */
JOT_FN double jot_kernel_points(const Kernel *k, uint64_t axes);   /* product of their extents */
JOT_FN int64_t jot_kernel_extent(const Kernel *k, uint64_t axes);  /* ... at most INT64_MAX */
/* Where the axis ends (KAxis.end); 0: nowhere before its extent. */
JOT_FN Ix jot_axis_end(const Kernel *k, int axis);
/* All axes, with their extents in ext[KERNEL_AXES], which the caller keeps as long. */
JOT_FN Space jot_kernel_space(const Kernel *k, int64_t *ext);
/* k->ixs.v[at..]; NULL where no access of the kernel has an index. */
JOT_FN const Ix *jot_kernel_index(const Kernel *k, uint32_t at);
/* Where an access finds its element in the buffer's memory: k->ixs.v[at..] by its layout. */
JOT_FN Ix jot_kernel_addr(const Kernel *k, uint32_t buf, uint32_t at);
/* Mark the values that the stores need: used[0 .. values.n), all false before. */
JOT_FN void jot_kernel_used(const Kernel *k, bool *used);
JOT_FN bool *jot_kernel_used_new(const Kernel *k); /* the same, values.n of k->mem; NULL: refused */
/* level[value]: reductions at or below it, on the deepest way. */
JOT_FN void jot_kernel_levels(const Kernel *k, uint8_t *level);
/* Is the value provably never above 0 (NaN aside)? */
JOT_FN bool jot_value_low(const Kernel *k, uint32_t value);
/* May this max or min ignore NaN, because every stored result that it enters is NaN anyway then? */
JOT_FN bool jot_value_forgets(const Kernel *k, uint32_t reduce);
/* Drop unused values, which renumbers the others. False: out of memory. */
JOT_FN bool jot_kernel_compact(Kernel *k);
JOT_FN bool jot_reduce_op_identity(EwOp op, jot_DType dtype, jot_Scalar *identity);
JOT_FN void jot_ir_print(const Kernel *k, Text *text);
/* An index expression with the names of axes; s (derived axes) may be NULL. */
struct Sched;
JOT_FN void jot_ix_print_named(const Kernel *k, const struct Sched *s, Ix ix, Text *text);
/* Everything the emitter relies on. On failure false, with the reason in `why` (may be NULL). */
JOT_FN bool jot_ir_verify(const Kernel *k, Text *why);

/* ---- schedules ---------------------------------------------------------------------------- */

/* A loop covers its axis from where outer loops of the axis stand, in steps; what is left for inner
 * loops is `step` wide. Text: axis[:step][kind], "i" is "i:1".
 *     i:8 i          i in blocks of 8, then one by one (a rest is re-emitted with its own extent)
 *     w:1u           unrolled           o:1v   the lanes (extent left must be <= lanes)
 *     r:1p           parallel: only the outermost loops of a phase (n:1p c:1p: all pairs)
 *     j:8U           unrolled; each copy has its own partial sum
 *     j:1l           lanes in a loop, innermost but for unrolled ones: registers are arrays
 *                    with an element for each step; over a reduce axis partial results, folded
 *                    at the end. The emitter makes vectors of it
 *     w:14c          blocks: in the last one unrolled copies beyond the end read the last element
 *                    and do not store     o:32d   the last one runs over the end (panels)
 *     n:1g c:1g      on a device, outermost: all steps of these loops together are shared out among
 *                    teams: work-groups if loops of teams stand inside, else single items
 *     h:1t w:1t      on a device: all steps together are shared out among a work-group's items;
 *                    where there are as many as items, registers inside are each item's own
 *     k:1a           on a device: what a step brings into the group's memory is brought while the
 *                    step before it is worked on
 *     kl:1m          all steps of such loops are one instruction of a matrix unit
 */
typedef enum {
    LOOP_SERIAL, LOOP_PARALLEL, LOOP_UNROLL, LOOP_VECTOR, LOOP_PRIVATE, LOOP_CLAMP, LOOP_PAD,
    LOOP_LANES, LOOP_GRID, LOOP_TEAM, LOOP_AHEAD, LOOP_MATRIX
} LoopKind;
#define LANES_MOST 1024 /* steps of a loop of lanes that registers stand in */
typedef struct {
    uint8_t kind, axis;
    int64_t step;
} SLoop;

typedef enum {
    PLACE_NONE,             /* registers */
    PLACE_KEEP,             /* registers, saved to memory while reduce loops outside `at` go on */
    PLACE_MEM               /* memory */
} PlaceKind;
/* at: indices in sched.ixs. A reduction's second accumulators are in the buffer behind `buf`. */
typedef struct { uint8_t kind; uint32_t buf, at; } Place;

/* A reduction may come in two stages. The first has partial results: each step of its first `part`
 * loops, of which those over axes that are reduced say which, has one of its own, kept in memory.
 * The second (`combine`) runs over these in order and has the value.
 *     %4: r:64p || r j; acc rows[r/64, j]      +%4: j:1p | r:64d; res y[j]
 * Stages of one phase stand together, phases in order: a later one starts when every call of the
 * one before has returned. What crosses from one to another lies in an output or shared buffer. */
#define STAGE_LOOPS 22
#define SCHED_PHASES 8
typedef struct {
    bool store;             /* a store, else a value */
    bool combine;
    uint8_t n, nat;         /* loops; how many stand around the place where the value is kept */
    uint8_t part, phase;
    uint8_t ahead;          /* of a reduction: vectors that move with its innermost loop are
                               prefetched so many steps ahead, 0: they are not; of a store: its
                               block is asked for before the sums that it waits for, 0: it is not */
    uint8_t next; /* with a loop of lanes: the rows that it reads are prefetched one step of loop
                     next - 1 ahead; 0: they are not */
    uint32_t what;          /* number of the store or value */
    Place acc;              /* partial results of a reduction */
    Place res;              /* the finished value: NONE or MEM; NONE after acc MEM: where acc is */
    SLoop loop[STAGE_LOOPS];
} Stage;

/* An axis made of others: it runs over all points of of[0..n), the last fastest. */
typedef struct {
    uint8_t axis, n;
    uint8_t of[8];
} SDef;

typedef struct Sched {
    Kernel *k;              /* the kernel it belongs to */
    const char *no;         /* whoever was to make it refused for this reason; NULL: it says none */
    int lanes;
    int vector_nbytes;      /* of the target: loops whose steps do not depend on each other go in
                               vectors of so many bytes (ccode/emit/loop.c); 0: they stay loops */
    bool fma;               /* sums of products use the target's fused multiply-add */
    int group;              /* of a device: items of a work-group; 0: no grid, no teams */
    int warps;              /* ... 4: four warps of 32 items issue a matrix instruction together */
    bool copies;            /* ... group memory is filled asynchronously, not through registers */
    int buffers;            /* ... buffers of each tile: one is read while others fill; 0: two */
    int registers;          /* ... most registers of an item; 0: 128 */
    Vec(Stage) stages;
    Vec(KAxis) axes;        /* derived axes: numbers KERNEL_AXES and on */
    Vec(SDef) defs;
    Vec(Ix) ixs;            /* indices of places, over kernel and derived axes */
} Sched;

JOT_FN void jot_sched_open(Sched *s, Kernel *k, int lanes);
JOT_FN void jot_sched_close(Sched *s);
/* Number of the new axis, -1 on failure. */
JOT_FN int jot_sched_fuse(Sched *s, const char *name, int n, const int *axes);
/* Text of a schedule, one line per fact; lines begin with
 *     lanes 8 | fma | warps 4 | copies | buffers 4 | fuse m = n h w
 *     layout x 0 2 3 1 halo 2:1,1
 *     %4: n h:14 i:128 o:32 h w:14 | p q i w:1u o:16u o:1v; keep y[n, o, h, w]
 *     %7: r:1p j; res t[r, j]          %5: i | r j; acc t[j]          !0: n h:14 ...
 *     %4: r:64p || r j; acc u[r/64, j] | phase | +%4: j | r:64d
 *     %4: i j:32 | k j:16u j:1v; ahead 16             %5: i j:32 j:1l; res y[i, j]; next 1
 * %4 or %name is a value, !0 a store; "|" marks `at` (none: reductions 0, values all loops). Layout
 * lines set the layouts of the kernel's buffers. Reading: false with the reason in why; *s must be
 * closed or fresh. */
JOT_FN void jot_sched_print(const Sched *s, Text *text);
JOT_FN bool jot_sched_read(Sched *s, Kernel *k, const char *text, size_t n, Text *why);

/* The plain schedule: loops in the order given (every axis once, outermost first); axes not in
 * `order` follow in their own order; with lanes > 1 the innermost goes in vectors. Reductions and
 * stores share loops as far as they can. A reduction whose free axes are a prefix of the order
 * accumulates in a register, others in memory: in the buffer of a plain store, else in scratch that
 * this adds to the kernel, as large as what lies inside of the loops around all uses. The outermost
 * loop is parallel when that is legal. Call once per kernel. */
JOT_FN bool jot_sched_default(Sched *s, Kernel *k, int lanes, int norder, const int *order);
/* The cheapest of a small set of lists of loops on this machine (ccode/schedule/choose.c); order:
 * all axes, by how far they move what is accessed, reduced ones last (jot_build_order_outer). */
JOT_FN bool jot_sched_choose(Sched *s, Kernel *k, const Target *target, int norder,
                             const int *order);
/* Divide a schedule of serial loops in one phase among threads: mark loops parallel, put nests into
 * phases, cut sums over an outer loop into pieces (ccode/schedule/phase.c). */
typedef struct {
    double grain;           /* fewest points of a piece */
    double least;           /* fewest elements summed in a piece */
} PhaseHow;
JOT_FN void jot_sched_phases(Sched *s, const PhaseHow *how);
/* Pieces of some 10 us by the operations of a point. It depends on the kernel alone, not on the
 * machine, so that results do not either. */
JOT_FN PhaseHow jot_phase_how(const Kernel *k);
/* A random legal schedule (order, splits with tails, unrolls, vectors if lanes > 1, places). */
JOT_FN bool jot_sched_random(Sched *s, Kernel *k, int lanes, uint64_t seed);
/* The schedule of a device: nests over a grid, reductions by items or by work-groups no larger than
 * the target's (ccode/device/grid.c). It may split long reductions of the kernel in two. False:
 * there is none, *s is to be closed, and the plain schedule runs on a single item. */
JOT_FN bool jot_sched_grid(Sched *s, Kernel *k, const Target *target);
JOT_FN bool jot_sched_verify(const Sched *s, Text *why); /* legal for s->k, which is verified */
/* After an attempt to schedule k, which may have changed it: if a schedule was made that is legal,
 * both stay, else *s is closed and k what it was. Closes `was`; returns which. */
JOT_FN bool jot_sched_settle(Sched *s, Kernel *k, Kernel *was, bool made);

/* ---- the lowered tree --------------------------------------------------------------------- */

typedef enum {
    TREE_POISON, TREE_ROOT, TREE_LOOP,
    TREE_PHASE,     /* number `stage` */
    TREE_IF_FIRST, TREE_IF_LATER,   /* all of the loops in `ifs` stand at their first step */
    TREE_IF_LAST, TREE_IF_BEFORE,   /* ... at their last step / not all */
    TREE_CLEAR,     /* a buffer is set to an identity or its halo value before anything else */
    TREE_DECL, TREE_INIT, TREE_RELOAD, TREE_STEP, TREE_FINISH, TREE_SAVE, /* parts of a reduction */
    TREE_VALUE,     /* another value is computed, in registers or into memory */
    TREE_STORE,
    TREE_RUN        /* a running reduction goes on to the next point */
} TreeOp;
typedef struct {
    uint8_t op;
    bool quiet;             /* LOOP of an init, reload or finish part: a reduce loop counts as 1
                               step */
    uint32_t stage;         /* leaves: stage number; CLEAR: buffer; PHASE: number */
    uint32_t kids, next;    /* first child, next sibling */
    uint32_t ifs, nifs;     /* IF: loops (tree nodes) in tree.refs */
    SLoop loop;
} TreeNode;
typedef struct {
    Mem *mem;
    Vec(TreeNode) nodes;    /* 0 poison, 1 root */
    Vec(uint32_t) refs;
} Tree;
JOT_FN bool jot_lower(Tree *t, const Sched *s, Text *why); /* s verified */
JOT_FN void jot_lower_close(Tree *t);
JOT_FN void jot_lower_print(const Tree *t, const Sched *s, Text *text);

#endif
