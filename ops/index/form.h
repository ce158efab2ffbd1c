/* ops/index/form.h - a linear form under construction, for the files ops/index*.c alone.
 *
 *     form_open, form_add ... until done, form_ix         the Ix; 0 when something overflowed
 *
 * It stands outside the pool because the pool's arrays move.
 *
 * Read before: ops/index/index.h. After: ops/index/index.c. */
#ifndef JOT_INDEX_FORM_H
#define JOT_INDEX_FORM_H
#include "ops/index/index.h"

enum { IX_TERMS = 96, IX_ARGS = 16, IX_AXES = 64 };

typedef struct { int64_t c; int n; bool bad; IxTerm t[IX_TERMS]; } IxForm;

JOT_FN void jot_form_open(IxForm *f);
JOT_FN void jot_form_add(const IxPool *pool, IxForm *f, Ix ix, int64_t k); /* f += k*ix */
JOT_FN void jot_form_add_term(const IxPool *pool, IxForm *f, int64_t k, Ix atom);
/* f = d*quot + rest, taking what is divisible term by term; the constant of rest is in [0, d). */
JOT_FN void jot_form_split(const IxForm *f, int64_t d, IxForm *quot, IxForm *rest);
JOT_FN Ix jot_form_ix(IxPool *pool, IxForm *f);
/* Is a to stand before b? The same in every pool, whatever came first there. */
JOT_FN bool jot_ix_before(const IxPool *pool, Ix a, Ix b);
/* An atom of two operands (b 0: of one). */
JOT_FN Ix jot_ix_pair(IxPool *pool, IxOp op, Ix a, Ix b);
/* Bounds of c + sum of n terms. */
JOT_FN bool jot_ix_linear_range(const IxPool *pool, int64_t c, uint32_t n, const IxTerm *t,
                                const Space *space, int64_t *lo, int64_t *hi);

#endif
