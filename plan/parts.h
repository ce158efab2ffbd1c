/* plan/parts.h - what the files of the plan share: the selection of nodes, the plan, and the cache
 * of plans and kernels.
 *
 *     PlanCache   plans by structure ---> Plan  steps: PlanKernel, variables, scalars
 *                 steps by group -------> PlanKernel, launch
 *                 kernels by text ------> PlanKernel ---> PlanModule (what one compile gave)
 *                 block of temporaries
 *
 * Read before: plan/plan.h. After: plan.c, plan/make.c, plan/known/key.c, plan/run.c. */
#ifndef JOT_PLAN_PARTS_H
#define JOT_PLAN_PARTS_H
#include "plan/plan.h"
#include "backends/backend.h"
#include "ccode/build/build.h"
#include "ccode/ir/cost.h"
#include "ccode/strategy/strategy.h"
#include "fuse/fuse.h"
#include "plan/open/ends.h"
#include "target/thresholds.h"

/* What an evaluation has to do. */
typedef struct {
    NodeList wanted;   /* what was asked: roots, fetches, assignments that a handle still names */
    NodeList roots;    /* the distinct nodes behind them that have no data yet */
    NodeList list;     /* everything these need, inputs first; stops at data */
    uint8_t *asked;    /* per position of list: it is one of roots */
    uint32_t states;   /* where in wanted the assignments begin */
    NodeList passing;  /* a function's leaves that have other elements in the next call */
    bool fixed;        /* ... its other leaves have none, and stay with it */
    NodeList updates;  /* ... pairs: one of them, what its variable is assigned */
    uint32_t *over;    /* per root: 1 + position of the leaf that it was written over; NULL: none */
} Selection;

/* TIER_QUICK: compiled at once, to start with; TIER_BEST: what the program comes to run on. */
typedef enum { TIER_BEST, TIER_QUICK } PlanTier;

/* What one compile gives, or will give. */
typedef struct {
    Backend *backend;  /* whose code it is */
    void *code;        /* the backend's handle */
    CompileJob *job;   /* it is still being compiled */
    KernelSym *sym;    /* n: as they come out of the job */
    uint32_t n;
    jot_Status status; /* of a job that failed */
    char *why;
    double cost;       /* what the quick tier would take for its steps in the run at hand */
    uint32_t refs;     /* kernels of it that are alive */
} PlanModule;

#define PLAN_NAME 24
/* What is compiled together: flags may differ by kind; the user's in a text of its own each. */
typedef enum { KIND_SCALAR, KIND_VECTOR, KIND_CODE } PlanKind;
typedef struct PlanKernel PlanKernel;
struct PlanKernel {
    PlanKernel *next;  /* in its bucket */
    uint64_t hash;
    uint32_t refs;     /* steps of plans that run it */
    char *text;        /* its function, under the placeholder's name */
    size_t nbytes;
    char name[PLAN_NAME], what[96];
    uint8_t kind;      /* PlanKind */
    uint8_t tier;
    PlanModule *module;
    PlanModule *better; /* of the quick tier: the same text is handed to the best tier's compiler */
    bool good;         /* ... and that is whose function it has */
    double spent;      /* ... seconds that its launches took so far, by estimate */
    bool met;          /* ... an earlier plan has it */
    uint32_t at;       /* its number there, while that is being compiled */
    uint64_t launch;   /* the first one that it was to be part of; 0: none yet */
    KernelFn *fn;      /* NULL: not there, or not yet */
    void *device;      /* of a backend with a Device: its kernel */
    int items;         /* ... and most items of a work-group that its build allows; 0: any */
    size_t group_nbytes; /* ... memory that its launches give to one */
    double cost;       /* seconds that TIER_QUICK needs for it in a run of the plan at hand */
    size_t size;       /* bytes of it and its prelude, when it is compiled */
};
typedef Vec(PlanKernel *) PlanKernels;

typedef enum { VAR_LEAF, VAR_ASKED, VAR_TEMP, VAR_COPY } PlanVarKind;
typedef struct {
    uint8_t kind;
    uint32_t pos;          /* in the selection's list; ASKED: number among its roots as well */
    uint32_t root;
    uint32_t first, last;  /* TEMP: steps between which it lives */
    size_t offset, nbytes; /* TEMP: in the block; of all but a LEAF: its size */
    uint32_t apart;        /* of a LEAF that only copies are made of: 1 + number of one with all its
                              elements; 0: it is read itself */
    uint32_t over;         /* 1 + number of the variable whose place it takes; 0: none. Of an ASKED
                              one that is a LEAF, and each run asks whether it may */
    uint32_t writers;      /* steps that write a part of it each; 0: one writes all */
    char *key;             /* COPY: of the leaf at pos, in this layout; kept with its buffer */
    size_t nkey;
} PlanVar;

