/* core.h - jot's public interface, the only header a program includes.
 *
 * jot builds a lazy graph out of three meta-operators (reindex, reindex-reduce, element-wise),
 * differentiates it, fuses it, turns every fused group into a loop nest, prints the nest as C,
 * compiles it in the process and runs it.
 *
 *     jot_Ctx *c = jot_open(NULL);
 *     jot_Var  x = jot_array(c, JOT_F32, JOT_SHAPE(2, 3), numbers);
 *     jot_Var  y = jot_sum(jot_mul(x, x), JOT_DIMS(1));      nothing has run yet
 *     const float *v = jot_data(y);                          now it has: two floats
 *     if (jot_error(c)) puts(jot_message(c));
 *     jot_close(c);
 *
 * Errors. The first failure is kept in the context: a code and a message that names the operator,
 * the argument, what was asked and what was found. The function that failed returns a poison handle
 * (or NULL, 0, false); every operator given a poison handle returns poison, so that a model needs
 * one check at its end (a handle that belongs to no context, such as {0}, cannot tell it: its
 * results are just as empty). The first failure stays until jot_clear, and what has nothing to do
 * with it goes on, so a long loop checks now and then. The library prints through the log hook
 * alone and never exits or aborts. Arguments are checked when an operator is built, not when it
 * runs.
 *
 * Threads. A context belongs to one thread at a time. Nothing mutable is shared between contexts.
 *
 * Naming of sources: [J] Jittor (Hu et al. 2020), [N] NeoFlow, [P] the PyTorch JIT, [A] JANUS.
 *
 * Read after: core.c (the pipeline as a list). */
#ifndef JOT_CORE_H
#define JOT_CORE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef JOT_API
#define JOT_API extern
#endif

#define JOT_MAX_RANK 16  /* highest rank of a variable */
#define JOT_MAX_WRT 4096 /* most variables in one call of jot_grad */

/* ---- dtypes ------------------------------------------------------------------------------- */

/* f16 and bf16 are stored in 16 bits and computed in f32. bool is one byte, 0 or 1. */
typedef enum {
    JOT_BOOL, JOT_I8, JOT_I16, JOT_I32, JOT_I64, JOT_U8, JOT_U16, JOT_U32, JOT_U64,
    JOT_F16, JOT_BF16, JOT_F32, JOT_F64, JOT_DTYPES
} jot_DType;

JOT_API size_t jot_dtype_nbytes(jot_DType dtype);       /* bytes of one element */
JOT_API const char *jot_dtype_name(jot_DType dtype);    /* "f32", "bool", ... */
/* dtype of an arithmetic operator on a and b (the table is in ops/dtype.c): the wider of a kind; a
 * signed integer that holds both for mixed signs (u8 + i8 -> i16; u64 with any signed -> i64); the
 * float when one is a float (never f64 unless one is); f16 with bf16 -> f32; bool with bool -> bool
 * (arithmetic, other than logic, takes bool operands as i32). */
JOT_API jot_DType jot_promote(jot_DType a, jot_DType b);

typedef union { int64_t i; uint64_t u; double f; } jot_Scalar;

/* ---- status ------------------------------------------------------------------------------- */

typedef enum {
    JOT_OK,
    JOT_EMEM,     /* an allocation was refused */
    JOT_ESHAPE,   /* wrong rank or extent, or too large a product of extents */
    JOT_EDTYPE,   /* an operator does not take this dtype */
    JOT_EINDEX,   /* an index expression is malformed (the message has a caret) */
    JOT_ERANGE,   /* a dimension, count or value is out of range */
    JOT_EHANDLE,  /* stale, poison or foreign handle */
    JOT_EGRAD,    /* not differentiable */
    JOT_EDEVICE,  /* backend, driver or compiler missing or failing */
    JOT_ECOMPILE, /* generated or user code was refused by its compiler */
    JOT_EIO,      /* a file could not be read or written */
    JOT_EUSE      /* misuse of the interface */
} jot_Status;

typedef struct jot_Ctx jot_Ctx;

/* A handle, copied freely. It names a slot of the context; a slot names a graph node. A handle is
 * owned by the scope in which it was made; a stale one is detected by its generation. */
typedef struct { jot_Ctx *ctx; uint32_t slot, gen; } jot_Var;

/* ---- context ------------------------------------------------------------------------------ */

/* The world as the core sees it. Every field may be NULL but realloc. */
typedef struct {
    /* p NULL: allocate; new_nbytes 0: free, return NULL; else resize, contents kept. NULL is
     * a refusal. */
    void *(*realloc)(void *ud, void *p, size_t old_nbytes, size_t new_nbytes);
    void (*log)(void *ud, const char *text, size_t nbytes); /* dumps and notes */
    const char *(*getenv)(void *ud, const char *name);      /* JOT_BACKEND, ...; NULL: unset */
    int64_t (*now)(void *ud);                               /* nanoseconds, monotonic */
    void *ud;
} jot_Hooks;

