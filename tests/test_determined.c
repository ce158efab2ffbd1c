/* tests/test_determined.c - the same program gives the same groups, layouts, schedules, plans and
 * texts, byte by byte: whatever lay in the memory that the host gives, wherever that memory is,
 * however often arrays were moved, in another process, and after other programs in the same
 * context.
 *
 *     scribe    a backend that writes down what it is to compile (tests/scribe.h)
 *     heap      gives memory full of one byte, and from high addresses downwards
 *
 * As no kernel runs, all that is written is written by jot itself: built with MemorySanitizer, this
 * program asks whether planning and printing read what nobody wrote (tests/test_sanitize.sh).
 *
 *     test_determined [programs] [first]           as many drawn programs, from that seed on
 *     test_determined --print [programs] [first]   a line for each program: to compare builds
 *
 * Read before: tests/test_cuda.c, whose device runs nothing, too.
 *
 * Guards: ccode/emit/name.c, plan/order.c. */
#include "tests/fuzz_programs.h"
#include "tests/run_programs.h"
#include "tests/scribe.h"
#include "tests/tiles_cases.h"

/* ---- what is written down ----------------------------------------------------------------- */

static bool
knows_name(const Notes *notes, uint64_t name)
{
    for (int i = 0; i < notes->names; i++)
        if (notes->name[i] == name)
            return true;
    return false;
}

/* Where two differ: the line, of each. */
static const char *
line_at(const Notes *notes, size_t at)
{
    static char line[2][200];
    static int turn;
    size_t from = at < notes->n ? at : notes->n, n = 0;

    turn = !turn;
    while (from && notes->text[from - 1] != '\n')
        from--;
    while (n + 1 < sizeof line[0] && notes->text[from + n] && notes->text[from + n] != '\n')
        n++;
    memcpy(line[turn], notes->text + from, n);
    line[turn][n] = 0;
    return line[turn];
}

static bool
same_notes(const Notes *a, const Notes *b, size_t *at)
{
    for (*at = 0; *at < a->n && *at < b->n && a->text[*at] == b->text[*at]; (*at)++)
        ;
    return a->n == b->n && *at == a->n;
}

/* ---- a heap of one byte, downwards -------------------------------------------------------- */

enum { CHUNK = 8 << 20, CHUNKS = 256 };

typedef struct {
    int fill; /* -1: the host's own heap */
    bool down;
    char *chunk[CHUNKS];
    size_t left; /* of the last chunk, below what was given */
    int n;
} Heap;

static void *
heap_take(Heap *h, size_t nbytes)
{
    size_t room = (nbytes + 63) & ~(size_t)63;

    if (!h->down)
        return aligned_alloc(64, room);
    if (!h->n || h->left < room) {
        if (h->n == CHUNKS)
            return NULL;
        h->left = room > CHUNK ? room : CHUNK;
        if (!(h->chunk[h->n++] = aligned_alloc(64, h->left)))
            abort();
    }
    return h->chunk[h->n - 1] + (h->left -= room);
}

static void *
heap_realloc(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    Heap *h = ud;
    void *q = NULL;

    if (new_nbytes && !(q = heap_take(h, new_nbytes)))
        return NULL;
    if (q)
        memset(q, h->fill, new_nbytes);
    if (p && q)
        memcpy(q, p, old_nbytes < new_nbytes ? old_nbytes : new_nbytes);
    if (p)
        memset(p, h->fill, old_nbytes);
    if (p && !h->down)
        free(p);
    return q;
}

static void
heap_close(Heap *h)
{
    while (h->n)
        free(h->chunk[--h->n]);
}

/* ---- the scribe --------------------------------------------------------------------------- */

typedef struct {
    const char *label, *dialect;
    int vector_nbytes;
    bool device, copies, warps;
    jot_Config config;
} Machine;

static const Machine machines[] = {
    {"C", "c", 0, false, false, false, {.policy = NULL}},
    {"SSE", "gnu", 16, false, false, false, {.schedule = "random:7", .layout = "random:7"}},
    {"AVX-512", "gnu", 64, false, false, false, {.policy = NULL}},
    {"AVX2, drawn", "gnu", 32, false, false, false, {.target = "random:5", .policy = "paper"}},
    {"OpenCL", "opencl", 0, true, false, false, {.policy = NULL}},
    {"CUDA 7.0, drawn", "cuda", 0, true, false, false,
     {.schedule = "random:3", .layout = "random:4"}},
    {"CUDA 8.0", "cuda", 0, true, true, false, {.policy = NULL}},
    {"CUDA 9.0", "cuda", 0, true, true, true, {.policy = "paper"}},
};
enum { MACHINES = sizeof machines / sizeof machines[0] };

enum { SMALL_PROGRAMS = sizeof programs / sizeof programs[0] };

static void
scribe_log(void *ud, const char *text, size_t nbytes)
{
    (void)ud;
    note(scribe, text, nbytes);
}

static jot_Ctx *
open_scribe(const Machine *m, int which, Heap *heap)
{
    jot_Config config = m->config;
    jot_Ctx *c;

    which -= SMALL_PROGRAMS;
    if (which >= 0 && which < TILE_CASES)
        config.precision = tile_precision(&tile_cases[which]);
    config.backend = "interp";
    config.dump = "fyps"; /* groups, layouts, plan, schedules */
    config.cache_dir = "";
    config.hooks.log = scribe_log;
    if (heap->fill >= 0) {
        config.hooks.realloc = heap_realloc;
        config.hooks.ud = heap;
    }
    c = jot_open(&config);
    if (!c || jot_error(c))
        return c;
    if (!c->target.drawn) { /* the same machine wherever this runs */
        jot_target_default(&c->target);
        c->target.cores = 4;
    }
    c->target.vector_nbytes = m->vector_nbytes;
    c->target.vectors = m->vector_nbytes == 64 ? 32 : 16;
    c->target.fma = m->vector_nbytes >= 32;
    c->target.copies = m->copies;
    c->target.warps = m->warps;
    scribe_attach(c, m->dialect, m->device);
    return c;
}