typedef struct { uint32_t pos; uint8_t field, dtype; } PlanScalar;

/* A kernel is shared by its text; extents of parallel loops, which that lacks, are here. */
typedef struct {
    PlanKernel *kernel;
    int phases;
    int64_t count[SCHED_PHASES];
    EmitEnd end[SCHED_PHASES];
    size_t scratch_nbytes; /* of one worker */
    uint32_t ints, nints;  /* where its numbers begin in plan.ints; how many */
    uint32_t first, launches; /* on a device: in plan.launches */
    int group;             /* ... and items of a work-group */
} PlanLaunch;

typedef struct {
    PlanLaunch best;       /* once its function is there; until then, or if it never is: */
    PlanLaunch quick;      /* kernel NULL: there was no need */
    KernelCost cost;       /* of what it computes; of user code little is known */
    double seconds;        /* about what it takes one thread: what is worth sharing among several */
    uint32_t concurrent;    /* it and the steps after it, so many in all, run at a time; 0: alone */
    bool known;            /* an earlier plan had this group, with these extents */
    uint32_t code;         /* 1 + number in plan.codes: whose scalars it takes; 0: none */
    uint32_t flow;         /* 1 + number in plan.flows: what runs in place of a kernel; 0: none */
    uint32_t copy;         /* 1 + number of the COPY that it writes: left out when that is there */
    uint32_t arg, narg;    /* in plan.args: numbers of variables */
    uint32_t scalar, nscalar;
    BufSet over;           /* of the kernel's outputs: which may lie where it was wished */
    uint8_t begins, as;    /* the output that must begin as an input is, and this; 0: none */
} PlanStep;

typedef struct { uint32_t pos; struct CodeSpec *spec; } PlanCode; /* holds a reference */

typedef struct Plan Plan;
/* A branch or loop: plans of its bodies, which run in the memory of its step (plan/flow/). */
typedef struct {
    uint32_t code;         /* number in plan.codes */
    struct FlowForm *form;
    Plan *part[2];         /* per body; NULL: there is none */
    uint32_t *input[2];    /* ... per variable that is a LEAF: the input whose hole it is */
    size_t *place;         /* in that memory: other places of carries, slices that are copied */
    size_t nplaces, test, nbytes; /* ... of the test's result; in all */
    uint32_t bindings;     /* where its own begin in PlanBind.flows */
} PlanFlow;

struct Plan {
    Plan *next;            /* in its bucket */
    uint64_t hash, used;   /* used: when it ran last */
    uint32_t runs;         /* counted while better code is to be had */
    uint32_t *key;
    uint32_t nkey;
    Vec(PlanStep) steps;
    Vec(PlanVar) vars;
    Vec(uint32_t) args;
    Vec(PlanScalar) scalars;
    Vec(jot_Scalar) ints;  /* of launches: extents, strides, constants */
    Vec(EmitLaunch) launches; /* on a device: of each step */
    size_t block_nbytes, scratch; /* of the block in all; where the kernels' scratch begins in it */
    size_t scratch_nbytes;        /* of one worker: each has its own */
    bool overs;                   /* states may be written over */
    size_t bound;                 /* no placing of the temporaries needs less */
    int max_rank;
    int64_t max_nelem, temp_nbytes;
    Vec(PlanCode) codes;   /* user code in it: what the hash in the key stands for */
    Vec(PlanFlow) flows;   /* ... of which these are branches and loops */
    uint32_t flow_bindings; /* what a run needs for these, in jot_Scalars */
    const char *dialect;   /* of a text that is only printed; NULL: compiled by the backend */
    const OpenEnds *ends;  /* while it is made: its kernels' axes end in a call; NULL: none do */
    bool ended;            /* they do: what lies beyond is read, and is not looked at */
    DeviceReplay *replay;  /* on a device: its launches as one */
    bool ran;              /* ... once, at least */
    bool early;            /* heavy, and planned while the target was late: to be planned again */
    bool generic;          /* heavy, of texts met with other extents: these are compiled */
    struct PlanKept *kept; /* plan/tier/kept.c; NULL: nothing of it is, or no more */
};

/* What one run of a plan works on. `block`: temporaries and scratch, the context's. */
typedef struct {
    void **var;              /* per variable: its elements */
    void **arg;              /* per plan.args; filled by the launch */
    jot_Scalar *scalar;      /* per plan.scalars */
    struct CodeSpec **code;  /* per plan.codes: this run's, whose scalars count */
    Buffer **made;           /* per variable: a COPY that this run writes; NULL: nothing to do */
    unsigned char *block;
    void *flows;             /* room for runs of plan.flows: PlanFlow.bindings */
} PlanBind;

