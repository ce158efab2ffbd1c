/* tests/fake_cuda.c - a CUDA driver and an NVRTC that are none: kernels run on the processor, item
 * by item, so that their text and backends/cuda.c can be tested where there is no GPU. Used as
 * libcuda.so.1 and as JOT_NVRTC by tests/test_device.sh.
 *
 *     NVRTC      the text behind a few definitions, through g++, to a shared object: the "cubin"
 *     launch     group after group; the items of one are fibers that change at barriers; a group's
 *                memory begins as noise
 *     stream     a queue that does nothing until someone waits for it: what the program forgot to wait
 *                for has not happened
 *
 * The device is of the architecture in FAKE_CUDA_ARCH (70 without it): what is written for that is
 * what runs, instructions by fake_ptx.c, and of older ones than have them items that pass their
 * pieces around. */
#define _GNU_SOURCE
#include "tests/fake_cuda.h"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))
enum { OK = 0, INVALID = 1, NO_MEMORY = 2, INVALID_IMAGE = 200, NOT_FOUND = 500, UNSUPPORTED = 801 };

/* The n-th request from now on is answered by `code`; 0: none. For tests/test_refused.c. */
static long refuse_at;
static int refuse_code;
API void fake_refuse(long n, int code) { refuse_at = n, refuse_code = code; }
static bool refused(void) { return refuse_at > 0 && --refuse_at == 0; }
#define MAY_REFUSE do { if (refused()) return refuse_code; } while (0)

/* ---- NVRTC -------------------------------------------------------------------------------- */

static const char shim[] =
    "struct fake_dim { unsigned x, y, z; };\n"
    "extern \"C\" { fake_dim threadIdx, blockIdx, blockDim, gridDim;\n"
    "void (*fake_sync)(void); unsigned (*fake_pass)(unsigned, int);\n"
    "void *(*fake_take)(unsigned long); unsigned long (*fake_offset)(const void *);\n"
    "struct fake_operand { const char *how; void *p; int nbytes; };\n"
    "void (*fake_ptx)(const char *, fake_operand *, int, int);\n"
    "float fmaf(float, float, float); double fma(double, double, double); }\n"
    "#define __global__\n#define __device__\n#define __forceinline__ inline\n"
    "#define __align__(n) __attribute__((aligned(n)))\n"
    "#define __cvta_generic_to_shared(p) fake_offset((const void *)(p))\n"
    "template <class T> static inline fake_operand fake_at(const char *how, const T &x)\n"
    "{ return fake_operand{how, (void *)&x, (int)sizeof x}; }\n"
    "template <class... O> static inline void fake_asm(const char *text, O... o)\n"
    "{ fake_operand all[] = {o..., fake_operand()}; fake_ptx(text, all, sizeof...(O), __CUDA_ARCH__ / 10); }\n"
    "#define __syncthreads() fake_sync()\n#define __shfl_sync(m, v, i) fake_pass(v, i)\n"
    "template <class T> static inline T atomicCAS(T *p, T a, T b)\n"
    "{ T was = *p; if (was == a) *p = b; return was; }\n"
    "template <class... A> struct fake_do { fake_do(void (*f)(A...), A... a) { f(a...); } };\n"
    "template <class... A> static void fake_go(void (*f)(A...), void **p)\n"
    "{ int i = 0; fake_do<A...>{f, *(A *)p[i++]...}; }\n"
    "template <class... A> static int fake_n(void (*)(A...)) { return sizeof...(A); }\n";

static int
fake_arch(void)
{
    const char *arch = getenv("FAKE_CUDA_ARCH");

    return arch && *arch ? atoi(arch) : 70;
}

typedef struct {
    char *text, *log;
    unsigned char *object;
    size_t nbytes;
} Program;

API int nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = 0, OK; }
API int nvrtcGetNumSupportedArchs(int *n) { return *n = 1, OK; }
API int nvrtcGetSupportedArchs(int *arch) { return *arch = fake_arch(), OK; }

API int
nvrtcCreateProgram(Program **p, const char *text, const char *name, int n, const char *const *h,
                   const char *const *i)
{
    MAY_REFUSE;
    (void)name, (void)n, (void)h, (void)i;
    *p = calloc(1, sizeof **p);
    (*p)->text = strdup(text);
    return OK;
}

API int
nvrtcDestroyProgram(Program **p)
{
    free((*p)->text);
    free((*p)->log);
    free((*p)->object);
    free(*p);
    return OK;
}

