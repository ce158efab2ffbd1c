/* bench/bench.c - the runner: times every system on every workload, turn by turn.
 *
 *     runner --'softmax_4096x1024 0.3'--> bench --serve jot 1           each a process of its own,
 *            --'softmax_4096x1024 0.3'--> bench --serve jot 2           kept open; one works while
 *            --'softmax_4096x1024 0.3'--> peers/torch_peer.py --serve   the others wait
 *            ... and round again, so that noise of the machine hits all of them
 *
 * Every answer is a JSON line and goes to the output file as it is; report/report.c makes a table
 * and a picture of it. A process that does not answer within the patience is ended, and started
 * anew for the next workload.
 *
 * Use: bench [options] [pattern...]        patterns as of the shell: 'gemm_*'
 *   --budget S     seconds per workload and system, spread over the rounds (1)
 *   --rounds N     (3)                --patience S   for one answer (60)
 *   --threads L    (1,2)              --out FILE     (out/bench/bench.jsonl)
 *   --peers DIR    a Python environment with torch; --modes L (eager): eager, compile, ort, ggml
 *   --cold 1       fresh processes: time to the first result and to full speed
 *   --tune N       jot once more, as jot-tuned: N schedules of each kernel timed (JOT_TUNE), which
 *                  are remembered in out/bench/tuned; patience 900, unless it is given after this
 *   --before FILE  another build's bench: its jot by turns with this one, as jot-before
 *   --drawn FILE   the drawn workloads of a file (drawn/drawn.h) instead of the tables
 *      bench --draw SEED N          prints N lines for such a file
 *      bench --profile NAME T       a workload's kernels on T threads (of BENCH_DRAWN's file too)
 *
 * Read after: work.h, serve.c. */
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bench/drawn/drawn.h"
#include "bench/system.h"

enum { MOST_SERVERS = 32 };

typedef struct {
    char peer[32], mode[16]; /* mode: of torch; or a system */
    int threads;
    pid_t pid;
    int ask;
    FILE *answers;
    bool out;                /* nothing more to ask about this workload */
} Server;

static struct {
    const char *self, *peers, *out, *tune, *before, *patterns[64];
    double budget, patience;
    int rounds, npatterns, nservers;
    bool cold, device, drawn;
    Server server[MOST_SERVERS];
} run = {.out = "out/bench/bench.jsonl", .budget = 1, .patience = 60, .rounds = 3};

/* ---- peers -------------------------------------------------------------------------------- */

/* The program that answers for a mode: of torch's own there are several. */
static const char *
peer_program(const char *mode)
{
    static const char *const of[][2] = {
        {"ort", "bench/peers/runtime_peer.py"}, {"openvino", "bench/peers/runtime_peer.py"},
        {"jax", "bench/peers/jax_peer.py"},     {"ggml", "bench/peers/ggml_peer.py"},
    };

    for (size_t k = 0; k < sizeof of / sizeof *of; k++)
        if (!strcmp(of[k][0], mode))
            return of[k][1];
    return "bench/peers/torch_peer.py";
}

/* ---- processes ---------------------------------------------------------------------------- */

static bool
is_before(const Server *s)
{
    return !strcmp(s->peer, "jot-before");
}

/* What another build's jot says of itself, under the name that it has here. */
static void
put_answer(const Server *s, const char *line, FILE *out)
{
    static const char own[] = "\"peer\": \"jot\"";
    const char *at = is_before(s) ? strstr(line, own) : NULL;

    if (at)
        fprintf(out, "%.*s\"peer\": \"%s\"%s", (int)(at - line), line, s->peer,
                at + sizeof own - 1);
    else
        fputs(line, out);
}

/* Replaces this process by the server; cold: the workload, or NULL. */
static void
become(const Server *s, const char *cold, const char *note)
{
    char threads[16], start[32], python[512];

    snprintf(threads, sizeof threads, "%d", s->threads);
    snprintf(start, sizeof start, "%.6f", bench_seconds());
    setenv("OMP_NUM_THREADS", threads, 1);
    setenv("BENCH_START", start, 1);
    if (!strcmp(s->peer, "jot-tuned")) {
        setenv("JOT_TUNE", run.tune, 1);
        setenv("JOT_DETERMINISTIC", "0", 1);
        setenv("JOT_CACHE_DIR", "out/bench/tuned", 1);
    }
    if (s->mode[0]) {
        const char *program = peer_program(s->mode);

        snprintf(python, sizeof python, "%s/bin/python", run.peers);
        execl(python, python, program, "--mode", s->mode, "--threads", threads,
              cold ? "--cold" : "--serve", cold, (char *)NULL);
    } else if (cold)
        execl(run.self, run.self, "--serve-cold", s->peer, threads, cold, note, (char *)NULL);
    else
        execl(is_before(s) ? run.before : run.self, run.self, "--serve",
              is_before(s) ? "jot" : s->peer, threads, (char *)NULL);
    perror("bench: exec");
    _exit(127);
}

