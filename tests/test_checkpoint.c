/* test_checkpoint.c - checkpoints (io.h): training that goes on in another context is bit-equal to
 * training that did not stop; the last N stay; a damaged file is named and the one before it taken;
 * a full disk, and each call that may fail; a process killed at each of its system calls leaves the
 * old file or the new one, whole.
 *
 * This program's own write, fsync and rename stand before C's, to fail when they are told to.
 *
 * Guards: io/checkpoint.c io/write.c */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "tests/hooks.h"
#include "tests/io_files.h"

enum { BATCH = 8, IN = 6, MANY = 64, ROOM = 1 << 14 };

/* ---- calls that fail ---- */

static long room = -1;    /* bytes that the disk has room for; -1: any number */
static size_t at_once;    /* of one write; 0: all */
static int fails_in;      /* fsync and rename: the n-th of them; 0: none */
static char synced[16];   /* what was, 'f' for a file, 'd' for a folder, 'r' for a renaming */

ssize_t
write(int fd, const void *p, size_t n)
{
    if (at_once && n > at_once)
        n = at_once;
    if (room >= 0 && n > (size_t)room)
        n = (size_t)room;
    if (room == 0) {
        errno = ENOSPC;
        return -1;
    }
    room -= room > 0 ? (long)n : 0;
    return syscall(SYS_write, fd, p, n);
}

static bool
fails(void)
{
    errno = EIO;
    return fails_in && --fails_in == 0;
}

static void
note(char what)
{
    size_t n = strlen(synced);
    if (n + 1 < sizeof synced)
        synced[n] = what;
}

int
fsync(int fd)
{
    struct stat s;
    note(!fstat(fd, &s) && S_ISDIR(s.st_mode) ? 'd' : 'f');
    return fails() ? -1 : (int)syscall(SYS_fsync, fd);
}

int
rename(const char *from, const char *to)
{
    note('r');
    return fails() ? -1 : (int)syscall(SYS_renameat2, -100, from, -100, to, 0);
}

/* ---- a network of everything that has state ---- */

typedef struct { jot_Ctx *c; jot_Net m; jot_Trainer t; } Run;

static jot_Var
loss_of(Run *r)
{
    static float pixels[BATCH * IN];
    static uint8_t classes[BATCH];

    for (int k = 0; k < BATCH * IN; k++)
        pixels[k] = (float)io_value(k);
    for (int k = 0; k < BATCH; k++)
        classes[k] = (uint8_t)(k % 3);
    jot_Var x = jot_array(r->c, JOT_F32, JOT_SHAPE(BATCH, IN), pixels);
    x = jot_nn_batch_norm(r->m, "bn", jot_nn_linear(r->m, "in", x, 16, NULL), NULL);
    x = jot_nn_linear(r->m, "out", jot_nn_dropout(r->m, jot_relu(x), 0.25), 3, NULL);
    return jot_cross_entropy(x, jot_array(r->c, JOT_U8, JOT_SHAPE(BATCH), classes));
}

static Run
begin_with(const char *backend, double ema)
{
    jot_Config config = {.hooks = {.log = keep_log}, .backend = backend, .cache_dir = "",
                         .deterministic = 1, .seed = 5, .no_threads = 1};
    jot_Training how = {.lr = 0.01, .ema = ema, .accumulate = 2, .weight_decay = 0.1};
    Run r = {.c = jot_open(&config)};

    *logged = 0;
    r.m = jot_net(r.c, JOT_F32);
    jot_push(r.c);
    jot_net_train(r.m, false);
    loss_of(&r);
    jot_net_train(r.m, true);
    jot_pop(r.c);
    r.t = jot_trainer(r.m, &how);
    CHECK(jot_trainer_ok(r.t), "%s", jot_message(r.c));
    return r;
}

static Run
begin(void)
{
    return begin_with("interp", 0.75);
}

static void
steps(Run *r, int n)
{
    while (n--) {
        jot_push(r->c);
        jot_Var loss = loss_of(r);
        CHECK(jot_train_step(r->t, loss) && jot_run(r->c, JOT_VARS(loss)), "%s", jot_message(r->c));
        jot_pop(r->c);
    }
}

/* All state as bytes; returns how many. */
static size_t
bytes_of(Run *r, uint8_t to[ROOM])
{
    static jot_Named all[MANY];
    size_t n = 0;

    jot_push(r->c);
    int count = jot_net_state(r->m, r->t, all, MANY);
    for (int k = 0; k < count; k++) {
        size_t nbytes = (size_t)jot_nelem(all[k].var) * jot_dtype_nbytes(jot_dtype(all[k].var));
        CHECK(n + nbytes <= ROOM && jot_copy(all[k].var, to + n, nbytes), "%s", jot_message(r->c));
        n += nbytes;
    }
    jot_pop(r->c);
    return n;
}

