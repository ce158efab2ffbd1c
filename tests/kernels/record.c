/* tests/kernels/record.c - one program on one machine that is not here, as parts to compare: each
 * kernel's text, the preludes, the plans, the launches.
 *
 * A text is stored without comments, with "k" for the name of its kernel, which is a hash of the
 * text, and without space that says nothing. Nothing is compiled or run, all rates are posed, the
 * clock stands, nobody reads the environment: the parts are the same wherever this runs.
 *
 *     plan       how kernels are chained: variables, their places in memory, arguments (dump p)
 *     launches   what was called, in order: extents, groups, what is shared or goes side by side
 *
 * Read before: kernels.h, tests/machines.h. After: kernels.c. */
#include <ctype.h>
#include <stdarg.h>
#include "tests/machines.h"
#include "tests/kernels/kernels.h"

/* ---- machines ----------------------------------------------------------------------------- */

#define LAPTOP "gnu", 32, 16, .fma = true, .cores = 8, .kib = {32, 512, 16384}, .flops = 100, \
    .bandwidth = {200, 90, 40, 20}, .call = 1e-7, .handoff = 2e-5
#define SERVER "gnu", 64, 32, .fma = true, .cores = 2, .kib = {48, 2048, 262144}, .flops = 200, \
    .bandwidth = {400, 150, 30, 12}, .call = 1e-7, .handoff = 1e-5
#define DEVICE .cores = 16, .kib = {32, 512, 4096}, .flops = 10, \
    .bandwidth = {20, 10, 8, 8}, .call = 1e-5, .handoff = 1e-5

/* Beside those that are named in tests/machines.h. */
static const Posed others[] = {
    {"laptop, two tiers", LAPTOP, .quick = "c"},
    {"laptop, exact", LAPTOP, .config = {.precision = "exact"}},
    {"laptop, fast", LAPTOP, .config = {.precision = "fast"}},
    {"laptop, paper", LAPTOP, .config = {.policy = "paper"}},
    {"laptop, four lanes", LAPTOP, .config = {.lanes = 4}},
    {"laptop, row-major", LAPTOP, .config = {.layout = "rowmajor"}},
    {"laptop, drawn", LAPTOP, .config = {.schedule = "random:3", .layout = "random:4"}},
    {"AVX2, one core", "gnu", 32, 16, .fma = true, .cores = 1, .kib = {32, 1024, 32768},
     .flops = 60, .bandwidth = {150, 70, 30, 15}, .call = 1e-7, .handoff = 2e-5},
    {"AVX", "gnu", 32, 16, .cores = 4, .kib = {32, 256, 8192}, .flops = 50,
     .bandwidth = {100, 60, 30, 12}, .call = 1e-7, .handoff = 2e-5},
    {"SSE", "gnu", 16, 16, .cores = 4, .kib = {32, 256, 4096}, .flops = 24,
     .bandwidth = {100, 50, 25, 10}, .call = 1e-7, .handoff = 2e-5},
    {"NEON", "gnu", 16, 32, .fma = true, .cores = 8, .kib = {64, 4096, 8192}, .flops = 90,
     .bandwidth = {180, 80, 50, 30}, .call = 1e-7, .handoff = 1e-5},
    {"AVX-512, one core", "gnu", 64, 32, .fma = true, .cores = 1, .kib = {48, 1280, 32768},
     .flops = 150, .bandwidth = {300, 100, 30, 12}, .call = 1e-7, .handoff = 1e-5},
    {"tiles, fast", SERVER, .tiles = TILES, .config = {.precision = "fast"}},
    {"scalar", "c", 0, 16, .cores = 1, .kib = {32, 256, 4096}, .flops = 4,
     .bandwidth = {40, 30, 20, 10}, .call = 1e-7, .handoff = 2e-5},
    {"drawn 1", "gnu", 64, 32, .fma = true, .tiles = TILES, .drawn = 1},
    {"drawn 2", "gnu", 32, 16, .fma = true, .drawn = 2},
    {"drawn 3", "gnu", 16, 16, .drawn = 3},
    {"OpenCL, groups of 32", "opencl", DEVICE, .group = 32, .group_kib = 32},
    {"OpenCL, groups of 1024", "opencl", DEVICE, .group = 1024, .group_kib = 64},
    {"OpenCL, drawn", "opencl", DEVICE, .group = 128, .group_kib = 32, .drawn = 4},
    {"CUDA 8.0", "cuda", DEVICE, .copies = true, .group = 1024, .group_kib = 163},
    {"CUDA 9.0, tf32", "cuda", DEVICE, .copies = true, .warps = true, .group = 1024,
     .group_kib = 227, .config = {.precision = "tf32"}},
    {"CUDA 9.0, drawn", "cuda", DEVICE, .copies = true, .warps = true, .group = 1024,
     .group_kib = 227, .config = {.schedule = "random:5", .layout = "random:6"}},
};
enum { OTHERS = sizeof others / sizeof others[0] };