#define PLAN_BUCKETS 256
typedef struct Func Func;
typedef struct { Func *f; uint32_t gen; } FuncSlot; /* f NULL: free */

struct PlanCache {
    Plan *plans[PLAN_BUCKETS];
    PlanKernel *kernels[PLAN_BUCKETS];
    struct PlanKnowns *knowns;
    uint32_t planned;      /* nodes so far, up to those that jot_rates_planned counts */
    struct PlanTuned *tuned; /* plan/tier/tune.c; NULL: nothing yet */
    uint32_t told;         /* by jot_Status: that compiling failed so, and slower code runs */
    bool no_copies;        /* the plan at hand does without copies of state, which were refused */
    uint32_t nplans;
    size_t key_words;
    uint64_t clock, launches;
    unsigned char *block;
    size_t block_nbytes;
    Vec(uint32_t) key;     /* of the evaluation that looks for its plan */
    Vec(FuncSlot) funcs;   /* compiled functions, by the slots of their handles */
    void *device_block;    /* the same on a device */
    size_t device_block_nbytes;
    bool device_block_set; /* each byte was written once */
};

/* plan/function/function.c: the end of a compiled function; NULL is allowed. */
JOT_FN void jot_func_end(Func *f);

/* plan.c */
JOT_FN bool jot_plan_cache_open(jot_Ctx *ctx);
/* Fills in roots, list and asked for what is wanted. */
JOT_FN bool jot_plan_select(jot_Ctx *ctx, Selection *s);
JOT_FN void jot_plan_selection_free(jot_Ctx *ctx, Selection *s);

/* plan/known/key.c */
JOT_FN bool jot_plan_listed(jot_Ctx *ctx, const Selection *s, NodeId id); /* is it in list? */
JOT_FN bool jot_plan_key(jot_Ctx *ctx, const Selection *s, uint64_t *hash); /* into plans->key */
JOT_FN uint64_t jot_plan_hash(const uint32_t *key, uint32_t n);
/* Numbers of a key are written one after the other into room that was made for the whole node: what
 * it is to who reads it; how it is computed, operands by their number (NULL: by position). Both
 * return where they end. role: what the caller tells nodes apart by. */
typedef uint32_t KeyNumber(void *of, uint32_t pos);
JOT_FN uint32_t *jot_key_put64(uint32_t *w, uint64_t word);
JOT_FN uint32_t *jot_key_shape(uint32_t *w, const Node *n, NodeKind kind, uint8_t role);
JOT_FN uint32_t *jot_key_node(jot_Ctx *ctx, uint32_t *w, NodeId id, uint8_t role, KeyNumber *number,
                              void *of);
/* Append the nodes of a list, which is the last walk's. */
JOT_FN bool jot_key_list(jot_Ctx *ctx, const NodeList *list, const uint8_t *asked);

/* plan/known/cache.c */
JOT_FN Plan *jot_plan_find(jot_Ctx *ctx, const Selection *s, uint64_t hash); /* of that key */
JOT_FN void jot_plan_keep(jot_Ctx *ctx, Plan *plan); /* the oldest go when there are too many */
JOT_FN void jot_plan_drop(jot_Ctx *ctx, Plan *plan); /* out of the cache, and freed */
JOT_FN void jot_plan_empty(jot_Ctx *ctx, Plan *plan); /* but for its key and dialect */
JOT_FN void jot_plan_drop_oldest(jot_Ctx *ctx); /* ... which has one, at least */
JOT_FN void jot_plan_free(jot_Ctx *ctx, Plan *plan);

/* plan/tier/rates.c: measure the machine if that was put off and is due. True: it was now, and
 * plans that were priced before are found no more. */
JOT_FN bool jot_rates_due(jot_Ctx *ctx, bool due);
JOT_FN bool jot_rates_planned(jot_Ctx *ctx, uint32_t nodes); /* so many more: is it due? */

/* plan/make.c: fuse, build, schedule, emit, compile, place temporaries. */
JOT_FN bool jot_plan_make(jot_Ctx *ctx, const Selection *s, Plan *plan);
/* plan/order.c: steps in an order of few temporaries at a time. */
JOT_FN bool jot_plan_order(jot_Ctx *ctx, Plan *plan);
/* The steps that touch a variable, each once, in order: step[from[v] .. from[v + 1]). */
typedef struct { const Plan *plan; uint32_t *from, *step; } PlanTouches;
JOT_FN bool jot_plan_touches(Arena *arena, const Plan *plan, PlanTouches *touches);
/* Does touch number k write the variable? */
JOT_FN bool jot_plan_writes(const PlanTouches *touches, uint32_t var, uint32_t k);
/* plan/memory.c: offsets for temporaries, by lifetime; the most bytes alive in one step (`seen`:
 * room for a mark of each variable). */