/* ---- programs ----------------------------------------------------------------------------- */

/* Number `which`: a small graph, a contraction with its gradients, else a drawn program. */
static void
run_program(jot_Ctx *c, int which, uint64_t first, const char *label)
{
    jot_Var out[VARS + 8];
    int n = 0;

    jot_push(c);
    if (which < SMALL_PROGRAMS) {
        programs[which].build(c, out, &n);
    } else if ((which -= SMALL_PROGRAMS) < TILE_CASES) {
        n = tile_build(c, &tile_cases[which], out);
    } else {
        Prog *p = malloc(sizeof *p);

        n = fuzz_program(p, c, first + (uint64_t)(which - TILE_CASES), out);
        free(p);
    }
    CHECK(jot_run(c, jot_vars(n, out)), "%s: %s", label, jot_message(c));
    jot_clear(c);
    jot_pop(c);
}

static void
write_down(const Machine *m, int which, uint64_t first, Heap *heap, Notes *to)
{
    jot_Ctx *c;

    scribe = to;
    forget_notes(to);
    c = open_scribe(m, which, heap);
    CHECK(c && !jot_error(c), "%s: %s", m->label, jot_message(c));
    run_program(c, which, first, m->label);
    jot_close(c);
    heap_close(heap);
}

/* After two others in its context: nothing else is compiled than alone, and all of that, but for
 * what the others have in common with it. */
static void
test_after(const Machine *m, int which, uint64_t first, int n, const Notes *alone)
{
    static Notes before, after;
    Heap heap = {.fill = -1};
    jot_Ctx *c;

    scribe = &before;
    forget_notes(&before);
    forget_notes(&after);
    c = open_scribe(m, which, &heap);
    run_program(c, (which + 1) % n, first, m->label);
    run_program(c, (which + n - 1) % n, first, m->label);
    scribe = &after;
    run_program(c, which, first, m->label);
    for (int i = 0; i < after.names; i++)
        CHECK(knows_name(alone, after.name[i]), "%s: program %d: another text after others: %s",
              m->label, which, after.text);
    for (int i = 0; i < alone->names; i++)
        CHECK(knows_name(&after, alone->name[i]) || knows_name(&before, alone->name[i]),
              "%s: program %d: a text is missing after others", m->label, which);
    scribe = &before;
    jot_close(c);
}

static void
test_heaps(const Machine *m, int which, uint64_t first, const Notes *alone)
{
    static const struct { int fill; bool down; } heaps[] = {
        {0x00, false}, {0xAA, true}, {0xFF, false},
    };
    static Notes other;
    size_t at;

    for (size_t i = 0; i < sizeof heaps / sizeof heaps[0]; i++) {
        Heap heap = {.fill = heaps[i].fill, .down = heaps[i].down};

        write_down(m, which, first, &heap, &other);
        CHECK(same_notes(alone, &other, &at), "%s: program %d, memory of %02x%s:\n  %s\n  %s",
              m->label, which, (unsigned)heaps[i].fill, heaps[i].down ? " downwards" : "",
              line_at(alone, at), line_at(&other, at));
    }
}

static uint64_t
digest(const Notes *notes)
{
    return jot_hash(0, notes->text, notes->n);
}

/* Another process: its addresses are others, and so are the counters of its libraries. */
static void
test_process(const char *self, int most, uint64_t first, const uint64_t *want, int n)
{
    char command[600], line[200];
    int i = 0;
    FILE *f;

    snprintf(command, sizeof command, "exec '%s' --print %d %llu", self, most,
             (unsigned long long)first);
    f = popen(command, "r");
    CHECK(f != NULL, "%s", command);
    for (; f && i < n && fgets(line, sizeof line, f); i++)
        CHECK(strtoull(line, NULL, 16) == want[i], "in another process: %s", line);
    CHECK(i == n, "%d lines of %d from %s", i, n, command);
    if (f)
        pclose(f);
}

int
main(int argc, char **argv)
{
    bool print = argc > 1 && !strcmp(argv[1], "--print");
    int most = argc > 1 + print ? atoi(argv[1 + print]) : 10;
    uint64_t first = argc > 2 + print ? strtoull(argv[2 + print], NULL, 10) : 1;
    int n = SMALL_PROGRAMS + TILE_CASES + most;
    uint64_t *seen = calloc((size_t)(n * MACHINES), sizeof *seen);
    static Notes alone;

    for (int k = 0; k < MACHINES; k++)
        for (int i = 0; i < n; i++) {
            const Machine *m = &machines[k];
            Heap heap = {.fill = -1};

            write_down(m, i, first, &heap, &alone);
            seen[k * n + i] = digest(&alone);
            if (print) {
                printf("%016llx %s: program %d\n", (unsigned long long)seen[k * n + i], m->label,
                       i);
                continue;
            }
            test_heaps(m, i, first, &alone);
            test_after(m, i, first, n, &alone);
        }
    if (!print)
        test_process(argv[0], most, first, seen, n * MACHINES);
    free(seen);
    return print ? test_failed : DONE();
}
