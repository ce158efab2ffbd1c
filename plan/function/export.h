/* plan/function/export.h - the text of an exported function: what its steps (export.c) share with
 * those of branches and loops (plan/flow/export.c).
 *
 * Read before: plan/function/function.h. After: plan/function/export.c. */
#ifndef JOT_EXPORT_H
#define JOT_EXPORT_H
#include "ops/user/code.h"
#include "plan/function/function.h"

/* The steps of a plan, where they stand: those of the function, or of a body of a branch or loop in
 * `up`. */
typedef struct ExportScope ExportScope;
struct ExportScope {
    const ExportScope *up; /* NULL: the function */
    const Plan *plan;
    const PlanStep *step;  /* in up->plan: the branch or loop */
    const PlanFlow *flow;
    int body;
    unsigned id;           /* for names; 0: the function */
    size_t at;             /* in the arena: the plan's block */
};

typedef struct Export Export;
struct Export {
    Func *f;
    const char *name;
    const Export *before;  /* of the same file; NULL: none */
    Text t;
    jot_WriteFn *write;
    void *user;
    uint32_t *out;         /* per result of the plan: 1 + the first output that is it */
    size_t *at;            /* in the arena: per result that is no output, per update of a leaf */
    size_t arena_nbytes;
    unsigned scopes;
    PlanKernels kernels;   /* each once */
    uint32_t most;         /* arguments of a launch */
    bool loops;
};

/* ---- plan/function/tables.c ---- */
extern const char *const jot_export_types[JOT_DTYPES];
JOT_FN Buffer *jot_export_buffer(const Func *f, const FuncLeaf *leaf);
JOT_FN const FuncUpdate *jot_export_update_of(const Func *f, const FuncLeaf *leaf);
JOT_FN bool jot_export_finite(jot_DType dtype, const Buffer *data); /* else it is a union */
/* The name of a leaf's table; true: one of before is it. */
JOT_FN bool jot_export_table(const Export *e, uint32_t number, Text *t);
JOT_FN void jot_export_tables_of(Export *e);

/* ---- plan/function/export.c ---- */
JOT_FN bool jot_export_name_ok(jot_Ctx *ctx, const char *name);
/* What there is to print of e->f, and where. False: refused. */
JOT_FN bool jot_export_begin(Export *e);
JOT_FN void jot_export_kernels(const Export *e, Text *kernels);
JOT_FN void jot_export_data(Export *e);
JOT_FN void jot_export_parameters(Export *e);
JOT_FN void jot_export_body(Export *e); /* from behind the brace to the other one */
JOT_FN void jot_export_flush(Export *e, size_t least); /* the text, if there is as much */
/* A variable's address, as text. */
JOT_FN void jot_export_var(Export *e, const ExportScope *scope, uint32_t var);
JOT_FN void jot_export_steps(Export *e, const ExportScope *scope);
/* Literals of a plan, and of its user code, as tables: of these values, codes. */
JOT_FN void jot_export_tables(Export *e, const ExportScope *scope, const jot_Scalar *scalar,
                              CodeSpec *const *code);

/* ---- plan/flow/export.c ---- */
JOT_FN void jot_export_flow(Export *e, const ExportScope *scope, const PlanStep *step);
/* Of a body: the address of a hole's variable; of a result's. */
JOT_FN void jot_export_hole(Export *e, const ExportScope *scope, uint32_t var);
JOT_FN void jot_export_result(Export *e, const ExportScope *scope, uint32_t var);

#endif
