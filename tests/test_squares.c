/* tests/test_squares.c - on a device, loads that stand across what is stored go by squares through
 * group memory: the schedule says so, items side by side read and write what lies side by side, and
 * results are the interpreter's to the bit. Every size of element, edges, batches, operands of both
 * kinds, devices with less room; and nests that are too small or too narrow for it.
 *
 *     test_squares [cuda]
 *
 * Guards: ccode/device/square.c, ccode/device/walk_grid.c. */
#include "tests/on_device.h"
#include <ctype.h>

/* ---- what is computed --------------------------------------------------------------------- */

static jot_Var
transposed(jot_Var x)
{
    return jot_transpose(x, JOT_INTS(1, 0));
}

static jot_Var
whole(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(512, 1024));

    return jot_mul(transposed(x), transposed(x));
}

static jot_Var
edges(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 401));

    return jot_add(transposed(x), some(c, dtype, JOT_SHAPE(401, 500)));
}

/* Operands of both kinds, before and behind: a row, a column, one that lies as what is stored. */
static jot_Var
between(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(512, 500)), z = some(c, dtype, JOT_SHAPE(500, 512));
    jot_Var row = some(c, dtype, JOT_SHAPE(500)), column = some(c, dtype, JOT_SHAPE(500, 1));

    x = jot_maximum(jot_mul(x, row), some(c, dtype, JOT_SHAPE(512, 1)));
    return jot_sub(jot_add(jot_mul(transposed(x), z), column), some(c, dtype, JOT_SHAPE(512)));
}

static jot_Var
batch(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(3, 200, 300));

    return jot_add(jot_transpose(x, JOT_INTS(0, 2, 1)), some(c, dtype, JOT_SHAPE(3, 300, 200)));
}

/* Rows and columns of images count as one: 7 of each are squares all the same. */
static jot_Var
images(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(32, 100, 7, 7));

    return jot_add(jot_transpose(x, JOT_INTS(0, 2, 3, 1)), some(c, dtype, JOT_SHAPE(100)));
}

/* The outermost axis becomes the innermost. */
static jot_Var
outermost(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(60, 50, 70));

    return jot_add(jot_transpose(x, JOT_INTS(2, 1, 0)), some(c, dtype, JOT_SHAPE(60)));
}

static jot_Var
two(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(512, 416)), y = jot_add(x, x);

    jot_data(y);
    return jot_add(transposed(x), jot_mul(transposed(y), some(c, dtype, JOT_SHAPE(416, 512))));
}

static jot_Var
both_ways(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(450, 450));

    return jot_add(jot_mul(x, x), transposed(x));
}

/* A row of zeros before, one behind: conditions of its own. */
static jot_Var
padded(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 400));

    return jot_reindex(x, JOT_SHAPE(402, 500), JOT_INDEX("i1", "i0-1"));
}

static jot_Var
reversed(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 400));

    return jot_reindex(x, JOT_SHAPE(400, 500), JOT_INDEX("499-i1", "399-i0"));
}

/* More squares than groups are launched: each takes several, in strides of all of them. */
static jot_Var
many(jot_Ctx *c, jot_DType dtype)
{
    return jot_scale(transposed(some(c, dtype, JOT_SHAPE(2100, 2101))), 2);
}

static jot_Var
small(jot_Ctx *c, jot_DType dtype)
{
    return jot_scale(transposed(some(c, dtype, JOT_SHAPE(200, 300))), 2);
}

static jot_Var
narrow(jot_Ctx *c, jot_DType dtype)
{
    return jot_scale(transposed(some(c, dtype, JOT_SHAPE(65536, 8))), 2);
}

static jot_Var
straight(jot_Ctx *c, jot_DType dtype)
{
    jot_Var x = some(c, dtype, JOT_SHAPE(500, 401));

    return jot_add(x, some(c, dtype, JOT_SHAPE(500, 1)));
}

/* group, nbytes: what the device's groups have, 0: as it is; turned: loads by squares. */
typedef struct {
    const char *name;
    jot_Var (*build)(jot_Ctx *c, jot_DType dtype);
    jot_DType dtype;
    int transposed, group;
    int64_t nbytes;
} Case;

