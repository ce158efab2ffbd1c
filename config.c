/* config.c - what a context is told: a field of jot_Config, else a variable of the environment,
 * else the default; and whether it makes sense.
 *
 *     field           0, NULL    the environment's, else the default
 *                     -1, ""     the default, whatever the environment says
 *     no_environment             no variable is read
 *
 * Read before: core.c. After: ops/graph.h. */
#include "plan/plan.h"
#include "ops/graph.h"

/* ---- a field, the environment, the default ------------------------------------------------- */

static const char *
config_env(jot_Ctx *ctx, const char *name)
{
    const jot_Hooks *hooks = &ctx->mem.hooks;

    return hooks->getenv ? hooks->getenv(hooks->ud, name) : NULL;
}

/* A variable that is set to nothing says nothing; a field that is "" asks for the default. */
static const char *
config_string(jot_Ctx *ctx, const char *given, const char *env, const char *otherwise)
{
    const char *s = given ? given : config_env(ctx, env);

    if (!s || (!*s && otherwise))
        s = otherwise;
    return s ? jot_arena_copy(&ctx->strings, s, jot_str_len(s)) : NULL;
}

/* The environment's number where no field is given; -1: 0. */
static void
config_number(jot_Ctx *ctx, int *field, const char *env)
{
    const char *s = *field ? NULL : config_env(ctx, env), *p = s;
    int n = 0;

    if (*field == -1)
        *field = 0;
    for (; p && *p >= '0' && *p <= '9' && n < 100000; p++)
        n = n * 10 + (*p - '0');
    if (p && *p)
        jot_fail(ctx, JOT_EUSE, "jot_open: %s is \"%s\"; a number from 0 to 999999 is expected",
                 env, s);
    else if (s)
        *field = n;
}

/* Bytes, with K, M or G behind the number. */
static void
config_nbytes(jot_Ctx *ctx, uint64_t *field, const char *env)
{
    const char *s = *field ? NULL : config_env(ctx, env), *p = s;
    uint64_t n = 0;
    int unit = 0;

    if (*field == UINT64_MAX)
        *field = 0;
    for (; p && *p >= '0' && *p <= '9' && n < (uint64_t)1 << 40; p++)
        n = n * 10 + (uint64_t)(*p - '0');
    if (p && p != s && *p)
        unit = *p == 'K' ? 10 : *p == 'M' ? 20 : *p == 'G' ? 30 : 0;
    if (p && p[unit != 0])
        jot_fail(ctx, JOT_EUSE,
                 "jot_open: %s is \"%s\"; a number of bytes is expected, with K, M or "
                 "G behind it",
                 env, s);
    else if (s)
        *field = n << unit;
}

static const struct { size_t field; const char *env, *otherwise; } config_strings[] = {
#define STRING(field, env, otherwise) {offsetof(jot_Config, field), env, otherwise},
    STRING(backend, "JOT_BACKEND", NULL) STRING(policy, "JOT_POLICY", "reward")
    STRING(dump, "JOT_DUMP", "") STRING(layout, "JOT_LAYOUT", "chosen")
    STRING(schedule, "JOT_SCHEDULE", "default") STRING(precision, "JOT_PRECISION", "default")
    STRING(target, "JOT_TARGET", "native") STRING(cache_dir, "JOT_CACHE_DIR", NULL)
    STRING(cc, "JOT_CC", NULL)
#undef STRING
};

static const struct { size_t field; const char *env; } config_numbers[] = {
#define NUMBER(field, env) {offsetof(jot_Config, field), env},
    NUMBER(lanes, "JOT_LANES") NUMBER(deterministic, "JOT_DETERMINISTIC")
    NUMBER(threads, "JOT_THREADS") NUMBER(give_back, "JOT_GIVE_BACK") NUMBER(tune, "JOT_TUNE")
    NUMBER(check, "JOT_CHECK")
#undef NUMBER
};

JOT_FN bool
jot_config_read(jot_Ctx *ctx, const jot_Config *given)
{
    jot_Config *c = &ctx->config;
    bool cuda;
    size_t i;

    *c = *given;
    c->hooks = ctx->mem.hooks;
    for (i = 0; i < sizeof config_strings / sizeof *config_strings; i++) {
        const char **field = (const char **)(void *)((char *)c + config_strings[i].field);

        *field = config_string(ctx, *field, config_strings[i].env, config_strings[i].otherwise);
    }
    cuda = c->backend && jot_str_eq(c->backend, "cuda");
    c->device = config_string(ctx, given->device, cuda ? "JOT_CUDA_DEVICE" : "JOT_OPENCL_DEVICE",
                              NULL);
    config_nbytes(ctx, &c->device_nbytes, "JOT_DEVICE_MEMORY");
    for (i = 0; i < sizeof config_numbers / sizeof *config_numbers; i++)
        config_number(ctx, (int *)(void *)((char *)c + config_numbers[i].field),
                      config_numbers[i].env);
    if (c->no_threads)
        c->threads = 1;
#ifdef JOT_NO_TUNE
    if (c->tune)
        jot_fail(ctx, JOT_EUSE, "tune: this build times no schedules (JOT_NO_TUNE)");
#endif
    jot_mem_keep(&ctx->mem, !c->give_back);
    ctx->seed = c->seed;
    return !ctx->status && !ctx->mem.failed;
}

