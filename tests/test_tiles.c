/* tests/test_tiles.c - contractions on a device: products and convolutions of odd sizes, what comes
 * before and behind them, and all gradients, on OpenCL or the backend that is
 * named, against the interpreter; and that tiles are what they go by.
 *
 *     test_tiles [backend [few [ARCH..]]]   few: what goes by the matrix unit, each sixth of the
 *         others; of bands and of large blocks the first. ARCH: as each of these architectures of
 *         the stand-in
 *
 * Guards: ccode/device/contract_grid.c, ccode/device/contract_grid_make.c,
 * ccode/device/walk_grid.c, ccode/device/walk_matrix.c, ccode/device/team.c. */
#include "backends/host/host.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include "tests/tiles_cases.h"

/* Terms of a sum, at most, times what a term may be; a factor for what stands around it. */
static double
bound(const TileCase *t, bool gradient)
{
    double terms = t->kind == 'c' ? 2.0 * t->b[1] * t->b[2] * t->b[3] + t->a[0] * t->a[2] * t->a[3]
                                  : t->a[0] + t->a[1] + t->b[1] + (t->kind == 'b' ? t->b[2] : 0);

    /* rounded once, or each factor of a few terms */
    if (!gradient && t->also && strchr("hbr", t->also))
        return t->also == 'b' ? 8e-3 : 2e-3;
    return (t->also == 'h' || t->also == 'r' ? 1e-3
            : t->also == 'b'                 ? 8e-3
            : t->also == 'd'                 ? 1e-15
                                             : 1.2e-7)
           * terms * 8;
}

/* ---- schedules ---------------------------------------------------------------------------- */

/* Every product of some size goes by tiles: its operands are brought ahead into a group's
 * memory. */
static int
tiled(void)
{
    int n = 0;

    for (const char *p = logged; (p = strstr(p, "; res ta[")) != NULL; p++)
        n++;
    forget_log();
    return n;
}

/* Where the sum has several steps, one buffer of each tile is read while another is filled. */
static int
twice_buffered(const char *what)
{
    int n = 0;

    for (const char *p = logged; (p = strstr(p, "; res ta[")) != NULL; p++) {
        const char *line = p;

        while (line > logged && line[-1] != '\n')
            line--;
        if (!(strstr(line, " kb:") && strstr(line, " kb:") < p))
            continue;
        n++;
        CHECK(strstr(line, " kb:1a ") < p && !strncmp(p, "; res ta[kb%", 12), "%s: %.120s", what,
              line);
    }
    return n;
}

/* What a device has for it is used: 16 bytes at a time, past the registers, four warps together. */
static void
test_rows(const jot_Ctx *c, const TileCase *t)
{
    bool unit = !strcmp(c->backend->name, "cuda") && t->also && strchr("hbr", t->also);

    if (!unit)
        return;
    CHECK((strstr(logged, "copies\n") != NULL) == c->target.copies, "%s: copies\n%s", t->name,
          logged);
    if (!strncmp(t->name, "rows", 4) || !strncmp(t->name, "turned", 6))
        CHECK(strstr(logged, "kl:1v") || strstr(logged, "nr:1v") || strstr(logged, "mt:1v"),
              "%s: 16 bytes at a time\n%s", t->name, logged);
    if (!strcmp(t->name, "rows of halves") || !strcmp(t->name, "turned rows")) /* several steps */
        CHECK((strstr(logged, "buffers ") != NULL) == c->target.copies, "%s: steps ahead\n%s",
              t->name, logged);
    CHECK((strstr(logged, "warps 4\n") != NULL)
              == (c->target.warps && strncmp(t->name, "halves of", 9)
                  && strcmp(t->name, "rounded images")), /* few rows */
          "%s: four warps\n%s", t->name, logged);
}

/* Where blocks are more than the device has at a time they go down bands, or columns. */
static void
test_bands(const jot_Ctx *c, const TileCase *t)
{
    bool columns = !strncmp(t->name, "columns", 7);
    bool unit = t->also && strchr("hbr", t->also), bands = !columns && (!unit || c->target.warps);

    CHECK((strstr(logged, "mg:1g nb:1g mb:1g") != NULL) == bands
              && (!columns || strstr(logged, " nb:1g mb:1g")),
          "%s: bands of blocks\n%s", t->name, logged);
}