static bool
same(Run *r, const uint8_t *want)
{
    static uint8_t is[ROOM];
    size_t n = bytes_of(r, is);

    return n && !memcmp(is, want, n);
}

static bool
save(Run *r, const char *folder, int64_t step, int keep)
{
    return jot_checkpoint_save(r->m, r->t, folder, step, keep);
}

static int64_t
load(Run *r, const char *folder)
{
    return jot_checkpoint_load(r->m, r->t, folder);
}

/* Files in the folder; *odd: of these, those that are no checkpoint by name. */
static int
files(const char *folder, int *odd)
{
    DIR *d = opendir(folder);
    int n = 0;

    *odd = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t length = strlen(e->d_name);
        n += *e->d_name != '.';
        *odd += *e->d_name != '.' && (length != 29 || strcmp(e->d_name + 17, ".safetensors"));
    }
    if (d)
        closedir(d);
    return n;
}

static uint8_t *
slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    uint8_t *p = malloc(1 << 16);

    *n = f ? fread(p, 1, 1 << 16, f) : 0;
    if (f)
        fclose(f);
    return p;
}

static void
put(const char *path, const uint8_t *p, size_t n)
{
    FILE *f = fopen(path, "wb");

    CHECK(f && fwrite(p, 1, n, f) == n && !fclose(f), "%s", path);
}

static const char *
file_of(const char *folder, int step)
{
    static char path[4][300];
    static int turn;

    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/step-%012d.safetensors", folder, step);
    return path[turn];
}

/* ---- going on ---- */

static void
test_resume(const char *backend)
{
    static uint8_t straight[ROOM], half[ROOM];
    char folder[256];
    Run r = begin_with(backend, 0.75);

    if (strcmp(jot_backend(r.c), backend)) {
        SKIP("%s: %s", backend, jot_message(r.c));
        jot_close(r.c);
        return;
    }
    snprintf(folder, sizeof folder, "%s", io_path(backend));
    CHECK(load(&r, folder) == -1 && !jot_error(r.c), "there is nothing: %s", jot_message(r.c));
    steps(&r, 3);
    bytes_of(&r, half);
    memset(synced, 0, sizeof synced);
    CHECK(save(&r, folder, 3, 0), "%s", jot_message(r.c));
    CHECK(!strcmp(synced, "dfrd"), "%s", synced); /* the folder is new */
    CHECK(same(&r, half), "saving changed something");
    steps(&r, 4);
    bytes_of(&r, straight);
    jot_close(r.c);
    r = begin_with(backend, 0.75);
    CHECK(load(&r, folder) == 3 && same(&r, half), "%s", jot_message(r.c));
    put(file_of(folder, 3), half, 9); /* what was loaded does not lie there */
    steps(&r, 4);
    CHECK(same(&r, straight), "%s: other bits after going on", backend);
    CHECK(!jot_error(r.c) && !*logged, "%s%s", jot_message(r.c), logged);
    jot_close(r.c);
}

static jot_Func
compiled(Run *r)
{
    jot_push(r->c);
    jot_Var loss = loss_of(r);
    CHECK(jot_train_step(r->t, loss), "%s", jot_message(r->c));
    jot_Func f = jot_compile(r->c, JOT_NONE_VARS, JOT_VARS(loss));
    CHECK(jot_func_ok(f), "%s", jot_message(r->c));
    jot_pop(r->c);
    return f;
}

static void
calls(jot_Func f, Run *r, int n)
{
    float loss;

    while (n--)
        CHECK(jot_call(f, JOT_NONE_INS, JOT_OUTS(JOT_OUT(&loss, sizeof loss))), "%s",
              jot_message(r->c));
}

/* A step that is a function: compiled, then set back, it goes on to the same bits; set back, then
 * compiled, from the same parameters. */
static void
test_compiled(void)
{
    static uint8_t straight[ROOM], half[ROOM];
    const char *folder = io_path("compiled");
    Run r = begin();
    jot_Func f = compiled(&r);

    calls(f, &r, 3);
    bytes_of(&r, half);
    CHECK(save(&r, folder, 3, 0), "%s", jot_message(r.c));
    calls(f, &r, 4);
    bytes_of(&r, straight);
    CHECK(!same(&r, half), "nothing is learnt");
    jot_close(r.c);
    r = begin();
    f = compiled(&r);
    CHECK(load(&r, folder) == 3 && same(&r, half), "%s", jot_message(r.c));
    calls(f, &r, 4);
    CHECK(same(&r, straight), "other bits after going on");
    jot_close(r.c);
    r = begin();
    CHECK(load(&r, folder) == 3 && same(&r, half), "%s", jot_message(r.c));
    f = compiled(&r);
    calls(f, &r, 4);
    CHECK(!jot_error(r.c) && !same(&r, half), "%s", jot_message(r.c));
    jot_close(r.c);
}

