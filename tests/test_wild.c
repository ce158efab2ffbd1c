/* tests/test_wild.c - programs of tests/wild_draw.h and networks of tests/wild_nets.h, drawn more
 * wildly than a user writes, each in a drawn way: every element within the bounds that rounding
 * explains (tests/bounds.h), nothing refused, nobody dead.
 *
 *     test_wild N FIRST [BACKEND]    N programs, from seed FIRST on, on one backend
 *     test_wild print SEED           the program of a seed
 *     test_wild here N FIRST BACKEND one batch in this process, for a debugger
 *     test_wild torch N FIRST        N networks and their values, as text for tests/ref/wild.py
 *
 * A batch of programs is a process of its own, so that one that crashes or hangs is found, named
 * and cut down: calls become leaves and outputs go while it fails in the same manner.
 *
 * Guards: ccode/build/build.c, ops/forms.c, ops/grad/grad.c. */
#include "tests/wild_run.h"
#include "tests/test.h"
#include "tests/wild_torch.h"

enum { PATIENCE = 240, TRIES = 400 };

/* Batches that once had one that failed, and on which backend. */
static const struct { uint64_t first; const char *backend; } found[] = {
    {1013232, "tcc"}, {1020512, "tcc"}, {1025648, "tcc"}, {1030464, "tcc"}, {1093824, "tcc"},
    {1097152, "tcc"}, {2010080, "tcc"}, {2098192, "tcc"}, {3009664, "cc"},
    {3047184, "cc"}, {3052016, "cc"},
};

static Desk *desk; /* shared with the process at work */

/* ---- ways ---- */

static void
draw_random(Draw *d, char *to, size_t n, int percent, const char *otherwise)
{
    if (chance(d, percent))
        snprintf(to, n, "random:%d", (int)below(d, 1000));
    else
        snprintf(to, n, "%s", otherwise);
}

static Way
draw_way(uint64_t seed, const char *backend)
{
    static const char *const policies[] = {"reward", "reward", "paper", "none"};
    static const char *const targets[] = {"", "", "native", "avx2", "sse"};
    static const int lanes[] = {0, 0, 0, 0, 0, 1, 2, 4, 8, 16};
    Draw random = {.random = mixed(seed ^ 0x5eed)}, *d = &random;
    Way w;

    memset(&w, 0, sizeof w);
    snprintf(w.backend, sizeof w.backend, "%s", backend ? backend
             : chance(d, 80) ? "tcc" : chance(d, 40) ? "cc" : "interp");
    snprintf(w.policy, sizeof w.policy, "%s", policies[below(d, strcmp(w.backend, "cc") ? 4 : 3)]);
    draw_random(d, w.layout, sizeof w.layout, 40, chance(d, 70) ? "chosen" : "rowmajor");
    draw_random(d, w.schedule, sizeof w.schedule, 45, "default");
    draw_random(d, w.target, sizeof w.target, 25, targets[below(d, 5)]);
    snprintf(w.precision, sizeof w.precision, "%s", chance(d, 70) ? "exact" : "default");
    w.threads = (int)between(d, 1, 4);
    w.lanes = lanes[below(d, 10)];
    w.no_simplify = chance(d, 10);
    w.give_back = chance(d, 10);
    w.deterministic = chance(d, 10);
    w.mode = (int)(chance(d, 60) ? AT_ONCE : below(d, MODES));
    return w;
}

/* ---- processes ---- */

/* Run in a child; what its end says of the whole desk: FINE, DIED or HUNG. */
static int
in_child(void work(const void *), const void *what)
{
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(PATIENCE);
        work(what);
        fflush(stdout);
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return DIED;
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == SIGALRM ? HUNG : DIED;
    return WEXITSTATUS(status) ? DIED : FINE;
}

static void
work_on_desk(const void *way)
{
    run_desk(desk, way);
}

typedef struct { uint64_t first; int n; const Way *way; } Batch;

