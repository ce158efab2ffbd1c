/* speculate.h - programs that decide on the host, at the speed of compiled functions, composed on
 * core.h: a step is run as it is, what it looked at becomes assumptions, and while they hold the
 * functions that it was made into are called instead (JANUS, Jeong et al. 2019, section 4.2).
 *
 *     typedef struct { jot_Var w; int n; const float *x; float loss; } Job;
 *
 *     static bool
 *     step(jot_Host *h, void *user)
 *     {
 *         Job *j = user;
 *         int64_t n = jot_host_int(h, JOT_I32, &j->n);               decides a shape
 *         const float *p = jot_host_pointer(h, &j->x, (size_t)n * 8 * sizeof *p);
 *         jot_Var x = jot_host_array(h, JOT_F32, JOT_SHAPE(n, 8), p);     elements: any
 *         jot_Var loss = jot_mse(jot_matmul(x, j->w), ...), g;
 *         jot_grad(loss, JOT_VARS(j->w), &g);
 *         if (jot_host_test(h, jot_gt(loss, limit)))                 decides a branch
 *             jot_assign(j->w, jot_sub(j->w, g));
 *         jot_host_put(h, loss, &j->loss, sizeof j->loss);           what comes back
 *         return true;
 *     }
 *
 *     jot_Spec s = jot_speculate(c, step, sizeof(Job), NULL);
 *     for (...)
 *         jot_spec_call(s, &job);                                    instead of step(...)
 *
 * The rule. All that the step reads of the host it reads by jot_host_...; all that it writes there
 * it writes by jot_host_put, or in a function given to jot_host_after; and by the same answers it
 * does the same. Variables of this context it reads, assigns and steps (jot_step) as ever, values
 * it asks for by jot_host_test and jot_host_item. What breaks the rule and is noticed stays
 * imperative, and jot_spec_why says what it was: another question after the same answers, another
 * graph or literal, a value asked for otherwise, *user written to, handles that outlive the call or
 * were freed by it. Variables may be named by handles that never change; one that does is read by
 * jot_host_var. What of an optimiser is no variable is of the host, and no jot_host_ reads it:
 * after jot_optim_own the step is one for another jot_speculate.
 *
 *     jot_host_int n            n = 4            n = 3
 *                                 |                |
 *     jot_host_array         x (4, 8)         x (3, 8)
 *                                 |                |
 *     jot_host_test          function 1       function 3      asked for in the middle: so far a
 *                            yes /  \ no           | yes      function, then a branch
 *     end              function 2    (seen once)  ...         the rest
 *
 * What was asked and answered is a tree. The first time that a way through it is taken the step
 * runs; the second time it runs, and each evaluation of it becomes a function (jot_capture); from
 * the third time on they are called. A wrong assumption is a way that is not there: nothing has
 * changed (jot_begin, jot_rollback), and the step runs. A branch has a way for each answer, so has
 * an extent; a number (jot_host_number) is a constant until it has a second value, and from then on
 * an input of the function. The tree and its functions are bounded, and what was not used for
 * longest goes; a function that went so is made again after more runs than before, and a question
 * whose answers are new 256 times more than known has no more of them: so more ways than there is
 * room for, or none ever twice, cost no more than the step.
 *
 * Draws are those of the step (jot_random_state), bits those of its evaluations.
 *
 * Read before: core.h. After: speculate/spec.h. */
#ifndef JOT_SPECULATE_H
#define JOT_SPECULATE_H
#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct jot_Host jot_Host; /* a run of the step; valid during it */
/* Builds graphs, decides, assigns. False after a failure, or to give up: then no variable has
 * changed, the generator neither, and nothing was put. user: as given to jot_spec_call. */
typedef bool jot_SpecFn(jot_Host *h, void *user);

typedef struct {
    int functions; /* most compiled functions that are kept; 0: 256 */
    int answers;   /* most questions and answers in the tree; 0: 16,384 */
    bool run;      /* the step always runs, to compare with */
} jot_SpecHow;
typedef struct { jot_Var state; void *record; } jot_Spec; /* a handle: it lives as `state` does */

/* nbytes: of what user points to in the calls. how NULL: all 0. Poison after a failure. The context
 * owns it; it ends with jot_spec_free or jot_close. */
JOT_API jot_Spec jot_speculate(jot_Ctx *ctx, jot_SpecFn *fn, size_t nbytes, const jot_SpecHow *how);
JOT_API bool jot_spec_ok(jot_Spec s); /* a live handle, not poison */
/* Does nothing to poison and empty handles; from within its own call it fails (JOT_EUSE). */
JOT_API void jot_spec_free(jot_Spec s);

