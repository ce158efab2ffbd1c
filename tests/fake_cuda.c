/* tests/fake_cuda.c - a CUDA driver and an NVRTC that are none: kernels run on the processor, item
 * by item, so that their text and backends/cuda/cuda.c can be tested where there is no GPU. Used as
 * libcuda.so.1 and as JOT_NVRTC by tests/test_device.sh.
 *
 *     module     a shared object (tests/fake_nvrtc.c)
 *     launch     group after group; the items of one are fibers that change at barriers; a group's
 *                memory begins as noise (tests/fake_items.c)
 *     stream     a queue that does nothing until someone waits for it: what the program forgot to
 *                wait for has not happened
 *
 * The device is of the architecture in FAKE_CUDA_ARCH (70 without it): what is written for that is
 * what runs, instructions by fake_ptx.c. With FAKE_CHECK set each access to memory is looked at
 * (tests/fake_check.c).
 *
 * Read before: tests/fake_cuda.h. After: tests/fake_nvrtc.c, tests/fake_items.c. */
#define _GNU_SOURCE
#include "tests/fake_cuda.h"
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The n-th request from now on is answered by `code`; 0: none. For tests/test_refused.c. */
static long refuse_at;
static int refuse_code;
API void
fake_refuse(long n, int code, int onwards)
{
    (void)onwards;
    refuse_at = n;
    refuse_code = code;
}
int fake_refused(void) { return refuse_at > 0 && --refuse_at == 0 ? refuse_code : OK; }

/* ---- modules ------------------------------------------------------------------------------ */

/* Up to where the text's own addresses go. */
static int
find_end(struct dl_phdr_info *info, size_t size, void *data)
{
    Module *m = data;

    (void)size;
    for (int i = 0; info->dlpi_addr == (uintptr_t)m->base && i < info->dlpi_phnum; i++) {
        const char *end = m->base + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > m->end)
            m->end = end;
    }
    return 0;
}

static void
keep_image(Module *m, const void *image, size_t nbytes)
{
    Dl_info info;

    m->image = malloc(nbytes);
    m->nbytes = nbytes;
    memcpy(m->image, (const char *)image + 8, nbytes);
    m->text = dlsym(m->library, "fake_text");
    dladdr((const void *)m->waits, &info);
    m->base = info.dli_fbase;
    dl_iterate_phdr(find_end, m);
}

API int
cuModuleLoadData(Module **module, const void *image)
{
    char path[] = "/tmp/fake_cuda.XXXXXX";
    uint64_t n;
    Module *m;
    ssize_t wrote;
    int fd;

    MAY_REFUSE;
    fd = mkstemp(path);
    m = calloc(1, sizeof *m);
    if (memcmp((const char *)image + 8, "\177ELF", 4))
        return free(m), close(fd), unlink(path), INVALID_IMAGE;
    memcpy(&n, image, 8);
    wrote = write(fd, (const char *)image + 8, n);
    close(fd);
    m->library = wrote == (ssize_t)n ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    if (!m->library)
        return fprintf(stderr, "fake_cuda: %s\n", dlerror()), INVALID;
    m->thread = dlsym(m->library, "threadIdx");
    m->block = dlsym(m->library, "blockIdx");
    m->block_dim = dlsym(m->library, "blockDim");
    m->grid_dim = dlsym(m->library, "gridDim");
    m->waits = dlsym(m->library, "fake_waits");
    if (fake_checks())
        keep_image(m, image, n);
    fake_bind(m);
    *module = m;
    return OK;
}

API int
cuModuleGetFunction(Function **function, Module *m, const char *name)
{
    char entry[200];
    int (*count)(void);
    Function *f;

    MAY_REFUSE;
    f = calloc(1, sizeof *f);
    snprintf(entry, sizeof entry, "%s__go", name);
    *(void **)&f->go = dlsym(m->library, entry);
    snprintf(entry, sizeof entry, "%s__n", name);
    *(void **)&count = dlsym(m->library, entry);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->next = m->functions;
    m->functions = f;
    f->module = m;
    if (!f->go || !count)
        return NOT_FOUND;
    f->nargs = count();
    snprintf(entry, sizeof entry, "%s__most", name);
    f->most = *(unsigned *)dlsym(m->library, entry);
    f->given = STATIC_SHARED;
    *function = f;
    return OK;
}

/* Of what may be set: 8, bytes that a launch gives. */
API int
cuFuncSetAttribute(Function *f, int what, int value)
{
    MAY_REFUSE;
    if (what != 8 || value < 0 || (unsigned)value > fake_group_nbytes())
        return INVALID;
    f->given = (unsigned)value;
    return OK;
}

/* ---- streams ------------------------------------------------------------------------------ */

typedef enum { LAUNCH, COPY, RECORD, WAIT } OpKind;
typedef struct Event { uint64_t asked, reached; struct Stream *stream; } Event;
typedef struct Op {
    struct Op *next;
    OpKind kind;
    Function *function;
    unsigned groups, items, given;
    uint64_t *value;
    void *to;
    const void *from;
    size_t nbytes;
    Event *event;
    uint64_t number;            /* of the record */
} Op;
typedef struct Stream {
    struct Stream *next;
    Op *first, *last;
} Stream;
static Stream *streams;

