/* tests/ir_run.h - what tests of the kernel IR share: a context of memory and index expressions,
 * short builders, and a runner that compiles an emitted function, packs logical arrays into the
 * buffers' layouts, runs it and unpacks. */
#ifndef IR_RUN_H
#define IR_RUN_H
#include <dlfcn.h>
#include <unistd.h>
#include "ccode/emit.h"
#include "prelude/prelude.h"
#include "tests/test.h"

static Mem ir_mem;
static IxPool ir_ix;
static char ir_dir[64];

static void *
ir_realloc(void *ud, void *p, size_t old, size_t size)
{
    (void)ud, (void)old;
    if (size == 0) {
        free(p);
        return NULL;
    }
    return realloc(p, size);
}

static void
ir_open(void)
{
    memset(&ir_mem, 0, sizeof ir_mem);
    memset(&ir_ix, 0, sizeof ir_ix);
    ir_mem.hooks.realloc = ir_realloc;
    jot_ix_open(&ir_ix, &ir_mem);
    strcpy(ir_dir, "/tmp/jot_irXXXXXX");
    if (!mkdtemp(ir_dir))
        exit(2);
}

static void
ir_close(void)
{
    char cmd[96];
    jot_ix_close(&ir_ix);
    snprintf(cmd, sizeof cmd, "rm -rf %s", ir_dir);
    if (system(cmd) != 0)
        printf("could not remove %s\n", ir_dir);
    CHECK(ir_mem.live_nbytes == 0, "%zu bytes are still allocated", ir_mem.live_nbytes);
    CHECK(!ir_mem.failed, "memory was refused");
}

/* A kernel with its logical arrays: doubles, row-major; number 0 unused. */
#define IR_BUFS 40
typedef struct {
    Kernel k;
    double *data[IR_BUFS];
    KBuf made[IR_BUFS]; /* as it was, before a schedule takes its elements for words */
    jot_Scalar scalars[8];
} IrCase;

static size_t
ir_size(const KBuf *b)
{
    size_t n = 1;
    for (int d = 0; d < b->rank; d++)
        n *= (size_t)b->ext[d];
    return n;
}

static void
ir_start(IrCase *c)
{
    memset(c, 0, sizeof *c);
    jot_kernel_open(&c->k, &ir_mem, &ir_ix);
}

static void
ir_end(IrCase *c)
{
    for (int i = 0; i < IR_BUFS; i++)
        free(c->data[i]);
    jot_kernel_close(&c->k);
}

/* ---- short builders ---- */

#define AX(a) jot_ix_axis(&ir_ix, a)
#define IC(v) jot_ix_const(&ir_ix, v)
#define IADD(a, b) jot_ix_add(&ir_ix, a, b)
#define ISUB(a, b) jot_ix_sub(&ir_ix, a, b)
#define IMUL(a, k) jot_ix_scale(&ir_ix, a, k)
#define IDIV(a, k) jot_ix_div(&ir_ix, a, IC(k), NULL)
#define IMOD(a, k) jot_ix_mod(&ir_ix, a, IC(k), NULL)

static void
ir_axes(IrCase *c, const char *names, const int64_t *ext)
{
    char one[2] = {0};
    for (int i = 0; names[i]; i++) {
        one[0] = names[i];
        jot_kernel_axis(&c->k, one, ext[i]);
    }
}

static uint32_t
ir_buf(IrCase *c, const char *name, jot_DType dtype, BufRole role, int rank, int64_t a, int64_t b,
       int64_t d, int64_t e)
{
    int64_t ext[4];
    uint32_t buf;
    size_t n;
    ext[0] = a, ext[1] = b, ext[2] = d, ext[3] = e;
    buf = jot_kernel_buf(&c->k, name, dtype, role, rank, ext);
    n = ir_size(&c->k.bufs.v[buf]);
    c->data[buf] = calloc(n + 1, sizeof(double));
    for (size_t i = 0; role == BUF_INPUT && i < n; i++)
        if (dtype >= JOT_F16)
            c->data[buf][i] = (double)((i * 7 + buf * 13) % 31) / 8.0 - 1.75;
        else
            c->data[buf][i] = (double)((i * 7 + buf * 5) % 11) - (dtype < JOT_U8 && dtype ? 4 : 0);
    if (dtype == JOT_BOOL && role == BUF_INPUT)
        for (size_t i = 0; i < n; i++)
            c->data[buf][i] = (double)((i * 7 / 3) % 2);
    c->made[buf] = c->k.bufs.v[buf];
    return buf;
}
#define IN(name, rank, a, b, d, e) ir_buf(c, name, JOT_F32, BUF_INPUT, rank, a, b, d, e)
#define OUT(name, rank, a, b, d, e) ir_buf(c, name, JOT_F32, BUF_OUTPUT, rank, a, b, d, e)
#define TMP(name, rank, a, b, d, e) ir_buf(c, name, JOT_F32, BUF_SCRATCH, rank, a, b, d, e)