JOT_FN size_t jot_plan_bound(const Plan *plan, uint8_t *seen);
JOT_FN bool jot_plan_memory(jot_Ctx *ctx, Plan *plan);
/* plan/donate.c: what is written over what it is computed from. */
/* The variable's memory is that of another, which ends with the step that begins this one. */
JOT_FN bool jot_donate_holds(const Plan *plan, uint32_t var);
JOT_FN void jot_donate_settle(Plan *plan); /* after the order: what does not hold is dropped */
/* For a run: which roots may lie over their leaves now. */
JOT_FN void jot_donate_run(jot_Ctx *ctx, const Plan *plan, Selection *s);
/* plan/layout/packed_only.c: state that is kept in copies alone. */
JOT_FN void jot_packed_only_settle(Plan *plan);
/* The leaf's elements are where this plan reads them. False: refused. */
JOT_FN bool jot_packed_only_bind(jot_Ctx *ctx, const Plan *plan, uint32_t leaf, Buffer *buf);
/* All copies of it are there, maybe: then it goes. */
JOT_FN void jot_packed_only_drop(jot_Ctx *ctx, const Plan *plan, uint32_t leaf, NodeId id);
/* plan/parallel.c: which steps run at a time. */
JOT_FN bool jot_plan_parallel(jot_Ctx *ctx, Plan *plan);
/* A variable once more, in another layout: for groups that read it so. `kept`: with the buffer of
 * the leaf, from run to run; else a temporary. */
typedef struct {
    uint32_t pos;
    const Layout *layout;
    bool kept;
    bool written;          /* by the group that computes it; copied to the variable after that */
    const Winograd *winograd; /* not NULL: not the variable's elements but U of these taps */
    uint32_t var;          /* 1 + number of its variable, once the step that writes it is there */
} PlanCopied;
typedef struct { uint32_t group, pos, copy; } PlanRead; /* or, of a written copy, write */

/* A group as numbers, wherever it stands (plan/known/known.c). */
typedef struct {
    Vec(uint32_t) key;
    Vec(uint32_t) pos;     /* the positions that it reaches, by their number in it */
    uint32_t *number;      /* per position of the list: 1 + that number, while the key is made */
    Vec(Ix) ix;            /* whole: expressions by their number in it */
    bool whole;            /* the key says all of it in every context: expressions, too */
    uint64_t hash;
} GroupKey;
/* What is looked for: its accesses, whatever layouts there will be; its step, in the layouts that
 * there are; that in these no tiles suit it; a step of the plan's own. */
typedef enum { KEY_USES, KEY_STEP, KEY_NO_WINOGRAD, KEY_BORDER, KEY_STACK, KEY_PACK } KeyOf;
/* A group whose accesses are remembered: who has them says all of it but layouts. */
typedef struct { uint64_t serial; uint32_t pos, npos; } GroupBase; /* 0: none; in m->base_pos */
/* What is remembered of a group; the first member of the record. */
typedef struct PlanKnown PlanKnown;
struct PlanKnown {
    PlanKnown *next;       /* in its bucket */
    uint64_t hash, made;   /* made: while which plan was begun */
    uint64_t serial;       /* no other had it */
    uint32_t *key, nkey;
    bool used;
    size_t nbytes;         /* of the record */
    void (*drop)(jot_Ctx *ctx, PlanKnown *known); /* what it holds on to; NULL: nothing */
};
/* A result of a group that would lie over what it reads: their positions; does a scatter begin with
 * that, which ends here, as far as is known before there is an order? */
typedef struct { uint32_t out, in; bool ends; } PlanWish;

/* A group's kernel as it was built, what it is called with, and what was found in it. */
typedef struct {
    Kernel k;
    BuildArgs args;
    bool looked;           /* ... for: */
    Products products;
    const Winograd *winograd; /* it reads U in place of taps; NULL: it does not */
    const char *no_winograd;  /* why not, where it was asked */
} PlanBuilt;

/* plan/step.c: a mark, never called: the function of what a device launches, of branches and of
 * loops. */