static const Posed *
machine_at(int machine)
{
    return machine < NAMED ? &named[machine] : &others[machine - NAMED];
}

int
machine_count(void)
{
    return NAMED + OTHERS;
}

const char *
machine_label(int machine)
{
    return machine_at(machine)->label;
}

/* ---- texts -------------------------------------------------------------------------------- */

/* FNV-1a: of this program's own, so that it does not change with the library's. */
uint64_t
text_hash(uint64_t seed, const char *s, size_t n)
{
    uint64_t h = seed ^ 0xcbf29ce484222325u;

    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h ^ h >> 29;
}

static void
put(Notes *to, char c)
{
    note(to, &c, 1);
}

static bool
at_line_start(const Notes *to)
{
    return !to->n || to->text[to->n - 1] == '\n';
}

static size_t
comment_end(const char *s, size_t i, size_t n)
{
    bool line = s[i + 1] == '/';

    for (i += 2; i < n; i++)
        if (line ? s[i] == '\n' : s[i - 1] == '*' && s[i] == '/')
            return line ? i : i + 1;
    return n;
}

static size_t
quote_end(const char *s, size_t i, size_t n)
{
    char quote = s[i++];

    for (; i < n && s[i] != quote; i++)
        i += s[i] == '\\';
    return i < n ? i + 1 : n;
}

/* Without comments, space in front of a line, behind it and twice, and empty lines. */
static void
put_bare(Notes *to, const char *s, size_t n)
{
    bool space = false;

    for (size_t i = 0; i < n;) {
        size_t end = i + 1;

        if (s[i] == '/' && i + 1 < n && (s[i + 1] == '*' || s[i + 1] == '/')) {
            i = comment_end(s, i, n);
            space = true;
            continue;
        }
        if (s[i] == '\n' || isspace((unsigned char)s[i])) {
            if (s[i] == '\n' && !at_line_start(to))
                put(to, '\n');
            space = s[i++] != '\n';
            continue;
        }
        if (s[i] == '"' || s[i] == '\'')
            end = quote_end(s, i, n);
        if (space && !at_line_start(to))
            put(to, ' ');
        space = false;
        note(to, s + i, end - i);
        i = end;
    }
}

/* "k" for the kernel's name, wherever it stands in the text. */
static void
put_kernel(Notes *to, const char *s, const KernelSym *sym)
{
    size_t n = strlen(sym->name);
    const char *next;
    static Notes named_k;

    forget_notes(&named_k);
    for (; (next = strstr(s, sym->name)); s = next + n) {
        note(&named_k, s, (size_t)(next - s));
        put(&named_k, 'k');
    }
    note(&named_k, s, strlen(s));
    put_bare(to, named_k.text, named_k.n);
}

/* ---- what is written down ----------------------------------------------------------------- */

static Record *record;
static Notes preludes, plans, launches, scratch;