static uint32_t
ir_load(IrCase *c, uint32_t buf, Ix a, Ix b, Ix d, Ix e)
{
    jot_Scalar none;
    Ix idx[4];
    none.u = 0;
    idx[0] = a, idx[1] = b, idx[2] = d, idx[3] = e;
    return jot_v_load(&c->k, buf, idx, 0, NULL, none);
}

/* 0 outside of the buffer */
static uint32_t
ir_guarded(IrCase *c, uint32_t buf, Ix a, Ix b, Ix d, Ix e)
{
    Ix idx[4], cond[8];
    int n = 0;
    jot_Scalar zero;
    zero.u = 0;
    idx[0] = a, idx[1] = b, idx[2] = d, idx[3] = e;
    for (int i = 0; i < c->k.bufs.v[buf].rank; i++) {
        cond[n++] = jot_ix_ge0(&ir_ix, idx[i], NULL);
        cond[n++] = jot_ix_lt(&ir_ix, idx[i], IC(c->k.bufs.v[buf].ext[i]), NULL);
    }
    return jot_v_load(&c->k, buf, idx, n, cond, zero);
}

static void
ir_store(IrCase *c, uint32_t buf, Ix a, Ix b, Ix d, Ix e, uint32_t value)
{
    Ix idx[4];
    idx[0] = a, idx[1] = b, idx[2] = d, idx[3] = e;
    CHECK(jot_kernel_store(&c->k, buf, idx, value, EW_NONE, 0, NULL) >= 0, "a store is refused");
}

static uint32_t
ir_ew(IrCase *c, EwOp op, uint32_t a, uint32_t b)
{
    return jot_v_ew(&c->k, op, JOT_F32, a, b, 0);
}

static uint32_t
ir_sum(IrCase *c, EwOp op, uint64_t axes, uint32_t body, const char *name)
{
    uint32_t v = jot_v_reduce(&c->k, op, axes, body, 0, NULL, 1.0);
    jot_v_name(&c->k, v, name);
    return v;
}
#define BIT(a) ((uint64_t)1 << (a))

/* ---- memory ---- */

static double
ir_read(const void *p, int dtype, int64_t i)
{
    switch (dtype) {
    case JOT_BOOL: case JOT_U8: return ((const uint8_t *)p)[i];
    case JOT_I8: return ((const int8_t *)p)[i];
    case JOT_I16: return ((const int16_t *)p)[i];
    case JOT_I32: return ((const int32_t *)p)[i];
    case JOT_I64: return (double)((const int64_t *)p)[i];
    case JOT_U16: return ((const uint16_t *)p)[i];
    case JOT_U32: return ((const uint32_t *)p)[i];
    case JOT_U64: return (double)((const uint64_t *)p)[i];
    case JOT_F32: return (double)((const float *)p)[i];
    case JOT_F64: return ((const double *)p)[i];
    case JOT_F16: return (double)jotm_f16_to_f32(((const uint16_t *)p)[i]);
    default: { /* bf16 only: values that it holds exactly */
        union { uint32_t u; float f; } x;
        x.u = (uint32_t)((const uint16_t *)p)[i] << 16;
        return (double)x.f;
    }
    }
}

static void
ir_write(void *p, int dtype, int64_t i, double v)
{
    switch (dtype) {
    case JOT_BOOL: case JOT_U8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case JOT_I8: ((int8_t *)p)[i] = (int8_t)v; break;
    case JOT_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case JOT_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case JOT_I64: ((int64_t *)p)[i] = (int64_t)v; break;
    case JOT_U16: ((uint16_t *)p)[i] = (uint16_t)v; break;
    case JOT_U32: ((uint32_t *)p)[i] = (uint32_t)v; break;
    case JOT_U64: ((uint64_t *)p)[i] = (uint64_t)v; break;
    case JOT_F32: ((float *)p)[i] = (float)v; break;
    case JOT_F64: ((double *)p)[i] = v; break;
    case JOT_F16: ((uint16_t *)p)[i] = jotm_f32_to_f16((float)v); break;
    default: {
        union { uint32_t u; float f; } x;
        x.f = (float)v;
        ((uint16_t *)p)[i] = (uint16_t)(x.u >> 16);
        break;
    }
    }
}

