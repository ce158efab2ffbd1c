/* tests/test_export_open.c - functions with open extents as C files: compiled without a warning,
 * called at every size, from and to memory that ends at a page, they compute what the interpreter
 * computes of the graph built for it; tables that a call changes; bounds; what is refused; the n-th
 * allocation refused.
 *
 * Guards: plan/open/written.c, plan/function/tables.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "nn.h"
#include "tests/hooks.h"
#include "tests/guarded.h"
#include "tests/test.h"
#include "tests/open_nets.h"
#include <dlfcn.h>
#include <unistd.h>

typedef enum { DENSE, CONV, ATTENTION, MEANS, LENGTH, PICTURE, UPDATE, OWN, LESS, CODE, KINDS } Kind;
static const char *const kinds[KINDS] = {"dense", "conv", "attention", "means", "length",
                                         "picture", "update", "own", "less", "code"};
enum { WIDTH = 12, ROOM = 1 << 15 };

typedef struct { Kind kind; jot_Var p[2]; const float *data; } Net;

static void
net_open(jot_Ctx *c, Net *net, Kind kind)
{
    net->kind = kind;
    net->data = NULL;
    net->p[0] = weight(c, 1, kind == CONV || kind == PICTURE ? JOT_SHAPE(6, 2, 3, 3) : JOT_SHAPE(WIDTH, 20));
    net->p[1] = kind == UPDATE ? weight(c, 2, JOT_SHAPE(WIDTH))
              : weight(c, 2, JOT_SHAPE(kind == CONV ? 6 : 20, 7));
}

static const jot_Extent *
extents(Kind kind, int *n)
{
    static const jot_Extent rows[] = {{"batch", 1, 37, 0}}, own[] = {{"batch", 2, 9, 0}},
        both[] = {{"batch", 1, 3, 0}, {"length", 2, 14, 2}},
        sides[] = {{"height", 6, 30, 4}, {"width", 6, 34, 4}};

    *n = kind == ATTENTION || kind == PICTURE ? 2 : 1;
    return kind == ATTENTION ? both : kind == PICTURE ? sides : kind == OWN ? own : rows;
}

static size_t
sizes(Kind kind, const int64_t *e, size_t *out)
{
    size_t n = (size_t)e[0], m = (size_t)e[1];

    if (kind == LESS) /* none of batch 1 */
        return *out = (n - 1) * WIDTH;
    *out = kind == DENSE ? n * 7 : kind == CONV ? n * 6 * 64 : kind == ATTENTION ? n * m * WIDTH
         : kind == PICTURE ? 6 * (n / 2) * (m / 2) : kind == MEANS || kind == LENGTH ? n * WIDTH : kind == UPDATE ? WIDTH : n * 20;
    return kind == CONV ? n * 128 : kind == PICTURE ? 2 * n * m : kind == ATTENTION ? n * m * WIDTH : n * WIDTH;
}

static jot_Var
attended(jot_Var x)
{
    jot_Var s = jot_scale(jot_matmul(x, jot_transpose(x, JOT_INTS(0, 2, 1))), .25);

    return jot_matmul(jot_softmax(s, -1), x);
}