static Part *
add_part(const char *name, const Notes *text)
{
    Part *p;

    record->part = realloc(record->part, (size_t)(record->n + 1) * sizeof *record->part);
    p = &record->part[record->n++];
    snprintf(p->name, sizeof p->name, "%s", name);
    p->hash = text_hash(0, text->text, text->n);
    p->text = malloc(text->n + 1);
    memcpy(p->text, text->text, text->n + 1);
    return p;
}

static int
kernel_number(const char *name, size_t n)
{
    for (int i = record->n - 1; i >= 0; i--)
        if (strlen(record->part[i].name) == n && !memcmp(record->part[i].name, name, n))
            return i;
    return -1;
}

static void
tell(const char *format, ...)
{
    char line[300];
    va_list arg;
    int n;

    va_start(arg, format);
    n = vsnprintf(line, sizeof line, format, arg);
    va_end(arg);
    note(&launches, line, (size_t)n);
}

static void
kernel_called(void *const *buf, const int64_t *ints, const jot_Scalar *scalars, void *own,
              int64_t phase, int64_t lo, int64_t hi)
{
    (void)buf, (void)ints, (void)scalars, (void)own;
    record->launches += phase == 0;
    tell("phase %lld %lld..%lld\n", (long long)phase, (long long)lo, (long long)hi);
}

/* One compilation: its kernels, and what is in front of them. */
static bool
record_compile(Backend *backend, jot_Ctx *c, const char *what, const char *text, size_t nbytes,
               KernelSym *sym, int n, void **module)
{
    const char *first = n && sym[0].text ? strstr(text, sym[0].text) : NULL;

    (void)c, (void)what, (void)nbytes;
    put_bare(&preludes, text, first ? (size_t)(first - text) : 0);
    note(&preludes, "--\n", 3);
    for (int i = 0; i < n; i++) {
        forget_notes(&scratch);
        put_kernel(&scratch, sym[i].text ? sym[i].text : text, &sym[i]);
        add_part(sym[i].name, &scratch);
        sym[i].fn = backend->device ? jot_plan_no_fn : kernel_called;
        sym[i].kernel = record;
    }
    *module = record;
    return true;
}

static bool
record_launch(Backend *backend, jot_Ctx *c, const Launch *l)
{
    (void)backend, (void)c;
    record->launches++;
    tell("kernel %d phase %d %lld..%lld: %lld groups of %lld, %zu bytes, %d buffers\n",
         kernel_number(l->name, strlen(l->name)), (int)l->phase, (long long)l->lo,
         (long long)l->hi, (long long)l->groups, (long long)l->items, l->group_nbytes, l->nbufs);
    return true;
}

/* A device has no memory: nothing reads it. */
static void *
no_memory(Backend *backend, jot_Ctx *c, size_t nbytes)
{
    return idle_alloc(backend, c, nbytes ? 1 : 0);
}

static bool
no_upload(Backend *backend, jot_Ctx *c, void *mem, const void *from, size_t nbytes)
{
    (void)backend, (void)c, (void)mem, (void)from, (void)nbytes;
    return true;
}

static bool
no_download(Backend *backend, jot_Ctx *c, void *to, void *mem, size_t nbytes)
{
    (void)backend, (void)c, (void)mem;
    memset(to, 0, nbytes);
    return true;
}

/* All on this thread, in order. */
static void
record_parallel(Backend *backend, int64_t count, ParallelFn *body, void *arg)
{
    (void)backend;
    tell("shared by threads: %lld\n", (long long)count);
    body(arg, 0, count, 0);
}

static void
record_log(void *ud, const char *s, size_t n)
{
    (void)ud;
    note(&plans, s, n);
}

static size_t
word_end(const char *s, size_t i, size_t n)
{
    while (i < n && (isalnum((unsigned char)s[i]) || s[i] == '_'))
        i++;
    return i;
}