/* For each kernel a function that takes its arguments by address, and their number. */
static void
write_entries(FILE *f, const char *text)
{
    static const char head[] = "extern \"C\" __global__ void";
    const char *at = text;

    while ((at = strstr(at, head)) != NULL) {
        const char *name;
        int n;

        at += sizeof head - 1;
        name = at + strspn(at, " \n");
        n = (int)strcspn(name, "(");

        fprintf(f, "extern \"C\" void %.*s__go(void **p) { fake_go(%.*s, p); }\n"
                "extern \"C\" int %.*s__n(void) { return fake_n(%.*s); }\n",
                n, name, n, name, n, name, n, name);
    }
}

static char *
read_all(const char *path, size_t room, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p;

    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    p = malloc(room + *n + 1);
    if (fread(p + room, 1, *n, f) != *n)
        *n = 0;
    p[room + *n] = 0;
    fclose(f);
    return p;
}

/* A text's name, and its object's: the same for all architectures if the text names no instruction. */
static uint64_t
text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

static uint64_t
object_hash(const char *text, bool all)
{
    bool any = !strstr(text, "asm") && !strstr(text, "__CUDA_ARCH");

    return (text_hash(text) ^ (any ? 0 : (uint64_t)fake_arch() * 2 + all)) * 0x100000001b3;
}

/* With FAKE_KEEP, a directory, a text that was compiled before is not compiled again; texts and
 * objects lie there. */
static const char *
kept_path(uint64_t hash, const char *suffix, char path[300])
{
    const char *dir = getenv("FAKE_KEEP");

    if (!dir || !*dir)
        return NULL;
    snprintf(path, 300, "%s/%016llx%s", dir, (unsigned long long)hash, suffix);
    return path;
}

/* Moved there at once: several programs may write the same. */
static void
keep(const char *dir, const char *file, const char *path)
{
    char command[700];
    int me = (int)getpid();

    snprintf(command, sizeof command, "cp %s/%s %s.%d && mv %s.%d %s", dir, file, path, me, path, me, path);
    if (system(command))
        fake_stop("it cannot be kept", command);
}

static void
keep_all(const char *dir, const char *text, bool all)
{
    char path[300];
    FILE *f;

    if (!kept_path(object_hash(text, all), ".so", path))
        return;
    keep(dir, "k.so", path);
    snprintf(path, sizeof path, "%s/k.cu", dir);
    f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    keep(dir, "k.cu", kept_path(text_hash(text), ".cu", path));
}

static void
take_object(Program *p, const char *path)
{
    uint64_t size;

    p->object = (unsigned char *)read_all(path, 8, &p->nbytes);
    if (!p->object)
        return;
    size = p->nbytes;
    memcpy(p->object, &size, 8);
    p->nbytes += 8;
}

API int
nvrtcCompileProgram(Program *p, int n, const char *const *options)
{
    char dir[] = "/tmp/fake_cuda.XXXXXX", path[300], command[500];
    bool all = false; /* sm_90a: what only this one has */
    size_t nlog = 0;
    FILE *f;
    int rc;

    MAY_REFUSE;
    for (int i = 0; i < n; i++)
        all |= strstr(options[i], "_90a") != NULL;
    if (kept_path(object_hash(p->text, all), ".so", path))
        take_object(p, path);
    if (p->object)
        return p->log = strdup(""), OK;
    if (!mkdtemp(dir))
        return INVALID;
    snprintf(path, sizeof path, "%s/k.cc", dir);
    f = fopen(path, "w");
    fputs(shim, f);
    fake_rewrite(f, p->text);
    write_entries(f, p->text);
    fprintf(f, "extern \"C\" { int fake_waits = %d; }\n",
            strstr(p->text, "__syncthreads") || strstr(p->text, "__shfl_sync")
                || strstr(p->text, "asm"));
    fclose(f);
    snprintf(command, sizeof command,
             "cd %s && g++ -w -O1 -ffp-contract=off -fno-strict-aliasing "
             "-fwrapv -march=native -fPIC -shared -D__CUDA_ARCH__=%d0 %s -o k.so k.cc >log 2>&1",
             dir, fake_arch(), all ? "-D__CUDA_ARCH_FEAT_SM90_ALL=1" : "");
    rc = system(command);
    snprintf(path, sizeof path, "%s/log", dir);
    p->log = read_all(path, 0, &nlog);
    snprintf(path, sizeof path, "%s/k.so", dir);
    if (!rc) {
        take_object(p, path);
        keep_all(dir, p->text, all);
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) || rc ? 6 : OK;
}