static void
work_on_batch(const void *what)
{
    const Batch *b = what;
    draw_desk(desk, b->first, b->n);
    run_desk(desk, b->way);
}

/* One program alone. */
static int
verdict_of(const Program *p, const Way *w)
{
    int end;

    desk->n = 1;
    desk->program[0] = *p;
    desk->verdict[0] = FINE;
    desk->why[0][0] = 0;
    end = in_child(work_on_desk, w);
    return end == FINE ? desk->verdict[0] : end;
}

/* ---- cutting down ---- */

static bool
still(Program *was, const Program *now, const Way *w, int verdict, int *tries)
{
    if (--*tries < 0 || verdict_of(now, w) != verdict)
        return false;
    *was = *now;
    return true;
}

static void
cut_down(Program *p, const Way *w, int verdict)
{
    static Program next;
    int tries = verdict == HUNG ? 0 : TRIES;
    bool less = true;

    for (int k = p->nout - 1; k >= 0 && p->nout > 1; k--) {
        next = *p;
        memmove(next.out + k, next.out + k + 1, (size_t)(next.nout - k - 1) * sizeof *next.out);
        next.nout--;
        drop_dead(&next);
        still(p, &next, w, verdict, &tries);
    }
    while (less && tries > 0) {
        less = false;
        for (int k = p->ncall - 1; k >= 0 && tries > 0; k--) {
            if (k >= p->ncall)
                continue;
            next = *p;
            if (next.call[k].nout == 0) {
                memmove(next.call + k, next.call + k + 1,
                        (size_t)(next.ncall - k - 1) * sizeof *next.call);
                next.ncall--;
            } else if (!leaf_for_call(&next, k)) {
                continue;
            }
            drop_dead(&next);
            less = still(p, &next, w, verdict, &tries) || less;
        }
    }
}

/* As little of the way as it needs. */
static void
cut_way(const Program *p, Way *w, int verdict)
{
    Way next;
    int k;

    for (k = 0; k < 9; k++) {
        next = *w;
        switch (k) {
        case 0: strcpy(next.policy, "reward"); break;
        case 1: strcpy(next.layout, "chosen"); break;
        case 2: strcpy(next.schedule, "default"); break;
        case 3: strcpy(next.target, ""); break;
        case 4: next.threads = 1; break;
        case 5: next.lanes = 0; break;
        case 6: next.no_simplify = next.give_back = next.deterministic = 0; break;
        case 7: next.mode = AT_ONCE; break;
        default: strcpy(next.precision, "exact");
        }
        if (memcmp(&next, w, sizeof next) && verdict_of(p, &next) == verdict)
            *w = next;
    }
}

/* ---- the campaign ---- */

static void
report(uint64_t seed, const Way *as_drawn)
{
    static Program p;
    Way w = *as_drawn;
    int verdict;

    p = desk->program[0];
    verdict = verdict_of(&p, &w);
    if (verdict == FINE)
        return;
    cut_way(&p, &w, verdict);
    cut_down(&p, &w, verdict);
    verdict_of(&p, &w);
    printf("seed %llu: %s (%s): %s\n    ", (unsigned long long)seed, verdict_text[verdict],
           desk->stage, desk->why[0]);
    print_way(stdout, &w);
    printf("\n");
    print_program(stdout, &p);
    fflush(stdout);
}