/* Architectures of the stand-in, each a context of its own; NULL: the device as it is. */
static char *const *archs;

/* The case on a device, against the interpreter: 0 where no contraction has two buffers. */
static int
test_case(jot_Config *have, const TileCase *t, int busy, const jot_Var *want)
{
    jot_Ctx *c;
    jot_Var out[3];
    int twice;

    have->precision = tile_precision(t);
    c = jot_open(have);
    if (busy)
        c->target.busy = busy;
    CHECK(tile_build(c, t, out) == 3 && jot_run(c, jot_vars(3, out)), "%s: %s", t->name,
          jot_message(c));
    for (int k = 0; k < 3; k++) {
        const double *x = jot_data(want[k]), *y = jot_data(out[k]);
        double worst = 0, largest = 1;

        for (int64_t j = 0; x && y && j < jot_nelem(want[k]); j++) {
            double off = fabs(x[j] - y[j]);
            worst = off > worst || off != off ? off : worst;
            largest = fabs(x[j]) > largest ? fabs(x[j]) : largest;
        }
        CHECK(x && y && worst <= bound(t, k > 0) * largest, "%s, %s: off by %g of %g", t->name,
              k == 0 ? "result" : k == 1 ? "gradient 1" : "gradient 2", worst, largest);
    }
    CHECK((strstr(logged, "kl:1m") != NULL)
              == (!strcmp(have->backend, "cuda") && t->also && strchr("hbr", t->also)),
          "%s: by the matrix unit, or not\n%s", t->name, logged);
    test_rows(c, t);
    if (busy == 4)
        test_bands(c, t);
    if (busy == 1)
        CHECK((strstr(logged, "registers 256\n") != NULL) == (c->target.group_nbytes > 48 << 10),
              "%s: large blocks\n%s", t->name, logged);
    twice = c->target.copies ? 1 : twice_buffered(t->name);
    CHECK(tiled() == 3, "%s: three products by tiles", t->name);
    jot_close(c);
    return twice;
}

static void
test_values(const char *backend, const TileCase *cases, size_t ncases, int busy, bool few)
{
    jot_Config want = {.backend = "interp"};
    jot_Config have = {.backend = backend, .dump = "s", .hooks = {.log = keep_log}};
    int twice = 0, ran = 0;

    for (size_t i = 0; i < ncases; i++) {
        jot_Ctx *c;
        jot_Var out[3];

        if (few && i % 6 && (busy || !(cases[i].also && strchr("hbr", cases[i].also))))
            continue;
        c = jot_open(&want);
        CHECK(tile_build(c, &cases[i], out) == 3 && jot_run(c, jot_vars(3, out)), "%s: %s",
              cases[i].name, jot_message(c));
        for (char *const *arch = archs; !arch || *arch; arch++) {
            if (few && arch && (i + (size_t)(arch - archs) + (size_t)busy) % 2)
                continue;
            if (arch)
                setenv("FAKE_CUDA_ARCH", *arch, 1);
            twice += test_case(&have, &cases[i], busy, out);
            ran++;
            if (!arch)
                break;
        }
        jot_close(c);
    }
    CHECK(twice >= ran && ran, "%d contractions have two buffers", twice);
}

int
main(int argc, char **argv)
{
    const char *backend = argc > 1 ? argv[1] : "opencl";
    bool few = argc > 2 && !strcmp(argv[2], "few");
    jot_Config config = {.backend = backend};
    jot_Ctx *c = jot_open(&config);

    archs = argc > 3 ? argv + 3 : NULL;
    if (jot_error(c))
        SKIP("%s: %s", backend, jot_message(c));
    else
        test_values(backend, tile_cases, TILE_CASES, 0, few);
    if (!jot_error(c) && !strcmp(backend, "cuda"))
        test_values(backend, large_cases, LARGE_CASES, 1, few);
    if (!jot_error(c))
        test_values(backend, band_cases, BAND_CASES, 4, few);
    jot_close(c);
    return DONE();
}