/* What fn(h, user) does, all or nothing: false: no variable has changed, nothing was put. Handles
 * that it makes end with it, but for those that it keeps. It refuses after a failure until
 * jot_clear, as jot_call does, and within jot_begin, another step included (JOT_EUSE). user: of the
 * very size told. A step that calls jot_commit or jot_rollback fails (JOT_EUSE), and what it so
 * kept or lost stays so. */
JOT_API bool jot_spec_call(jot_Spec s, void *user);

typedef struct {
    uint64_t calls;      /* that went well: */
    uint64_t replays;    /* by functions alone */
    uint64_t runs;       /* by the step */
    uint64_t wrong;      /* of these, after functions had been called: rolled back first */
    uint64_t functions;  /* made */
    uint64_t widened;    /* constants that became inputs */
    uint64_t dropped;    /* functions that were not used for longest */
    uint32_t live, answers; /* functions, questions and answers that are there */
} jot_SpecStats;
JOT_API jot_SpecStats jot_spec_stats(jot_Spec s); /* all 0 for poison */
/* Why the last call was no replay, a refused one too; "": it was one. Valid until the next call. */
JOT_API const char *jot_spec_why(jot_Spec s);
/* The tree through the log hook: a question a line, with its answer, and what is a function. */
JOT_API bool jot_spec_print(jot_Spec s);

/* ---- what the step reads --------------------------------------------------------------------- */

/* at: within what user points to, or within what jot_host_pointer returned, where C has a value of
 * dtype (JOT_I32: int32_t, int): anything else is JOT_EUSE. */

JOT_API jot_Ctx *jot_host_ctx(jot_Host *h);
/* An extent, a count, a choice: a way for each value. A dtype of integers, or bool. */
JOT_API int64_t jot_host_int(jot_Host *h, jot_DType dtype, const void *at);
/* The same of a float (f32, f64) that the host computes with. */
JOT_API double jot_host_float(jot_Host *h, jot_DType dtype, const void *at);
/* A scalar of the graph: a learning rate, a weight of a loss. Not of f16 or bf16. */
JOT_API jot_Var jot_host_number(jot_Host *h, jot_DType dtype, const void *at);
/* The pointer that stands at `at`, to nbytes of host memory (0, or NULL: to nothing). The ways
 * differ by whether it is NULL and by what of the memory told before it overlaps. */
JOT_API void *jot_host_pointer(jot_Host *h, const void *at, size_t nbytes);
/* An array of the elements that stand there, row-major, aligned as C aligns them; bools
 * are 0 or 1. */
JOT_API jot_Var jot_host_array(jot_Host *h, jot_DType dtype, jot_Ints shape, const void *at);
/* The handle that stands there: a way for each. */
JOT_API jot_Var jot_host_var(jot_Host *h, const jot_Var *at);
/* What fn says of the host's state, a choice that is no plain value: every hundredth step, a length
 * rounded up. Called with `user` in each call, it changes nothing; a way for each result. */
typedef int64_t jot_ChooseFn(void *user);
JOT_API int64_t jot_host_choose(jot_Host *h, jot_ChooseFn *fn);

/* ---- what it asks for ------------------------------------------------------------------------ */

/* v has one element; it and all pending assignments are evaluated. Whether it is not 0: a branch
 * by that. */
JOT_API bool jot_host_test(jot_Host *h, jot_Var v);
/* Its value: a way for each, so for few values; what is compared with something, or only shown, is
 * better tested, or put. As jot_item, jot_item_int. */
JOT_API double jot_host_item(jot_Host *h, jot_Var v);
JOT_API int64_t jot_host_item_int(jot_Host *h, jot_Var v);

/* ---- what it writes -------------------------------------------------------------------------- */

/* v's elements go to `to` when all went well; nbytes must be their size (JOT_ESHAPE). */
JOT_API bool jot_host_put(jot_Host *h, jot_Var v, void *to, size_t nbytes);
/* Then fn(user) is called, in the order of these calls: what the host counts, appends, prints. The
 * call has not returned: jot_spec_call and jot_spec_free of the same step are JOT_EUSE. */
typedef void jot_AfterFn(void *user);
JOT_API bool jot_host_after(jot_Host *h, jot_AfterFn *fn);

#ifdef __cplusplus
}
#endif
#endif