/* Every logical element of a buffer, to or from its memory. */
static void
ir_copy(const KBuf *b, void *memory, double *logical, bool pack)
{
    int64_t at[JOT_MAX_RANK] = {0};
    size_t n = ir_size(b);
    for (size_t i = 0; i < n; i++) {
        int64_t address = jot_layout_addr_at(b->layout, at);
        if (pack)
            ir_write(memory, b->dtype, address, logical[i]);
        else
            logical[i] = ir_read(memory, b->dtype, address);
        for (int d = b->rank - 1; d >= 0 && ++at[d] == b->ext[d]; d--)
            at[d] = 0;
    }
}

/* ---- compiling ---- */

typedef void IrFn(void *const *buf, const int64_t *ints, const jot_Scalar *scalars, void *scratch,
                  int64_t phase, int64_t lo, int64_t hi);

/* Compilers: flags that make any warning an error, but for that of passing wider vectors than the
 * processor has. IR_CC in the environment stands for all of them; TEST_CC_FLAGS come behind. */
static const char *const ir_cc[] = {
    "gcc -Wall -Wextra -Wpedantic -Werror -O1 -ffp-contract=off",
    "clang -Wall -Wextra -Wpedantic -Werror -O1 -ffp-contract=off",
    "tcc -Wall -Werror",
    "gcc -Wall -Wextra -Wpedantic -Werror -O2 -march=native -Wno-psabi -Wno-unused-variable"
    " -ffp-contract=off",
    "clang -Wall -Wextra -Wpedantic -Werror -O2 -march=native -Wno-psabi -Wno-unused-variable"
    " -ffp-contract=off"
};
enum { GCC, CLANG, TCC, GCC_NATIVE, CLANG_NATIVE };

/* What the libraries of C have this program has, too: to read them takes the linker longer than the
 * rest of a kernel. */
static const char ir_bare[] = "-nostdlib -lgcc";

/* The text as a shared object; one that came before is not compiled again. */
static void *
ir_compile(int cc, const Text *text, const char *what)
{
    char path[128], cmd[600];
    uint64_t hash = (uint64_t)cc;
    FILE *f;
    void *so;
    for (size_t i = 0; i < text->n; i++)
        hash = (hash ^ (unsigned char)text->s[i]) * 1099511628211u;
    snprintf(path, sizeof path, "%s/k%llx.c", ir_dir, (unsigned long long)hash);
    snprintf(cmd, sizeof cmd, "%s %s %s -shared -fPIC -o %.*sso %s %s",
             getenv("IR_CC") ? getenv("IR_CC") : ir_cc[cc],
             getenv("IR_CC") ? "" : "-std=c99",
             getenv("TEST_CC_FLAGS") && cc != TCC ? getenv("TEST_CC_FLAGS") : "",
             (int)strlen(path) - 1, path, path, getenv("IR_CC") || cc == TCC ? "" : ir_bare);
    if (access(path, F_OK) != 0) {
        f = fopen(path, "w");
        fwrite(text->s, 1, text->n, f);
        fclose(f);
        if (system(cmd) != 0) {
            CHECK(false, "%s: %s", what, cmd);
            return NULL;
        }
    }
    strcpy(path + strlen(path) - 1, "so");
    so = dlopen(path, RTLD_NOW);
    CHECK(so != NULL, "%s: %s", what, dlerror());
    return so;
}

static bool
ir_emit(IrCase *c, const Sched *s, const char *dialect, Text *all, EmitInfo *info, const char *what)
{
    const Dialect *d = jot_dialect_find(dialect);
    Text text = {0}, why = {0};
    bool ok;
    text.mem = why.mem = all->mem = &ir_mem;
    ok = jot_ir_verify(&c->k, &why) && jot_sched_verify(s, &why) &&
         jot_emit(&c->k, s, d, "k", NULL, NULL, &text, info, &why);
    CHECK(ok, "%s: %s", what, why.s ? why.s : "no reason");
    if (!ok) {
        jot_ir_print(&c->k, &why);
        jot_sched_print(s, &why);
        printf("%s\n", why.s);
    } else {
        jot_emit_prelude(d, text.s, text.n, all);
        jot_text_put(all, text.s, text.n);
        if (getenv("IR_SHOW") && strstr(what, getenv("IR_SHOW")))
            printf("/* %s */\n%s\n", what, text.s);
    }
    jot_text_free(&text);
    jot_text_free(&why);
    return ok;
}

