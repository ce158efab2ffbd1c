/* ccode/device/device.h - what the loops of a device (team.c, walk_grid.c, walk_matrix.c) and their
 * text (emit_device.c, emit_matrix.c) share.
 * Read before: ccode/lower/walk.h, ccode/emit/print.h. After: ccode/device/walk_grid.c. */
#ifndef JOT_DEVICE_CODE_H
#define JOT_DEVICE_CODE_H
#include "ccode/emit/print.h"
#include "ccode/lower/walk.h"

/* C_MATRIX: who has it together, its steps, how operands lie
 * (ccode/device/emit_matrix.c). What four warps have together is on its way until it is waited for;
 * k 0: all is there, the sums may be read. */
typedef struct { int warps, m, n, k, far[2]; bool transposed[2], swizzled[2]; } MatrixUnit;
/* Four warps' operands in lines of 128 bytes: piece c of 16 bytes of line r is where piece
 * c ^ r % 8 would be, so that eight pieces below each other lie on banks of their own. */
JOT_FN bool jot_group_swizzled(const Sched *s, const KBuf *buf);
JOT_FN MatrixUnit jot_matrix_unit(jot_Scalar c);

JOT_FN void jot_print_matrix(Printer *p, const Inst *in); /* emit_matrix.c */
JOT_FN void jot_print_copy(Printer *p, const Inst *in);
JOT_FN void jot_print_barrier(Printer *p, const Inst *in);
/* team.c: BARRIER_..; left: of what is waited for the last so many are not. */
JOT_FN void jot_walk_barrier_of(Walk *w, uint32_t what, int64_t left);
JOT_FN void jot_walk_products(Walk *w, uint32_t product); /* wait for it, to read its sums */
JOT_FN bool jot_matrix_helper(const char *name, size_t n, Text *out); /* false: no such function */

#endif
