/* tests/test_machine.c - the machine's figures: measured once, kept, the same for every context
 * that reads them; a damaged or foreign file is measured anew; without a cache nothing is
 * measured. */
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core.h"
#include "tests/test.h"

static char dir[64], path[400];

static jot_Ctx *
open_in(const char *cache)
{
    jot_Config config = {.backend = "cc", .cache_dir = cache};

    return jot_open(&config);
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

    CHECK(f != NULL, "%s cannot be written", path);
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

    snprintf(edited, sizeof edited, "%.*s\nflops 12345 bandwidth 400 300 200 100 all 150 call 70 "
             "handoff 9000\n", (int)(line - text), text);
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

int
main(void)
{
    char text[1200];
    jot_Machine m, again;
    jot_Ctx *c;
    char command[100];

    snprintf(dir, sizeof dir, "/tmp/jot-machine-XXXXXX");
    if (!mkdtemp(dir))
        return 2;
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
        test_damaged(text);
    } else
        CHECK(false, "no file in %s", dir);
    m = machine("");
    CHECK(!m.measured, "measured without a place to keep it");
    snprintf(command, sizeof command, "rm -rf %s", dir);
    CHECK(!system(command), "%s is left", dir);
    return DONE();
}