static void run_event(Event *e, uint64_t number);

static void
run_op(Op *op)
{
    void *arguments[1024];
    int i;

    switch (op->kind) {
    case LAUNCH:
        for (i = 0; i < op->function->nargs; i++)
            arguments[i] = &op->value[i];
        fake_run(op->function, op->groups, op->items, op->given, arguments);
        break;
    case COPY:
        fake_check_copy(op->to, op->from, op->nbytes);
        memcpy(op->to, op->from, op->nbytes);
        break;
    case RECORD: op->event->reached = op->number; break;
    case WAIT: run_event(op->event, op->number); break;
    }
}

static int
run_first(Stream *s)
{
    Op *op = s->first;

    if (!op)
        return 0;
    s->first = op->next;
    if (!s->first)
        s->last = NULL;
    run_op(op);
    free(op->value);
    free(op);
    return 1;
}

static void
run_event(Event *e, uint64_t number)
{
    while (e->reached < number && e->stream && run_first(e->stream))
        ;
}

static void
run_all(void)
{
    for (Stream *s = streams; s; s = s->next)
        while (run_first(s))
            ;
}

static int
add_op(Stream *s, Op op)
{
    Op *p = malloc(sizeof *p);

    *p = op;
    p->next = NULL;
    *(s->last ? &s->last->next : &s->first) = p;
    s->last = p;
    return OK;
}

API int
cuStreamCreate(Stream **s, unsigned flags)
{
    MAY_REFUSE;
    (void)flags;
    *s = calloc(1, sizeof **s);
    (*s)->next = streams;
    streams = *s;
    return OK;
}

API int
cuStreamDestroy_v2(Stream *s)
{
    Stream **at = &streams;

    run_all();
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free(s);
    return OK;
}

API int
cuStreamSynchronize(Stream *s)
{
    MAY_REFUSE;
    while (run_first(s))
        ;
    return OK;
}

API int cuEventCreate(Event **e, unsigned f) { MAY_REFUSE; return (void)f, *e = calloc(1,
    sizeof **e), OK; }
API int cuEventDestroy_v2(Event *e) { return run_all(), free(e), OK; }
API int cuEventSynchronize(Event *e) { MAY_REFUSE; return run_event(e, e->asked), OK; }
API int cuEventQuery(Event *e) { return run_event(e, e->asked), OK; }

API int
cuEventRecord(Event *e, Stream *s)
{
    Op op = {.kind = RECORD, .event = e, .number = ++e->asked};

    MAY_REFUSE;
    e->stream = s;
    return add_op(s, op);
}

API int
cuStreamWaitEvent(Stream *s, Event *e, unsigned flags)
{
    Op op = {.kind = WAIT, .event = e, .number = e->asked};

    MAY_REFUSE;
    (void)flags;
    return add_op(s, op);
}

static int
copy(void *to, const void *from, size_t nbytes, Stream *s)
{
    Op op = {.kind = COPY, .to = to, .from = from, .nbytes = nbytes};

    return add_op(s, op);
}

API int
cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t nbytes, Stream *s)
{
    MAY_REFUSE;
    return copy((void *)(uintptr_t)to, from, nbytes, s);
}

API int
cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t nbytes, Stream *s)
{
    MAY_REFUSE;
    return copy(to, (const void *)(uintptr_t)from, nbytes, s);
}

API int
cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t nbytes, Stream *s)
{
    MAY_REFUSE;
    return copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, nbytes, s);
}

API int
cuLaunchKernel(Function *f, unsigned groups, unsigned y, unsigned z, unsigned items, unsigned iy,
               unsigned iz, unsigned shared, Stream *s, void **args, void **extra)
{
    Op op = {.kind = LAUNCH, .function = f, .groups = groups, .items = items, .given = shared};
    int i;

    MAY_REFUSE;
    (void)y, (void)z, (void)iy, (void)iz, (void)extra;
    if (!groups || !items || items > ITEMS || shared > f->given)
        return INVALID;
    op.value = malloc((size_t)f->nargs * sizeof *op.value);
    for (i = 0; i < f->nargs; i++)
        memcpy(&op.value[i], args[i], 8); /* arguments lie in 8 bytes each */
    return add_op(s, op);
}

/* ---- graphs ------------------------------------------------------------------------------- */

/* Kernels in a chain. An executable graph has copies of its own; a node finds its copy by
 * number. */
#ifndef FAKE_NO_GRAPHS
typedef struct {
    Function *function;
    unsigned groups, y, z, items, iy, iz, shared;
    void **argument, **extra;
} GraphKernel;
typedef struct { int number; } GraphNode;
typedef struct {
    Op op[1000];
    GraphNode node[1000];
    int n;
} Graph;