/* Fields left 0 or NULL take the environment's value, then the default. */
typedef struct {
    jot_Hooks hooks;        /* realloc NULL: the host's, and for other fields left NULL, too */
    const char *backend;    /* "cpu", "cc", "tcc", "interp"; JOT_BACKEND; default: the first of
                               these that opens. Devices, only when asked for: "opencl", "cuda" */
    const char *policy;     /* fusion: "paper", "reward", "none"; JOT_POLICY; default "reward" */
    const char *dump;       /* letters, see JOT_DUMP=? ; JOT_DUMP */
    const char *layout;     /* of temporaries: "chosen" (default), "rowmajor" or "random:SEED";
                               JOT_LAYOUT */
    const char *schedule;   /* "default" or "random:SEED"; JOT_SCHEDULE */
    const char *precision;  /* "default"; "exact": each product as the program states it, without
                               Winograd's tiles, of halves in floats (in which order a sum adds up
                               is never promised); "fast": larger tiles, with some 10 times the
                               rounding error; "tf32": default, but products of f32 on CUDA may
                               round their factors to tf32; JOT_PRECISION */
    const char *target;     /* vectors that kernels may use: "native" (default), or of an x86
                               machine that has them "avx512", "avx2", "sse"; "random:SEED", for
                               tests: the caches and rates of a machine that is not there;
                               JOT_TARGET */
    const char *cache_dir;  /* where compiled kernels are kept, "" : nowhere; JOT_CACHE_DIR */
    const char *device;     /* opencl: "0.0" (platform.device), "gpu", "cpu", or a part of its name;
                               JOT_OPENCL_DEVICE; default the first GPU, or the first. cuda: a
                               number; JOT_CUDA_DEVICE; default 0 */
    uint64_t device_nbytes; /* memory of a device that may be used; JOT_DEVICE_MEMORY, with K, M or
                               G behind the number; default: what it has. What needs more goes to
                               the host and back meanwhile */
    const char *cc;         /* C compiler of the cc backend; JOT_CC; default cc, gcc, clang */
    int threads;            /* that share a kernel, the caller too; JOT_THREADS; default: cores.
                               Results do not depend on it */
    int lanes; /* JOT_LANES; 0: schedules by price, vectors where they pay (default); else
                  plain schedules: 1 scalar, 2, 4, 8, 16 lanes */
    int no_simplify;        /* 1: build the graph as called (no folding, sharing, composing) */
    int give_back;          /* 1: freed memory goes through the hook at once instead of being kept
                               for reuse: to look for misuse of memory; JOT_GIVE_BACK */
    int deterministic; /* 1: one tier and one schedule, the model's, from the first run on: two runs
                          agree bit for bit; JOT_DETERMINISTIC */
    int tune;          /* schedules by measurement: of each kernel that is met for the first time up
                          to so many, beside the one that the model of the machine chooses, are
                          compiled and timed (some 10 ms each, and a compiler's time), and the
                          fastest stays. It is remembered in tuned.json in the cache directory:
                          what is there is taken with 0, too. 0: none (default); 8 finds most of
                          what there is; JOT_TUNE */
    uint64_t seed;          /* of jot_uniform, jot_normal, jot_dropout; default 0 */
} jot_Config;

/* NULL: everything from the host and its environment. NULL is returned when memory is refused at
 * once; any later failure is in jot_error. */
JOT_API jot_Ctx *jot_open(const jot_Config *config);
JOT_API void jot_close(jot_Ctx *ctx); /* frees everything the context owns; NULL is allowed */

JOT_API jot_Status jot_error(const jot_Ctx *ctx);      /* the first failure, JOT_OK for none */
JOT_API const char *jot_message(const jot_Ctx *ctx);   /* its text, "" for none; owned by ctx */
/* Forget the failure and go on. Assignments made since the last evaluation are withdrawn, and
 * fetches that wait are dropped: a step that failed half way leaves every variable as it was. Where
 * there is no failure it does nothing. */
JOT_API void jot_clear(jot_Ctx *ctx);
JOT_API const char *jot_backend(const jot_Ctx *ctx);   /* name of the backend in use */

typedef struct {
    uint64_t kernels_run;      /* launches since jot_open; the interpreter has none */
    uint64_t replays;          /* runs whose launches a device had as one: CUDA graphs */
    uint64_t handoffs;         /* loops of them that were shared among threads */
    uint64_t beside;           /* ... that ran beside others, each on one thread */
    uint64_t kernels_compiled; /* distinct kernels handed to a compiler */
    uint64_t kernels_quick;    /* ... and to the quick one, to start with (backend cpu) */
    uint64_t swaps;            /* kernels that began on the quick one and go on with better code */
    uint64_t cache_hits;       /* kernels found compiled on disk */
    uint64_t plans;            /* distinct graphs planned */
    uint64_t plan_hits;        /* evaluations that found their plan */
    uint64_t groups_built;     /* groups of new plans whose kernel was built and printed */
    uint64_t groups_known;     /* ... whose kernel an earlier plan had */
    uint64_t edge_visits;      /* work of the fuser: edges looked at */
    uint64_t edges;            /* edges given to the fuser */
    uint64_t tune_kernels;     /* kernels whose schedules were timed (jot_Config.tune) */
    uint64_t tune_schedules;   /* schedules that were, the model's among them */
    uint64_t tune_sessions;    /* times that one was timed, for some launches */
    uint64_t tune_recalled;    /* kernels whose schedule was remembered, and taken */
    uint64_t tune_refused;     /* ... and not taken: it is none of theirs */
    double compile_seconds;    /* in compilers, also beside the program */
    double wait_seconds;       /* that the program waited for compilers */
    double plan_seconds;       /* in making plans, waiting included */
    size_t live_nbytes;        /* memory in use */
    size_t held_nbytes;        /* taken from the realloc hook: in use, or kept for reuse */
    size_t peak_nbytes;        /* most that was held so far */
    uint64_t memory_calls;     /* of the realloc hook */
    size_t device_nbytes;      /* memory of the device in use, */
    size_t device_peak_nbytes; /* ... at most so far */
    uint64_t swapped_nbytes;   /* copied to the host to make room there, and back */
    uint64_t in_place;         /* variables whose new value was written over the old one */
    uint32_t live_nodes, live_slots;
    uint32_t last_kernels;     /* launches of the last evaluation that had any */
    int last_max_rank;         /* highest logical rank of its temporaries */
    uint64_t last_max_elements; /* most elements of one of its temporaries */
    uint64_t last_temp_nbytes; /* bytes of its temporaries, by logical shape */
    size_t last_block_nbytes;  /* that they share, by lifetime */
    size_t last_bound_nbytes;  /* most bytes of them alive at a time: the least that would do */
} jot_Stats;
JOT_API jot_Stats jot_stats(const jot_Ctx *ctx);

