/* core.h - jot's public interface; nn.h, layer.h, expr.h, speculate.h, data.h, io.h have more.
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
 * Errors. The context keeps the first failure: a code, and a message that names the operator and
 * the argument, what was expected and what was found. The call that failed returns a poison handle
 * (or NULL, 0, false; each declaration says which), and an operator given a poison handle returns
 * poison, so a whole model needs one check at its end. The failure stays until jot_clear; work that
 * does not depend on it goes on, so a long loop should check from time to time; jot_compile,
 * jot_call and jot_export, which freeze or change what is there, refuse until then. An empty
 * handle, such as {0}, belongs to no context and cannot record a failure: operators given only
 * empty handles return empty handles. Arguments are checked when an operator is built, not when it
 * runs.
 * The library prints through the log hook alone, and never exits or aborts.
 *
 * Ownership. Pointers that the caller passes in (data, lists, strings, descriptions) are read
 * during the call and copied where they are needed later; `user` and `ud` pointers are only handed
 * back. Pointers that jot returns belong to the context; each declaration says how long they live.
 *
 * Threads. A context belongs to one thread at a time. Contexts share no mutable state.
 *
 * fork. A context belongs to the process that opened it: a child has none of its threads. There,
 * values that were evaluated can be read (on a device: those that the host had been given), what
 * would evaluate or compile fails with JOT_EUSE, and jot_close frees memory but leaves the parent's
 * threads, compilers, files and device alone. A child may open contexts of its own.
 *
 * Stack. A call needs at most 128 KB, however deep the graph; what a user's own code, hooks and
 * callbacks and a device's driver need is beside that.
 *
 * Sources, named where a definition comes from one: [J] Jittor (Hu et al. 2020).
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

#define JOT_VERSION_MAJOR 0
#define JOT_VERSION_MINOR 9
#define JOT_VERSION_PATCH 0
#define JOT_VERSION (JOT_VERSION_MAJOR * 10000 + JOT_VERSION_MINOR * 100 + JOT_VERSION_PATCH)
JOT_API int jot_version(void); /* JOT_VERSION of the library that runs */

#define JOT_MAX_RANK 16  /* highest rank of a variable */
#define JOT_MAX_WRT 4096 /* most variables in one call of jot_grad */

/* ---- dtypes ------------------------------------------------------------------------------- */

/* f16 and bf16 are stored in 16 bits and computed in f32. bool is one byte, 0 or 1. */
typedef enum {
    JOT_BOOL, JOT_I8, JOT_I16, JOT_I32, JOT_I64, JOT_U8, JOT_U16, JOT_U32, JOT_U64,
    JOT_F16, JOT_BF16, JOT_F32, JOT_F64, JOT_DTYPES
} jot_DType;

JOT_API size_t jot_dtype_nbytes(jot_DType dtype);       /* bytes of one element; 0: no dtype */
JOT_API const char *jot_dtype_name(jot_DType dtype);    /* "f32", "bool", ...; static text */
/* The dtype in which an arithmetic operator computes on operands of dtypes a and b:
 *   - within one kind, the wider one; f16 with bf16 gives f32
 *   - mixed signs: the smallest signed integer that holds both (u8 with i8 gives i16); u64 with a
 *     signed integer gives i64
 *   - a float with an integer: the float, unchanged (never f64 unless one operand is f64)
 *   - bool with bool: bool, though arithmetic other than logic then computes in i32
 * JOT_DTYPES when a or b is no dtype. */
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

/* A handle of a variable, copied freely. It names a slot of the context, and the slot names a graph
 * node. The scope in which a handle was made owns it; a stale one (freed, or its scope ended) is
 * detected by its generation. */
typedef struct { jot_Ctx *ctx; uint32_t slot, gen; } jot_Var;

/* ---- context ------------------------------------------------------------------------------ */

/* All that the core asks of its surroundings. Every field but realloc may be NULL. They are called
 * on the thread that uses the context, from within its calls; threads of the library's own call
 * none of them. */
typedef struct {
    /* p NULL: allocate new_nbytes. new_nbytes 0: free p, return NULL. Otherwise resize and keep the
     * contents. NULL refuses, and then p stays valid. Results are aligned as malloc's, for any
     * object of C; where large ones begin at multiples of 64, kernels are faster. */
    void *(*realloc)(void *ud, void *p, size_t old_nbytes, size_t new_nbytes);
    void (*log)(void *ud, const char *text, size_t nbytes); /* dumps and notes */
    const char *(*getenv)(void *ud, const char *name);      /* JOT_BACKEND, ...; NULL: unset */
    int64_t (*now)(void *ud);                               /* nanoseconds, monotonic */
    void *ud;                                               /* handed to each of them */
} jot_Hooks;

/* Beside making a context, jot_open and what comes after it
 *   - read the environment, through the hook      not with no_environment
 *   - read and write a cache folder               not with cache_dir ""
 *   - start compilers, which are programs         not with no_programs (libtcc or the interpreter)
 *   - start threads                               not with no_threads (a device's driver may)
 *
 * A field that is 0 or NULL takes the value of the environment variable named beside it, and where
 * that is unset the default. -1 (in device_nbytes UINT64_MAX) and "" are the default whatever the
 * environment says. */
typedef struct {
    jot_Hooks hooks;        /* realloc NULL: the host's, and then also for other NULL hooks */
    const char *backend;    /* "cpu", "cc", "tcc", "interp", "opencl" or "cuda"; JOT_BACKEND.
                               Default: the first of the first four that opens; devices are
                               used only when named */
    const char *policy;     /* of fusion: "reward" (default), "paper" or "none"; JOT_POLICY */
    const char *dump;       /* letters of the dumps to print, "?" lists them; JOT_DUMP */
    const char *layout;     /* of temporaries: "chosen" (default), "rowmajor" or "random:SEED";
                               JOT_LAYOUT */
    const char *schedule;   /* "default" or "random:SEED"; JOT_SCHEDULE */
    const char *precision;  /* JOT_PRECISION; none of them promises the order in which a sum adds:
                               "default";
                               "exact": no rewriting of products: no Winograd tiles, and products
                               of f16 and bf16 in floats, not in matrix units;
                               "fast": larger Winograd tiles, some 10 times the rounding error;
                               "tf32": as default, but products of f32 on CUDA may round their
                               factors to tf32 */
    const char *target;     /* vector instructions of kernels: "native" (default), or on an x86
                               machine that has them "avx512", "avx2", "sse"; JOT_TARGET. For
                               tests "random:SEED": invented caches and rates */
    const char *cache_dir;  /* where compiled kernels are kept; "" for nowhere; JOT_CACHE_DIR */
    const char *device;     /* opencl: "0.0" (platform.device), "gpu", "cpu", or a part of its name;
                               default the first GPU, or the first device; JOT_OPENCL_DEVICE.
                               cuda: a number, default 0; JOT_CUDA_DEVICE */
    uint64_t device_nbytes; /* most device memory to use, default all; what does not fit is swapped
                               to the host. JOT_DEVICE_MEMORY, with K, M or G behind the number */
    const char *cc;         /* C compiler of the cc backend; default cc, gcc, clang; JOT_CC */
    int threads;            /* that share a kernel, the calling one included; default: one per core;
                               JOT_THREADS. Results do not depend on it */
    int lanes; /* 0 (default): schedules and vectors are chosen by price; else plain schedules
                  with 1 (scalar), 2, 4, 8 or 16 lanes; JOT_LANES */
    int no_simplify;        /* 1: build the graph as called (no folding, sharing, composing) */
    int give_back;          /* 1: freed memory goes back through the hook at once instead of being
                               kept for reuse, so that memory checkers see it; JOT_GIVE_BACK */
    int deterministic; /* 1: one compiler and the model's schedule from the first run on, so that
                          two runs agree bit for bit; JOT_DETERMINISTIC */
    int tune;          /* N > 0: a kernel met for the first time is compiled and timed with up to N
                          schedules beside the model's (each some 10 ms and a compilation), and the
                          fastest stays. 8 finds most of what there is. The choice is remembered in
                          tuned.json in the cache directory and used by later runs, also with tune
                          0 (default); JOT_TUNE */
    uint64_t seed;          /* of jot_uniform, jot_normal, jot_dropout; default 0 */
    int check;              /* 1: positions that jot_take and others of its kind are given outside
                               of what they read or write, labels outside of a loss's classes, are
                               an error of the evaluation (JOT_ERANGE) instead of 0, nothing or
                               NaN; slower, and not on devices; JOT_CHECK */
    int no_environment;     /* 1: no variable is read; programs are looked for in /usr/bin, /bin */
    int no_programs;        /* 1: no program is started */
    int no_threads;         /* 1: no thread is started; threads is 1, compilers are waited for */
} jot_Config;

/* config NULL: everything from the host and its environment. jot_open(&config) passes the size that
 * the caller was compiled with: fields of a newer library are 0, and those of a newer caller must
 * be (JOT_EUSE). Returns NULL only when the context itself cannot be allocated (or there is no
 * realloc hook); any other failure is in jot_error of the context that is returned, which the
 * caller closes in either case. */
JOT_API jot_Ctx *jot_open_sized(const jot_Config *config, size_t nbytes);
static inline jot_Ctx *jot_open(const jot_Config *config);
JOT_API void jot_close(jot_Ctx *ctx); /* frees everything the context owns; NULL is allowed */