static void
take_kernel(Op *op, const GraphKernel *k)
{
    int i;

    free(op->value);
    op->kind = LAUNCH;
    op->function = k->function;
    op->groups = k->groups;
    op->items = k->items;
    op->given = k->shared;
    op->value = malloc((size_t)k->function->nargs * sizeof *op->value);
    for (i = 0; i < k->function->nargs; i++)
        memcpy(&op->value[i], k->argument[i], 8);
}

static void
copy_op(Op *to, const Op *from)
{
    size_t nbytes = (size_t)from->function->nargs * sizeof *from->value;

    *to = *from;
    to->value = malloc(nbytes);
    memcpy(to->value, from->value, nbytes);
}

API int cuGraphCreate(Graph **g, unsigned f) { MAY_REFUSE; return (void)f, *g = calloc(1,
    sizeof **g), OK; }

API int
cuGraphAddKernelNode(GraphNode **node, Graph *g, GraphNode *const *before, size_t n,
                     const GraphKernel *k)
{
    MAY_REFUSE;
    if (g->n == 1000 || !k->groups || !k->items || k->items > ITEMS
        || k->shared > k->function->given
        || n != (g->n > 0) || (n && before[0] != &g->node[g->n - 1]))
        return INVALID;
    take_kernel(&g->op[g->n], k);
    *node = &g->node[g->n];
    (*node)->number = g->n++;
    return OK;
}

API int
cuGraphInstantiateWithFlags(Graph **exec, Graph *g, unsigned long long flags)
{
    MAY_REFUSE;
    (void)flags;
    *exec = calloc(1, sizeof **exec);
    for (; (*exec)->n < g->n; (*exec)->n++)
        copy_op(&(*exec)->op[(*exec)->n], &g->op[(*exec)->n]);
    return OK;
}

API int
cuGraphExecKernelNodeSetParams(Graph *exec, GraphNode *node, const GraphKernel *k)
{
    MAY_REFUSE;
    if (k->function != exec->op[node->number].function || k->shared > k->function->given)
        return INVALID;
    take_kernel(&exec->op[node->number], k);
    return OK;
}

API int
cuGraphLaunch(Graph *exec, Stream *s)
{
    int i;

    MAY_REFUSE;
    for (i = 0; i < exec->n; i++) {
        Op again;

        copy_op(&again, &exec->op[i]);
        add_op(s, again);
    }
    return OK;
}

API int
cuGraphDestroy(Graph *g)
{
    while (g->n)
        free(g->op[--g->n].value);
    free(g);
    return OK;
}

API int cuGraphExecDestroy(Graph *g) { return cuGraphDestroy(g); }
#endif

/* ---- the rest of the driver --------------------------------------------------------------- */

API int
cuModuleUnload(Module *m)
{
    run_all();
    while (m->functions) {
        Function *f = m->functions;

        m->functions = f->next;
        free(f);
    }
    dlclose(m->library);
    free(m->image);
    free(m);
    return OK;
}

API int
cuMemAlloc_v2(uint64_t *p, size_t nbytes)
{
    void *mem = NULL;

    MAY_REFUSE;
    if (fake_checks())
        mem = fake_check_alloc(nbytes);
    else if (posix_memalign(&mem, 256, nbytes))
        mem = NULL;
    if (!mem)
        return NO_MEMORY;
    memset(mem, 0xa5, nbytes);
    *p = (uint64_t)(uintptr_t)mem;
    return OK;
}

API int
cuMemFree_v2(uint64_t p)
{
    run_all();
    (fake_checks() ? fake_check_free : free)((void *)(uintptr_t)p);
    return OK;
}

API int cuMemHostAlloc(void **p, size_t n, unsigned f) { MAY_REFUSE; return (void)f,
    *p = malloc(n), OK; }
API int cuMemFreeHost(void *p) { return run_all(), free(p), OK; }

API int cuInit(unsigned flags) { MAY_REFUSE; return (void)flags, OK; }
API int cuDriverGetVersion(int *v) { return *v = 12000, OK; }
API int cuDeviceGetCount(int *n) { MAY_REFUSE; return *n = 1, OK; }
API int cuDeviceGet(int *device, int n) { MAY_REFUSE; return *device = n, n == 0 ? OK : INVALID; }
API int cuDeviceGetName(char *s, int n, int d) { MAY_REFUSE; return (void)d, snprintf(s, n,
    "processor"), OK; }
API int
cuDeviceGetAttribute(int *v, int what, int d)
{
    MAY_REFUSE;
    (void)d;
    *v = what == 75 ? fake_arch() / 10 : what == 76 ? fake_arch() % 10 : (int)fake_group_nbytes();
    return OK;
}
API int cuDevicePrimaryCtxRetain(void **c, int d) { MAY_REFUSE; return (void)d, *c = &streams, OK; }
API int cuDevicePrimaryCtxRelease_v2(int d) { return (void)d, OK; }
API int cuCtxPushCurrent_v2(void *c) { MAY_REFUSE; return (void)c, OK; }
API int cuCtxPopCurrent_v2(void **c) { return *c = NULL, OK; }
API int cuGetErrorString(int e, const char **s) { return *s = e ? "an error" : "none", OK; }