/* What the context's prices and schedules take the machine for. Rates are measured once per machine
 * and kept in the cache directory (cc); without one, and for tcc and interp, they are estimates.
 * The default backend puts that off until a plan comes again or jot_machine asks. */
typedef struct {
    char cpu[64];              /* its name, "" where the system does not say */
    bool measured;
    int cores;                 /* that this process may use */
    int vector_nbytes, vectors,
        fma;                   /* widest registers (0: scalar), their number, fused products */
    int64_t cache_nbytes[3];   /* L1, L2 of one core, L3 */
    double flops;              /* per second, one core, f32, a multiply-add counts twice */
    double bandwidth[4];       /* bytes per second that one core reads from L1, L2, L3, memory */
    double bandwidth_all;      /* ... all cores, from memory */
    double call, handoff;      /* seconds: of a launch; until a sleeping thread is at work */
} jot_Machine;
JOT_API jot_Machine jot_machine(jot_Ctx *ctx);

/* ---- variables ---------------------------------------------------------------------------- */

/* Lists in calls. JOT_SHAPE(2, 3), JOT_DIMS(0, 2), JOT_INDEX("i0", "i1+1"); JOT_SHAPE() is a
 * scalar's shape. The pointed-to values are copied by whoever takes a list. */
typedef struct { int n; const int64_t *v; } jot_Ints;
typedef struct { int n; const char *const *v; } jot_Strs;
typedef struct { int n; const jot_Var *v; } jot_Vars;

