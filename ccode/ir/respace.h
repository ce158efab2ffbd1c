/* ccode/ir/respace.h - axes replaced by index expressions, and values put at other positions.
 *
 *     i of 30 = 4*ib + il     place[i] = 4*ib + il     guard: 4*ib + il < 30
 *
 *     in a kernel    y[i] = x[i]    ->   y[4*ib + il] = x[4*ib + il], where the guard holds
 *     of a value     %7             ->   %7 made anew at that place, in its own kernel or another
 *
 * Old axes may go on as new ones. Who adds axes has the extents read anew before more is placed.
 *
 * Read before: ccode/ir/operands.h. After: ccode/ir/respace.c, ccode/rewrite/residue.c. */
#ifndef JOT_RESPACE_H
#define JOT_RESPACE_H
#include "ccode/ir/access.h"
#include "ccode/ir/operands.h"

typedef struct {
    IxPool *ix;
    int n;                      /* axes that there were */
    uint64_t moved;             /* those that are replaced */
    Ix place[KERNEL_AXES];      /* what stands for each of these; the others stand for themselves */
    int nguard;
    struct { uint64_t axes; Ix holds; } guard[3]; /* what moves with the axes is where it holds */
    int64_t ext[KERNEL_AXES];   /* of the new axes */
    Space space;
} Respace;

/* Each axis of k stands for itself; new axes are those that k has. */
JOT_FN void jot_respace_open(Respace *r, const Kernel *k);
JOT_FN void jot_respace_axes(Respace *r, const Kernel *k); /* the new axes are those of k */
JOT_FN void jot_respace_place(Respace *r, int axis, Ix at);
/* What moves with the axes is where `holds`, or where at < ext. The condition; 0: it always
 * does. */
JOT_FN Ix jot_respace_ask(Respace *r, uint64_t axes, Ix holds);
JOT_FN Ix jot_respace_guard(Respace *r, uint64_t axes, Ix at, int64_t ext);
JOT_FN Ix jot_respaced(const Respace *r, Ix ix);
/* All of k: expressions, and guards of loads and stores. What sums run over is the caller's. */
JOT_FN bool jot_respace_kernel(const Respace *r, Kernel *k);

/* Values of one kernel made anew in another, or in the same, where those stay that do not move. */
typedef struct Put Put;
typedef uint32_t PutFn(const Put *p, uint32_t value);
#define PUT_PLAIN (REMAKE_ASK - 1)
struct Put {
    const Kernel *from;
    Kernel *to;
    const Respace *r;           /* NULL: axes stay as they are, and all is made anew */
    PutFn *own;                 /* NULL, or asked first: the value, 0, REMAKE_ASK, PUT_PLAIN */
    void *ud;
    uint32_t *there;            /* what each value of `from` became */
    uint32_t n;
};
JOT_FN bool jot_put_open(Put *p, const Kernel *from, Kernel *to, const Respace *r);
JOT_FN void jot_put_close(Put *p);
JOT_FN uint32_t jot_put(Put *p, uint32_t value); /* 0: it cannot be said there */
JOT_FN Ix jot_put_ix(const Put *p, Ix ix);
/* Elements of a buffer, moved by `axes`: its expressions are from->ixs.v[at..]. */
JOT_FN uint32_t jot_put_load(const Put *p, uint32_t buf, uint32_t at, int nidx, int ncond,
                             uint64_t axes, jot_Scalar outside);
JOT_FN bool jot_put_store(Put *p, const KStore *store); /* of a value that is put */

/* A load with axes of its own in dimensions dim[0..n), read at the positions that stood there. */
JOT_FN uint32_t jot_v_distinct(Kernel *k, uint32_t load, int n, const int *dim, const int *axis,
                            int ncond, const Ix *cond);

#endif