static void
test_keep(void)
{
    static const struct { int step, keep, there; } all[] = {
        {10, 0, 1}, {20, 0, 2}, {30, 0, 3}, {40, 0, 3}, {50, 2, 2}, {60, 1, 1}, {55, 2, 2},
        {45, 2, 2}, {44, 1, 1},
    };
    const char *folder = io_path("keep");
    Run r = begin();
    int odd;

    for (size_t k = 0; k < sizeof all / sizeof *all; k++) {
        CHECK(save(&r, folder, all[k].step, all[k].keep), "%s", jot_message(r.c));
        CHECK(files(folder, &odd) == all[k].there && !odd, "step %d: %d files", all[k].step,
              files(folder, &odd));
        CHECK(!access(file_of(folder, all[k].step), F_OK), "step %d has gone", all[k].step);
        int64_t step = load(&r, folder);
        CHECK(step == (k == 7 ? 60 : k == 6 ? 60 : all[k].step), "%d: %d", all[k].step, (int)step);
    }
    jot_close(r.c);
}

/* ---- damage ---- */

/* Two checkpoints, of which the newer is p: the older is taken, and the newer named. */
static void
test_damaged(Run *r, const char *folder, const uint8_t *old, const uint8_t *p, size_t n)
{
    put(file_of(folder, 2), p, n);
    *logged = 0;
    int64_t step = load(r, folder);
    CHECK(step == 1 && !jot_error(r->c), "%d: %s", (int)step, jot_message(r->c));
    CHECK(strstr(logged, file_of(folder, 2)) && strstr(logged, "passed over"), "\"%s\"", logged);
    CHECK(same(r, old), "another state");
}

static void
test_damage(void)
{
    static uint8_t old[ROOM];
    char folder[256];
    Run r = begin();
    size_t n;

    snprintf(folder, sizeof folder, "%s", io_path("damage"));
    CHECK(save(&r, folder, 1, 0), "%s", jot_message(r.c));
    bytes_of(&r, old);
    steps(&r, 2);
    CHECK(save(&r, folder, 2, 0), "%s", jot_message(r.c));
    uint8_t *p = slurp(file_of(folder, 2), &n);
    CHECK(n > 1000, "%zu", n);
    for (size_t k = 0; k < n; k = k < 32 ? k + 1 : k + n / 60 + 1) { /* a bit is another one */
        p[k] ^= (uint8_t)(1 << k % 8);
        test_damaged(&r, folder, old, p, n);
        p[k] ^= (uint8_t)(1 << k % 8);
    }
    for (size_t k = 0; k < n; k += n / 9) /* it ends before its end */
        test_damaged(&r, folder, old, p, k);
    memset(p + n - 64, 0, 64);
    test_damaged(&r, folder, old, p, n);
    put(file_of(folder, 1), p, 9);
    steps(&r, 1);
    bytes_of(&r, old);
    RAISED(r.c, load(&r, folder) != -1, JOT_EIO, "none of its 2 checkpoints is whole");
    CHECK(same(&r, old), "a failure changed something");
    uint8_t *moved = slurp(file_of(folder, 2), &n); /* under another step's name */
    CHECK(save(&r, folder, 3, 1) && !access(file_of(folder, 3), F_OK), "%s", jot_message(r.c));
    CHECK(!rename(file_of(folder, 3), file_of(folder, 4)), "rename");
    RAISED(r.c, load(&r, folder) != -1, JOT_EIO, "no checkpoint of this step");
    free(moved);
    free(p);
    jot_close(r.c);
}

static void
test_misfit(void)
{
    static uint8_t before[ROOM];
    const char *folder = io_path("misfit");
    Run r = begin(), other = begin_with("interp", 0);

    CHECK(save(&r, folder, 1, 0), "%s", jot_message(r.c));
    bytes_of(&other, before);
    RAISED(other.c, load(&other, folder) != -1, JOT_EUSE, "000000000001.safetensors: net_restore: ema.");
    CHECK(same(&other, before), "a failure changed something");
    RAISED(r.c, save(&r, folder, -1, 0), JOT_EUSE, "step -1");
    RAISED(r.c, save(&r, NULL, 1, 0), JOT_EUSE, "a folder");
    RAISED(r.c, save(&r, io_path("no/where"), 1, 0), JOT_EIO, "No such file");
    RAISED(r.c, load(&r, NULL) != -1, JOT_EUSE, "a folder");
    RAISED(r.c, load(&r, file_of(folder, 1)) != -1, JOT_EIO, "Not a directory");
    jot_close(r.c);
    jot_close(other.c);
}

