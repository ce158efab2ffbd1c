/* tests/test_machine.c - the machine's figures: measured once, kept, the same for every context
 * that reads them; a damaged or foreign file is measured anew; without a cache nothing is
 * measured; where a first tier runs meanwhile, not before the first result.
 *
 * Guards: backends/host/host.c, backends/host/machine.c, backends/host/probe.c, plan/tier/rates.c. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include "backends/host/host.h"
#include "tests/test.h"

static char scratch[64], dir[100], path[400];

static jot_Ctx *
open_by(const char *backend, const char *cache)
{
    jot_Config config = {.backend = backend, .cache_dir = cache, .threads = 1};

    return jot_open(&config);
}

static jot_Ctx *
open_in(const char *cache)
{
    return open_by("cc", cache);
}

/* The machine's file in dir; false: none. */
static bool
find_file(void)
{
    DIR *d = opendir(dir);
    struct dirent *e;

    path[0] = 0;
    while (d && (e = readdir(d)) != NULL)
        if (!strncmp(e->d_name, "machine-", 8))
            snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    if (d)
        closedir(d);
    return path[0] != 0;
}

static void
put(const char *text)
{
    FILE *f = fopen(path, "w");

    CHECK(f, "%s cannot be written", path);
    fputs(text, f);
    fclose(f);
}

static int
get(char *text, int nbytes)
{
    FILE *f = fopen(path, "r");
    int n = f ? (int)fread(text, 1, (size_t)nbytes - 1, f) : 0;

    if (f)
        fclose(f);
    text[n] = 0;
    return n;
}

static bool
plausible(const jot_Machine *m)
{
    for (int i = 0; i < 4; i++)
        if (!(m->bandwidth[i] >= 1e6) || (i && m->bandwidth[i] > m->bandwidth[i - 1]))
            return false;
    return m->flops >= 1e6 && m->bandwidth_all >= m->bandwidth[3] && m->cores >= 1 && m->call > 0
        && m->handoff > 0;
}

static jot_Machine
machine(const char *cache)
{
    jot_Ctx *c = open_in(cache);
    jot_Machine m = jot_machine(c);

    CHECK(!jot_error(c), "%s", jot_message(c));
    CHECK(plausible(&m), "flops %g, memory %g", m.flops, m.bandwidth[3]);
    jot_close(c);
    return m;
}

/* What a file says is what a context takes, to the last digit. */
static void
test_kept(const char *text)
{
    const char *line = strchr(text, '\n');
    char edited[1200];
    jot_Machine m;
    int n;

    n = snprintf(edited, sizeof edited, "%.*s\nflops 12345 bandwidth 400 300 200 100 all 150 call "
                 "70 handoff 9000", (int)(line - text), text);
    snprintf(edited + n, sizeof edited - (size_t)n, " check %016llx\n",
             (unsigned long long)jot_hash(1, edited, (size_t)n));
    put(edited);
    m = machine(dir);
    CHECK(m.measured && m.flops == 12345 * 1e6 && m.bandwidth[3] == 100 * 1e6, "flops %g", m.flops);
    CHECK(m.handoff == 9000 * 1e-9 && m.bandwidth_all == 150 * 1e6, "handoff %g", m.handoff);
}

/* Not a whole file of this machine: measured again, and the file replaced. */
static void
test_damaged(const char *text)
{
    char after[1200], bad[5][1200];
    size_t n = strlen(text);

    snprintf(bad[0], sizeof bad[0], "%.*s", (int)n / 2, text);
    snprintf(bad[1], sizeof bad[1], "%.*s", (int)n - 1, text);
    snprintf(bad[2], sizeof bad[2], "%s", text);
    bad[2][15] ^= 1; /* another machine's */
    snprintf(bad[3], sizeof bad[3], "%.*s\nflops 0 bandwidth 1 1 1 1 all 1 call 1 handoff 1\n",
             (int)(strchr(text, '\n') - text), text);
    bad[4][0] = 0;
    for (int i = 0; i < 5; i++) {
        jot_Machine m;

        put(bad[i]);
        m = machine(dir);
        CHECK(m.measured && get(after, sizeof after) > 0 && strcmp(after, bad[i]), "%d: taken", i);
    }
}