static const Case cases[] = {
    {"whole", whole, JOT_F32, 1, 0, 0}, {"whole", whole, JOT_I8, 1, 0, 0},
    {"edges", edges, JOT_F32, 1, 0, 0}, {"edges", edges, JOT_F64, 1, 0, 0},
    {"edges", edges, JOT_F16, 1, 0, 0}, {"edges", edges, JOT_BF16, 1, 0, 0},
    {"edges", edges, JOT_I8, 1, 0, 0}, {"edges", edges, JOT_U16, 1, 0, 0},
    {"edges", edges, JOT_I32, 1, 0, 0}, {"edges", edges, JOT_I64, 1, 0, 0},
    {"edges", edges, JOT_BOOL, 1, 0, 0},
    {"between", between, JOT_F32, 1, 0, 0}, {"between", between, JOT_I16, 1, 0, 0},
    {"batch", batch, JOT_F32, 1, 0, 0}, {"batch", batch, JOT_I64, 1, 0, 0},
    {"images", images, JOT_F32, 1, 0, 0}, {"outermost", outermost, JOT_F32, 1, 0, 0},
    {"two", two, JOT_F32, 2, 0, 0}, {"two", two, JOT_F16, 2, 0, 0},
    {"both ways", both_ways, JOT_F32, 1, 0, 0}, {"padded", padded, JOT_F32, 1, 0, 0},
    {"reversed", reversed, JOT_F32, 1, 0, 0}, {"many", many, JOT_F32, 1, 0, 0},
    {"edges", edges, JOT_F32, 1, 128, 0}, {"edges", edges, JOT_F32, 1, 32, 0},
    {"edges", edges, JOT_F32, 0, 16, 0}, {"two", two, JOT_F32, 1, 0, 8192},
    {"two", two, JOT_F32, 0, 0, 4096}, {"edges", edges, JOT_F64, 0, 0, 8192},
    {"small", small, JOT_F32, 0, 0, 0}, {"narrow", narrow, JOT_F32, 0, 0, 0},
    {"straight", straight, JOT_F32, 0, 0, 0},
};

/* ---- how ---------------------------------------------------------------------------------- */

/* A stage for each load that is turned, along its axis, and the store along its own. */
static void
check_schedule(const Case *t)
{
    const char *fill = t->group == 32 ? " cl:1u rl:1t; res turned" : " cl:1t rl:1t; res turned";

    CHECK(count_logged(fill) == 2 * t->transposed, /* the schedule's text stands in the kernel's */
          "%s of %s: %d loads in\n%s", t->name, jot_dtype_name(t->dtype), t->transposed, logged);
    CHECK(!t->transposed == !strstr(logged, t->group == 32 ? " rl:1u cl:1t\n" : " rl:1t cl:1t\n"),
          "%s of %s: the store in\n%s", t->name, jot_dtype_name(t->dtype), logged);
}

/* Items side by side are `name` apart: nothing but rows of group memory is multiplied by it. */
static void
check_neighbours(const Case *t)
{
    const char *at = strstr(logged, " = lane%32;"), *name = at;
    char word[24] = "lane*";
    int n = 0;

    if (t->group != 32) {
        CHECK(at != NULL, "%s: no items side by side in\n%s", t->name, logged);
        while (name && name > logged && name[-1] != ' ')
            name--;
        snprintf(word, sizeof word, "%.*s*", name ? (int)(at - name) : 0, name ? name : "");
    }
    for (const char *p = logged; (p = strstr(p, word)) != NULL; p++) {
        const char *open = p;

        if (isalnum((unsigned char)p[-1]) || p[-1] == '_')
            continue;
        while (open > logged && *open != '[' && *open != '\n' && *open != ';')
            open--;
        while (open > logged && isdigit((unsigned char)open[-1]))
            open--;
        CHECK(open - logged > 6 && !strncmp(open - 6, "turned", 6),
              "%s of %s: far apart: %.60s", t->name, jot_dtype_name(t->dtype), p);
        n++;
    }
    CHECK(n >= 1, "%s: nobody reads columns of group memory:\n%s", t->name, logged);
}