/* Emit, compile and run; results of outputs go to `out` (per buffer, allocated here). */
static bool
ir_run(IrCase *c, const Sched *s, const char *dialect, int cc, double **out, const char *what)
{
    Text all = {0};
    EmitInfo info;
    void *so = NULL, *mem[IR_BUFS] = {0}, *arg[IR_BUFS], *scratch = NULL, *shared = NULL,
         *block[IR_BUFS] = {0};
    IrFn *fn;
    int nargs = 0;
    bool ok = ir_emit(c, s, dialect, &all, &info, what) &&
        (so = ir_compile(cc, &all, what)) != NULL;
    jot_text_free(&all);
    if (!ok)
        return false;
    *(void **)(void *)&fn = dlsym(so, "k");
    for (uint32_t b = 1; b < c->k.bufs.n; b++) {
        const KBuf *buf = &c->k.bufs.v[b];
        size_t n = (size_t)buf->layout->nelem * jot_dtype_nbytes((jot_DType)buf->dtype);
        if (buf->role >= BUF_SCRATCH)
            continue;
        block[b] = mem[b] = malloc(n + 1);
        memset(mem[b], buf->role == BUF_OUTPUT ? 0x55 : 0, n + 1);
        if (buf->role == BUF_INPUT)
            ir_copy(buf->bytes ? &c->made[b] : buf, mem[b], c->data[b], true);
        arg[nargs++] = mem[b];
    }
    if (posix_memalign(&scratch, 64, info.scratch_nbytes + 64) ||
        posix_memalign(&shared, 64, info.shared_nbytes + 64))
        exit(2);
    arg[nargs] = shared;
    memset(shared, 0x55, info.shared_nbytes + 64);
    for (int phase = 0; phase < info.phases; phase++) {
        const int64_t n = info.steps[phase];
        /* in ranges of any order, as threads */
        for (int64_t lo = (n - 1) / 3 * 3; lo >= 0; lo -= 3) {
            memset(scratch, 0x55, info.scratch_nbytes + 64);
            fn(arg, NULL, c->scalars, scratch, phase, lo, lo + 3 < n ? lo + 3 : n);
        }
    }
    for (uint32_t b = 1; b < c->k.bufs.n; b++)
        if (c->k.bufs.v[b].role == BUF_OUTPUT) {
            out[b] = calloc(ir_size(&c->k.bufs.v[b]) + 1, sizeof(double));
            ir_copy(&c->k.bufs.v[b], mem[b], out[b], false);
        }
    for (int b = 0; b < IR_BUFS; b++)
        free(block[b]);
    free(scratch);
    free(shared);
    dlclose(so);
    return true;
}

static bool
ir_close_to(const double *a, const double *b, size_t n, double tolerance)
{
    for (size_t i = 0; i < n; i++) {
        double size = fabs(b[i]) > 1 ? fabs(b[i]) : 1;
        if (a[i] != b[i] && !(fabs(a[i] - b[i]) <= tolerance * size) &&
            !(a[i] != a[i] && b[i] != b[i]))
            return false;
    }
    return true;
}

/* Run and compare every output with `want` (c->data of the outputs). */
static void
ir_check(IrCase *c, const Sched *s, const char *dialect, int cc, const char *what)
{
    double *out[IR_BUFS] = {0};
    char name[160];
    snprintf(name, sizeof name, "%s, %s %d lanes, %.5s", what, dialect, s->lanes, ir_cc[cc]);
    if (ir_run(c, s, dialect, cc, out, name))
        for (uint32_t b = 1; b < c->k.bufs.n; b++)
            if (out[b])
                CHECK(ir_close_to(out[b], c->data[b], ir_size(&c->k.bufs.v[b]), 2e-4),
                      "%s: %s differs",
                      name, c->k.bufs.v[b].name);
    for (int b = 0; b < IR_BUFS; b++)
        free(out[b]);
}

#endif
