/* tests/test_sums.c - where sums lie: those in memory whose last loops are over what is summed
 * alone take these loops' lanes into registers, and are added to once; arrays of sums whose end is
 * part of a vector have room for all of it, but where the kernel loads what it stored. Schedules by
 * hand, their texts, and values against plain loops where vectors of 64 bytes are; and a chain of
 * products whose extents are equal: each keeps loops of its own.
 *
 * Guards: ccode/emit/loop.c, ccode/lower/leaf.c, fuse/nest.c. */
#include "tests/ir_cases.h"
#include "tests/hooks.h"
#include "tests/machines.h"

/* The schedule's text for vectors of 64 bytes, and its values where those are. */
static char *
text_of(IrCase *c, const char *schedule)
{
    Text why = {0}, all = {0};
    EmitInfo info;
    Sched s;
    char *kernel = NULL;
    const char *at;

    why.mem = all.mem = &ir_mem;
    CHECK(jot_sched_read(&s, &c->k, schedule, strlen(schedule), &why), "%s: %s", schedule, why.s);
    s.vector_nbytes = 64;
    if (ir_emit(c, &s, "gnu", &all, &info, schedule) && (at = strstr(all.s, "k(void *")) != NULL) {
        kernel = malloc(strlen(at) + 1);
        strcpy(kernel, at);
        if (!system("command -v gcc >/dev/null 2>&1"))
            ir_check(c, &s, "gnu", GCC_NATIVE, schedule);
        else
            SKIP("%s: no gcc here", schedule);
    }
    CHECK(kernel != NULL, "%s: no text", schedule);
    jot_sched_close(&s);
    jot_text_free(&why);
    jot_text_free(&all);
    return kernel;
}

static int
times(const char *text, const char *word)
{
    int n = 0;

    for (const char *at = text; at && (at = strstr(at, word)) != NULL; at += strlen(word))
        n++;
    return n;
}

/* y[c] = sum over n, p of x[n, c, p], the sums of all c in memory while n is walked. */
static void
test_memory(void)
{
    static const int64_t ext[] = {6, 5, 75};
    IrCase made, *c = &made;
    uint32_t x, y, s;
    char *text;

    ir_start(c);
    ir_axes(c, "ncp", ext);
    x = IN("x", 3, ext[0], ext[1], ext[2], 0);
    y = OUT("y", 1, ext[1], 0, 0, 0);
    s = ir_sum(c, EW_ADD, BIT(0) | BIT(2), ir_load(c, x, AX(0), AX(1), AX(2), 0), "s");
    ir_store(c, y, AX(1), 0, 0, 0, s);
    for (int64_t i = 0; i < ext[0] * ext[1] * ext[2]; i++)
        c->data[y][i / ext[2] % ext[1]] += c->data[x][i];
    text = text_of(c, "%s: | n c p:32 p:1l; acc scratch m[c]\n!0: c");
    CHECK(times(text, "s[32];") == 1 && times(text, "m[c] = m[c] + s[0];") == 1
              && times(text, "m[c] = ") == 2, "terms are added to memory one by one:\n%s", text);
    free(text);
    ir_end(c);
}

/* y[n, j] = the largest over k of x[n, k, j] + the sum of their squares, which are kept in memory
 * or not: 13 of a row. */
static void
test_room(bool kept)
{
    static const int64_t ext[] = {4, 8, 13};
    IrCase made, *c = &made;
    uint32_t x, y, v, e, most, s;
    char *text;

    ir_start(c);
    ir_axes(c, "nkj", ext);
    x = IN("x", 3, ext[0], ext[1], ext[2], 0);
    y = OUT("y", 2, ext[0], ext[2], 0, 0);
    v = ir_load(c, x, AX(0), AX(1), AX(2), 0);
    e = ir_ew(c, EW_MUL, v, v);
    jot_v_name(&c->k, e, "e");
    most = ir_sum(c, EW_MAX, BIT(1), v, "most");
    s = ir_sum(c, EW_ADD, BIT(1), e, "s");
    ir_store(c, y, AX(0), AX(2), 0, 0, ir_ew(c, EW_ADD, most, s));
    for (int64_t i = 0; i < ext[0] * ext[2]; i++) {
        double largest = -1e30, sum = 0;

        for (int64_t k = 0; k < ext[1]; k++) {
            double at = c->data[x][(i / ext[2] * ext[1] + k) * ext[2] + i % ext[2]];
            largest = at > largest ? at : largest;
            sum += at * at;
        }
        c->data[y][i] = largest + sum;
    }
    text = text_of(c, kept ? "%e: n:1p k j:1l; res scratch m[k, j]\n%most: n:1p | k j:1l\n"
                             "%s: n:1p | k j:1l\n!0: n:1p j:1l"
                           : "%most: n:1p | k j:1l\n%s: n:1p | k j:1l\n!0: n:1p j:1l");
    CHECK(times(text, kept ? "[13];" : "[16];") == 2 && !times(text, kept ? "[16];" : "[13];"),
          "arrays of sums have%s room:\n%s", kept ? "" : " no", text);
    free(text);
    ir_end(c);
}

/* ---- a chain of products ------------------------------------------------------------------- */

enum { WIDE = 200, STEPS = 3 };

/* Axes of that extent of the kernel at `at` less its reductions. */
static int
spare_axes(const char *at)
{
    const char *end = strstr(at + 1, "kernel ");
    char *one = strdup(at);
    int spare;

    if (end)
        one[end - at] = 0;
    spare = times(one, ":200") - times(one, " reduce ");
    free(one);
    return spare;
}

/* h = tanh(w h), again and again, for one row: in a kernel of r sums r + 1 axes are walked, where
 * with as few as two each second product would walk w across. */
static void
test_chain(void)
{
    static Notes notes;
    Posed m = named[3];
    jot_Var w, h;
    jot_Ctx *c;
    int kernels = 0, sums;

    scribe = &notes;
    forget_notes(&notes);
    forget_log();
    m.config.dump = "k";
    m.config.hooks.log = keep_log;
    c = open_machine(&m);
    w = jot_array(c, JOT_F32, JOT_SHAPE(WIDE, WIDE), NULL);
    h = jot_array(c, JOT_F32, JOT_SHAPE(1, WIDE), NULL);
    for (int i = 0; i < STEPS; i++)
        h = jot_tanh(jot_matmul(h, jot_transpose(w, JOT_INTS(1, 0))));
    CHECK(jot_run(c, JOT_VARS(h)), "%s", jot_message(c));
    sums = times(logged, " reduce ");
    for (const char *at = logged; (at = strstr(at, "kernel ")) != NULL; at++, kernels++)
        CHECK(spare_axes(at) == 1, "%s", at);
    CHECK(sums == STEPS && kernels < STEPS, "%d sums in %d kernels: %s", sums, kernels, logged);
    jot_close(c);
    free(notes.text);
}

int
main(void)
{
    ir_open();
    test_memory();
    test_room(false);
    test_room(true);
    ir_close();
    test_chain();
    (void)ir_guarded, (void)ir_default;
    return DONE();
}