API int nvrtcGetProgramLogSize(Program *p, size_t *n) { return *n = p->log ? strlen(p->log) + 1 : 1, OK; }
API int nvrtcGetProgramLog(Program *p, char *log) { return strcpy(log, p->log ? p->log : ""), OK; }
API int nvrtcGetCUBINSize(Program *p, size_t *n) { MAY_REFUSE; return *n = p->nbytes, OK; }
API int nvrtcGetCUBIN(Program *p, char *to) { MAY_REFUSE; return memcpy(to, p->object, p->nbytes), OK; }
API int nvrtcGetPTXSize(Program *p, size_t *n) { return *n = p->nbytes, OK; }
API int nvrtcGetPTX(Program *p, char *to) { return memcpy(to, p->object, p->nbytes), OK; }

/* ---- modules ------------------------------------------------------------------------------ */

typedef struct { unsigned x, y, z; } Dim;
typedef struct Function {
    struct Function *next;
    void (*go)(void **);
    int nargs;
    struct Module *module;
} Function;
typedef struct Module {
    void *library;
    Dim *thread, *block, *block_dim, *grid_dim;
    int *waits;
    Function *functions;
} Module;

static void item_waits(void);
static unsigned item_passes(unsigned value, int from);
static void *item_takes(unsigned long nbytes);
static unsigned long item_offset(const void *p);

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
    *(void (**)(void))dlsym(m->library, "fake_sync") = item_waits;
    *(unsigned (**)(unsigned, int))dlsym(m->library, "fake_pass") = item_passes;
    *(void *(**)(unsigned long))dlsym(m->library, "fake_take") = item_takes;
    *(unsigned long (**)(const void *))dlsym(m->library, "fake_offset") = item_offset;
    *(void (**)(const char *, FakeOperand *, int, int))dlsym(m->library, "fake_ptx") = fake_ptx;
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
    f->next = m->functions;
    m->functions = f;
    f->module = m;
    if (!f->go || !count)
        return NOT_FOUND;
    f->nargs = count();
    *function = f;
    return OK;
}

/* ---- items -------------------------------------------------------------------------------- */

enum { STACK = 64 << 10, STATIC_SHARED = 48 << 10 };
unsigned char fake_shared[SHARED_NBYTES] __attribute__((aligned(1024)));
static ucontext_t scheduler, item[ITEMS];
static char *stack;
static unsigned slot[ITEMS];
static unsigned long taken[ITEMS];
static ItemState waits[ITEMS];
static char done[ITEMS];
static int present, running;
static Function *called;
static void *arguments[ITEMS];

int fake_item(void) { return present; }

void
fake_stop(const char *what, const char *text)
{
    fprintf(stderr, "fake_cuda: %s: %s\n", what, text);
    abort();
}

void
fake_wait(ItemState with)
{
    waits[present] = with;
    swapcontext(&item[present], &scheduler);
}

static void
item_waits(void)
{
    fake_ptx_barrier();
    fake_wait(WAITS_GROUP);
}

/* What item `from` of the same warp has. */
static unsigned
item_passes(unsigned value, int from)
{
    unsigned got;
    int me = present;

    slot[me] = value;
    fake_wait(WAITS_WARP);
    got = slot[me / 32 * 32 + from % 32];
    fake_wait(WAITS_WARP);
    return got;
}

/* An array of the group's memory: each item names them in the same order. */
static void *
item_takes(unsigned long nbytes)
{
    unsigned long at = taken[present];

    taken[present] = (at + nbytes + 15) / 16 * 16;
    if (taken[present] > STATIC_SHARED)
        fake_stop("arrays of a group are too large", "__shared__");
    return fake_shared + at;
}

static unsigned long
item_offset(const void *p)
{
    return (unsigned long)((const unsigned char *)p - fake_shared);
}

static void
item_body(void)
{
    called->go(arguments);
    fake_ptx_end(present);
    running--;
    done[present] = 1;
    swapcontext(&item[present], &scheduler);
}

static void
begin_item(unsigned i)
{
    getcontext(&item[i]);
    item[i].uc_stack.ss_sp = stack + (size_t)i * STACK;
    item[i].uc_stack.ss_size = STACK;
    item[i].uc_link = NULL;
    makecontext(&item[i], item_body, 0);
    done[i] = 0;
    taken[i] = 0;
    waits[i] = RUNS;
}

/* Those that wait for the others of n items, if these are all there. */
static int
let_go(unsigned items, unsigned n, ItemState with)
{
    int any = 0;

    for (unsigned first = 0; first < items; first += n) {
        unsigned i, end = first + n < items ? first + n : items, here = 0;

        for (i = first; i < end && (done[i] || waits[i] == with); i++)
            here += !done[i];
        for (i = i == end && here ? first : end; i < end; i++)
            waits[i] = RUNS, any = 1;
    }
    return any;
}