/* "  step 3 NAME (operators): v1 v2": the number of the kernel for its name and operators. */
static size_t
put_step(Notes *to, const char *s, size_t n)
{
    size_t name = 7 + strspn(s + 7, "0123456789") + 1, end = word_end(s, name, n);
    int number = kernel_number(s + name, end - name);
    const char *args = strstr(s + end, "):");
    char word[40];

    note(to, s, name);
    snprintf(word, sizeof word, number < 0 ? "not compiled" : "kernel %d", number);
    note(to, word, strlen(word));
    return args && args < s + n ? (size_t)(args - s) + 1 : end;
}

/* Plans as they were dumped, without names, operators and numbers of nodes; by now all kernels are
 * known. */
static void
put_plans(Notes *to, const char *s)
{
    for (size_t i, n; *s; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");
        for (i = strncmp(s, "  step ", 7) ? 0 : put_step(to, s, n); i < n; i++)
            if (s[i] == '%')
                i += strspn(s + i + 1, "0123456789");
            else
                put(to, s[i]);
        put(to, '\n');
    }
}

/* ---- a program ---------------------------------------------------------------------------- */

/* The same numbers wherever this runs, if anybody looks at them. */
static void *
zeros(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    void *q = new_nbytes ? calloc(1, new_nbytes) : NULL;

    (void)ud;
    if (p && q)
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    if (q || !new_nbytes)
        free(p);
    return q;
}

const char *
no_environment(void *ud, const char *name)
{
    (void)ud, (void)name;
    return NULL;
}

static int64_t
no_clock(void *ud)
{
    (void)ud;
    return 0;
}

static jot_Ctx *
open_record(int machine)
{
    static Device device;
    static Backend quick;
    Posed m = *machine_at(machine);
    jot_Ctx *c;

    m.config.hooks = (jot_Hooks){.realloc = zeros, .log = record_log, .getenv = no_environment,
                                 .now = no_clock};
    m.config.dump = "p";
    c = open_machine(&m);
    if (!c || jot_error(c))
        return c;
    c->backend->compile = record_compile;
    if (m.group) {
        device = idle;
        device.alloc = no_memory;
        device.upload = no_upload;
        device.download = no_download;
        device.launch = record_launch;
        c->backend->device = &device;
    } else if (c->target.cores > 1) {
        c->backend->parallel = record_parallel;
        c->backend->workers = c->target.cores;
    }
    if (m.quick) {
        quick = *c->backend;
        quick.dialect = m.quick;
        c->backend->quick = &quick;
    }
    return c;
}

static bool
record_run(jot_Ctx *c, jot_Vars vars)
{
    bool ok = vars.n > 0 && jot_run(c, vars);

    tell("-- %zu bytes of temporaries\n", jot_stats(c).last_block_nbytes);
    return ok;
}

/* Where there are two tiers, once more: the better code is asked for when a plan comes again. */
void
record_program(Record *r, int machine, const Kind *kind, int i)
{
    jot_Ctx *c;

    memset(r, 0, sizeof *r);
    record = r;
    forget_notes(&preludes), forget_notes(&plans), forget_notes(&launches);
    c = open_record(machine);
    r->ok = c && !jot_error(c);
    for (int runs = r->ok && c->backend->quick ? 2 : 1; r->ok && runs; runs--) {
        jot_push(c);
        r->ok = kind->run(c, i, record_run) && !jot_error(c) && !test_failed;
        snprintf(r->message, sizeof r->message, "%s", jot_message(c));
        jot_clear(c);
        jot_pop(c);
    }
    jot_close(c);
    add_part("prelude", &preludes);
    forget_notes(&scratch);
    put_plans(&scratch, plans.text);
    add_part("plan", &scratch);
    add_part("launches", &launches);
}

void
record_free(Record *r)
{
    for (int i = 0; i < r->n; i++)
        free(r->part[i].text);
    free(r->part);
}
