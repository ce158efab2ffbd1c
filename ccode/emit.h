/* ccode/emit.h - a kernel and its schedule as the text of one C function.
 *
 * The walk (ccode/lower/walk.c) turns the lowered tree into code records: loops are bound, unrolled
 * copies made, invariant parts hoisted to the loop they depend on, equal ones shared. The printer
 * (ccode/emit/emit.c) spells the records in a Dialect. Neither knows an operator: ops/scalar.def
 * has the C text.
 *
 * Every function has one signature:
 *     void NAME(void *const *buf, const jot_i64 *ints, const jot_Scalar *scalars, void *scratch,
 *               jot_i64 phase, jot_i64 lo, jot_i64 hi)
 * buf: the kernel's inputs and outputs, in order; behind them, if info.shared_nbytes is not 0, that
 * many bytes, 64-byte aligned, that all calls of a launch share. A launch is its phases 0 ..
 * info.phases - 1 one after the other; phase p is calls whose [lo, hi), steps of its outermost
 * parallel loop, cover 0..info.steps[p], at any time each. scratch: info.scratch_nbytes bytes,
 * 64-byte aligned, private to a call.
 *
 * Read before: ccode/ir/ir.h. After: ccode/lower/walk.c, ccode/emit/emit.c,
 * ccode/emit/dialect.c. */
#ifndef JOT_EMIT_H
#define JOT_EMIT_H
#include "ccode/ir/ir.h"

/* What kernels of a device are spelled with; ccode/device/emit_device.c has the signature. */
typedef struct {
    const char *typedefs;
    const char *kernel;   /* before "void name(" */
    const char *bounds;   /* behind void, before (most items of a group, groups at a time); NULL */
    const char *function; /* before the functions of the prelude */
    const char *global, *shared; /* address spaces: "__global ", "__local " */
    const char *shared_ptr;      /* the second in the type of a pointer */
    bool offsets;         /* buffers come as memory and offset in units of 64 bytes */
    const char *item, *items;    /* number of the item in the launch; of all */
    const char *team, *teams, *lane; /* of the work-group; of all; of the item in its group */
    const char *barrier;  /* of a work-group, for both memories */
    const char *align16;  /* of a variable: it begins at a multiple of 16 bytes */
    const char *given;    /* ... an array of a group's memory, as large as the launch says; NULL:
                             there is none, and arrays of the text have all of it */
    size_t own_nbytes;    /* most that arrays of the text have */
    const char *align;    /* of a struct, before (bytes); NULL: vectors are the language's ... */
    const char *vector[JOT_DTYPES]; /* ... "float4", without the number */
    bool matrix;          /* jot_mma_f16 and jot_mma_bf16 are there (ccode/device/walk_matrix.c) */
    const char *swap32, *swap64; /* compare and swap: functions of (word, old, new) */
} DeviceDialect;

/* How a target spells things: a row of the table in ccode/emit/dialect.c, found by its name. */
typedef struct {
    const char *name;     /* "c": strict C99, lanes are scalars; "gnu": vectors of gcc and clang */
    bool vectors;         /* GNU vector types; else each lane is a variable of its own */
    bool any;             /* extents, strides and constants are arguments (ccode/emit/print.c) */
    const char *restrict_; /* "restrict" or "" */
    const char *function; /* what stands before "void name(" */
    const char *fma;      /* spelling of fma for %f = "f" or "", e.g. "__builtin_fma%f" */
    const char *wide;     /* suffix of 64-bit literals */
    const DeviceDialect *device; /* NULL: functions of this process, see KernelFn */
} Dialect;
JOT_FN const Dialect *jot_dialect_find(const char *name); /* NULL: none of that name */

/* Steps that end early: `times` for each `step` of `per` points for each before number size - 1 of
 * those of a call; size 0: they do not. */
typedef struct { uint8_t size; int64_t per, step, times; } EmitEnd;
/* How one launch of a device's kernel is shared out (ccode/device/walk_grid.c). */
typedef enum {
    LAUNCH_ONE,             /* a single item runs it, from lo 0 to hi steps */
    LAUNCH_ITEMS,           /* each item takes steps of its own */
    LAUNCH_TEAMS            /* the items of a work-group share each step */
} LaunchKind;
typedef struct {
    uint8_t kind;
    int64_t steps;
    size_t group_nbytes;    /* memory that a group is given, beside the text's arrays */
    EmitEnd end;
} EmitLaunch;
#define EMIT_LAUNCHES 16
#define EMIT_INTS 96

typedef struct { uint64_t bit[4]; } BufSet; /* buffers of a kernel, by number */
JOT_FN bool jot_buf_in(const BufSet *set, uint32_t buf);

typedef struct {
    int phases;
    int64_t steps[SCHED_PHASES]; /* of the outermost parallel loop; 1: call with (0, 1) */
    EmitEnd end[SCHED_PHASES];
    size_t scratch_nbytes, shared_nbytes;
    uint32_t nbufs;         /* pointers in buf[], without the one to shared bytes */
    uint32_t lines;         /* of the text */
    int nints;              /* arguments in ints[]: integers, and constants in Node.value's form */
    jot_Scalar ints[EMIT_INTS];
    bool vectors;           /* it has vector types: a compiler has no vectors to find */
    BufSet over;            /* outputs that may lie where KBuf.over does */
    uint8_t begins, as;     /* the output that must begin as an input is, and this; 0: none */
    int group;              /* of a device: items of a work-group */
    size_t group_nbytes;    /* ... memory that launches give to one, at most */
    int launches;           /* ... one after the other: what `phase` counts there */
    EmitLaunch launch[EMIT_LAUNCHES];
} EmitInfo;

/* Append one function definition, without prelude; the dumps asked for by `letters` (NULL: none) to
 * dump. False: out of memory or (with the reason in why, which may be NULL) a schedule that cannot
 * be emitted; `out` is as before then. */
JOT_FN bool jot_emit(const Kernel *k, const Sched *s, const Dialect *d, const char *name,
                     const char *letters, Text *dump, Text *out, EmitInfo *info, Text *why);
/* Append what the functions in `kernels` need before them: typedefs and the prelude functions they
 * name, transitively. Put it before them in one file. */
JOT_FN bool jot_emit_prelude(const Dialect *d, const char *kernels, size_t n, Text *out);
/* Of everything that it may put there: kernels compiled behind another one are others. */
JOT_FN uint64_t jot_emit_prelude_hash(void);

/* The kernel of a CODE node on a device (CODE_OPENCL, CODE_CUDA), with the parameters of any other;
 * as jot_code_text (ops/user/code.h). It has a source there. */
JOT_FN bool jot_code_device_text(jot_Ctx *ctx, NodeId code_node, const DeviceDialect *d, int device,
                                 const char *fn_name, Text *out, int64_t *count);

/* The kernel of a STACK node, in C: buf[0] its elements, ints[2 k] the buffer of piece k, 0 for
 * zeros, and ints[2 k + 1] its first element there. n: elements of a piece. */
JOT_FN void jot_stack_text(jot_DType dtype, int64_t n, const char *fn_name, Text *out);

/* The passes from kernel to text as a table, with their letters for JOT_DUMP. */
typedef struct {
    char letter;
    const char *name, *what;
} EmitPass;
extern const EmitPass jot_emit_passes[];
extern const int jot_emit_passes_n;

#endif
