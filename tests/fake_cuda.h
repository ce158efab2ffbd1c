/* tests/fake_cuda.h - what the driver that is none (fake_cuda.c) and its instructions (fake_ptx.c)
 * know of each other. */
#ifndef JOT_FAKE_CUDA_H
#define JOT_FAKE_CUDA_H
#include <stdint.h>
#include <stdio.h>

/* Items that go on together: of a warp, of four warps, of the group. */
typedef enum { RUNS, WAITS_WARP, WAITS_WARPS, WAITS_GROUP } ItemState;
enum { ITEMS = 1024, SHARED_NBYTES = 1 << 18 };

/* memory of the group that runs; an address there is an offset */
extern unsigned char fake_shared[];
int fake_item(void);                 /* the one that runs */
void fake_wait(ItemState with);      /* until all of them are here */
void fake_stop(const char *what, const char *text); /* a kernel did what no device allows */

typedef struct { const char *how; void *p; int nbytes; } FakeOperand; /* "+f", where it is */
void fake_ptx(const char *text, FakeOperand *operand, int n, int arch);
void fake_ptx_begin(void);           /* a group begins: nothing is on its way */
void fake_ptx_barrier(void);         /* the item comes to a barrier of the group */
void fake_ptx_end(int item);         /* it is done: nothing may be on its way */

/* The text as g++ takes it: `asm` as calls, arrays of __shared__ as places of the group's
 * memory. */
void fake_rewrite(FILE *to, const char *text);
#endif