/* ---- a disk that is full ---- */

static void
test_full(void)
{
    static uint8_t old[ROOM], now[ROOM];
    char folder[256];
    Run r = begin(), again = begin();
    int odd;

    snprintf(folder, sizeof folder, "%s", io_path("full"));
    at_once = 100;
    CHECK(save(&r, folder, 1, 0), "%s", jot_message(r.c));
    at_once = 0;
    bytes_of(&r, old);
    steps(&r, 2);
    bytes_of(&r, now);
    for (int k = 0; k < 12; k++) { /* over the same file, or another */
        room = k < 9 ? 1 + 500 * k : -1;
        fails_in = k < 9 ? 0 : 1 + k % 2;
        bool fine = k == 11 || save(&r, folder, k % 3 ? 1 : 2, 0);
        room = -1;
        fails_in = 0;
        if (k < 11)
            RAISED(r.c, fine, JOT_EIO, k < 9 ? "not written: byte" : k % 2 ? "rename" : "fsync");
        CHECK(files(folder, &odd) == 1 && !odd, "%d: something is left", k);
        CHECK(same(&r, now) && load(&again, folder) == 1 && same(&again, old), "%d: %s", k,
              jot_message(again.c));
    }
    CHECK(save(&r, folder, 1, 0) && load(&again, folder) == 1 && same(&again, now), "%s",
          jot_message(r.c));
    jot_close(r.c);
    jot_close(again.c);
}

/* ---- a process that is killed ---- */

/* The child: goes on from step 1, and from the signal on saves `step`. */
static void
killed_child(const char *folder, int step)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(1);
    Run r = begin();
    load(&r, folder);
    steps(&r, 2);
    raise(SIGSTOP);
    save(&r, folder, step, 1);
    _exit(0);
}

/* Kills it at its n-th stop at a system call, before or behind it. 1: it was killed; 0: it had
 * ended before; -1: nobody may be traced here. */
static int
killed_at(const char *folder, int step, int n)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (!child)
        killed_child(folder, step);
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return -1;
    while (n-- && !ptrace(PTRACE_SYSCALL, child, NULL, NULL) && waitpid(child, &status, 0) == child)
        if (!WIFSTOPPED(status))
            return 0;
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return 1;
}

/* Of a folder with step 1 in it, as p. Returns how many stops there were. */
static int
test_killed(int step, const uint8_t *p, size_t n, const uint8_t *old, const uint8_t *now)
{
    char folder[256];
    int stops = 0, is = 1, seen[2] = {0, 0}, odd;

    snprintf(folder, sizeof folder, "%s", io_path("killed"));
    for (; is == 1; stops++) {
        io_remove(folder);
        CHECK(!mkdir(folder, 0777), "mkdir");
        put(file_of(folder, 1), p, n);
        is = killed_at(folder, step, stops);
        if (is < 0)
            return -1;
        Run r = begin();
        int64_t found = load(&r, folder);
        bool is_new = same(&r, now);
        CHECK((found == 1 && (is_new ? step == 1 : same(&r, old))) || (found == step && is_new),
              "killed at stop %d: step %d, %s", stops, (int)found, jot_message(r.c));
        CHECK(!*logged && !jot_error(r.c), "killed at stop %d: %s", stops, logged);
        seen[is_new]++;
        CHECK(save(&r, folder, 7, 1) && files(folder, &odd) == 1 && !odd, "stop %d: %s", stops,
              jot_message(r.c));
        jot_close(r.c);
    }
    CHECK(seen[0] > 10 && seen[1] > 3, "%d old, %d new", seen[0], seen[1]);
    return stops;
}

static void
test_kill(void)
{
    static uint8_t old[ROOM], now[ROOM];
    const char *folder = io_path("kill");
    size_t n;
    Run r = begin();

    CHECK(save(&r, folder, 1, 0), "%s", jot_message(r.c));
    bytes_of(&r, old);
    steps(&r, 2);
    bytes_of(&r, now);
    jot_close(r.c);
    uint8_t *p = slurp(file_of(folder, 1), &n);
    for (int step = 1; step < 3; step++) {
        int stops = test_killed(step, p, n, old, now);
        if (stops < 0)
            SKIP("killed processes: none may be traced here");
        else
            printf("killed at each of %d stops at system calls, over %s file\n", stops,
                   step == 1 ? "the same" : "another");
    }
    free(p);
}

int
main(void)
{
    if (*jot_file_can("safetensors")) {
        SKIP("%s", jot_file_can("safetensors"));
        return DONE();
    }
    test_resume("interp");
    test_resume("tcc");
    test_resume("cpu");
    test_compiled();
    test_keep();
    test_damage();
    test_misfit();
    test_full();
    test_kill();
    io_remove(io_dir);
    return DONE();
}