/* Every byte changed, every place cut: no context takes it. One that would measure later says so by
 * not being done. */
static void
test_every_byte(const char *text)
{
    char bad[1200];
    size_t at, n = strlen(text);
    jot_Ctx *c;
    int cut;

    put(text);
    c = open_by("cpu", dir);
    if (!c->backend->quick || c->target.late) {
        CHECK(!c->target.late, "a whole file is not taken: %s", text);
        SKIP("every byte of the file: no first tier");
        jot_close(c);
        return;
    }
    jot_close(c);
    for (at = 0; at < n; at++)
        for (cut = 0; cut < 2; cut++) {
            snprintf(bad, sizeof bad, "%.*s", cut ? (int)at : (int)n, text);
            bad[at] ^= cut ? 0 : 4;
            put(bad);
            c = open_by("cpu", dir);
            CHECK(c->target.late && !jot_error(c), "byte %d %s: taken", (int)at,
                  cut ? "cut" : "changed");
            jot_close(c);
        }
}

/* ---- beside a first tier ------------------------------------------------------------------ */

static float ones[512 * 512];

static double
sum_of(jot_Ctx *c, int extent, int operators)
{
    jot_Var x;
    double sum;

    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(extent), ones);
    while (operators--)
        x = jot_offset(x, 1);
    sum = jot_item(jot_sum(x, JOT_ALL_DIMS));
    jot_pop(c);
    return sum;
}

static double
sum_of_product(jot_Ctx *c, int extent)
{
    jot_Var x;
    double sum;

    jot_push(c);
    x = jot_array(c, JOT_F32, JOT_SHAPE(extent, extent), ones);
    sum = jot_item(jot_sum(jot_sqrt(jot_matmul(x, x)), JOT_ALL_DIMS));
    jot_pop(c);
    return sum;
}

/* A new directory of its own, for a context that has measured nothing. */
static jot_Ctx *
open_late(const char *name)
{
    jot_Ctx *c;

    snprintf(dir, sizeof dir, "%s/%s", scratch, name);
    c = open_by("cpu", dir);
    CHECK(!jot_error(c) && !find_file(), "%s: %s, %s", name, jot_message(c), path);
    return c;
}

/* Not before the first result, but before anything is asked of the compiler. */
static void
test_late(void)
{
    jot_Ctx *c = open_late("late");
    jot_Stats s;
    int k;

    for (k = 0; k < 3; k++) {
        CHECK(sum_of(c, 5 + k, 1) == 2 * (5 + k), "%d: %s", k, jot_message(c));
        CHECK(!find_file(), "measured for plan %d of a few nodes", k);
    }
    s = jot_stats(c);
    CHECK(s.kernels_quick && !s.kernels_compiled, "%d compiled", (int)s.kernels_compiled);
    CHECK(sum_of(c, 5, 1) == 10 && find_file(), "a plan came again: %s", jot_message(c));
    CHECK(jot_stats(c).kernels_quick == s.kernels_quick, "first code was thrown away");
    CHECK(jot_stats(c).plans == s.plans + 1, "the plan was not made anew");
    CHECK(sum_of(c, 5, 1) == 10 && jot_stats(c).plan_hits == s.plan_hits + 1, "%s", jot_message(c));
    CHECK(jot_machine(c).measured, "estimates still");
    jot_close(c);
}

