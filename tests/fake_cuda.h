/* tests/fake_cuda.h - what the driver that is none (fake_cuda.c), its compiler (fake_nvrtc.c), its
 * items (fake_items.c), their instructions (fake_ptx.c) and the checks (fake_check.c) know of each
 * other. */
#ifndef JOT_FAKE_CUDA_H
#define JOT_FAKE_CUDA_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define API __attribute__((visibility("default")))
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500 };

/* Items that go on together: of a warp, of four warps, of the group. */
typedef enum { RUNS, WAITS_WARP, WAITS_WARPS, WAITS_GROUP } ItemState;
enum { ITEMS = 1024, STACK = 64 << 10, SHARED_NBYTES = 1 << 18, STATIC_SHARED = 48 << 10,
       ROOM_SHARED = 4096 /* between arrays */ };

typedef struct { unsigned x, y, z; } Dim;
typedef struct Function {
    struct Function *next;
    struct Module *module;
    void (*go)(void **);
    int nargs;
    unsigned most;              /* items of a group */
    unsigned given;             /* bytes of memory that a launch may give to one */
    char name[200];
} Function;
typedef struct Module {
    void *library;
    Dim *thread, *block, *block_dim, *grid_dim;
    int *waits;
    Function *functions;
    unsigned char *image;       /* checked: where lines are found */
    size_t nbytes;
    const char *text, *base, *end; /* ... what it was compiled from, and where it lies */
} Module;

/* The n-th request of what may be refused is, with a code; 0: it is not. */
int fake_refused(void);
#define MAY_REFUSE do { int no_ = fake_refused(); if (no_) return no_; } while (0)
int fake_arch(void);                 /* FAKE_CUDA_ARCH: 70, 75, .. */
unsigned fake_group_nbytes(void);    /* most memory of a group there: the text's, and given */
void fake_stop(const char *what, const char *text); /* a kernel did what no device allows */

/* ---- items: fake_items.c ---- */

/* memory of the group that runs; an address there is an offset */
extern unsigned char fake_shared[];
int fake_item(void);                 /* the one that runs */
/* Until all of them are here, at the same place of the text: a string of it, or a line. */
void fake_wait(ItemState with, const char *why, int line);
void fake_bind(Module *m);           /* what a text calls */
void fake_run(Function *f, unsigned groups, unsigned items, unsigned given, void **arguments);
uint32_t fake_random(uint32_t *state);
/* FAKE_ORDER: 0, or a number by which are drawn: the order of items and groups, and when what is
 * asynchronous happens */
uint32_t fake_order(void);

/* ---- instructions: fake_ptx.c ---- */

typedef struct { const char *how; void *p; int nbytes; } FakeOperand; /* "+f", where it is */
void fake_ptx(const char *text, FakeOperand *operand, int n, int arch);
void fake_ptx_begin(unsigned nitems); /* a group begins: nothing is on its way */
void fake_ptx_barrier(void);         /* the item comes to a barrier of the group */
void fake_ptx_end(int item);         /* it is done: nothing may be on its way */

/* ---- checks: fake_check.c; without FAKE_CHECK they do nothing ---- */

typedef enum { READ, WRITE, ATOMIC } Access;
bool fake_checks(void);
void *fake_check_alloc(size_t nbytes);   /* memory of the device; NULL: there is none */
void fake_check_free(void *p);
void fake_check_copy(void *to, const void *from, size_t nbytes); /* it will be, by the driver */
void fake_check_launch(Function *f, const char *stacks);
/* Whether a launch is run for the first, second, .. time; its memory is as it was before. */
bool fake_check_again(int times);
void fake_check_launched(void);          /* stops here if something was found */
void fake_check_group(unsigned group);
void fake_check_place(uint64_t at, uint64_t nbytes); /* the group has an array there */
void fake_check_barrier(void);           /* all items of the group have met */
void fake_access(const void *p, int nbytes, int how, const void *from);
/* From `from` on, a copy is on its way to the group's memory, until it has come. */
void fake_check_coming(uint64_t at, int nbytes, const void *from);
void fake_check_came(uint64_t at, int nbytes, const void *from);
/* fence.proxy.async, and a read of the matrix unit past the item. */
void fake_check_fence(void);
void fake_check_unit_read(uint64_t at, int nbytes, const void *from);
#endif