static bool
start(Server *s, const char *cold, const char *note)
{
    int to[2], from[2];

    if (pipe(to) || pipe(from) || (s->pid = fork()) < 0) {
        perror("bench");
        return false;
    }
    if (s->pid == 0) {
        int log = open("out/bench/log.txt", O_WRONLY | O_CREAT | O_APPEND, 0644);

        dup2(to[0], 0);
        dup2(from[1], 1);
        if (log >= 0)
            dup2(log, 2);
        for (int fd = 3; fd < 256; fd++) /* or other servers' pipes would never end */
            close(fd);
        become(s, cold, note);
    }
    close(to[0]);
    close(from[1]);
    s->ask = to[1];
    s->answers = fdopen(from[0], "r");
    return true;
}

static void
stop(Server *s, bool at_once)
{
    if (!s->pid)
        return;
    close(s->ask);
    if (at_once)
        kill(s->pid, SIGKILL);
    fclose(s->answers);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

/* One line from s, or false: it died or lost our patience. */
static bool
hear(Server *s, char *line, int size, double patience)
{
    struct pollfd p = {fileno(s->answers), POLLIN, 0};

    return poll(&p, 1, (int)(patience * 1e3)) > 0 && fgets(line, size, s->answers) != NULL;
}

/* ---- going round -------------------------------------------------------------------------- */

static void
ask(Server *s, const Work *w, FILE *out)
{
    char line[4096], request[160];
    int n = snprintf(request, sizeof request, "%s %g\n", w->name, run.budget / run.rounds);

    if (!s->pid && !start(s, NULL, NULL)) {
        s->out = true;
        return;
    }
    if (write(s->ask, request, (size_t)n) != n || !hear(s, line, sizeof line, run.patience)) {
        stop(s, true);
        snprintf(line, sizeof line, "{\"w\": \"%s\", \"peer\": \"%s\", \"threads\": %d, "
                 "\"error\": \"no answer in %g s\"}\n", w->name, s->peer, s->threads, run.patience);
    }
    s->out = !strcmp(line, "{}\n") || strstr(line, "\"error\"") || strstr(line, "\"slow\"");
    if (strcmp(line, "{}\n"))
        put_answer(s, line, out);
    fflush(out);
}

static void
bench(const Work *w, FILE *out)
{
    fprintf(stderr, "%s\n", w->name);
    for (int k = 0; k < run.nservers; k++)
        run.server[k].out = false;
    for (int r = 0; r < run.rounds; r++)
        for (int k = 0; k < run.nservers; k++)
            if (!run.server[k].out)
                ask(&run.server[k], w, out);
}

/* The same fresh process twice for jot: without and with its kernels on disk. */
static void
bench_cold(const Work *w, FILE *out)
{
    for (int k = 0; k < run.nservers; k++)
        for (int again = 0; again < (run.server[k].mode[0] ? 1 : 2); again++) {
            char cache[] = "/tmp/jot-bench-XXXXXX", line[4096];
            static char kept[sizeof cache];

            if (!again && mkdtemp(cache))
                strcpy(kept, cache);
            setenv("JOT_CACHE_DIR", kept, 1);
            if (start(&run.server[k], w->name, again ? "kernels on disk" : "empty cache") &&
                hear(&run.server[k], line, sizeof line, run.patience)) {
                fputs(line, out);
                fputs(line, stdout);
            }
            stop(&run.server[k], true);
            if (again || run.server[k].mode[0]) {
                snprintf(line, sizeof line, "rm -rf %s", kept);
                if (system(line))
                    fprintf(stderr, "bench: %s is left\n", kept);
            }
        }
    fflush(out);
}

static bool
wanted(const char *name)
{
    bool yes = run.npatterns == 0;

    for (int k = 0; k < run.npatterns; k++)
        yes |= fnmatch(run.patterns[k], name, 0) == 0;
    return yes;
}

/* ---- options ------------------------------------------------------------------------------ */

static void
add_server(const char *peer, const char *mode, int threads)
{
    Server *s = &run.server[run.nservers];

    if (run.nservers == MOST_SERVERS)
        return;
    snprintf(s->peer, sizeof s->peer, "%s%s", peer, mode);
    snprintf(s->mode, sizeof s->mode, "%s", mode);
    s->threads = threads;
    run.nservers++;
}

/* jot at every number of threads, then the others. */
static void
add_servers(const char *threads, const char *modes)
{
    static const System *const others[] = {
        &system_openblas, &system_onednn, &system_onednn_rowmajor
    };
    const char *t, *m;

    for (t = threads; *t; t += strcspn(t, ","), t += *t == ',')
        add_server("jot", "", atoi(t));
    for (t = threads; *t && run.before && !run.cold; t += strcspn(t, ","), t += *t == ',')
        add_server("jot-before", "", atoi(t));
    for (t = threads; *t && run.tune && !run.cold; t += strcspn(t, ","), t += *t == ',')
        add_server("jot-tuned", "", atoi(t));
    /* they compute on the processor */
    for (int k = 0; k < 3 && !run.cold && !run.device && !run.drawn; k++) {
        if (others[k]->missing)
            fprintf(stderr, "bench: without %s: %s\n", others[k]->name, others[k]->missing);
        for (t = threads; *t && !others[k]->missing; t += strcspn(t, ","), t += *t == ',')
            add_server(others[k]->name, "", atoi(t));
    }
    for (m = modes; run.peers && *m; m += strcspn(m, ","), m += *m == ',')
        for (t = threads; *t; t += strcspn(t, ","), t += *t == ',') {
            char mode[16];

            snprintf(mode, sizeof mode, "%.*s", (int)strcspn(m, ","), m);
            add_server(strstr(peer_program(mode), "torch") ? "torch-" : "", mode, atoi(t));
        }
}

static const System *
system_named(const char *name)
{
    return !strcmp(name, "openblas") ? &system_openblas
           : !strcmp(name, "onednn") ? &system_onednn
           : !strcmp(name, "onednn-rowmajor") ? &system_onednn_rowmajor
           : !strcmp(name, "jot-tuned") ? &system_jot_tuned
                                        : &system_jot;
}

static bool
options(int argc, char **argv)
{
    const char *threads = "1,2", *modes = "eager";
    int k = 1;

    for (; k + 1 < argc && argv[k][0] == '-'; k += 2) {
        const char *o = argv[k] + 2, *v = argv[k + 1];

        if (!strcmp(o, "budget")) run.budget = atof(v);
        else if (!strcmp(o, "rounds")) run.rounds = atoi(v) > 0 ? atoi(v) : 1;
        else if (!strcmp(o, "patience")) run.patience = atof(v);
        else if (!strcmp(o, "threads")) threads = v;
        else if (!strcmp(o, "out")) run.out = v;
        else if (!strcmp(o, "peers")) run.peers = v;
        else if (!strcmp(o, "modes")) modes = v;
        else if (!strcmp(o, "cold")) run.cold = atoi(v) != 0;
        else if (!strcmp(o, "before")) run.before = v;
        else if (!strcmp(o, "drawn")) run.drawn = !setenv("BENCH_DRAWN", v, 1);
        else if (!strcmp(o, "tune")) run.tune = v, run.patience = 900;
        else return false;
    }
    for (; k < argc && run.npatterns < 64; k++)
        run.patterns[run.npatterns++] = argv[k];
    add_servers(threads, modes);
    return true;
}

/* A backend that was asked for (DEVICE=..) and is not here is one line, not one for each
 * workload. */
static bool
backend_is_here(void)
{
    const char *name = getenv("JOT_BACKEND");
    jot_Ctx *c = name && *name ? jot_open(NULL) : NULL;
    bool ok = !c || jot_error(c) == JOT_OK;

    if (!ok)
        printf("skipped: bench: %s\n", jot_message(c));
    run.device = ok && c && (!strcmp(name, "cuda") || !strcmp(name, "opencl"));
    jot_close(c);
    return ok;
}

/* Workload number k of those that were asked for; NULL: there are no more. */
static const Work *
work_at(int k)
{
    if (run.drawn)
        return drawn_work(k);
    for (int i = 0; work_tables[i]; i++)
        for (const Work *w = work_tables[i]; w->name; w++)
            if (k-- == 0)
                return w;
    return NULL;
}

static int
draw(uint64_t seed, int n)
{
    static char line[DRAWN_TEXT];

    for (int k = 0; k < n; k++) {
        drawn_line(seed, k, 1e9, line);
        puts(line);
    }
    return 0;
}

enum { SKIPPED = 77 };

int
main(int argc, char **argv)
{
    const Work *w;
    FILE *out;

    if (argc == 4 && !strcmp(argv[1], "--draw"))
        return draw(strtoull(argv[2], NULL, 10), atoi(argv[3]));
    if (argc == 4 && !strcmp(argv[1], "--profile"))
        return bench_profile(serve_find(argv[2]), atoi(argv[3]));
    if (argc == 4 && !strcmp(argv[1], "--serve"))
        return serve(system_named(argv[2]), atoi(argv[3]));
    if (argc == 6 && !strcmp(argv[1], "--serve-cold"))
        return serve_cold(system_named(argv[2]), argv[4], atoi(argv[3]), argv[5]);
    run.self = argv[0];
    if (!backend_is_here())
        return SKIPPED;
    if (!options(argc, argv))
        return fprintf(stderr, "bench: see the head of bench/bench.c for options\n"), 2;
    signal(SIGPIPE, SIG_IGN);
    mkdir("out", 0755);
    mkdir("out/bench", 0755);
    if (!(out = fopen(run.out, "w")))
        return perror(run.out), 1;
    for (int k = 0; (w = work_at(k)) != NULL; k++)
        if (wanted(w->name))
            (run.cold ? bench_cold : bench)(w, out);
    for (int k = 0; k < run.nservers; k++)
        stop(&run.server[k], false);
    fclose(out);
    return 0;
}
