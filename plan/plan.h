/* plan/plan.h - evaluation: from "these nodes are wanted" to elements in memory.
 *
 *     roots -> select -> cached plan? -> fuse -> build -> schedule -> emit -> compile -> run
 *                                                                               hand over <-'
 *
 * All or nothing: whatever can fail happens before the first node is given data.
 *
 * Read before: ops/graph.h, fuse/fuse.h, ccode/ir/ir.h, backends/backend.h. After: plan/plan.c. */
#ifndef JOT_PLAN_H
#define JOT_PLAN_H
#include "ops/graph.h"

/* Evaluate these nodes and, with them, every pending assignment. Roots may repeat, may be ALIAS or
 * have data already. On success each has data, and each assigned state is a LEAF. False: the
 * context has the reason, and no node was changed. */
JOT_FN bool jot_plan_run(jot_Ctx *ctx, const NodeId *roots, uint32_t n);
/* Elements of a node's data where they are wanted: in host memory, or as the handle of a backend
 * with memory of its own (plan/data.c). A copy is made when there is none yet. NULL: the
 * context has the reason, and `what` was asked for them. */
JOT_FN const void *jot_data_host(jot_Ctx *ctx, Buffer *buf, const char *what);
JOT_FN void *jot_data_there(jot_Ctx *ctx, Buffer *buf);
JOT_FN void jot_data_attach(jot_Ctx *ctx); /* the backend is a device: sets ctx->release */
/* Memory of the backend's own, from what was given back before where that fits; it goes back by
 * ctx->release with the same nbytes. NULL: there is not as much, which the second one tells;
 * `what` wanted it. */
JOT_FN void *jot_data_try(jot_Ctx *ctx, size_t nbytes);
JOT_FN void jot_data_refused(jot_Ctx *ctx, const char *what, size_t nbytes);
JOT_FN bool jot_data_leave(jot_Ctx *ctx, Buffer *buf);  /* to the host; false: a failure was told */
JOT_FN void jot_data_close(jot_Ctx *ctx);
/* plan/fetch.c. Drop the fetches from this one on; from a callback, which walks them: nothing. */
JOT_FN void jot_fetch_forget(jot_Ctx *ctx, uint32_t from);
/* After an evaluation: the callbacks of what earlier ones computed, and of what follows and is
 * there already; wait: of all. */
JOT_FN void jot_fetch_callbacks(jot_Ctx *ctx, bool wait);
JOT_FN void jot_fetch_due(jot_Ctx *ctx); /* the callbacks of what evaluations so far computed */
/* The buffer's memory on the device will be another's: behind the copies that still read it. */
JOT_FN void jot_fetch_leave(jot_Ctx *ctx, const Buffer *buf);
/* plan/tier/rates.c. The target's rates as they will stay: measured now, if that was put off. */
JOT_FN void jot_plan_rates(jot_Ctx *ctx);
JOT_FN bool jot_plan_dump_known(char letter); /* plan/options.c: a letter of JOT_DUMP */
/* plan/function/function.c. End all compiled functions. */
JOT_FN void jot_func_close(jot_Ctx *ctx);
/* plan/plan.c. Free all plans, compiled kernels and the block of temporaries. */
JOT_FN void jot_plan_close(jot_Ctx *ctx);

/* plan/flow/form.c. Branches and loops of a list in the forms that this one wants; the list's
 * numbers are those of the last walk, before and after. */
JOT_FN bool jot_flow_settle(jot_Ctx *ctx, const NodeList *list);
/* plan/flow/interp.c. One of them, interpreted: in has the elements of its inputs; out, NULLs,
 * takes those that its form wants. False: failed; the context may have no reason yet. */
JOT_FN bool jot_flow_interp(jot_Ctx *ctx, const struct CodeSpec *spec, void *const *in,
                            Buffer **out);

/* The interpreter's share: `list` in order of evaluation (jot_graph_order with stop_at_data), roots
 * distinct members of it without data. out[i]: the elements of roots[i], a reference for the
 * caller. False: nothing was kept, the context has the reason. */
JOT_FN bool jot_interp_run(jot_Ctx *ctx, const NodeList *list, const NodeId *roots, uint32_t n,
                           Buffer **out);

#endif