static void
run_group(unsigned items)
{
    Dim *thread = called->module->thread;
    unsigned i;

    memset(fake_shared, 0xa5, STATIC_SHARED);
    fake_ptx_begin();
    for (i = 0; i < items; i++)
        begin_item(i);
    for (running = (int)items; running > 0;) {
        for (i = 0; i < items; i++)
            while (!done[i] && waits[i] == RUNS) {
                present = (int)i;
                thread->x = i;
                swapcontext(&scheduler, &item[i]);
            }
        if (running > 0 && !let_go(items, 32, WAITS_WARP) && !let_go(items, 128, WAITS_WARPS)
            && !let_go(items, items, WAITS_GROUP))
            fake_stop("items wait for others that do not come", "barrier");
    }
}

static void
run_kernel(Function *f, unsigned groups, unsigned items)
{
    Module *m = f->module;

    if (!stack)
        stack = mmap(NULL, (size_t)ITEMS * STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    called = f;
    m->block_dim->x = items;
    m->grid_dim->x = groups;
    for (m->block->x = 0; m->block->x < groups; m->block->x++)
        if (*m->waits)
            run_group(items);
        else /* nobody waits for another: one after the other */
            for (m->thread->x = 0; m->thread->x < items; m->thread->x++)
                f->go(arguments);
}

/* ---- streams ------------------------------------------------------------------------------ */

typedef enum { LAUNCH, COPY, RECORD, WAIT } OpKind;
typedef struct Event { uint64_t asked, reached; struct Stream *stream; } Event;
typedef struct Op {
    struct Op *next;
    OpKind kind;
    Function *function;
    unsigned groups, items;
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
    int i;

    switch (op->kind) {
    case LAUNCH:
        for (i = 0; i < op->function->nargs; i++)
            arguments[i] = &op->value[i];
        run_kernel(op->function, op->groups, op->items);
        break;
    case COPY: memcpy(op->to, op->from, op->nbytes); break;
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

API int cuEventCreate(Event **e, unsigned f) { MAY_REFUSE; return (void)f, *e = calloc(1, sizeof **e), OK; }
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
    Op op = {.kind = LAUNCH, .function = f, .groups = groups, .items = items};
    int i;

    MAY_REFUSE;
    (void)y, (void)z, (void)iy, (void)iz, (void)shared, (void)extra;
    if (!groups || !items || items > ITEMS)
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

API int cuGraphCreate(Graph **g, unsigned f) { MAY_REFUSE; return (void)f, *g = calloc(1, sizeof **g), OK; }

API int
cuGraphAddKernelNode(GraphNode **node, Graph *g, GraphNode *const *before, size_t n,
                     const GraphKernel *k)
{
    MAY_REFUSE;
    if (g->n == 1000 || !k->groups || !k->items || k->items > ITEMS
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
    if (k->function != exec->op[node->number].function)
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
    free(m);
    return OK;
}

API int
cuMemAlloc_v2(uint64_t *p, size_t nbytes)
{
    void *mem = NULL;

    MAY_REFUSE;
    if (posix_memalign(&mem, 256, nbytes))
        return NO_MEMORY;
    memset(mem, 0xa5, nbytes);
    *p = (uint64_t)(uintptr_t)mem;
    return OK;
}

API int cuMemFree_v2(uint64_t p) { return run_all(), free((void *)(uintptr_t)p), OK; }
API int cuMemHostAlloc(void **p, size_t n, unsigned f) { MAY_REFUSE; return (void)f, *p = malloc(n), OK; }
API int cuMemFreeHost(void *p) { return run_all(), free(p), OK; }

API int cuInit(unsigned flags) { MAY_REFUSE; return (void)flags, OK; }
API int cuDriverGetVersion(int *v) { return *v = 12000, OK; }
API int cuDeviceGetCount(int *n) { MAY_REFUSE; return *n = 1, OK; }
API int cuDeviceGet(int *device, int n) { MAY_REFUSE; return *device = n, n == 0 ? OK : INVALID; }
API int cuDeviceGetName(char *s, int n, int d) { MAY_REFUSE; return (void)d, snprintf(s, n, "processor"), OK; }
API int
cuDeviceGetAttribute(int *v, int what, int d)
{
    MAY_REFUSE;
    return (void)d, *v = what == 75 ? fake_arch() / 10 : fake_arch() % 10, OK;
}
API int cuDevicePrimaryCtxRetain(void **c, int d) { MAY_REFUSE; return (void)d, *c = &streams, OK; }
API int cuDevicePrimaryCtxRelease_v2(int d) { return (void)d, OK; }
API int cuCtxPushCurrent_v2(void *c) { MAY_REFUSE; return (void)c, OK; }
API int cuCtxPopCurrent_v2(void **c) { return *c = NULL, OK; }
API int cuGetErrorString(int e, const char **s) { return *s = e ? "an error" : "none", OK; }