/* Seeds first .. first + n of one batch: those that are not fine are told. */
static void
check_batch(uint64_t first, int n, const char *backend)
{
    static Desk copy;
    Way w = draw_way(first, backend);
    Batch b = {first, n, &w};
    int end, bad = 0, at;

    memset(desk, 0, sizeof *desk);
    end = in_child(work_on_batch, &b);
    copy = *desk;
    if (end != FINE && !strcmp(copy.stage ? copy.stage : "", "drawing")) {
        CHECK(0, "seed %llu: %s while it was drawn", (unsigned long long)first + (unsigned)copy.now,
              verdict_text[end]);
        return;
    }
    for (at = 0; at < n; at++) {
        int verdict = copy.verdict[at];
        if (end != FINE)
            verdict = verdict_of(&copy.program[at], &w);
        else if (verdict != FINE && verdict != PASSED_BY) {
            int alone = verdict_of(&copy.program[at], &w);
            if (alone == FINE)
                printf("seed %llu, only beside %llu..%llu: %s\n", (unsigned long long)first +
                       (unsigned)at, (unsigned long long)first, (unsigned long long)first +
                       (unsigned)n - 1, copy.why[at]);
        }
        verdict = verdict == PASSED_BY ? FINE : verdict;
        CHECK(verdict == FINE, "seed %llu: %s", (unsigned long long)first + (unsigned)at,
              verdict_text[verdict]);
        if (verdict == FINE)
            continue;
        bad++;
        desk->program[0] = copy.program[at];
        report(first + (unsigned)at, &w);
    }
    CHECK(!*copy.together, "seeds %llu..%llu together: %s", (unsigned long long)first,
          (unsigned long long)first + (unsigned)n - 1, copy.together);
    if (end != FINE && !bad) {
        CHECK(0, "seeds %llu..%llu together: %s at %s of %d", (unsigned long long)first,
              (unsigned long long)first + (unsigned)n - 1, verdict_text[end], copy.stage, copy.now);
        print_way(stdout, &w);
        printf("\n");
    }
    desk->known = copy.known;
    desk->unknown = copy.unknown;
}

static bool
has_backend(const char *name)
{
    jot_Config config = {.backend = name, .cache_dir = ""};
    jot_Ctx *c = jot_open(&config);
    bool ok = !jot_error(c);

    jot_close(c);
    return ok;
}

static void
probe(const void *what)
{
    _exit(has_backend(what) ? 0 : 1);
}

int
main(int argc, char **argv)
{
    uint64_t first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int64_t n = argc > 1 ? strtoll(argv[1], NULL, 10) : test_many(160, 400), known = 0, unknown = 0;
    const char *backend = argc > 3 ? argv[3] : NULL;

    desk = mmap(NULL, sizeof *desk, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (desk == MAP_FAILED)
        return 1;
    if (argc > 2 && !strcmp(argv[1], "print")) {
        draw_desk(desk, first, 1);
        print_program(stdout, &desk->program[0]);
        return 0;
    }
    if (argc > 3 && !strcmp(argv[1], "here")) {
        Way w = draw_way(strtoull(argv[3], NULL, 10), argc > 4 ? argv[4] : NULL);
        Batch b = {strtoull(argv[3], NULL, 10), (int)strtol(argv[2], NULL, 10), &w};
        work_on_batch(&b);
        print_way(stdout, &w);
        printf("\n%s\n", desk->together);
        for (int k = 0; k < b.n; k++)
            printf("%s %s\n", verdict_text[desk->verdict[k]], desk->why[k]);
        return 0;
    }
    if (argc > 3 && !strcmp(argv[1], "torch"))
        return torch_print(desk, strtoll(argv[2], NULL, 10), strtoull(argv[3], NULL, 10)), 0;
    if (!backend && in_child(probe, "tcc") != FINE) {
        SKIP("no tcc");
        backend = "interp";
    }
    for (uint64_t at = first; at < first + (uint64_t)n;) {
        int batch = (int)(BATCH - at % BATCH);
        batch = at + (uint64_t)batch > first + (uint64_t)n ? (int)(first + (uint64_t)n - at) : batch;
        check_batch(at, batch, backend);
        known += desk->known;
        unknown += desk->unknown;
        at += (uint64_t)batch;
    }
    for (size_t k = 0; argc < 2 && k < sizeof found / sizeof *found; k++)
        check_batch(found[k].first, BATCH, found[k].backend);
    printf("%lld elements judged, %lld more are not known\n", (long long)known, (long long)unknown);
    return DONE();
}