JOT_API jot_Status jot_error(const jot_Ctx *ctx);      /* the first failure, JOT_OK for none */
JOT_API const char *jot_message(const jot_Ctx *ctx);   /* its text, "" for none; owned by ctx */
/* Forget the failure and go on. Assignments and fetches made since the last evaluation that went
 * well are undone, so that a step that failed half way leaves every variable as it was. Does
 * nothing when there is no failure. */
JOT_API void jot_clear(jot_Ctx *ctx);
JOT_API const char *jot_backend(const jot_Ctx *ctx);   /* name of the backend in use, or "none" */
/* Who makes its code: "libtcc, then cc" (the first runs soon, the second fast), "cc", "libtcc",
 * "NVRTC", "the driver's"; "none" where nothing is compiled. */
JOT_API const char *jot_compilers(const jot_Ctx *ctx);
JOT_API int jot_threads(const jot_Ctx *ctx); /* that share a kernel, the calling one included */

/* Counts since jot_open, except for the last_ fields, which describe the last evaluation that
 * launched anything. */
typedef struct {
    uint64_t kernels_run;      /* launches; the interpreter has none */
    uint64_t replays;          /* runs that a device launched as one: CUDA graphs */
    uint64_t handoffs;         /* launches whose loop was shared among threads */
    uint64_t concurrent;           /* launches that ran beside others, each on one thread */
    uint64_t kernels_compiled; /* distinct kernels given to a compiler */
    uint64_t kernels_quick;    /* of these, first compiled by the quick one (backend cpu) */
    uint64_t swaps;            /* kernels whose quick code was replaced by better code */
    uint64_t cache_hits;       /* kernels found compiled on disk */
    uint64_t plans;            /* distinct graphs planned */
    uint64_t plan_hits;        /* evaluations that found their plan */
    uint64_t groups_built;     /* groups of new plans whose kernel had to be built and printed */
    uint64_t groups_known;     /* groups of new plans whose kernel an earlier plan had */
    uint64_t edge_visits;      /* edges that the fuser looked at: its work */
    uint64_t edges;            /* edges given to the fuser */
    uint64_t tune_kernels;     /* kernels whose schedules were timed (jot_Config.tune) */
    uint64_t tune_schedules;   /* schedules timed, the model's included */
    uint64_t tune_sessions;    /* timings, of some launches each */
    uint64_t tune_recalled;    /* kernels whose remembered schedule was used */
    uint64_t tune_refused;     /* remembered schedules that did not fit their kernel */
    double compile_seconds;    /* in compilers, also while the program went on */
    double wait_seconds;       /* the program waited for compilers */
    double plan_seconds;       /* making plans, waiting included */
    size_t live_nbytes;        /* host memory in use */
    size_t held_nbytes;        /* host memory taken from the realloc hook: in use or kept */
    size_t peak_nbytes;        /* highest held_nbytes so far */
    uint64_t memory_calls;     /* calls of the realloc hook */
    size_t device_nbytes;      /* device memory in use */
    size_t device_peak_nbytes; /* highest device_nbytes so far */
    uint64_t swapped_nbytes;   /* copied to the host and back for want of device memory */
    uint64_t in_place;         /* assignments that wrote the new value over the old one */
    uint32_t live_nodes, live_slots;
    uint32_t last_kernels;     /* launches */
    int last_max_rank;         /* highest logical rank of a temporary */
    uint64_t last_max_elements; /* most elements of a temporary */
    uint64_t last_temp_nbytes; /* sum of the temporaries' sizes, by logical shape */
    size_t last_block_nbytes;  /* size of the block that they share, by lifetime */
    size_t last_bound_nbytes;  /* most bytes of them alive at once: a lower bound for the block */
    uint64_t begun;            /* number of the jot_begin that waits for its end; 0: none does */
} jot_Stats;
/* All 0 for NULL. jot_stats fills what its caller was compiled with; what the library has not
 * stays 0. */
JOT_API void jot_stats_sized(const jot_Ctx *ctx, jot_Stats *stats, size_t nbytes);
static inline jot_Stats jot_stats(const jot_Ctx *ctx);

/* The machine as the schedules and their prices see it. Rates are measured once per machine and
 * kept in the cache directory; without a cache, and for tcc and interp, they are estimates. The
 * default backend measures when a plan comes again or jot_machine asks. */
typedef struct {
    char cpu[64];              /* its name, "" where the system does not say */
    bool measured;             /* false: estimates */
    int cores;                 /* that this process may use */
    int vector_nbytes, vectors,
        fma;                   /* widest registers (0: scalar), how many, fused multiply-add */
    int64_t cache_nbytes[3];   /* L1, L2 of one core, L3 */
    double flops;              /* per second, one core, f32; a multiply-add counts as two */
    double bandwidth[4];       /* bytes per second that one core reads from L1, L2, L3, memory */
    double bandwidth_all;      /* bytes per second that all cores read from memory */
    double call, handoff;      /* seconds: to launch a kernel; to wake a sleeping thread */
} jot_Machine;
/* As jot_stats. */
JOT_API void jot_machine_sized(jot_Ctx *ctx, jot_Machine *machine, size_t nbytes);
static inline jot_Machine jot_machine(jot_Ctx *ctx);

/* ---- variables ---------------------------------------------------------------------------- */

/* Lists in calls: JOT_SHAPE(2, 3), JOT_INTS(1, 0), JOT_INDEX("i0", "i1+1"), JOT_VARS(a, b) of any
 * length (with tcc at most 64 variables; more do not compile), and of what an array holds
 * jot_ints(n, array), jot_strs, jot_vars, jot_dims. JOT_SHAPE() is the shape of a scalar. Whoever
 * takes a list copies what it points to. */
typedef struct { int n; const int64_t *v; } jot_Ints;
typedef struct { int n; const char *const *v; } jot_Strs;
typedef struct { int n; const jot_Var *v; } jot_Vars;
/* Dimensions that are reduced; keep: they stay, with extent 1. JOT_DIMS(0, 2), JOT_KEEP(-1); all:
 * JOT_ALL_DIMS, JOT_KEEP_ALL. */
typedef struct { int n; const int64_t *v; bool keep; } jot_Dims;

/* Variables with elements of their own. data: row-major elements, copied at once (bool: any byte
 * but 0 is true); NULL: zeros. An array belongs to the scope it is made in; a parameter lives
 * outside all scopes until jot_free or jot_close. */
JOT_API jot_Var jot_array(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data);
/* An array whose elements stay where they lie, in memory of the caller's (a file that is mapped,
 * say): aligned as elements are (else JOT_EUSE), bools 0 or 1, nothing written to it by the
 * library, nor by the caller before release(user, data). That is called once, on the context's
 * thread, in whatever call no longer needs the memory, at the latest in jot_close; it must not call
 * jot. release NULL: the memory outlives the context. After a failure nothing was borrowed. */
typedef void jot_ReleaseFn(void *user, const void *data);
JOT_API jot_Var jot_array_borrow(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data,
                                 jot_ReleaseFn *release, void *user);