JOT_FN KernelFn jot_plan_no_fn;
typedef struct { PlanModule *module; Text text; } PlanUnit;
typedef struct { uint64_t hash; uint32_t unit; } PlanUnitName;
typedef struct {
    jot_Ctx *ctx;
    const Selection *s;
    Plan *plan;
    const Fusion *fusion;
    const Dialect *dialect;
    uint32_t *var;         /* per position: 1 + number of its variable */
    uint32_t *root;        /* per position: 1 + number of the root */
    uint32_t *readers;     /* per position: nodes that read it */
    uint8_t *plain;        /* per position: user code reads or writes it: row-major */
    const Layout **layout; /* per position: of a temporary; NULL: row-major */
    /* plan/layout/concat.c. Per position: 1 + that of the variable that it is a part of; steps that
     * write its parts. NULL: no parts */
    uint32_t *within, *writers;
    uint8_t *absent;       /* per group: it has no step, what it would write is there */
    Vec(PlanCopied) copies;
    Vec(PlanRead) reads;   /* in order of groups */
    Arena arena;           /* of layouts */
    GroupKey sought, whole;  /* the group that is looked for; the same in every context */
    GroupBase *base;       /* per group, once layouts were chosen; else NULL */
    Vec(uint32_t) base_pos;
    BuildArgs args;        /* of a known step */
    PlanBuilt **built;     /* per group: NULL: not yet, or no more (plan/built.c) */
    PlanBuilt *printed;    /* the group whose text is made; NULL: it is none's */
    const char *no_winograd;  /* why no convolution goes by tiles; NULL: each is asked */
    PlanKernels fresh;     /* of the quick tier */
    Vec(PlanWish) wishes;  /* of the group at hand; part of its key */
    Vec(PlanUnit) units;   /* found on disk */
    Vec(PlanUnitName) unit_names; /* kernels in them */
    PlanKernels held;      /* with a reference until the plan is made: what was measured */
    Text dump;
} Make;
/* plan/donate.c: which results of a group should lie over what it reads; the same in its kernel,
 * before that is printed; of its step, which may. */
JOT_FN bool jot_donate_wishes(Make *m, uint32_t group); /* by m->sought.pos */
JOT_FN void jot_donate_wish(const Make *m, Kernel *k, const BuildArgs *args);
JOT_FN void jot_donate_note(Make *m, const PlanStep *step, const BuildArgs *args);
/* plan/built.c: what was built of the group, until it is dropped, and a copy of the kernel, which
 * the caller may change and closes. NULL: failed, the context has the reason or memory was refused;
 * there is no copy. */
JOT_FN PlanBuilt *jot_plan_built(Make *m, uint32_t group, Kernel *k);
/* What sums of products the kernel is; NONE, too, if memory was refused. classes: the kernel with
 * its residue classes, where the caller has that; or NULL. */
JOT_FN const Products *jot_plan_products(PlanBuilt *b, const Kernel *classes);
JOT_FN void jot_plan_built_drop(Make *m, uint32_t group);
/* plan/text.c: the text of a kernel that is built and laid out, under a placeholder of a name,
 * without a look at what was measured. plain: by rule, whatever the configuration says of
 * schedules; own NULL: by rule. False: *why says why. dump: as the configuration says; schedule:
 * its lines, too, unless NULL. */
JOT_FN bool jot_plan_scheduled(Make *m, Kernel *k, PlanTier tier, const SchedOwn *own, bool plain,
                               bool dump, Text *out, EmitInfo *info, Text *why, Text *schedule);
/* Lanes of kernels that gain by the machine's. */
JOT_FN int jot_plan_lanes(const Make *m, int dtype);
JOT_FN bool jot_plan_fast(const Make *m); /* precision "fast" is asked for */
/* Give the buffers of the group's kernel their layouts; k->bufs as in args. */
JOT_FN void jot_plan_kernel_layouts(Make *m, uint32_t group, Kernel *k, const BuildArgs *args);
/* What a new step is made of: a group, or a kernel of the plan's own. */
typedef struct {
    Make *m;
    uint32_t group;
    Kernel *own;           /* NULL: the group's */
    const SchedOwn *sched; /* of the own one */
    const char *what;
    const BuildArgs *args;
    size_t shared_nbytes;
    PlanStep *step;
    bool kept;             /* its text was on disk (plan/tier/kept.c) */
} KernelStep;
/* Both tiers, if the quick one is there and of use; remembered if `keep`. */
JOT_FN bool jot_plan_tiers(KernelStep *s, bool keep);
/* A step that runs a kernel of the plan's own: k's buffers are the variables var[0..n). copy: as in
 * PlanStep. sched NULL: by rule. */
JOT_FN bool jot_plan_own_step(Make *m, Kernel *k, const char *what, const SchedOwn *sched,
                              uint32_t copy, const uint32_t *var, uint32_t n, bool keep);
/* ... that was kept under the key at hand (keep: it is to be). */
JOT_FN bool jot_plan_own_known(Make *m, const PlanKnown *known, uint32_t copy, const uint32_t *var,
                               uint32_t n);

/* plan/kernel.c */
JOT_FN bool jot_plan_step(Make *m, uint32_t group);