/* Where much is to be planned or computed, or frozen, and where somebody asks. */
static void
test_at_once(void)
{
    jot_Ctx *c = open_late("much");
    double off;
    jot_Var x;
    jot_Func f;

    CHECK(sum_of(c, 5, 100) == 505 && find_file(), "much to plan: %s", jot_message(c));
    jot_close(c);
    c = open_late("heavy");
    off = fabs(sum_of_product(c, 512) / (512.0 * 512 * sqrt(512)) - 1);
    CHECK(off < 1e-3, "a sum is %g off: %s", off, jot_message(c));
    CHECK(find_file(), "much to compute: %s", jot_message(c));
    CHECK(jot_stats(c).kernels_compiled, "it was not compiled at once");
    jot_close(c);
    c = open_late("frozen");
    x = jot_full(c, JOT_F32, JOT_SHAPE(3), 1);
    f = jot_compile(c, jot_vars(0, NULL), jot_vars(1, &x));
    CHECK(jot_func_ok(f) && find_file(), "a function: %s", jot_message(c));
    jot_close(c);
    c = open_late("asked");
    CHECK(jot_machine(c).measured && find_file(), "asked for: %s", jot_message(c));
    jot_close(c);
    c = open_late("profiled");
    CHECK(jot_profile(c, true) && find_file(), "profiled: %s", jot_message(c));
    jot_close(c);
}

static void
test_first_tier(void)
{
    jot_Ctx *c = open_by("cpu", "");
    bool quick = !jot_error(c) && sum_of(c, 3, 1) == 3 && jot_stats(c).kernels_quick;

    CHECK(!jot_machine(c).measured, "measured without a place to keep it");
    jot_close(c);
    if (!quick) {
        SKIP("measuring late: no first tier");
        return;
    }
    for (int i = 0; i < 512 * 512; i++)
        ones[i] = 1;
    test_late();
    test_at_once();
}

/* /proc/cpuinfo on processors of several kinds. */
static void
test_names(void)
{
    static const char *const info[][2] = {
        {"processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 167\nmodel name\t: A name of x86\n"
         "stepping\t: 1\n", "A name of x86"},
        {"processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd crc32\nCPU implementer\t: 0x41\n"
         "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd08\nCPU revision\t: 3\n",
         "0x41 0xd08"},
        {"processor\t: 0\nmodel name\t: ARMv7 Processor rev 4 (v7l)\nCPU implementer\t: 0x41\n"
         "CPU part\t: 0xc07\n", "0x41 0xc07"},
        {"processor\t: 0\nhart\t\t: 1\nisa\t\t: rv64imafdc\nmmu\t\t: sv39\n"
         "uarch\t\t: sifive,u74-mc\n",
         "sifive,u74-mc"},
        {"vendor_id       : IBM/S390\nfeatures\t: esan3 vx vxd\n"
         "processor 0: version = 00,  machine = 8561\n",
         "version = 00,  machine = 8561"},
        {"", ""}, {"model name", ""}, {"model name:", ""}, {"a model name\t: inside", ""},
    };
    char name[64], four[4];

    for (size_t i = 0; i < sizeof info / sizeof *info; i++) {
        jot_machine_name(info[i][0], name, sizeof name);
        CHECK(!strcmp(name, info[i][1]), "%d: \"%s\"", (int)i, name);
    }
    jot_machine_name(info[0][0], four, sizeof four);
    CHECK(!strcmp(four, "A n"), "cut: \"%s\"", four);
}

int
main(void)
{
    char text[1200];
    jot_Machine m, again;
    jot_Ctx *c;
    char command[100];

    snprintf(scratch, sizeof scratch, "/tmp/jot-machine-XXXXXX");
    if (!mkdtemp(scratch))
        return 2;
    test_names();
    snprintf(dir, sizeof dir, "%s", scratch);
    c = open_in(dir);
    if (jot_error(c)) {
        SKIP("cc: %s", jot_message(c));
        jot_close(c);
        return DONE();
    }
    jot_close(c);
    m = machine(dir);
    again = machine(dir);
    CHECK(!memcmp(&m, &again, sizeof m), "two contexts differ");
    if (!m.measured) {
        SKIP("this build measures nothing");
    } else if (find_file() && get(text, sizeof text) > 0) {
        test_kept(text);
        test_every_byte(text);
        test_damaged(text);
    } else
        CHECK(false, "no file in %s", dir);
    m = machine("");
    CHECK(!m.measured, "measured without a place to keep it");
    if (find_file())
        test_first_tier();
    snprintf(command, sizeof command, "rm -rf %s", scratch);
    CHECK(!system(command), "%s is left", scratch);
    return DONE();
}