static bool
build(jot_Ctx *c, const int64_t *e, jot_Var *in, jot_Var *out, void *user)
{
    static const char *const names[] = {"x"};
    const jot_CodeOut y = {.name = "y", .like = "x"};
    const jot_Code code = {.name = "next", .inputs = 1, .in = in, .in_names = names, .outputs = 1,
                           .out = &y, .source = "for (jot_i64 i = 0; i < x_n; i++)\n"
                                                "    y[i] = x[i] + 1;\n"};
    jot_Conv same = {.pad = {1, 1}}, half = {.pad = {1, 1}, .stride = {2, 2}};
    Net *net = user;
    float own[64] = {1, 2, 3, 4, 5};
    jot_Var x;

    x = in[0] = net->kind == CONV ? jot_array(c, JOT_F32, JOT_SHAPE(e[0], 2, 8, 8), net->data)
              : net->kind == PICTURE ? jot_array(c, JOT_F32, JOT_SHAPE(1, 2, e[0], e[1]), net->data)
              : net->kind == ATTENTION
              ? jot_array(c, JOT_F32, JOT_SHAPE(e[0], e[1], WIDTH), net->data)
              : jot_array(c, JOT_F32, JOT_SHAPE(e[0] - (net->kind == LESS), WIDTH), net->data);
    switch (net->kind) {
    case DENSE:
        x = jot_matmul(jot_relu(jot_matmul(x, net->p[0])), net->p[1]);
        out[0] = jot_softmax(x, 1);
        break;
    case CONV:
        out[0] = jot_relu(jot_conv2d(x, net->p[0], &same));
        break;
    case ATTENTION: out[0] = attended(x); break;
    case MEANS: out[0] = jot_sub(x, jot_mean(x, JOT_KEEP(0))); break;
    case LENGTH:
        x = jot_sub(x, jot_mean(x, JOT_KEEP(0)));
        out[0] = jot_matmul(jot_softmax(jot_matmul(x, jot_transpose(x, JOT_INTS(1, 0))), 1), x);
        break;
    case PICTURE:
        x = jot_offset(jot_relu(jot_conv2d(x, net->p[0], &half)), .1);
        out[0] = jot_max_pool2d(x, &(jot_Pool){.size = {3, 3}, .stride = {1, 1}, .pad = {1, 1}});
        break;
    case UPDATE:
        out[0] = jot_add(net->p[1], jot_mean(x, JOT_DIMS(0)));
        jot_assign(net->p[1], out[0]);
        break;
    case OWN:
        out[0] = jot_mul(jot_matmul(x, net->p[0]), jot_array(c, JOT_F32, JOT_SHAPE(e[0], 1), own));
        break;
    case LESS: out[0] = jot_exp(x); break;
    default: jot_code(c, &code, out);
    }
    return jot_ok(out[0]);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char dir[] = "/tmp/jot-export-open-XXXXXX";
typedef int F1(void *, long long, const float *, float *);
typedef int F2(void *, long long, long long, const float *, float *);

static void *
load(jot_Ctx *c, Net *net, size_t *arena)
{
    const char *options = "-std=c99 -O2 -Wall -Wextra -Wpedantic -Werror -Wmissing-prototypes "
                          "-ffreestanding -nostdlib -fPIC -shared";
    char path[100], object[100], command[500];
    jot_Builder b = {0, NULL, 1, 1, build, NULL};
    void *lib;

    b.extents = extents(net->kind, &b.nextents);
    b.user = net;
    snprintf(path, sizeof path, "%s/%s.c", dir, kinds[net->kind]);
    snprintf(object, sizeof object, "%s/%s.so", dir, kinds[net->kind]);
    CHECK(jot_export_open(c, "f", &b, path), "%s: %s", kinds[net->kind], jot_message(c));
    snprintf(command, sizeof command, "cc %s %s -o %s", options, path, object);
    if (system(command) || !(lib = dlopen(object, RTLD_NOW | RTLD_LOCAL))) {
        CHECK(0, "cc refuses %s", path);
        return NULL;
    }
    *arena = *(const unsigned long *)dlsym(lib, "f_arena");
    return dlsym(lib, "f");
}

typedef struct {
    void *f, *arena;
    Kind kind;
    const int64_t *e;
    const float *x;
    float *y;
} Call;

static int
call(void *f, Kind kind, void *arena, const int64_t *e, const float *x, float *y)
{
    F1 *one;
    F2 *two;

    *(void **)&one = *(void **)&two = f;
    return kind == ATTENTION || kind == PICTURE ? two(arena, e[0], e[1], x, y) : one(arena, e[0], x, y);
}

static bool
called(void *ud)
{
    const Call *c = ud;

    return !call(c->f, c->kind, c->arena, c->e, c->x, c->y);
}

static void
one_size(jot_Ctx *c, Net *net, void *f, size_t narena, const int64_t *e)
{
    static float wanted[ROOM];
    size_t nout, nin = sizes(net->kind, e, &nout), i, changed = 0;
    float *x = guarded_new(nin * 4, ENDS, NULL), *y = guarded_new(nout * 4, ENDS, NULL);
    void *arena = guarded_new((narena + 63) / 64 * 64, ENDS, NULL);
    Call how = {f, arena, net->kind, e, x, y};
    double worst = 0;
    jot_Var in, out;

    for (i = 0; i < nin; i++)
        x[i] = (float)((i * 29 + (size_t)e[0] * 7) % 89) / 89 - .4f;
    jot_push(c);
    net->data = x;
    CHECK(build(c, e, &in, &out, net) && jot_copy(out, wanted, nout * 4), "%s", jot_message(c));
    net->data = NULL;
    jot_pop(c);
    CHECK(caught(called, &how), "%s at %d, %d: refused %s", kinds[net->kind], (int)e[0],
          (int)e[1], fault);
    for (i = 0; i < nout; i++)
        worst = y[i] == y[i] ? fmax(worst, fabs((double)y[i] - wanted[i])) : INFINITY;
    CHECK(worst <= 2e-5, "%s at %d, %d: %g off", kinds[net->kind], (int)e[0], (int)e[1], worst);
    guarded_free(x, &changed);
    guarded_free(y, &changed);
    guarded_free(arena, &changed);
    CHECK(!changed, "%s at %d, %d: written beside", kinds[net->kind], (int)e[0], (int)e[1]);
}

static void
all_sizes(Kind kind)
{
    GuardedHeap heap = {0};
    jot_Config config = {.backend = "interp", .cache_dir = "", .deterministic = 1, .give_back = 1,
                         .hooks = {.log = quiet, .realloc = guarded_realloc, .ud = &heap}};
    jot_Ctx *c = jot_open(&config);
    const jot_Extent *x;
    int64_t e[2] = {0};
    size_t arena = 0;
    float one[4] = {0};
    Net net;
    void *f;
    int n;

    net_open(c, &net, kind);
    CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
    x = extents(kind, &n);
    f = load(c, &net, &arena);
    for (e[0] = x[0].least; f && e[0] <= x[0].most; e[0] += x[0].step ? x[0].step : 1)
        for (e[1] = n > 1 ? x[1].least : 0; e[1] <= (n > 1 ? x[1].most : 0);
             e[1] += n > 1 && x[1].step ? x[1].step : 1)
            one_size(c, &net, f, arena, e);
    e[0] = x[0].most + 1;
    e[1] = n > 1 ? x[1].least : 0;
    CHECK(!f || call(f, kind, NULL, e, NULL, one) == 1, "%s: beyond the most", kinds[kind]);
    e[0] = x[0].least - 1;
    CHECK(!f || call(f, kind, NULL, e, NULL, one) == 1, "%s: below the least", kinds[kind]);
    if (n > 1 && x[1].step > 1) {
        e[0] = x[0].least;
        e[1]++;
        CHECK(!f || call(f, kind, NULL, e, NULL, one) == 2, "%s: between steps", kinds[kind]);
    }
    jot_close(c);
    guarded_forget(&heap);
    CHECK(!heap.changed, "%zu bytes written beside memory of its own", heap.changed);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void
refuses(jot_Ctx *c, bool ok, jot_Status status, const char *text)
{
    CHECK(!ok && jot_error(c) == status && strstr(jot_message(c), text), "%s: %d %s", text,
          jot_error(c), jot_message(c));
    jot_clear(c);
}

static void
refused(void)
{
    jot_Ctx *c = open_on("interp", NULL, true);
    jot_Extent rows[] = {{"batch", 1, 37, 0}};
    jot_Builder b = {1, rows, 1, 1, build, NULL};
    Net net;

    net_open(c, &net, CODE);
    b.user = &net;
    refuses(c, jot_export_open_text(c, "f", &b, quiet, NULL), JOT_EUSE, "user code");
    refuses(c, jot_export_open_text(c, "for", &b, quiet, NULL), JOT_EUSE, "is taken");
    refuses(c, jot_export_open_text(c, "f", &b, NULL, NULL), JOT_EUSE, "write is NULL");
    refuses(c, jot_export_open_text(c, "f", NULL, quiet, NULL), JOT_EUSE, "builder is NULL");
    refuses(c, jot_export_open(c, "f", NULL, "/dev/null"), JOT_EUSE, "builder is NULL");
    refuses(c, jot_export_open(c, "f", &b, "/nowhere/f.c"), JOT_EIO, "/nowhere/f.c");
    net.kind = OWN;
    refuses(c, jot_export_open_text(c, "f", &b, quiet, NULL), JOT_EUSE, "arrays of their own");
    rows[0].least = 0;
    refuses(c, jot_export_open_text(c, "f", &b, quiet, NULL), JOT_ERANGE,
            "export: batch is 0 to 37");
    jot_close(c);
}

static void
no_memory(void)
{
    const jot_Extent few[] = {{"batch", 2, 9, 0}};
    bool done = false;
    long n;

    for (n = 1; !done; n += test_many(29, 7)) {
        Heap heap = {0};
        jot_Ctx *c = open_on("interp", &heap, true);
        jot_Builder b = {1, few, 1, 1, build, NULL};
        bool ok;
        Net net;

        net_open(c, &net, n % 3 == 0 ? LENGTH : n % 2 ? DENSE : UPDATE);
        CHECK(jot_run(c, JOT_NONE_VARS), "%s", jot_message(c));
        b.user = &net;
        heap.countdown = n;
        ok = jot_export_open_text(c, "f", &b, quiet, NULL);
        done = heap.countdown > 0;
        heap.countdown = 0;
        CHECK(ok == !jot_error(c) && (ok || (!done && jot_error(c) == JOT_EMEM)), "n %ld: %s", n,
              jot_message(c));
        jot_clear(c);
        jot_close(c);
        CHECK(heap.live == 0, "n %ld: %zu bytes left", n, heap.live);
    }
    CHECK(n > 20, "%ld allocations", n);
}

int
main(void)
{
    char command[100];
    int kind;

    if (!mkdtemp(dir))
        return 1;
    catch_faults();
    for (kind = 0; kind < CODE; kind++)
        all_sizes((Kind)kind);
    refused();
    no_memory();
    snprintf(command, sizeof command, "rm -r %s", dir);
    CHECK(!system(command), "%s", dir);
    return DONE();
}