/* plan/step.c. Parts of a step: an argument; what a text is launched as (launch->kernel NULL:
 * refused); does it want a quick tier; the step to the plan's, or its kernels given back. */
JOT_FN bool jot_plan_arg_at(Make *m, uint32_t pos); /* jot_plan_var as one */
/* ... memory of this step alone. */
JOT_FN bool jot_plan_arg_own(Make *m, int64_t nelem, jot_DType dtype);
/* ... a variable that was met before, alive in the step to come; bytes that all calls of a launch
 * share, the last argument (0: none). */
JOT_FN bool jot_plan_arg_again(Make *m, uint32_t var);
JOT_FN bool jot_plan_arg_shared(Make *m, size_t nbytes);
JOT_FN void jot_plan_step_launch(Make *m, PlanLaunch *launch, const Text *text, const char *what,
                                 bool code, PlanTier tier, const EmitInfo *info);
JOT_FN bool jot_plan_step_quick(const Make *m, const PlanStep *step);
/* Arguments and scalars follow; they are there. The second fails, and gives the kernels back,
 * unless all that went before is ok. */
JOT_FN void jot_plan_step_begin(const Make *m, PlanStep *step);
JOT_FN bool jot_plan_step_end(Make *m, PlanStep *step, bool ok);
/* All arguments of one that runs a kernel of the plan's own. */
JOT_FN bool jot_plan_own_args(Make *m, const uint32_t *var, uint32_t n, size_t shared_nbytes,
                              PlanStep *step);
/* The variable of a position, made when it is first met and alive in the step to come. */
JOT_FN bool jot_plan_var(Make *m, uint32_t pos, uint32_t *number);
/* A new one, alive in the step to come; NULL: refused. */
JOT_FN PlanVar *jot_plan_var_new(Make *m, PlanVarKind kind, uint32_t pos, int64_t nelem,
                                 jot_DType dtype);
JOT_FN void jot_plan_var_touch(Make *m, uint32_t number);

/* plan/tier/tune.c: is there anything that was, or may be measured? Print a kernel by the schedule
 * that was the fastest; false: none is known, and nothing has changed. */
JOT_FN bool jot_plan_tunes(Make *m);
JOT_FN bool jot_plan_tune(Make *m, const Kernel *k, Text *out, EmitInfo *info);
JOT_FN void jot_plan_tuned_close(jot_Ctx *ctx);

/* plan/user.c: the steps of user code and of a stack. */
JOT_FN bool jot_plan_code_step(Make *m, uint32_t group, NodeId id);
JOT_FN bool jot_plan_stack_step(Make *m, NodeId id);

/* plan/flow/make.c: plans of all bodies in a selection, before anything else of its plan; its
 * numbers are those of the last walk again. */
JOT_FN bool jot_flow_plans(jot_Ctx *ctx, const Selection *s, Plan *plan);
/* plan/flow/run.c: the step runs, in this process. */
JOT_FN void jot_flow_host(jot_Ctx *ctx, const Plan *plan, const PlanStep *step,
                          const PlanBind *bind);

/* plan/known/key.c, of groups. */
/* Number of an expression in a whole key; what the expressions are, behind it. */
JOT_FN uint32_t jot_key_index(Make *m, Ix ix);
JOT_FN bool jot_key_indices(Make *m);

/* plan/known/known.c: groups that were met before. */
/* Before a plan is made; after one failed: what it made known is forgotten, for its kernels are not
 * there. */
JOT_FN bool jot_plan_knowns_begin(jot_Ctx *ctx);
JOT_FN void jot_plan_knowns_undo(jot_Ctx *ctx);
JOT_FN void jot_plan_knowns_close(jot_Ctx *ctx);
/* The group as m->sought; false: it has none, or memory was refused (ctx->mem.failed). */
JOT_FN bool jot_plan_group_key(Make *m, uint32_t group, KeyOf of);
/* ... from now on its key is short: `known` has its accesses. */
JOT_FN void jot_plan_group_key_base(Make *m, uint32_t group, const PlanKnown *known);
/* Once more, in m->whole: m->sought stays. False: it has none. */
JOT_FN bool jot_plan_group_key_whole(Make *m, uint32_t group);
/* The key of a step of the plan's own: a stack of pieces of n elements, a border of the layout, a
 * copy `from` that layout (NULL: row-major) to l, or to `tiles` of it. It is whole. */
JOT_FN bool jot_plan_group_key_own(Make *m, KeyOf of, jot_DType dtype, int64_t n, const Layout *l);
JOT_FN bool jot_plan_group_key_pack(Make *m, jot_DType dtype, const Layout *from, const Layout *l,
                                    const Winograd *tiles);