static void
test_case(const Case *t)
{
    jot_Ctx *c[2];
    jot_Var y[2];

    open_both(c, "sc");
    c[1]->target.group = t->group ? t->group : c[1]->target.group;
    c[1]->target.group_nbytes = t->nbytes ? t->nbytes : c[1]->target.group_nbytes;
    for (int k = 0; k < 2; k++) {
        y[k] = t->build(c[k], t->dtype);
        forget_log();
        CHECK(jot_data(y[k]), "%s of %s: %s", t->name, jot_dtype_name(t->dtype),
              jot_message(c[k]));
    }
    check_schedule(t);
    if (t->transposed && !t->nbytes)
        check_neighbours(t);
    CHECK(jot_data(y[0]) && jot_data(y[1]) &&
              !memcmp(jot_data(y[0]), jot_data(y[1]),
                      (size_t)jot_nelem(y[0]) * jot_dtype_nbytes(t->dtype)),
          "%s of %s: other bits", t->name, jot_dtype_name(t->dtype));
    close_both(c);
}

/* Two stores of one nest: both along their axis, and the load is brought once. */
static void
test_two_stores(void)
{
    jot_Ctx *c[2];
    jot_Var y[2][2];

    open_both(c, "s");
    for (int k = 0; k < 2; k++) {
        jot_Var x = some(c[k], JOT_F32, JOT_SHAPE(500, 401));
        jot_Var z = some(c[k], JOT_F32, JOT_SHAPE(401, 500));

        y[k][0] = jot_add(transposed(x), z);
        y[k][1] = jot_mul(y[k][0], z);
        forget_log();
        CHECK(jot_run(c[k], jot_vars(2, y[k])), "two stores: %s", jot_message(c[k]));
    }
    CHECK(count_logged(" cl:1t rl:1t; res turned") == 1 && count_logged(" rl:1t cl:1t\n") == 2,
          "two stores:\n%s", logged);
    for (int i = 0; i < 2; i++)
        CHECK(!memcmp(jot_data(y[0][i]), jot_data(y[1][i]), 4 * 500 * 401), "two stores: %d", i);
    close_both(c);
}

/* Machines that find less to be large enough: squares of small and odd extents. */
static void
test_drawn(void)
{
    int n = 0;

    for (int seed = 1; seed <= test_many(4, 8); seed++) {
        jot_Ctx *c[2];
        jot_Var y[2];

        open_both(c, "s");
        c[1]->target.drawn = (uint64_t)seed;
        c[1]->target.group >>= seed % 4;
        for (int k = 0; k < 2; k++) {
            jot_Var x = some(c[k], JOT_F32, JOT_SHAPE(seed % 3 + 1, 9 * seed, 75 - 8 * seed));

            y[k] = jot_add(jot_transpose(x, JOT_INTS(0, 2, 1)),
                           some(c[k], JOT_F32, JOT_SHAPE(75 - 8 * seed, 9 * seed)));
            forget_log();
            CHECK(jot_data(y[k]), "drawn %d: %s", seed, jot_message(c[k]));
        }
        n += count_logged("; res turned");
        CHECK(!memcmp(jot_data(y[0]), jot_data(y[1]), (size_t)jot_nelem(y[0]) * 4),
              "drawn %d: other bits", seed);
        close_both(c);
    }
    CHECK(n >= test_many(2, 4), "drawn: %d by squares", n);
}

int
main(int argc, char **argv)
{
    if (!device_is_here(argc, argv))
        return DONE();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (cases[i].dtype == JOT_F32 || cases[i].nbytes || test_many(0, 1)
            || (cases[i].build == edges && i < 7 && cases[i].dtype != JOT_BF16))
            test_case(&cases[i]); /* in make test a dtype of each size */
    test_two_stores();
    test_drawn();
    return DONE();
}