JOT_API jot_Var jot_array(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data);
/* row-major elements, copied at once; data NULL: zeros */
JOT_API jot_Var jot_param(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data);
/* the same, but it lives outside scopes until jot_free or jot_close */
JOT_API jot_Var jot_param_of(jot_Var value); /* a parameter that begins as value, lazily */
/* One value in every element, converted as by jot_cast: to integers saturating, or wrapping. */
JOT_API jot_Var jot_scalar(jot_Ctx *ctx, jot_DType dtype, double value);
JOT_API jot_Var jot_full(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double value);
JOT_API jot_Var jot_full_int(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t value);
JOT_API jot_Var jot_zeros(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
JOT_API jot_Var jot_ones(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
/* out[i] = i[dim] */
JOT_API jot_Var jot_iota(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int dim);
/* start, start + step, ... (n elements) */
JOT_API jot_Var jot_arange(jot_Ctx *ctx, jot_DType dtype, double start, double step, int64_t n);
/* Counter-based: element i of the k-th random variable of a context is a function of (seed, k, i)
 * alone - the same on every backend and number of threads. Uniform in [0, 1), normal(0, 1). */
JOT_API jot_Var jot_uniform(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
JOT_API jot_Var jot_normal(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
JOT_API void jot_seed(jot_Ctx *ctx, uint64_t seed); /* and k starts at 0 again */

/* Scopes own handles: those made between push and pop end with the pop. jot_keep moves v's slot to
 * the enclosing scope (each call one level out). Depth is limited by memory only. */
JOT_API void jot_push(jot_Ctx *ctx);
JOT_API void jot_pop(jot_Ctx *ctx);
JOT_API jot_Var jot_keep(jot_Var v);
JOT_API void jot_free(jot_Var v); /* end one handle now */

/* target's slot means value from now on (same shape and dtype; lazily: every evaluation runs all
 * pending assignments). target becomes a leaf for gradients. Handles made from the old value keep
 * meaning the old value; but those of the innermost open scope that nothing has evaluated, and that
 * others were made of, may lose it to the evaluation that runs the assignment, whose new value may
 * be written over it: to read such a temporary afterwards is an error (JOT_EUSE). Ask for it in
 * that evaluation, or jot_keep it. Results, of which nothing was made, lose nothing, but cost
 * memory while they wait; nor does anything to what a builder evaluates by itself
 * (JOT_START_NODES). */
JOT_API bool jot_assign(jot_Var target, jot_Var value);
/* Several at once, all or none: where it fails, each target means what it meant before. A value is
 * what its handle means before the call, so two variables may change places; of a target that is
 * named twice the last value counts. */
JOT_API bool jot_assign_all(jot_Vars targets, jot_Vars values);

JOT_API bool jot_ok(jot_Var v);                 /* a live handle, not poison */
JOT_API int jot_rank(jot_Var v);                /* -1 for poison */
JOT_API int64_t jot_extent(jot_Var v, int dim); /* negative: from the end; -1 for poison */
JOT_API jot_Ints jot_shape(jot_Var v);          /* owned by the context, valid while v is */
JOT_API int64_t jot_nelem(jot_Var v);           /* product of the extents; -1 for poison */
JOT_API jot_DType jot_dtype(jot_Var v);
JOT_API void jot_name(jot_Var v, const char *name); /* for dumps; copied */
/* v's value, through which no gradient flows / which is stored, not fused with what follows. */
JOT_API jot_Var jot_stop_grad(jot_Var v);
JOT_API jot_Var jot_stop_fuse(jot_Var v);

/* For operators of your own, composed of these (see ops/nn.c). Keep a failure as the library's do,
 * and return poison; the format knows %d %u %lld %llu %zu %x %s %c %g. ctx NULL: poison only. */
JOT_API jot_Var jot_raise(jot_Ctx *ctx, jot_Status status, const char *format, ...);
/* The context of the first operand that has one; NULL: all are empty handles. Then each of them,
 * under its argument's name: v is a live handle of ctx, or it fails there. */
JOT_API jot_Ctx *jot_ctx_of(jot_Vars operands);
JOT_API bool jot_check(jot_Ctx *ctx, jot_Var v, const char *op, const char *arg);
JOT_API jot_Var jot_leave(jot_Ctx *ctx, jot_Var v); /* jot_pop, but v goes to the enclosing scope */

/* ---- evaluation --------------------------------------------------------------------------- */

/* Row-major elements, evaluated if need be; owned by the context, valid until v ends or is
 * assigned. NULL after a failure. */
JOT_API const void *jot_data(jot_Var v);
JOT_API double jot_item(jot_Var v);     /* the one element of v as a double; NaN after a failure */
JOT_API int64_t jot_item_int(jot_Var v);
JOT_API bool jot_copy(jot_Var v, void *to, size_t nbytes); /* nbytes must be v's size */
JOT_API bool jot_set(jot_Var v, const void *data); /* assign new row-major elements, copied at once;
                                                          data NULL: zeros */
/* Evaluate these (n = 0: only what is pending) and all pending assignments; all or nothing. */
JOT_API bool jot_run(jot_Ctx *ctx, jot_Vars vars);

typedef struct { jot_DType dtype; jot_Ints shape; const void *data; size_t nbytes; } jot_Tensor;
typedef void jot_FetchFn(void *user, const jot_Tensor *value); /* value is valid during the call */
/* Ask for v's value; returns at once. The callback runs on the context's thread, in the order of
 * the fetches: inside jot_poll, or inside the next evaluation - on a device jot_run does not wait
 * for its own values, which travel beside the kernels of the evaluation that follows and come
 * inside that one; an evaluation by jot_data, jot_item or jot_copy waits and calls all. A callback
 * may fetch again, for the evaluation after this one, but not evaluate. If the evaluation fails, it
 * waits for the next, or for jot_clear or jot_close, after which it does not come. */
JOT_API bool jot_fetch(jot_Var v, jot_FetchFn *callback, void *user);
JOT_API bool jot_poll(jot_Ctx *ctx); /* evaluate what fetches wait for, and call all */

/* When a context holds more than JOT_START_NODES operators that have not run, the builder that
 * crosses the line evaluates its result and what is pending. */
#define JOT_START_NODES 32768

/* ---- compiled functions ------------------------------------------------------------------- */

/* What outputs stand on, down to inputs, frozen: it runs again on other elements without a graph
 * being built and without the allocator.
 *
 *     x = jot_array(c, JOT_F32, JOT_SHAPE(64, 784), NULL);           a place for a batch
 *     loss = ...(x, w, ...); jot_grad(...); jot_step(optim, grads);  a step, built once
 *     f = jot_compile(c, JOT_VARS(x), JOT_VARS(loss));
 *     for (...) jot_call(f, (const void *[]){batch}, (void *[]){&value});
 *
 * inputs are arrays or parameters on which the graph was built. An assignment that waits for an
 * evaluation and stands on an input, a parameter or random numbers becomes part of the function: it
 * is withdrawn now and done by every call (other assignments run now). Parameters, what was once
 * assigned and learning rates (jot_set_lr) are read as they are at the time of the call, which
 * first runs what waits; other arrays and literals are as they are now. Random variables are drawn
 * anew by each call, as if the graph were built again.
 *
 * NULL after a failure: an input that is an expression or is assigned; an assigned variable that
 * was an expression (jot_zeros) when the graph was built on it. The function belongs to the context
 * and ends with jot_func_free or jot_close. */
typedef struct jot_Func jot_Func;
JOT_API jot_Func *jot_compile(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs);
/* in[k]: the elements of inputs[k], row-major; out[k], memory for those of outputs[k], which may
 * overlap in. A list may be NULL when there is nothing in it. All or nothing: after a failure no
 * variable has changed and nothing was written. */
JOT_API bool jot_call(jot_Func *f, const void *const *in, void *const *out);
/* The same with variables: in has the shapes and dtypes of inputs, out[k] is a new array. out has
 * room for as many as outputs; poison in it after a failure. */
JOT_API bool jot_call_vars(jot_Func *f, jot_Vars in, jot_Var *out);
JOT_API void jot_func_free(jot_Func *f);

/* The same function as one C99 file that needs no library, not even one of C (a compiler may call
 * memcpy, memmove, memset, and where the processor lacks an operation its own functions, libgcc's):
 *
 *     enum { NAME_ARENA = ... };
 *     void NAME(void *arena, const float *in0, ..., float *out0, ...);
 *
 * Parameters and arrays are tables in it, with the values that they have now; updates change the
 * tables. The caller brings an arena of NAME_ARENA bytes, aligned as a double is, which need not
 * keep anything from call to call. Where NAME_HEADER is defined the file is its own header, for C
 * and C++. What it computes is what jot computes with scalar code: what jot_call computes, but for
 * the rounding of sums in another order and of fused multiply-adds.
 * Refused: what jot_compile refuses, and random variables. jot_export is there in hosted builds,
 * jot_export_text in all. */
JOT_API bool jot_export(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
                        const char *path);
typedef void jot_WriteFn(void *user, const char *text, size_t nbytes);
JOT_API bool jot_export_text(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
                             jot_WriteFn *write, void *user); /* piece by piece */

/* ---- gradients ---------------------------------------------------------------------------- */

/* grads[k] = d y / d wrt[k], where y is a float scalar (one element); plain graph nodes, so they
 * can be differentiated again. A wrt that y does not depend on gets zeros. False (and poison grads)
 * when y is no float scalar, or a wrt is not a float or a constant (jot_ones, jot_full, ...): the
 * message says why. */
JOT_API bool jot_grad(jot_Var y, const jot_Var *wrt, int n, jot_Var *grads);
/* grads[k] = sum over outputs j of dy[j] . d y[j] / d wrt[k]; dy[j] has y[j]'s shape and dtype. */
JOT_API bool jot_vjp(jot_Vars y, jot_Vars dy, jot_Vars wrt, jot_Var *grads);

/* ---- the three meta-operators ------------------------------------------------------------- */

typedef enum { JOT_ADD, JOT_MUL, JOT_MAX, JOT_MIN, JOT_AND, JOT_OR, JOT_XOR,
               JOT_BITAND, JOT_BITOR, JOT_BITXOR, JOT_MEAN, JOT_REDUCE_OPS } jot_ReduceOp;

/* out[i] = x[index(i)], i over shape [J 3.1]. index has one expression per dimension of x; grammar
 * in ops/index.h: integers, i0.., extents of x (xs0..) and of the output (ys0..), + - * / %
 * (floor), comparisons, && || !, and @e0(...), a load from the integer variable extra.v[0]. Where
 * an index leaves x, or a condition is 0, out is `overflow` (converted to x's dtype; NaN and
 * infinities allowed). conditions and extra may be empty lists. */
JOT_API jot_Var jot_reindex(jot_Var x, jot_Ints shape, jot_Strs index);
JOT_API jot_Var jot_reindex_ex(jot_Var x, jot_Ints shape, jot_Strs index, jot_Strs conditions,
                               double overflow, jot_Vars extra);
/* out[index(i)] op= y[i], i over y's space, from op's identity [J 3.1]. index has one expression
 * per dimension of the output (named xs0..; y's extents are ys0..). Elements whose index leaves the
 * output, or whose condition is 0, are dropped. A mean divides by the number of elements that fall
 * on an output; where none does, the result is NaN (0 for integers). */
JOT_API jot_Var jot_reindex_reduce(jot_ReduceOp op, jot_Var y, jot_Ints shape, jot_Strs index);
JOT_API jot_Var jot_reindex_reduce_ex(jot_ReduceOp op, jot_Var y, jot_Ints shape, jot_Strs index,
                                      jot_Strs conditions, jot_Vars extra);

/* Element-wise operators broadcast by NumPy's rules and promote by jot_promote. Float functions
 * take integers as f32. Comparisons and logic give bool. */
#define JOT_UNARY(X) \
    X(neg) X(abs) X(sign) X(floor) X(ceil) X(round) X(trunc) X(sqrt) X(rsqrt) X(cbrt) X(exp) \
    X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) \
    X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(sigmoid) X(softplus) X(erf) X(erfc) \
    X(isnan) X(isinf) X(isfinite) X(signbit) X(logical_not) X(bit_not)
#define JOT_BINARY(X) \
    X(add) X(sub) X(mul) X(div) X(floordiv) X(mod) X(fmod) X(pow) X(maximum) X(minimum) X(fmax) \
    X(fmin) X(copysign) X(heaviside) X(hypot) X(atan2) X(logaddexp) X(eq) X(ne) X(lt) X(le) X(gt) \
    X(ge) X(logical_and) X(logical_or) X(logical_xor) X(bit_and) X(bit_or) X(bit_xor) \
    X(shift_left) X(shift_right)
#define JOT_DECL1_(name) JOT_API jot_Var jot_##name(jot_Var a);
#define JOT_DECL2_(name) JOT_API jot_Var jot_##name(jot_Var a, jot_Var b);
JOT_UNARY(JOT_DECL1_)
JOT_BINARY(JOT_DECL2_)
/* floordiv and mod round towards minus infinity, as Python's; integers by 0 give 0; fmod is C's.
 * round: halves to even. maximum, minimum: NaN wins; fmax, fmin: the number wins; ties share their
 * gradient. heaviside(a, b): 0 below 0, b at 0, 1 above. logaddexp: log(e^a + e^b). Integers wrap.
 * Shifts by a negative count or by the width and more give 0; of negative numbers, to the right,
 * -1. */
JOT_API jot_Var jot_select(jot_Var condition, jot_Var a, jot_Var b); /* condition ? a : b */
JOT_API jot_Var jot_cast(jot_Var a, jot_DType dtype); /* floats to integers saturate, NaN gives 0 */
JOT_API jot_Var jot_scale(jot_Var a, double k);  /* a * k in a's dtype */
JOT_API jot_Var jot_offset(jot_Var a, double k); /* a + k in a's dtype */
JOT_API jot_Var jot_clamp(jot_Var a, double lo, double hi);
JOT_API jot_Var jot_square(jot_Var a);
JOT_API jot_Var jot_reciprocal(jot_Var a);

/* ---- specialised forms of reindex --------------------------------------------------------- */

JOT_API jot_Var jot_broadcast_to(jot_Var x, jot_Ints shape);         /* NumPy's rules */
JOT_API jot_Var jot_broadcast(jot_Var x, jot_Ints shape, jot_Ints dims);
/* new dimensions `dims` of `shape`; x's are the others, in order, of equal extent or 1 */
JOT_API jot_Var jot_reshape(jot_Var x, jot_Ints shape);              /* one extent may be -1 */
JOT_API jot_Var jot_transpose(jot_Var x, jot_Ints order); /* out dim k = x's dim order[k] */
JOT_API jot_Var jot_swap(jot_Var x, int dim_a, int dim_b);
JOT_API jot_Var jot_slice(jot_Var x, jot_Ints start, jot_Ints stop, jot_Ints step);
/* Python's x[start:stop:step] per dimension, negative steps and indices too; JOT_END: to the end */
#define JOT_END INT64_MIN
JOT_API jot_Var jot_pad(jot_Var x, jot_Ints before, jot_Ints after, double value); /* < 0: crop */
JOT_API jot_Var jot_flip(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_tile(jot_Var x, jot_Ints times);                 /* one count per dimension */
JOT_API jot_Var jot_expand(jot_Var x, int dim);                      /* insert a dimension of 1 */
JOT_API jot_Var jot_squeeze(jot_Var x, int dim);                     /* remove a dimension of 1 */
JOT_API jot_Var jot_concat(jot_Vars vars, int dim);
JOT_API jot_Var jot_stack(jot_Vars vars, int dim);
/* out = x with dimension dim replaced by index's dimensions; an index outside x gives 0 (a negative
 * one does not count from the end). Gradient: scatter-add. */
JOT_API jot_Var jot_gather(jot_Var x, jot_Var index, int dim);
JOT_API jot_Var jot_one_hot(jot_Var index, int64_t classes, jot_DType dtype); /* new last dim */

/* ---- specialised forms of reindex-reduce -------------------------------------------------- */

#define JOT_ALL_DIMS (jot_ints(-1, NULL))
/* Reduce over dims (JOT_ALL_DIMS: all; negative dims count from the end); keep: leave extents of 1.
 * Sums and products of bool, i8..i32 are i64, of u8..u32 u64. Reducing nothing gives the identity;
 * max and min over an empty dimension are refused. mean of integers is f32. */
JOT_API jot_Var jot_reduce(jot_ReduceOp op, jot_Var x, jot_Ints dims, bool keep);
JOT_API jot_Var jot_sum(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_prod(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_max(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_min(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_mean(jot_Var x, jot_Ints dims);
/* Mean of squared deviations from the mean. As exact as two passes, though large data are read
 * once: moments of blocks, merged (Chan). A mean of squares of x - mean(x) over the same dimensions
 * is recognised as one. */
JOT_API jot_Var jot_variance(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_any(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_all(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_argmax(jot_Var x, int dim); /* i64, first of equals; NaN counts as largest */
JOT_API jot_Var jot_argmin(jot_Var x, int dim);

/* ---- user code ---------------------------------------------------------------------------- */

/* (a) A kernel in C over whole arrays. In the source, `x` is a pointer to an input's row-major
 * elements, x_n its number of elements, x_0, x_1 ... its extents, x_s0 ... its strides in elements;
 * outputs likewise; scalars are `double` values by name and do not recompile. The text is the body
 * of a function in C99 without headers: extents, strides, numbers and lo, hi (see parallel) are of
 * type jot_i64, and elements of jot_i8 .. jot_u64, float or double (bool: jot_u8; f16, bf16:
 * jot_u16). A gradient source per input computes dx (named d + input) from the inputs, the outputs
 * and the outputs' gradients (d + output), all whole arrays. */
typedef void jot_HostFn(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars);
typedef struct { const char *name; jot_DType dtype; jot_Ints shape; int like; } jot_CodeOut;
/* like >= 0 : shape and dtype of input `like`; -1: as given */
typedef struct { const char *name; double value; } jot_CodeScalar;
/* The kernel for a device, in its language. Pointers are the device's (in OpenCL __global); each
 * step of `parallel` is an item's, as lo = step, hi = lo + 1; a gradient is one item's. source
 * NULL: it does not run there. */
typedef struct {
    const char *source, *helpers;
    const char *const *grad_source;
} jot_CodeText;
typedef struct {
    const char *name;                 /* for messages and dumps */
    int inputs; const jot_Var *in; const char *const *in_names;
    int outputs; const jot_CodeOut *out;
    int scalars; const jot_CodeScalar *scalar;
    const char *helpers;              /* C functions put before the kernel; NULL: none */
    const char *source;               /* body in C; asked for whatever the backend is */
    const char *const *grad_source;   /* one per input, NULL entries or NULL: no gradient */
    const char *parallel;             /* name of an extent, e.g. "y_0": the body is run for ranges
                                         [lo, hi) of it; NULL: once, lo = 0 and hi = 1 */
    jot_HostFn *host; void *user;     /* for backends without a compiler (interp); may be NULL */
    jot_CodeText opencl, cuda;
} jot_Code;
JOT_API bool jot_code(jot_Ctx *ctx, const jot_Code *code, jot_Var *outputs);
/* Functions of both: those of ccode/prelude.def, on every backend, by their names there: jotm_exp
 * of double, jotm_expf of float, jotm_maxf, jotm_erf, jotm_sqrtf, ... The C library's need an
 * #include in `helpers` and a compiler that has its headers (cc; tcc has none). (b) An element-wise
 * expression in C over a, b, c ... (an operand each, at most 16, a to p; after broadcasting and
 * promotion), whose value dtype holds: fuses with its neighbours. gradients: expression for
 * d out / d operand k in terms of these and y (the result); NULL: no gradient. */
JOT_API jot_Var jot_code_map(const char *expression, jot_Vars operands, jot_DType dtype,
                             const char *const *gradients);

/* ---- compositions (ops/math.c, nn.c, loss.c, optim.c: written with this header alone) ------ */

/* (..., m, k) (..., k, n) -> (..., m, n): extents in front are equal or 1; a vector is a matrix
 * without m, or without n. */
JOT_API jot_Var jot_matmul(jot_Var a, jot_Var b);
typedef struct { int stride[2], pad[2], dilation[2], groups; } jot_Conv; /* 0: 1, 0, 1, 1 */
/* x (n, c, h, w), w (o, c / groups, kh, kw) -> (n, o, h', w'); groups divide o; the window is no
 * larger than the padded image. conv NULL: all as by 0. */
JOT_API jot_Var jot_conv2d(jot_Var x, jot_Var w, const jot_Conv *conv);
/* x (n, c, h, w) -> (n, c, h', w'). stride 0: size; pad is at most half the size. */
typedef struct { int size[2], stride[2], pad[2]; } jot_Pool;
JOT_API jot_Var jot_max_pool2d(jot_Var x, const jot_Pool *pool); /* ties share the gradient */
JOT_API jot_Var jot_avg_pool2d(jot_Var x, const jot_Pool *pool); /* padding counts as zeros */
JOT_API jot_Var jot_linear(jot_Var x, jot_Var w, jot_Var b); /* x (.., i), w (i, o), b (o) */
JOT_API jot_Var jot_relu(jot_Var x); /* derivative 0 at 0 */
JOT_API jot_Var jot_gelu(jot_Var x); /* x/2 (1 + erf(x / sqrt 2)) */
JOT_API jot_Var jot_gelu_tanh(jot_Var x);
JOT_API jot_Var jot_softmax(jot_Var x, int dim);
JOT_API jot_Var jot_log_softmax(jot_Var x, int dim);
JOT_API jot_Var jot_cross_entropy(jot_Var logits, jot_Var labels);
/* (n, c), ints (n) -> mean; NaN where a label is outside 0..c-1 */
JOT_API jot_Var jot_mse(jot_Var a, jot_Var b); /* of one shape; mean of squares, scalar */
/* x (n, c, ...) or (n, c); scale, shift, mean, var (c). Training: statistics of the batch, one pass
 * over x; run_mean and run_var come in as the running values so far and go out as the new ones, for
 * the caller to assign (biased variance for x, unbiased for the running value; momentum is the
 * weight of the new value); NULL: none. */
JOT_API jot_Var jot_batch_norm_eval(jot_Var x, jot_Var scale, jot_Var shift, jot_Var mean,
                                    jot_Var var, double eps);
JOT_API jot_Var jot_batch_norm_train(jot_Var x, jot_Var scale, jot_Var shift, double eps,
                                     double momentum, jot_Var *run_mean, jot_Var *run_var);
/* Over the last dimension, whose extent scale and shift have. */
JOT_API jot_Var jot_layer_norm(jot_Var x, jot_Var scale, jot_Var shift, double eps);
JOT_API jot_Var jot_instance_norm(jot_Var x, double eps); /* (n, c, h, w), over h w */
JOT_API jot_Var jot_dropout(jot_Var x, double rate); /* scaled by 1 / (1 - rate) */
/* Initial values of a weight, of a float dtype, whose fan-in and fan-out (at least 1) are given:
 * normal with deviation sqrt(2 / fan_in); uniform within +-sqrt(6 / (fan_in + fan_out)). */
JOT_API jot_Var jot_kaiming(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t fan_in);
JOT_API jot_Var jot_xavier(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t fan_in,
                           int64_t fan_out);

/* Optimisers: one call per step assigns all parameters (lazily), each of which is named once: all
 * of them and what the optimiser keeps, or, where it fails, nothing. Rates are at least 0, betas
 * below 1, else NULL. State belongs to the context and ends with jot_optim_free or the context.
 * sgd: d = g + weight_decay p, b = momentum b + d, p = p - lr b; adam: ops/optim.c. grads[k] has
 * the shape and dtype of params.v[k]. */
typedef struct jot_Optim jot_Optim;
JOT_API jot_Optim *jot_sgd(jot_Vars params, double lr, double momentum, double weight_decay);
JOT_API jot_Optim *jot_adam(jot_Vars params, double lr, double beta1, double beta2, double eps);
JOT_API bool jot_step(jot_Optim *optim, const jot_Var *grads);
JOT_API void jot_set_lr(jot_Optim *optim, double lr);
JOT_API void jot_optim_free(jot_Optim *optim);

/* ---- seeing ------------------------------------------------------------------------------- */

/* The graph that vars stand on, one node a line, through the log hook. */
JOT_API bool jot_print_graph(jot_Ctx *ctx, jot_Vars vars);

/* ---- profile ------------------------------------------------------------------------------ */

/* true: launches are timed from here on, and what was kept before is forgotten; false: no more.
 * What was kept stays until then or until jot_close. Fails without a clock (jot_Hooks.now) or
 * memory. The interpreter launches nothing. */
JOT_API bool jot_profile(jot_Ctx *ctx, bool on);
/* All launches of one function with the same extents. */
typedef struct {
    const char *name, *what;     /* of the function; the operators inside. The profile's */
    uint64_t launches;
    double seconds, least;       /* of all launches; of the fastest one */
    double read, written, flops; /* of a launch: bytes that are touched, each once; operations (a
                                    multiply-add 2, exp and the like 16). 0 for user code */
    /* seconds that these take on this machine at least (jot_machine) */
    double floor;
} jot_ProfileKernel;
/* One launch, or (kernel -1) the making of a plan; the first 65,536 are kept. */
typedef struct {
    int64_t start, nanoseconds;  /* since jot_profile(ctx, true); how long */
    int kernel;                  /* index among jot_profile_kernels */
} jot_ProfileEvent;
/* Copy at most `most` of them, in order of their first launch (of time); return how many there
 * are. */
JOT_API int jot_profile_kernels(const jot_Ctx *ctx, jot_ProfileKernel *out, int most);
JOT_API int jot_profile_events(const jot_Ctx *ctx, jot_ProfileEvent *out, int most);
/* To a file (hosted builds): a table, Chrome's trace JSON, a roofline as SVG. */
typedef enum { JOT_PROFILE_TABLE, JOT_PROFILE_TRACE, JOT_PROFILE_ROOFLINE } jot_ProfileForm;
JOT_API bool jot_profile_write(jot_Ctx *ctx, jot_ProfileForm form, const char *path);

static inline jot_Ints
jot_ints(int n, const int64_t *v)
{
    jot_Ints r;
    r.n = n;
    r.v = v;
    return r;
}

static inline jot_Strs
jot_strs(int n, const char *const *v)
{
    jot_Strs r;
    r.n = n;
    r.v = v;
    return r;
}

static inline jot_Vars
jot_vars(int n, const jot_Var *v)
{
    jot_Vars r;
    r.n = n;
    r.v = v;
    return r;
}

#ifdef __cplusplus
}
/* C++ has no compound literals: a temporary that lives to the end of the full expression. */
template <class T, int N> struct jot_List_ { T v[N + 1]; };
template <class... A> inline jot_List_<int64_t, sizeof...(A)> jot_i64s_(A... a)
{ return jot_List_<int64_t, sizeof...(A)>{{(int64_t)a..., 0}}; }
template <class... A> inline jot_List_<const char *, sizeof...(A)> jot_cstrs_(A... a)
{ return jot_List_<const char *, sizeof...(A)>{{a..., (const char *)0}}; }
template <class... A> inline jot_List_<jot_Var, sizeof...(A)> jot_varlist_(A... a)
{ return jot_List_<jot_Var, sizeof...(A)>{{a..., jot_Var()}}; }
template <int N> inline jot_Ints jot_as_(const jot_List_<int64_t, N> &l)
{ return jot_ints(N, l.v); }
template <int N> inline jot_Strs jot_as_(const jot_List_<const char *, N> &l)
{ return jot_strs(N, l.v); }
template <int N> inline jot_Vars jot_as_(const jot_List_<jot_Var, N> &l)
{ return jot_vars(N, l.v); }
#define JOT_SHAPE(...) (jot_as_(jot_i64s_(__VA_ARGS__)))
#define JOT_INDEX(...) (jot_as_(jot_cstrs_(__VA_ARGS__)))
#define JOT_VARS(...) (jot_as_(jot_varlist_(__VA_ARGS__)))
#else
/* the leading element lets a list be empty */
#define JOT_SHAPE(...) \
    (jot_ints((int)(sizeof((int64_t[]){0, __VA_ARGS__}) / sizeof(int64_t)) - 1, \
              (int64_t[]){0, __VA_ARGS__} + 1))
#define JOT_INDEX(...) \
    (jot_strs((int)(sizeof((const char *[]){0, __VA_ARGS__}) / sizeof(char *)) - 1, \
              (const char *[]){0, __VA_ARGS__} + 1))
/* of up to 32 handles; counted by the preprocessor, because tcc cannot size an array of structs */
#define JOT_VARS(...) \
    (jot_vars(JOT_COUNT_(__VA_ARGS__), (jot_Var[JOT_COUNT_(__VA_ARGS__)]){__VA_ARGS__}))
#define JOT_COUNT_(...) \
    JOT_PICK_(__VA_ARGS__, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, \
              14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define JOT_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, \
                  a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, n, ...) n
#endif
#define JOT_DIMS JOT_SHAPE
#define JOT_NONE_STRS (jot_strs(0, NULL))
#define JOT_NONE_VARS (jot_vars(0, NULL))

#endif