JOT_FN void jot_plan_group_key_free(Make *m);
JOT_FN PlanKnown *jot_plan_known(const Make *m);        /* of m->sought; NULL: new */
JOT_FN PlanKnown *jot_plan_know(Make *m, size_t nbytes); /* a cleared record; NULL: refused */
/* A step is kept (its numbers are the last in plan.ints), and taken. */
JOT_FN bool jot_plan_known_keep(Make *m, const PlanStep *step, const BuildArgs *args,
                                size_t shared_nbytes);
JOT_FN bool jot_plan_known_step(Make *m, const PlanKnown *known, PlanStep *step, BuildArgs *args,
                                size_t *shared_nbytes);

/* plan/tier/kept.c: texts of kernels that are kept on disk by the keys of their groups. */
/* Of the plan that is made: m->plan->kept, NULL where nothing is kept. */
JOT_FN bool jot_kept_may(const Make *m); /* its texts can be kept, unless they are tuned */
JOT_FN void jot_kept_open(Make *m);
/* The step with this whole key, called with m->args, if it is kept and its function is on disk,
 * too. */
JOT_FN bool jot_kept_step(Make *m, const GroupKey *key, const char *what, PlanStep *step,
                          size_t *shared_nbytes);
/* The step is of the plan; fresh: it was not kept. */
JOT_FN void jot_kept_note(Make *m, const GroupKey *key, const PlanStep *step,
                          const BuildArgs *args, size_t shared_nbytes, bool fresh);
JOT_FN void jot_kept_loaded(Make *m);              /* what was read is asked for no more */
/* Before a run, or (due) when kernels are compiled: write what is fresh, at the second run. */
JOT_FN void jot_kept_write(jot_Ctx *ctx, Plan *plan, bool due);
JOT_FN void jot_kept_free(jot_Ctx *ctx, Plan *plan);

/* plan/layout/layout.c: the layout of each temporary, and copies in other layouts; before any
 * step. */
JOT_FN bool jot_plan_layouts(Make *m);
JOT_FN void jot_plan_layouts_free(Make *m);
/* The copy that a group reads in place of the variable at a position; NULL: it reads itself. */
JOT_FN PlanCopied *jot_plan_copy_of(Make *m, uint32_t group, uint32_t pos);
/* A copy of the variable would stay good: it is state that this evaluation does not assign. */
JOT_FN bool jot_plan_copy_lasts(const Make *m, uint32_t pos);

/* plan/layout/concat.c: the position of the variable that this one is a part of, or is. */
JOT_FN uint32_t jot_plan_concat(const Make *m, uint32_t pos);
JOT_FN bool jot_plan_reshapes(Make *m); /* once layouts are known; false: refused */

/* plan/layout/winograd.c: convolutions by Winograd's tiles; after the layouts. */
JOT_FN bool jot_plan_winograd(Make *m);

/* plan/layout/pack.c: steps that write a copy, or the halo of a temporary. */
JOT_FN bool jot_plan_pack(Make *m, PlanCopied *copy);
/* For a written copy: its variable, before the group; the step that copies it back, after. */
JOT_FN bool jot_plan_unpack(Make *m, const PlanCopied *copy);
JOT_FN bool jot_plan_border(Make *m, uint32_t pos);

/* plan/compile.c: from kernels' texts to functions. */
#define PLAN_NO_NAME "jot_k_0000000000000000" /* what a kernel is called in PlanKernel.text */
JOT_FN bool jot_plan_compile(Make *m);
JOT_FN void jot_plan_kernel_text(const PlanKernel *k, Text *out); /* with its name */
/* Hand kernels to the best tier's compiler: those of the best tier that are missing and were part
 * of a launch before number `now` (0: all of them); of the quick tier those that were, for steps
 * whose best kernels were not: shapes that change (0: those that jot_tier_generic chose). */
JOT_FN bool jot_plan_start(jot_Ctx *ctx, const Plan *plan, uint64_t now);
/* Compile those of the best tier that have no function yet, each by itself, and wait; whose text
 * the compiler refuses has none then. False: memory was refused. */
JOT_FN bool jot_plan_compile_now(jot_Ctx *ctx, PlanKernel **k, uint32_t n);
/* A fresh kernel that is on disk gets its function. */
JOT_FN void jot_plan_recall(Make *m, PlanKernel *kernel);
JOT_FN void jot_plan_units_free(Make *m);
JOT_FN void jot_plan_kernel_unref(jot_Ctx *ctx, PlanKernel *kernel);
JOT_FN void jot_plan_module_unref(jot_Ctx *ctx, PlanModule *module);