/* ---- whether it makes sense ---------------------------------------------------------------- */

static bool
config_starts(const char *word, const char *with)
{
    size_t n = jot_str_len(with);

    return jot_str_len(word) >= n && !memcmp(word, with, n);
}

/* prefix, and then a number */
static bool
config_seeded(const char *word, const char *prefix)
{
    const char *p = word + (config_starts(word, prefix) ? jot_str_len(prefix) : 0);
    bool any = false;

    for (; p != word && *p >= '0' && *p <= '9'; p++)
        any = true;
    return any && !*p;
}

/* word must be `known`, or random:SEED; `all` says so. */
static bool
config_word(jot_Ctx *ctx, const char *what, const char *word, const char *known, const char *all)
{
    if (jot_str_eq(word, known) || config_seeded(word, "random:"))
        return true;
    return jot_fail(ctx, JOT_EUSE, "jot_open: %s is \"%s\"; known are %s", what, word, all);
}

static bool
config_policy(jot_Ctx *ctx, const char *word)
{
    if (jot_str_eq(word, "paper") || jot_str_eq(word, "reward") || jot_str_eq(word, "none"))
        return true;
    return jot_fail(ctx, JOT_EUSE,
                    "jot_open: policy (JOT_POLICY) is \"%s\"; known are paper, reward and none",
                    word);
}

static bool
config_precision(jot_Ctx *ctx)
{
    const char *word = ctx->config.precision;

    if (jot_str_eq(word, "exact")) { /* these take what is subnormal for 0 */
        ctx->target.matrix &= ~(1u << DOT_BF16);
        ctx->target.dots &= ~(1u << DOT_BF16);
    }
    if (jot_str_eq(word, "default") || jot_str_eq(word, "exact") || jot_str_eq(word, "fast")
        || jot_str_eq(word, "tf32"))
        return true;
    return jot_fail(
        ctx, JOT_EUSE,
        "jot_open: precision (JOT_PRECISION) is \"%s\"; known are default, exact, fast and "
        "tf32",
        word);
}

static bool
config_dump(jot_Ctx *ctx, const char *letters)
{
    for (; *letters; letters++)
        if (!jot_plan_dump_known(*letters))
            return jot_fail(
                ctx, JOT_EUSE,
                "jot_open: dump (JOT_DUMP) has the letter '%c'; ? lists those that are known",
                *letters);
    return true;
}

/* Before any backend asks what the machine is. */
static bool
config_target(jot_Ctx *ctx)
{
    const char *word = ctx->config.target;

    if (config_seeded(word, "random:")) {
        jot_target_draw(&ctx->target, jot_str_seed(word));
        return true;
    }
    return jot_target_narrow(&ctx->target, word)
           || jot_fail(
               ctx, JOT_EUSE,
               "jot_open: target (JOT_TARGET) is \"%s\"; known are native and, with vectors of "
               "at most the machine's %d bytes, avx512, avx2 and sse",
               word, ctx->target.vector_nbytes);
}

JOT_FN bool
jot_config_check(jot_Ctx *ctx)
{
    const jot_Config *c = &ctx->config;
    int n = c->lanes;

    if (c->tune < 0)
        return jot_fail(ctx, JOT_EUSE,
                        "jot_open: tune is %d; schedules that are timed, 0 for none, are "
                        "expected",
                        c->tune);
    if (c->threads < 0)
        return jot_fail(ctx, JOT_EUSE, "jot_open: threads is %d; 0 is one per processor",
                        c->threads);
    if (n && n != 1 && n != 2 && n != 4 && n != 8 && n != 16)
        return jot_fail(ctx, JOT_EUSE,
                        "jot_open: lanes is %d; 1, 2, 4, 8, 16 and 0 (by price) are known", n);
    return config_target(ctx) && config_policy(ctx, c->policy) && config_dump(ctx, c->dump)
        && (jot_str_eq(c->layout, "chosen")
            || config_word(ctx, "layout (JOT_LAYOUT)", c->layout, "rowmajor",
                         "chosen, rowmajor and random:SEED"))
        && config_precision(ctx)
        && config_word(ctx, "schedule (JOT_SCHEDULE)", c->schedule, "default",
                     "default and random:SEED");
}