JOT_API jot_Var jot_param(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, const void *data);
JOT_API jot_Var jot_param_of(jot_Var value); /* a parameter that begins as value, lazily */
/* One value in every element. value is converted as by jot_cast; full_int's wraps around. */
JOT_API jot_Var jot_scalar(jot_Ctx *ctx, jot_DType dtype, double value);
JOT_API jot_Var jot_full(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, double value);
JOT_API jot_Var jot_full_int(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t value);
JOT_API jot_Var jot_zeros(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
JOT_API jot_Var jot_ones(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
/* out[i] = i[dim] */
JOT_API jot_Var jot_iota(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int dim);
/* (n): start, start + step, ...; for integer dtypes start and step must be whole numbers */
JOT_API jot_Var jot_arange(jot_Ctx *ctx, jot_DType dtype, double start, double step, int64_t n);
/* Random numbers of a float dtype: uniform in [0, 1), normal with mean 0 and deviation 1. They are
 * counter-based: element i of the k-th random variable of a context is a function of (seed, k, i)
 * alone, whatever the backend and the number of threads. */
JOT_API jot_Var jot_uniform(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
JOT_API jot_Var jot_normal(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape);
JOT_API void jot_seed(jot_Ctx *ctx, uint64_t seed); /* a new seed; k starts at 0 again */
/* Where the generator stands: its seed and the k of the next random variable. Set back, it draws
 * the same numbers again. All 0 for ctx NULL. */
typedef struct { uint64_t seed, k; } jot_RandomState;
JOT_API jot_RandomState jot_random_state(const jot_Ctx *ctx);
JOT_API void jot_set_random_state(jot_Ctx *ctx, jot_RandomState state);

/* Scopes own handles: those made between push and pop end with the pop. jot_keep moves v to the
 * enclosing scope (each call one level out) and returns it. Memory alone limits the depth: where it
 * is refused to a push, all that would be made until its pop is poison. */
JOT_API void jot_push(jot_Ctx *ctx);
JOT_API void jot_pop(jot_Ctx *ctx); /* JOT_EUSE when no scope is open */
JOT_API jot_Var jot_keep(jot_Var v);
JOT_API jot_Var jot_dup(jot_Var v); /* a second handle of what v means now, outside all scopes */
JOT_API void jot_free(jot_Var v); /* end one handle now */

/* From now on the handle target means value (of the same shape and dtype, else JOT_ESHAPE or
 * JOT_EDTYPE). The assignment is lazy: the next evaluation runs all pending ones. target is then a
 * leaf for gradients. Other handles that were made from the old value keep meaning the old value,
 * with one exception: the new value may be written over the old one, and then intermediate handles
 * of the innermost open scope that were never evaluated are lost, and reading one is JOT_EUSE
 * (intermediate: other variables were made from it). To read such a temporary, ask for it in the
 * same evaluation or jot_keep it. Results, from which nothing was made, are never lost, but cost
 * memory until they are read; evaluations that the library starts by itself (JOT_START_NODES) lose
 * nothing. */
JOT_API bool jot_assign(jot_Var target, jot_Var value);
/* Several assignments at once, all or none. Each value is what its handle means before the call, so
 * two variables can be exchanged. If a target is named twice, its last value counts. */
JOT_API bool jot_assign_all(jot_Vars targets, jot_Vars values);

/* Several evaluations, all or nothing: jot_begin runs what is pending, and until its end what
 * variables were then is kept, as far as they are assigned. jot_rollback gives each its value of
 * then, and the generator its place, whatever was assigned, run or called (jot_call) since, or has
 * failed; it cannot fail, and the failure stays until jot_clear. jot_commit lets go what was kept.
 * Handles are none of it: what was made stays, what was freed is gone; nor fetches: they come with
 * the values that they were asked for. One at a time (JOT_EUSE). */
JOT_API bool jot_begin(jot_Ctx *ctx);
JOT_API void jot_commit(jot_Ctx *ctx);   /* as the next: nothing where nothing was begun */
JOT_API void jot_rollback(jot_Ctx *ctx);

JOT_API bool jot_ok(jot_Var v);                 /* a live handle, not poison */
JOT_API int jot_rank(jot_Var v);                /* -1 for poison */
JOT_API int64_t jot_extent(jot_Var v, int dim); /* dim < 0: from the end; -1 after a failure */
JOT_API jot_Ints jot_shape(jot_Var v);          /* v.v belongs to the context and lives as long as
                                                   the handle; n is -1 for poison */
JOT_API int64_t jot_nelem(jot_Var v);           /* product of the extents; -1 for poison */
JOT_API jot_DType jot_dtype(jot_Var v);         /* JOT_DTYPES for poison */
JOT_API void jot_name(jot_Var v, const char *name); /* for dumps; copied; NULL: no name */
/* v's value, through which no gradient flows. */
JOT_API jot_Var jot_stop_grad(jot_Var v);
/* v's value, which is stored and not fused with what uses it. */
JOT_API jot_Var jot_stop_fuse(jot_Var v);

/* For operators of your own, composed of these, as networks' are below. jot_raise keeps a failure
 * as the library's functions do and returns poison; format knows %d %u %lld %llu %zu %x %s %.*s %c
 * %g. ctx NULL: only returns poison. */
JOT_API jot_Var jot_raise(jot_Ctx *ctx, jot_Status status, const char *format, ...);
/* The context of the first operand that has one; NULL when all are empty handles. */
JOT_API jot_Ctx *jot_ctx_of(jot_Vars operands);
/* Whether v is a live handle of ctx; if not, fails with JOT_EHANDLE, naming operator op and its
 * argument arg. */
JOT_API bool jot_check(jot_Ctx *ctx, jot_Var v, const char *op, const char *arg);
/* index, looked at by the evaluation where jot_Config.check says so: an element outside of
 * 0..extent-1 fails it with JOT_ERANGE in the name of operator op. extents: one, or one for each
 * position of the last dimension. Where nothing is checked it is index itself. */
JOT_API jot_Var jot_check_index(jot_Var index, jot_Ints extents, const char *op);
/* jot_pop, but v moves to the enclosing scope; returns v. */
JOT_API jot_Var jot_leave(jot_Ctx *ctx, jot_Var v);

/* ---- evaluation --------------------------------------------------------------------------- */

/* v's elements, row-major, evaluated if need be. The context owns them; they are valid until v ends
 * or is assigned. NULL after a failure. */
JOT_API const void *jot_data(jot_Var v);
/* The same for a v of that dtype, else NULL and JOT_EDTYPE. */
JOT_API const uint8_t *jot_data_bool(jot_Var v);
JOT_API const int8_t *jot_data_i8(jot_Var v);
JOT_API const int16_t *jot_data_i16(jot_Var v);
JOT_API const int32_t *jot_data_i32(jot_Var v);
JOT_API const int64_t *jot_data_i64(jot_Var v);
JOT_API const uint8_t *jot_data_u8(jot_Var v);
JOT_API const uint16_t *jot_data_u16(jot_Var v);
JOT_API const uint32_t *jot_data_u32(jot_Var v);
JOT_API const uint64_t *jot_data_u64(jot_Var v);
JOT_API const uint16_t *jot_data_f16(jot_Var v);  /* bits */
JOT_API const uint16_t *jot_data_bf16(jot_Var v); /* bits */
JOT_API const float *jot_data_f32(jot_Var v);
JOT_API const double *jot_data_f64(jot_Var v);
/* The one element of v (JOT_ESHAPE if it has not exactly one): as a double, NaN after a failure; as
 * an integer, converted as by jot_cast, 0 after a failure. */
JOT_API double jot_item(jot_Var v);
JOT_API int64_t jot_item_int(jot_Var v);
/* Copy v's elements to memory of the caller; nbytes must be their size (JOT_ESHAPE). */
JOT_API bool jot_copy(jot_Var v, void *to, size_t nbytes);
/* Assign new row-major elements, copied at once; data NULL: zeros. nbytes as in jot_copy. */
JOT_API bool jot_set(jot_Var v, const void *data, size_t nbytes);
/* Evaluate vars and all pending assignments (vars.n 0: only these). All or nothing. */
JOT_API bool jot_run(jot_Ctx *ctx, jot_Vars vars);

typedef struct { jot_DType dtype; jot_Ints shape; const void *data; size_t nbytes; } jot_Tensor;
typedef void jot_FetchFn(void *user, const jot_Tensor *value); /* value is valid during the call */
/* Ask for v's value and return at once; the next evaluation computes it. Callbacks run on the
 * context's thread, in the order of the fetches:
 *   - jot_poll evaluates, waits for all values and calls all callbacks
 *   - jot_data, jot_item and jot_copy call those of all evaluations up to then, their own included
 *   - jot_run on a device does not wait for the values it computes: they are copied while the next
 *     evaluation's kernels run, and their callbacks run inside that evaluation
 * A callback may fetch again, for the following evaluation, but must not evaluate. If an evaluation
 * fails, its fetches wait for the next one, or jot_clear drops them without a call; those of
 * evaluations that went well still come. jot_close drops all. */
JOT_API bool jot_fetch(jot_Var v, jot_FetchFn *callback, void *user);
JOT_API bool jot_poll(jot_Ctx *ctx); /* evaluate what fetches wait for and run their callbacks */

/* A builder call that brings a context to more than JOT_START_NODES operators that have not run
 * evaluates its result and what is pending, so that memory stays bounded. */
#define JOT_START_NODES 32768

/* ---- compiled functions ------------------------------------------------------------------- */

/* Freeze the graph between inputs and outputs into a function that runs on other elements without
 * building a graph and without calling the allocator (but for memory that is needed where elements
 * cannot be read or written where they lie, once).
 *
 *     x = jot_array(c, JOT_F32, JOT_SHAPE(64, 784), NULL);           a place for a batch
 *     loss = ...(x, w, ...); jot_grad(...); jot_step(optim, ...);    a step, built once
 *     f = jot_compile(c, JOT_VARS(x), JOT_VARS(loss));
 *     for (...)
 *         jot_call(f, JOT_INS(JOT_IN(batch, sizeof batch)), JOT_OUTS(JOT_OUT(&value, 4)));
 *
 * inputs: distinct arrays or parameters from which the graph was built, and which are not assigned.
 * Pending assignments that depend on an input, a parameter or random numbers become part of the
 * function: they are withdrawn now, and every call performs them. Other pending assignments run
 * now. Each call first runs what is pending by then, reads the current values of parameters, of
 * variables that were assigned and of learning rates (jot_set_lr), and draws random numbers anew,
 * as if the graph were built again, but for random variables before the first that it needs. All
 * other arrays and literals keep their values of now.
 *
 * Refused (JOT_EUSE) are an input that is an expression or is assigned, and
 * an assigned variable that was still an expression (jot_zeros, say) when the graph was built. The
 * context owns the function, which ends with jot_func_free or jot_close. After a failure its handle
 * is poison. */
typedef struct { jot_Ctx *ctx; uint32_t slot, gen; } jot_Func; /* as a jot_Var: copied freely, a
                                                                  stale one is detected */
JOT_API jot_Func jot_compile(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs);
JOT_API bool jot_func_ok(jot_Func f); /* a live handle, not poison */
/* in: the elements of each input, row-major; out: memory for those of each output, which may
 * overlap in. One of each per input and output, of the very size in bytes, else JOT_ESHAPE. Both
 * are used where they lie, if they are aligned as their elements are and outputs overlap nothing;
 * else they are copied (JOT_DUMP=p says so). All or nothing: after a failure no variable has
 * changed and nothing was written to out. */
typedef struct { const void *data; size_t nbytes; } jot_In;
typedef struct { void *data; size_t nbytes; } jot_Out;
typedef struct { int n; const jot_In *v; } jot_Ins;
typedef struct { int n; const jot_Out *v; } jot_Outs;
JOT_API bool jot_call(jot_Func f, jot_Ins in, jot_Outs out);
/* The same with variables: in.v[k] has the shape and dtype of inputs[k]; out has room for one
 * handle per output, each a new array, or poison after a failure. */
JOT_API bool jot_call_vars(jot_Func f, jot_Vars in, jot_Var *out);
JOT_API void jot_func_free(jot_Func f); /* does nothing to poison and empty handles */

/* A function whose extents are said by each call: a batch, a length, the sides of a picture.
 *
 *     static bool
 *     build(jot_Ctx *c, const int64_t *extent, jot_Var *in, jot_Var *out, void *user)
 *     {
 *         in[0] = jot_array(c, JOT_F32, JOT_SHAPE(extent[0], 784), NULL);
 *         out[0] = network(user, in[0]);
 *         return true;
 *     }
 *
 *     jot_Extent batch = {"batch", 1, 512, 0};
 *     jot_Builder how = {1, &batch, 1, 1, build, &net};
 *     jot_Func f = jot_compile_open(c, &how);
 *     jot_call_open(f, JOT_INTS(n), JOT_INS(JOT_IN(x, n * 784 * 4)), JOT_OUTS(JOT_OUT(y, n * 40)));
 *
 * build makes the graph for given extents, as for jot_compile: in, what it stands on, out, what
 * comes out; what it makes beside goes, so parameters are made before. It does the same whenever it
 * is called with the same extents, and is called at jot_compile_open for some of them and later for
 * those that come often: user lives as long as the function. False: it gave up, which is a failure.
 *
 * There is one plan, for the most extents, if the graph allows: loops end where the call's extents
 * do, and what lies beyond is masked. A call makes no plan and compiles nothing; it copies its
 * inputs to variables of the most extents, and its results from such (on a device by way of the
 * host), and works in memory that is as large as the most extents ask. Sizes whose graph is another
 * are ranges with a plan each, made when a call first falls into one. For sizes that came a few
 * times, and are an eighth of the calls, kernels of their own are compiled beside, and taken when
 * they are there (not with config.deterministic). Where no plan serves several (jot_open_why says
 * why; JOT_DUMP=p, too) each size has a plan of its own, made when it first comes, of the last 64
 * that came; so it is with the interpreter.
 *
 * JOT_ERANGE: extents outside of their bounds, by name; no extents, or more than
 * JOT_OPEN_EXTENTS. */
enum { JOT_OPEN_EXTENTS = 3 };
typedef struct { const char *name; int64_t least, most, step; } jot_Extent; /* step 0: 1; one that
                                      is asked for is least + k * step. The name is copied */
typedef bool jot_BuildFn(jot_Ctx *ctx, const int64_t *extent, jot_Var *in, jot_Var *out,
                         void *user);
typedef struct {
    int nextents;
    const jot_Extent *extents;
    int ninputs, noutputs;
    jot_BuildFn *build;
    void *user;
} jot_Builder;
JOT_API jot_Func jot_compile_open(jot_Ctx *ctx, const jot_Builder *builder);
/* jot_call, jot_call_vars with these extents. */
JOT_API bool jot_call_open(jot_Func f, jot_Ints extents, jot_Ins in, jot_Outs out);
JOT_API bool jot_call_vars_open(jot_Func f, jot_Ints extents, jot_Vars in, jot_Var *out);
/* The shape of an output for these extents, until the next call with f; n -1: refused. */
JOT_API jot_Ints jot_open_shape(jot_Func f, jot_Ints extents, int output);
/* Its dtype, at all extents; JOT_DTYPES: refused. */
JOT_API jot_DType jot_open_dtype(jot_Func f, int output);
/* Why each size has a plan of its own, or which have; "": none needs one. It lives as long as f,
 * and tells of more ranges once calls fell into them. */
JOT_API const char *jot_open_why(jot_Func f);

/* An evaluation that becomes a function: jot_run of outputs, and f, which does the same again, with
 * the same kernels: from other elements of inputs and the current values of parameters and of all
 * that a handle from before the beginning names it makes outputs and performs all assignments that
 * were pending. So a program runs as it is, piece by piece where it looks at values, and its pieces
 * can be called (speculate.h does that).
 *
 *     jot_capture_begin(c, &capture);
 *     ...                                            x made, a graph built, assignments
 *     jot_capture(c, JOT_VARS(x), JOT_VARS(loss), &capture, &f);     loss has its value; f its step
 *
 * inputs: arrays, and what was evaluated by captures since the beginning; others count for nothing.
 * Draws are numbered from where the generator stood at the beginning: who calls f sets it
 * (jot_set_random_state), before and after.
 * Within jot_begin it may read what variables were then, too, as its calls do.
 * False: the evaluation failed. f is poison, and why says why, where the evaluation cannot be a
 * function: it reads another value from before an assignment that has run, an expression or draw
 * from before the beginning, an array that several handles name, something that was evaluated
 * otherwise since; or a parameter begins in it; or it is what jot_compile refuses. */
typedef struct {
    jot_RandomState random;   /* at the beginning, as are the next five */
    uint64_t nodes, runs;     /* so many were made, and were run */
    uint64_t handles;         /* ... were made */
    uint32_t live;            /* ... and lived */
    uint32_t depth;           /* scopes that were open */
    uint64_t hash;            /* of the evaluation: its graph, literals, and arrays made since */
    char why[320];            /* "": f is one */
} jot_Capture;
JOT_API void jot_capture_begin(jot_Ctx *ctx, jot_Capture *capture);
/* made: handles since the beginning that live; ended: those of before that do not. What they have
 * done to handles calls of f do not repeat. */
JOT_API void jot_capture_handles(const jot_Ctx *ctx, const jot_Capture *capture, uint32_t *made,
                                 uint32_t *ended);
/* f NULL: the function is not kept; hash and why are set. */
JOT_API bool jot_capture(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, jot_Capture *capture,
                         jot_Func *f);

/* Write the same function as one C99 file that needs no library, not even C's (a compiler may
 * insert calls of memcpy, memmove, memset, and of libgcc where the processor lacks an operation):
 *
 *     enum { NAME_ARENA = ... };
 *     void NAME(void *arena, const float *in0, ..., float *out0, ...);
 *
 * Parameters and arrays become tables in the file, with their values of now; assignments change the
 * tables, and are withdrawn as by jot_compile: a step for both is built twice. 64-bit integers are
 * (unsigned) long long. arena: NAME_ARENA bytes of the caller, aligned as a double is, whose
 * contents need not last from call to call. With NAME_HEADER defined the file is its own header,
 * for C and C++. The code is scalar, and its results are those of jot_call up to rounding (other
 * order of sums, no fused multiply-adds).
 * name: a C identifier of at most 63 characters. Refused (JOT_EUSE): what jot_compile refuses, and
 * random variables. jot_export (path: the file; JOT_EIO) exists in hosted builds, jot_export_text
 * (the text piece by piece) in all. */
JOT_API bool jot_export(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
                        const char *path);
typedef void jot_WriteFn(void *user, const char *text, size_t nbytes);
JOT_API bool jot_export_text(jot_Ctx *ctx, const char *name, jot_Vars inputs, jot_Vars outputs,
                             jot_WriteFn *write, void *user);
/* The same of a function with open extents (jot_compile_open), which are arguments in the order of
 * builder->extents:
 *
 *     int NAME(void *arena, long long n0, ..., const float *in0, ..., float *out0, ...);
 *
 * It returns 0, or 1 + k where nk is out of its bounds or between its steps: then nothing is read
 * or written. NAME_ARENA is enough for the most extents. Inputs and outputs are as large as the
 * extents say. Where one plan does not serve all sizes there are several in the file; refused
 * (JOT_EUSE, with the sizes and why) is a function of which more than 16 sizes have plans of their
 * own. */
JOT_API bool jot_export_open(jot_Ctx *ctx, const char *name, const jot_Builder *builder,
                             const char *path);
JOT_API bool jot_export_open_text(jot_Ctx *ctx, const char *name, const jot_Builder *builder,
                                  jot_WriteFn *write, void *user);

/* ---- saved graphs ------------------------------------------------------------------------- */

/* Save the graph between inputs and outputs as one file, which loads without the code that built
 * it, on any backend: a network, or a training step. It is a file of safetensors (io.h): tensors
 * by the names of their variables (jot_name; else param.0, array.1, ...), and the graph as text in
 * its metadata ("jot.graph"). inputs are as jot_compile's; their elements are not saved.
 * Assignments that jot_compile would take are saved as the graph's updates, and go on waiting here;
 * where there are none, what is pending runs. The old file of that name is there until the new one
 * is whole.
 * Refused (JOT_EUSE), by name: code that calls a function of the program's (jot_Code.host without
 * a source), what jot_compile refuses, and beside updates a parameter that was set, or begun by
 * jot_param_of, and has not run. Gradients of one's own are saved as values: a gradient through
 * them is refused (JOT_EGRAD) when the graph was loaded. JOT_EIO. Hosted builds, without
 * JOT_NO_IO. */
JOT_API bool jot_save(jot_Ctx *ctx, jot_Vars inputs, jot_Vars outputs, const char *path);
/* What was loaded: arrays of zeros for inputs, outputs, and parameters as they were saved, in the
 * order of the graph; names of those without one are in0, out0, param0. The handles are outside all
 * scopes, and live with the lists and names until jot_saved_free or jot_close. */
typedef struct {
    jot_Vars inputs, outputs, params;
    jot_Strs input_names, output_names, param_names;
    uint64_t hash;            /* of the graph: equal ones have the same */
    jot_Var record;           /* the memory of it */
} jot_Saved;
/* Load it: updates become pending assignments, as if the graph had been built by calls, and draws
 * are numbered from where the context's generator stands. jot_compile makes the kernels of it that
 * it made of the original.
 *     jot_load(c, "step.jot", 0, &g);
 *     step = jot_compile(c, g.inputs, g.outputs);
 * how: 0, or JOT_LOAD_CODE to take C code of the user's (jot_code, jot_code_map), which running the
 * graph runs: of files from whom you would run programs; else it is refused. A file may be damaged
 * or lie: it is refused with a sentence, nothing is left of it, and before that it takes at most
 * 128 bytes for each of its own and 16 MB, beside the memory of its inputs, whose shapes it tells.
 * Arrays stay where they lie in the file, which nobody writes to as long as they live (a new one
 * may take its name). All or nothing. JOT_EIO; JOT_EUSE in a build without cJSON. */
enum { JOT_LOAD_CODE = 1 };
JOT_API bool jot_load(jot_Ctx *ctx, const char *path, unsigned how, jot_Saved *saved);
/* The same from memory, which must outlive what was loaded. name: for messages. */
JOT_API bool jot_load_memory(jot_Ctx *ctx, const char *name, const void *bytes, size_t nbytes,
                             unsigned how, jot_Saved *saved);
/* The same graph again, with the elements that its parameters have now: the next checkpoint of a
 * step that jot_compile has taken, and that was called since. As jot_save; nothing runs. */
JOT_API bool jot_saved_write(const jot_Saved *saved, const char *path);
/* Ends all its handles: functions that read its parameters end before. NULL, and one that is all 0,
 * are allowed. */
JOT_API void jot_saved_free(jot_Saved *saved);

/* ---- gradients ---------------------------------------------------------------------------- */

/* grads[k] = d y / d wrt.v[k], of its shape and dtype, for k < wrt.n <= JOT_MAX_WRT; y is a float
 * with one element. Gradients are graph nodes like any other and can be differentiated again. A
 * variable that y does not depend on gets zeros. A wrt may be an expression, of which equal ones
 * are one. False and poison in grads (JOT_EGRAD, with the reason) when y is not such a scalar, when
 * a wrt is not a float, is a constant (jot_ones, jot_full, ...) or an expression that y was
 * simplified past without a trace (jot_neg of jot_neg; jot_stop_fuse keeps it), or when an operator
 * in between has no gradient. */
JOT_API bool jot_grad(jot_Var y, jot_Vars wrt, jot_Var *grads);
/* reach[k]: whether gradients of y reach x.v[k], for k < x.n <= JOT_MAX_WRT: as it is now; only as
 * it was before an assignment, which y was made before; or not at all. */
typedef enum { JOT_REACH_NONE, JOT_REACH_PAST, JOT_REACH_NOW } jot_Reach;
JOT_API bool jot_reaches(jot_Var y, jot_Vars x, jot_Reach *reach);
/* grads[k] = sum over j of dy[j] . d y[j] / d wrt[k]; dy[j] has the shape and dtype of y[j]. */
JOT_API bool jot_vjp(jot_Vars y, jot_Vars dy, jot_Vars wrt, jot_Var *grads);
/* Forward: dy[j] = sum over k of d y[j] / d x[k] . dx[k], how y moves where x moves by dx; dx[k]
 * has the shape and dtype of x[k], dy[j] those of y[j]. One node or two per operator that stands on
 * x, which fuse with it: the way where x is small and y is large, for products of a Hessian with a
 * vector (the jvp of a gradient), and, batched by jot_vmap, for whole Jacobians. Tangents can be
 * differentiated again, either way. Refused (JOT_EGRAD) is what jot_grad refuses, and jot_code,
 * whose sources run backward. */
JOT_API bool jot_jvp(jot_Vars y, jot_Vars x, jot_Vars dx, jot_Var *dy);

/* A gradient of one's own: out[j] has the value of y[j], and what flows into it goes to x alone and
 * is what `grad` builds of it, whenever a gradient is made: dx[k], of x[k]'s shape and dtype, from
 * x, y (which are out) and dy (zeros where nothing flows). A dx[k] that is left as it is, an empty
 * handle, is none; integers have none. grad returns false after a failure; it builds and must not
 * evaluate. It may be called several times, and `user` must last as long as the graph does. A
 * gradient by an expression inside, which y reads beside x, is refused (JOT_EGRAD).
 *
 * What grad builds is differentiated for second order, and where it is linear in dy, as gradients
 * are, there are tangents, too. So user code gets a second order, and tangents: in grad, build the
 * gradient of it by a jot_code that has gradient sources of its own. */
typedef bool jot_CustomGradFn(void *user, jot_Vars x, jot_Vars y, jot_Vars dy, jot_Var *dx);
JOT_API bool jot_custom_grad(jot_Vars y, jot_Vars x, jot_CustomGradFn *grad, void *user,
                             jot_Var *out);
/* out[j] has the value and the gradients of y[j], but what lies between x and y is not kept for the
 * gradient: it is computed again there, from x, with the draws it had. So a chain of n layers, in
 * some sqrt(n) parts, keeps 2 sqrt(n) values at a time, for one more computation of each. What does
 * not stand on x is kept. Parts may hold parts. A gradient by an expression inside, one between x
 * and y, is refused (JOT_EGRAD). */
JOT_API bool jot_checkpoint(jot_Vars y, jot_Vars x, jot_Var *out);

/* ---- graphs out of graphs ----------------------------------------------------------------- */

/* What y would be of each of n examples at once. y was built for one example, x, of variables that
 * stand for it; xs[k] has x[k]'s dtype and shape with one more dimension of extent n, at in[k], and
 * ys[j] has y[j]'s with one more at out[j] (negative ones count from the end). With JOT_UNBATCHED
 * for in[k], xs[k] has x[k]'s shape and stands for it in all examples; what else y is made of, all
 * examples share as well.
 *
 *     x = jot_array(c, JOT_F32, JOT_SHAPE(784), NULL);               one example
 *     jot_grad(loss_of(x, w), JOT_VARS(w), &g);
 *     jot_vmap(JOT_VARS(g), JOT_VARS(x), JOT_VARS(batch), NULL, &gs);    a gradient for each
 *
 * Random variables in y are drawn anew, for each example by itself, or once for all with
 * same_draws; one that is among x with JOT_UNBATCHED stays. The results are ordinary variables:
 * batched again, differentiated, and themselves derivatives' (a Hessian is the jvp of a gradient
 * batched over directions).
 *
 * x: arrays, parameters, or expressions, which y then is a function of; but no constants, and none
 * that others were simplified past (JOT_EUSE; jot_stop_fuse keeps one); an assigned variable whose
 * value stands on x is refused, too. User code runs for each example, in one launch.
 * Errors: JOT_ESHAPE, JOT_EDTYPE, JOT_ERANGE. All or nothing. */
#define JOT_UNBATCHED INT64_MIN
/* All fields 0, or NULL: all axes are the first. */
typedef struct { jot_Ints in, out; bool same_draws; } jot_Vmap;
JOT_API bool jot_vmap(jot_Vars y, jot_Vars x, jot_Vars xs, const jot_Vmap *how, jot_Var *ys);

/* ---- branches and loops ------------------------------------------------------------------- */

/* A function that builds a graph: out[k] of what goes in. It is called once, or a few times, when
 * the branch or loop is built, never when that runs, on variables that stand for what will go in;
 * from other variables, which it may read as well, it takes their values of now. It must neither
 * evaluate nor assign nor fetch (JOT_EUSE). False after a failure. */
typedef bool jot_BodyFn(void *user, jot_Vars in, jot_Var *out);
/* What `then` makes of x where test, of one element, is not 0, else what `otherwise` does: n
 * results of the same shapes and dtypes. Only the one that is taken runs. */
JOT_API bool jot_cond(jot_Var test, jot_Vars x, jot_BodyFn *then, jot_BodyFn *otherwise, void *user,
                      int n, jot_Var *out);
/* While what `test` makes of the carried variables is not 0 (one element), they are what `body`
 * makes of them, of the shapes and dtypes that init has; out[k]: what they are in the end. most,
 * above 0: after so many trips it ends at the latest; then there are gradients. */
JOT_API bool jot_while(jot_Vars init, jot_BodyFn *test, jot_BodyFn *body, void *user, int64_t most,
                       jot_Var *out);
/* A trip for each slice of xs along their first dimension, which is of one extent. `body` gets what
 * is carried, then a slice of each of xs, and returns what is carried on, then `stacked` results of
 * the trip; out: what is carried in the end, then these, stacked along a new first dimension.
 *
 *     h' = tanh(x[t] w + h u), y[t] = h'   jot_for(JOT_VARS(h), JOT_VARS(x), cell, &net, &how, out)
 *
 * trips: how many, where there are no xs (how NULL is then refused). reverse: from the last slice
 * to the first, which is also where results go. every: for the gradient, what is carried is kept of
 * every so many trips alone, and computed again from there; 0: of all trips. some sqrt(trips) needs
 * the least memory. */
typedef struct { int64_t trips; int stacked; bool reverse; int64_t every; } jot_For;
JOT_API bool jot_for(jot_Vars init, jot_Vars xs, jot_BodyFn *body, void *user, const jot_For *how,
                     jot_Var *out);

/* ---- the three meta-operators ------------------------------------------------------------- */

typedef enum { JOT_ADD, JOT_MUL, JOT_MAX, JOT_MIN, JOT_AND, JOT_OR, JOT_XOR,
               JOT_BITAND, JOT_BITOR, JOT_BITXOR, JOT_MEAN, JOT_REDUCE_OPS } jot_ReduceOp;

/* Reindex: out[i] = x[index(i)] for i over shape, in x's dtype [J 3.1]. index has one expression
 * per dimension of x, made of integers, i0.. (the position in out), xs0.. and ys0.. (extents of
 * x and of out), + - * / % (rounding towards minus infinity; by 0: 0), parentheses, comparisons,
 * && || ! (0 or 1; C's precedence), @e0(...), an element of the integer variable extra.v[0], and
 * e0s1, that one's extent 1. Where an index is outside x, or a condition is 0, out is `overflow`,
 * converted to x's dtype (NaN and infinities are allowed). conditions and extra may be empty lists.
 * JOT_EINDEX for a malformed expression.
 *
 * Arithmetic of indices does not wrap: it is of whole numbers. An element @e0(...) counts as at
 * most 2^40 from 0, a product with one in a factor as at most 2^56, further than any array goes; an
 * expression whose value could leave 64 bits all the same, anywhere in shape, is refused
 * (JOT_EINDEX). */
JOT_API jot_Var jot_reindex(jot_Var x, jot_Ints shape, jot_Strs index); /* overflow 0 */
JOT_API jot_Var jot_reindex_ex(jot_Var x, jot_Ints shape, jot_Strs index, jot_Strs conditions,
                               double overflow, jot_Vars extra);
/* Reindex-reduce: out[index(i)] op= y[i] for i over y's shape, starting from op's identity [J 3.1].
 * index has one expression per dimension of out; xs0.. are extents of out, ys0.. of y. Elements
 * whose index is outside out, or whose condition is 0, are dropped. A mean divides by the number of
 * elements that fall on an element of out; where none does, the result is NaN. Means of integers
 * are f32. */
JOT_API jot_Var jot_reindex_reduce(jot_ReduceOp op, jot_Var y, jot_Ints shape, jot_Strs index);
JOT_API jot_Var jot_reindex_reduce_ex(jot_ReduceOp op, jot_Var y, jot_Ints shape, jot_Strs index,
                                      jot_Strs conditions, jot_Vars extra);

/* Element-wise: operands broadcast by NumPy's rules and are converted to jot_promote of their
 * dtypes. Functions that are defined for floats only take integers as f32; comparisons and logic
 * give bool. exp, sigmoid, softplus and logaddexp may be 0 where they (or e to the difference)
 * would be less than the least normal number, 1.2e-38 (f64 2.3e-308). */
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
/*   integer arithmetic       wraps around; division and mod by 0 give 0
 *   div                      of integers is a float (f32)
 *   floordiv, mod            round towards minus infinity, as Python's; fmod is C's
 *   round                    halves to even
 *   maximum, minimum         NaN if either is; fmax, fmin: the number, if either is one. Equal
 *                            operands share the gradient
 *   heaviside(a, b)          0 for a < 0, b for a = 0, 1 for a > 0
 *   logaddexp(a, b)          log(e^a + e^b)
 *   shift_left, shift_right  by a negative count, or by the width or more: 0, but -1 for a negative
 *                            number shifted right */
JOT_API jot_Var jot_where(jot_Var condition, jot_Var a, jot_Var b); /* condition ? a : b */
JOT_API jot_Var jot_cast(jot_Var a, jot_DType dtype); /* floats to integers saturate, NaN gives 0;
                                                         integers to integers wrap around */
JOT_API jot_Var jot_scale(jot_Var a, double k);  /* a * k in a's dtype */
JOT_API jot_Var jot_offset(jot_Var a, double k); /* a + k in a's dtype */
JOT_API jot_Var jot_clamp(jot_Var a, double lo, double hi); /* lo <= hi, else JOT_ERANGE */
JOT_API jot_Var jot_square(jot_Var a);
JOT_API jot_Var jot_reciprocal(jot_Var a);

/* ---- specialised forms of reindex --------------------------------------------------------- */

/* All keep x's dtype. A dimension may be given from the end (-1: the last). */
JOT_API jot_Var jot_broadcast_to(jot_Var x, jot_Ints shape);         /* NumPy's rules */
/* To shape, of which dims are the new dimensions; the others are x's, in order, of equal extent (or
 * 1 in x). */
JOT_API jot_Var jot_broadcast(jot_Var x, jot_Ints shape, jot_Ints dims);
JOT_API jot_Var jot_reshape(jot_Var x, jot_Ints shape);   /* same elements; one extent may be -1 */
JOT_API jot_Var jot_transpose(jot_Var x, jot_Ints order); /* out dim k = x's dim order[k] */
JOT_API jot_Var jot_swap(jot_Var x, int dim_a, int dim_b);
/* Python's x[start:stop:step], one entry per dimension, negative steps and positions too; JOT_END:
 * to the end. */
JOT_API jot_Var jot_slice(jot_Var x, jot_Ints start, jot_Ints stop, jot_Ints step);
#define JOT_END INT64_MIN
/* x[..., start:stop:step, ...] of dimension dim, the others whole. */
JOT_API jot_Var jot_slice_dim(jot_Var x, int dim, int64_t start, int64_t stop, int64_t step);
JOT_API jot_Var jot_pad(jot_Var x, jot_Ints before, jot_Ints after, double value); /* < 0: crop */
JOT_API jot_Var jot_flip(jot_Var x, jot_Ints dims);
JOT_API jot_Var jot_tile(jot_Var x, jot_Ints times);                 /* one count per dimension */
JOT_API jot_Var jot_unsqueeze(jot_Var x, int dim);                   /* insert a dimension of 1 */
JOT_API jot_Var jot_squeeze(jot_Var x, int dim);                     /* remove a dimension of 1 */
/* Join variables, in the dtype that all promote to (jot_promote): along dim, in which alone their
 * shapes may differ; along a new dimension dim, all of one shape. */
JOT_API jot_Var jot_concat(jot_Vars vars, int dim);
JOT_API jot_Var jot_stack(jot_Vars vars, int dim);
/* x with dimension dim replaced by the dimensions of index (integers), which choose positions of
 * it. A position outside x gives 0, or with jot_Config.check fails; negative ones do not count from
 * the end. */
JOT_API jot_Var jot_take(jot_Var x, jot_Var index, int dim);
/* index's shape and a last dimension of `classes`: 1 at position index, else 0; checked as in
 * jot_take. */
JOT_API jot_Var jot_one_hot(jot_Var index, int64_t classes, jot_DType dtype);

/* ---- specialised forms of reindex-reduce -------------------------------------------------- */

/* Reduce over dims, of which negative ones count from the end. Sums and products of bool and signed
 * integers are i64, of unsigned ones u64; means and variances of integers are f32 (computed in f64
 * for 32 and 64 bits); JOT_AND, JOT_OR, JOT_XOR give bool; JOT_BITAND
 * and its like refuse floats; otherwise the dtype is x's.
 * Over an empty dimension a mean is NaN, JOT_MAX and JOT_MIN are refused, and the others give their
 * identity. */
JOT_API jot_Var jot_reduce(jot_ReduceOp op, jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_sum(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_prod(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_max(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_min(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_mean(jot_Var x, jot_Dims dims);
/* Mean of the squared deviations from the mean (biased). As exact as two passes, but large data are
 * read once: moments of blocks are merged (Chan). A mean of squares of x - mean(x) over the same
 * dimensions is recognised as one. */
JOT_API jot_Var jot_variance(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_any(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_all(jot_Var x, jot_Dims dims);
/* i64 positions in dims (of several, row-major in their order in x): the first of equals; NaN
 * counts as the largest. An empty dimension is refused. */
JOT_API jot_Var jot_argmax(jot_Var x, jot_Dims dims);
JOT_API jot_Var jot_argmin(jot_Var x, jot_Dims dims);

/* ---- user code ---------------------------------------------------------------------------- */

/* (a) jot_code: a kernel in C over whole arrays. Its source is the body of a C99 function without
 * headers, in which an input or output named `x` appears as
 *     x                pointer to its row-major elements: jot_i8 .. jot_u64, float or double (bool:
 *                      jot_u8; f16, bf16: jot_u16)
 *     x_n              its number of elements         x_0, x_1 ...    its extents
 *     x_s0, x_s1 ...   its strides, in elements       all of type jot_i64
 * and a scalar as a double of its name, whose value can change without compiling again. An input's
 * gradient source computes dx ("d" and the input's name) from the inputs, the outputs and the
 * outputs' gradients ("d" and the output's name), all whole arrays. What a kernel writes (outputs;
 * dx) begins as anything, and each element of it must be written. Names are C identifiers.
 *
 * `jot_simd` before a loop `for (i = a; i < b; i++)` promises that its steps do not depend on each
 * other: cc makes vectors of it (OpenMP's simd), others nothing. Other loops stay as written. */
typedef void jot_HostFn(void *user, int nbuf, void *const *buf, const jot_Scalar *scalars);
/* like: the name of the input whose shape and dtype it has; NULL: those given here */
typedef struct { const char *name; jot_DType dtype; jot_Ints shape; const char *like; } jot_CodeOut;
typedef struct { const char *name; double value; } jot_CodeScalar;
/* The same kernel in a device's language. Pointers are to device memory (OpenCL: __global). Each
 * step of `parallel`, or for a gradient of its grad_parallel, is one work item, with lo = step and
 * hi = lo + 1. source NULL: the kernel does not run on that device. */
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
    const char *source;               /* body in C; NULL: host is called, on the host's backends */
    const char *const *grad_source;   /* one per input; NULL, or a NULL entry: no gradient */
    const char *parallel;             /* an extent, e.g. "y_0": the body runs for ranges [lo, hi)
                                         of it; NULL: once, with lo = 0 and hi = 1 */
    const char *const *grad_parallel; /* the same, e.g. "dx_0", of each gradient source */
    jot_HostFn *host; void *user;     /* a C function over whole arrays, inputs before outputs:
                                         for interp, and without source for all of the host. Called
                                         on the context's thread; cannot be exported */
    jot_CodeText opencl, cuda;
} jot_Code;
/* outputs: room for code->outputs handles; poison after a failure. */
JOT_API bool jot_code(jot_Ctx *ctx, const jot_Code *code, jot_Var *outputs);
/* (b) jot_code_map: an element-wise expression in C over a, b, c ... (one letter per operand, at
 * most 16, after broadcasting and promotion), of dtype: a value that is within its range, for C
 * converts no other. Write a != 0 for a truth: OpenCL's C takes no float for one. It fuses with its
 * neighbours. gradients: per operand an expression for d out / d operand in terms of the letters
 * and y, the result; NULL: no gradient.
 *
 * Code of both kinds may call these on every backend, jotm_exp of double, jotm_expf of float: abs
 * acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 floor isfinite isinf
 * isnan lgamma log log10 log1p log2 rint rsqrt sigmoid sign signbit sin sinh softplus sqrt tan tanh
 * trunc; of two, atan2 copysign floordiv fmax fmin fmod heaviside hypot logaddexp max min mod pow.
 * The C library's functions need an #include in `helpers` and a compiler with its headers (cc; tcc
 * has none). */
JOT_API jot_Var jot_code_map(const char *expression, jot_Vars operands, jot_DType dtype,
                             const char *const *gradients);

/* ---- compositions (written with this header alone) ---------------------------------------- */

/* gelu, softmax, norms and dropout have the dtype of a float x and take integers as f32; the others
 * have the dtypes of the operators that they are made of. Wrong ranks and extents are
 * JOT_ESHAPE. */

/* (..., m, k) (..., k, n) -> (..., m, n), leading extents equal or 1; a vector is a matrix without
 * m, or without n. Products of integers are as wide as their sums, i64 or u64: of bytes, say, none
 * wraps around; where the sums provably fit, machines add them up in 32 bits. */
JOT_API jot_Var jot_matmul(jot_Var a, jot_Var b);
typedef struct { int stride[2], pad[2], dilation[2], groups; } jot_Conv; /* 0: 1, 0, 1, 1 */
/* x (n, c, h, w), w (o, c / groups, kh, kw) -> (n, o, h', w'); groups divide o; the window is no
 * larger than the padded image. */
JOT_API jot_Var jot_conv2d(jot_Var x, jot_Var w, const jot_Conv *conv);
/* x (n, c, h, w) -> (n, c, h', w'). stride 0: size; pad is at most half the size. */
typedef struct { int size[2], stride[2], pad[2]; } jot_Pool;
JOT_API jot_Var jot_max_pool2d(jot_Var x, const jot_Pool *pool); /* equal maxima share gradients */
JOT_API jot_Var jot_avg_pool2d(jot_Var x, const jot_Pool *pool); /* padding counts as zeros */
JOT_API jot_Var jot_linear(jot_Var x, jot_Var w, jot_Var b); /* x (..., i), w (i, o), b (o) */
JOT_API jot_Var jot_relu(jot_Var x); /* derivative 0 at 0 */
/* x/2 (1 + erf(x / sqrt 2)), as written: f32 within 1.2e-7 |x| and, below 0, 2.5e-7; of itself 3e-7
 * above -1 and 3.4e-5 above -3, and 0 below -5.6; f64 within 2.2e-16 |x|. Halves are computed as
 * f32 and rounded once. */
JOT_API jot_Var jot_gelu(jot_Var x);
JOT_API jot_Var jot_gelu_tanh(jot_Var x); /* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) */
JOT_API jot_Var jot_softmax(jot_Var x, int dim);
JOT_API jot_Var jot_log_softmax(jot_Var x, int dim);
/* Mean over the batch: logits (n, c), integer labels (n) -> scalar; NaN if a label is outside
 * 0..c-1. */
JOT_API jot_Var jot_cross_entropy(jot_Var logits, jot_Var labels);
JOT_API jot_Var jot_mse(jot_Var a, jot_Var b); /* a, b of one shape -> scalar, mean of squares */
/* x (n, c, ...); scale, shift, mean and var (c), per channel. */
JOT_API jot_Var jot_batch_norm_eval(jot_Var x, jot_Var scale, jot_Var shift, jot_Var mean,
                                    jot_Var var, double eps);
/* ... with the statistics of the batch. run_mean and run_var point to the running values (c) and
 * receive the updated ones, for the caller to assign (NULL: none); momentum is the weight of the
 * batch in them. The biased variance normalises x, the unbiased one enters run_var. */
JOT_API jot_Var jot_batch_norm_train(jot_Var x, jot_Var scale, jot_Var shift, double eps,
                                     double momentum, jot_Var *run_mean, jot_Var *run_var);
/* Over the last dimension; scale and shift have its extent. */
JOT_API jot_Var jot_layer_norm(jot_Var x, jot_Var scale, jot_Var shift, double eps);
JOT_API jot_Var jot_instance_norm(jot_Var x, double eps); /* (n, c, ...), over what follows c */
/* Each element 0 with probability rate (0 <= rate < 1), else scaled by 1 / (1 - rate). */
JOT_API jot_Var jot_dropout(jot_Var x, double rate);
/* Initial values of a weight, of a float dtype; fan-in and fan-out are at least 1. kaiming: normal
 * with deviation sqrt(2 / fan_in); xavier: uniform within +-sqrt(6 / (fan_in + fan_out)). */
JOT_API jot_Var jot_kaiming(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t fan_in);
JOT_API jot_Var jot_xavier(jot_Ctx *ctx, jot_DType dtype, jot_Ints shape, int64_t fan_in,
                           int64_t fan_out);

/* Optimisers. params: distinct float variables. jot_step assigns, lazily, all parameters and the
 * optimiser's state from grads.v[k], of the shape and dtype of params.v[k]; on failure it assigns
 * nothing. Rates, momentum, decay and eps are finite and at least 0, momentum and betas below 1;
 * otherwise poison (JOT_ERANGE). The context owns the optimiser, which ends with jot_optim_free or
 * jot_close.
 *     sgd    d = g + weight_decay p     b = momentum b + d     p = p - lr b
 *     adam   m = beta1 m + (1 - beta1) g     v = beta2 v + (1 - beta2) g^2     in step t
 *            p = p - lr (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)
 * State has the dtype of its parameter. In f16 Adam's mean of squares is 0 for gradients below
 * about 0.005, and the step infinite: keep such parameters in f32, and cast them where used. */
typedef struct { jot_Var state; void *record; } jot_Optim; /* a handle: it lives as `state` does */
JOT_API jot_Optim jot_sgd(jot_Vars params, double lr, double momentum, double weight_decay);
JOT_API jot_Optim jot_adam(jot_Vars params, double lr, double beta1, double beta2, double eps);
JOT_API bool jot_optim_ok(jot_Optim optim); /* a live handle, not poison */
JOT_API bool jot_step(jot_Optim optim, jot_Vars grads);
JOT_API void jot_set_lr(jot_Optim optim, double lr);
JOT_API void jot_optim_free(jot_Optim optim); /* does nothing to poison and empty handles */

/* ---- seeing ------------------------------------------------------------------------------- */

/* Hand a text to the log hook, if there is one. */
JOT_API void jot_print_text(jot_Ctx *ctx, const char *text, size_t nbytes);
/* Print the graph from which vars are computed, one node a line, through the log hook. */
JOT_API bool jot_print_graph(jot_Ctx *ctx, jot_Vars vars);
/* Print v's elements through the log hook, evaluated if need be, as NumPy does: a line with dtype
 * and shape, then brackets, numbers with the digits that tell them from others of their dtype (at
 * most 8 behind the point), of more than 1000 elements the first and last 3 of each dimension. */
JOT_API bool jot_print(jot_Var v);
/* The same text into memory of the caller, cut off with a final 0. Returns its length, without the
 * 0, as if there were room; 0 after a failure. */
JOT_API size_t jot_format(jot_Var v, char *to, size_t nbytes);
/* Where a NaN or an infinity comes from: what vars and pending assignments need is evaluated
 * operator by operator, in order, and nothing that is pending runs. The first operator that makes
 * one out of numbers, or takes a NaN of a constant or of outside of an x (a label out of range), is
 * told through the log hook, with the elements of its inputs (shapes, ranges, how many are not
 * numbers), and its result returned; an empty handle: none does. For a step that was built (again,
 * by jot_set_random_state) and has not run. */
JOT_API jot_Var jot_trace_nan(jot_Ctx *ctx, jot_Vars vars);

/* ---- profile ------------------------------------------------------------------------------ */

/* true: forget earlier records and time all launches from here on; false: stop, the records stay.
 * Fails without a clock (jot_Hooks.now) or memory. The interpreter launches nothing. On a device
 * each launch is waited for meanwhile, and timed from when it was handed over to its end. */
JOT_API bool jot_profile(jot_Ctx *ctx, bool on);
/* All launches of one function with the same extents. */
typedef struct {
    const char *name, *what;     /* of the function; its operators. They live as long as records */
    uint64_t launches;
    double seconds, least;       /* of all launches together; of the fastest one */
    double read, written, flops; /* of one launch: bytes touched, each counted once; operations (a
                                    multiply-add 2, exp and the like 16). 0 for user code */
    /* the least seconds that these take on this machine (jot_machine); 0: a device's, or unknown */
    double floor;
} jot_ProfileKernel;
/* One launch, or (kernel -1) the making of a plan; the first 65,536 are recorded. */
typedef struct {
    int64_t start, nanoseconds;  /* start: since jot_profile(ctx, true), in nanoseconds */
    int kernel;                  /* index among jot_profile_kernels */
} jot_ProfileEvent;
/* Copy the first `most` records to out (kernels in order of their first launch, events in order of
 * time) and return how many there are in all. */
JOT_API int jot_profile_kernels_sized(const jot_Ctx *ctx, jot_ProfileKernel *out, int most,
                                      size_t nbytes); /* of one record, as in jot_stats */
static inline int jot_profile_kernels(const jot_Ctx *ctx, jot_ProfileKernel *out, int most);
JOT_API int jot_profile_events(const jot_Ctx *ctx, jot_ProfileEvent *out, int most);
/* Write a file (hosted builds): a table, Chrome's trace JSON, or a roofline as SVG. JOT_EIO. */
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

static inline jot_Ins
jot_ins(int n, const jot_In *v)
{
    jot_Ins r;
    r.n = n;
    r.v = v;
    return r;
}

static inline jot_Outs
jot_outs(int n, const jot_Out *v)
{
    jot_Outs r;
    r.n = n;
    r.v = v;
    return r;
}

static inline jot_Dims
jot_dims(int n, const int64_t *v, bool keep)
{
    jot_Dims r;
    r.n = n;
    r.v = v;
    r.keep = keep;
    return r;
}

static inline jot_In
jot_in(const void *data, size_t nbytes)
{
    jot_In r;
    r.data = data;
    r.nbytes = nbytes;
    return r;
}

static inline jot_Out
jot_out(void *data, size_t nbytes)
{
    jot_Out r;
    r.data = data;
    r.nbytes = nbytes;
    return r;
}

/* an empty handle: no operand, where one may be left out */
static inline jot_Var
jot_none(void)
{
    jot_Var r;
    r.ctx = NULL;
    r.slot = r.gen = 0;
    return r;
}

static inline jot_Ctx *
jot_open(const jot_Config *config)
{
    return jot_open_sized(config, sizeof *config);
}

static inline jot_Stats
jot_stats(const jot_Ctx *ctx)
{
    jot_Stats r;
    jot_stats_sized(ctx, &r, sizeof r);
    return r;
}

static inline int
jot_profile_kernels(const jot_Ctx *ctx, jot_ProfileKernel *out, int most)
{
    return jot_profile_kernels_sized(ctx, out, most, sizeof *out);
}

static inline jot_Machine
jot_machine(jot_Ctx *ctx)
{
    jot_Machine r;
    jot_machine_sized(ctx, &r, sizeof r);
    return r;
}

#ifdef __cplusplus
}
/* C++ has no compound literals. A list macro makes an object that owns its elements and becomes the
 * list where one is asked for: in a call, or kept by `auto s = JOT_SHAPE(2, 3);`. But the list in
 * `jot_Ints s = JOT_SHAPE(2, 3);` outlives them; clang warns (-Wdangling). */
#if defined(__clang__)
#define JOT_BOUND_ [[clang::lifetimebound]]
#else
#define JOT_BOUND_
#endif
inline void jot_list_(jot_Ints &l, int n, const int64_t *v) { l = jot_ints(n, v); }
inline void jot_list_(jot_Strs &l, int n, const char *const *v) { l = jot_strs(n, v); }
inline void jot_list_(jot_Vars &l, int n, const jot_Var *v) { l = jot_vars(n, v); }
inline void jot_list_(jot_Ins &l, int n, const jot_In *v) { l = jot_ins(n, v); }
inline void jot_list_(jot_Outs &l, int n, const jot_Out *v) { l = jot_outs(n, v); }
template <class L, class T, int N> struct jot_List_ {
    T v[N + 1];
    operator L() const JOT_BOUND_ { L l; jot_list_(l, N, v); return l; }
};
template <int N, bool Keep> struct jot_DimList_ {
    int64_t v[N + 1];
    operator jot_Dims() const JOT_BOUND_ { return jot_dims(N, v, Keep); }
};
template <class L, class T, class... A> inline jot_List_<L, T, sizeof...(A)> jot_make_(A... a)
{ return jot_List_<L, T, sizeof...(A)>{{(T)a..., T()}}; }
template <bool Keep, class... A> inline jot_DimList_<sizeof...(A), Keep> jot_make_dims_(A... a)
{ return jot_DimList_<sizeof...(A), Keep>{{(int64_t)a..., 0}}; }
#define JOT_INTS(...) (jot_make_<jot_Ints, int64_t>(__VA_ARGS__))
#define JOT_DIMS(...) (jot_make_dims_<false>(__VA_ARGS__))
#define JOT_KEEP(...) (jot_make_dims_<true>(__VA_ARGS__))
#define JOT_INDEX(...) (jot_make_<jot_Strs, const char *>(__VA_ARGS__))
#define JOT_VARS(...) (jot_make_<jot_Vars, jot_Var>(__VA_ARGS__))
#define JOT_INS(...) (jot_make_<jot_Ins, jot_In>(__VA_ARGS__))
#define JOT_OUTS(...) (jot_make_<jot_Outs, jot_Out>(__VA_ARGS__))
#else
/* the leading 0 allows an empty list */
#define JOT_N_(T, ...) ((int)(sizeof((T[]){0, __VA_ARGS__}) / sizeof(T)) - 1)
#define JOT_V_(T, ...) ((T[]){0, __VA_ARGS__} + 1)
#define JOT_INTS(...) (jot_ints(JOT_N_(int64_t, __VA_ARGS__), JOT_V_(int64_t, __VA_ARGS__)))
#define JOT_DIMS(...) (jot_dims(JOT_N_(int64_t, __VA_ARGS__), JOT_V_(int64_t, __VA_ARGS__), false))
#define JOT_KEEP(...) (jot_dims(JOT_N_(int64_t, __VA_ARGS__), JOT_V_(int64_t, __VA_ARGS__), true))
#define JOT_INDEX(...) \
    (jot_strs(JOT_N_(const char *, __VA_ARGS__), JOT_V_(const char *, __VA_ARGS__)))
#define JOT_VARS(...) JOT_LIST_(jot_vars, jot_Var, __VA_ARGS__)
#define JOT_INS(...) JOT_LIST_(jot_ins, jot_In, __VA_ARGS__)
#define JOT_OUTS(...) JOT_LIST_(jot_outs, jot_Out, __VA_ARGS__)
#ifndef __TINYC__
#define JOT_LIST_(f, T, ...) (f((int)(sizeof((T[]){__VA_ARGS__}) / sizeof(T)), (T[]){__VA_ARGS__}))
#else /* which cannot size an array of structures: beyond 64 the size is no number */
#define JOT_LIST_(f, T, ...) \
    (f(JOT_COUNT_(__VA_ARGS__), (T[JOT_COUNT_(__VA_ARGS__)]){__VA_ARGS__}))
#define JOT_COUNT_(...) \
    JOT_PICK_(__VA_ARGS__, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, \
              46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, \
              25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, \
              2, 1, 0)
#define JOT_PICK_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, \
    a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, \
    a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, \
    a57, a58, a59, a60, a61, a62, a63, a64, n, ...) n
#endif
#endif
#define JOT_SHAPE JOT_INTS
#define JOT_ALL_DIMS (jot_dims(-1, NULL, false))
#define JOT_KEEP_ALL (jot_dims(-1, NULL, true))
#define JOT_IN jot_in
#define JOT_OUT jot_out
#define JOT_NONE_STRS (jot_strs(0, NULL))
#define JOT_NONE_VARS (jot_vars(0, NULL))
#define JOT_NONE_INS (jot_ins(0, NULL))
#define JOT_NONE_OUTS (jot_outs(0, NULL))

#endif