/* plan/tier/tier.c: which of two tiers runs. */
JOT_FN void jot_tier_await(jot_Ctx *ctx, PlanKernel *k); /* the job that has it, if there is one */
/* Seconds that TIER_QUICK needs, by estimate. */
JOT_FN double jot_tier_cost(const jot_Ctx *ctx, const PlanStep *step);
/* The quick tier's kernel has taken as long as compiling its text better would. */
JOT_FN bool jot_tier_worth(const PlanKernel *quick);
/* Is waiting for the best tier sure to be better than having the quick one, too? */
JOT_FN bool jot_tier_waits(const jot_Ctx *ctx, const PlanStep *step);
/* Does the best tier's compiler begin with all of a new plan, or only with what runs again? */
JOT_FN bool jot_tier_begins(const jot_Ctx *ctx, const Plan *plan);
/* ... and, if so: are texts that were met with other extents better compiled as they are than the
 * plan's own? Of such a plan: is this step one of them? */
JOT_FN bool jot_tier_generic(const jot_Ctx *ctx, const Plan *plan);
JOT_FN bool jot_tier_varies(const PlanStep *step);
/* Before a run (`launch`), or after the plan was made: take over what was compiled meanwhile, wait
 * for what this run had better wait for, or cannot do without (false: that failed, the context has
 * the reason). */
JOT_FN bool jot_tier_settle(jot_Ctx *ctx, Plan *plan, bool launch);
/* Of a plan that is to run later: ask for what it lacks; is it all there? */
JOT_FN void jot_tier_begin(jot_Ctx *ctx, const Plan *plan);
JOT_FN bool jot_tier_there(jot_Ctx *ctx, const Plan *plan);
JOT_FN const PlanLaunch *jot_tier_launch(const PlanStep *step); /* the best that is there */

/* plan/run.c */
JOT_FN uint32_t jot_plan_bind_key(const Plan *plan); /* memory for its arrays, in jot_Scalars */
JOT_FN void jot_plan_bind_at(PlanBind *bind, const Plan *plan, void *bindings);
JOT_FN bool jot_plan_block(jot_Ctx *ctx, const Plan *plan, PlanBind *bind); /* false: refused */
JOT_FN void jot_plan_launch(jot_Ctx *ctx, Plan *plan, const PlanBind *bind);
/* What all calls of a launch work on. */
typedef struct {
    KernelFn *fn;
    void *const *arg;
    const int64_t *ints;
    const jot_Scalar *scalar;
    unsigned char *scratch;
    size_t scratch_nbytes;   /* of one worker */
    int64_t phase;           /* set by the launch */
} PlanCall;
/* All its phases, among threads if one of them alone took so many seconds that it is worth it. */
JOT_FN void jot_plan_call(jot_Ctx *ctx, const PlanLaunch *launch, PlanCall *call, double seconds);
/* Where the COPY variable `var` of the leaf with these elements is, or memory for it. False:
 * refused. */
JOT_FN bool jot_plan_bind_copy(jot_Ctx *ctx, const Plan *plan, PlanBind *bind, uint32_t var,
                               const Buffer *leaf);
/* After a run: the copy that it made stays with the leaf's elements. */
JOT_FN void jot_plan_keep_copy(PlanBind *bind, uint32_t var, Buffer *leaf);
/* Instead, when it did not run: the memory goes. */
JOT_FN void jot_plan_drop_copies(jot_Ctx *ctx, const Plan *plan, PlanBind *bind);
/* One run for a selection: out[i] is new data for root i. */
JOT_FN bool jot_plan_replay(jot_Ctx *ctx, Plan *plan, Selection *s, Buffer **out);
JOT_FN jot_Scalar jot_plan_scalar(jot_Ctx *ctx, const Selection *s, const PlanScalar *from);
JOT_FN void jot_plan_timed(jot_Ctx *ctx, const PlanKernel *kernel, int64_t start); /* dump t */
/* plan/device/device.c: the same on a device. */
JOT_FN bool jot_plan_replay_device(jot_Ctx *ctx, Plan *plan, const Selection *s, Buffer **out);
JOT_FN void jot_plan_close_device(jot_Ctx *ctx);
/* A kernel's build has smaller groups than the plan's? The target has, then: plan anew. */
JOT_FN bool jot_device_shrinks(jot_Ctx *ctx, const Plan *plan);

/* plan/options.c */
JOT_FN bool jot_plan_dumps(const jot_Ctx *ctx, char letter);
JOT_FN void jot_plan_log(jot_Ctx *ctx, Text *text); /* writes and empties it */
JOT_FN void jot_plan_dump_letters(jot_Ctx *ctx);
JOT_FN bool jot_plan_random(const Make *m); /* schedules are drawn */
JOT_FN bool jot_plan_known_fits(const Make *m); /* may steps be taken from what is known? */

#endif
