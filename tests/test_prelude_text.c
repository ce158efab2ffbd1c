/* tests/test_prelude_text.c - the text of the mathematics of kernels: its table names all that a
 * function calls, in order; and each compiler there is makes the same bits of every function.
 *
 *     test_prelude_text [--print]     as C
 *
 * Read before: prelude/prelude.h, tests/test_prelude.c.
 *
 * Guards: ccode/emit/prelude_read.c, ccode/emit/prelude_spell.c, prelude/prelude.c. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include "ccode/emit.h"
#include "prelude/prelude.h"
#include "tests/test.h"
#include <unistd.h>

static void
print_prelude(FILE *to)
{
    const PreludeFn *f;
    int i, n;

    fputs("#include <stdint.h>\n"
          "typedef int8_t jot_i8;\ntypedef int16_t jot_i16;\ntypedef int32_t jot_i32;\n"
          "typedef int64_t jot_i64;\ntypedef uint8_t jot_u8;\ntypedef uint16_t jot_u16;\n"
          "typedef uint32_t jot_u32;\ntypedef uint64_t jot_u64;\n", to);
    for (f = jot_prelude_table(&n), i = 0; i < n; i++)
        fprintf(to, "static inline %s %s%s %s\n", f[i].ret, f[i].name, f[i].params, f[i].body);
}

/* Every name that a body calls is in `uses`, and stands earlier; nothing else is called. */
static void
test_table(void)
{
    const PreludeFn *f;
    const char *p, *u;
    int i, n, calls, uses;
    size_t len;

    for (f = jot_prelude_table(&n), i = 0; i < n; i++) {
        CHECK(jot_prelude_find(f[i].name, strlen(f[i].name)) == &f[i], "%s", f[i].name);
        CHECK(strlen(f[i].body) <= 4095, "%s: %zu", f[i].name, strlen(f[i].body));
        for (calls = 0, p = f[i].body; (p = strstr(p, "jotm_")) != NULL; p += len) {
            char name[64] = " ", list[2048];
            const PreludeFn *g;

            len = strspn(p, "abcdefghijklmnopqrstuvwxyz_0123456789");
            g = jot_prelude_find(p, len);
            CHECK(g != NULL && g < &f[i], "%s calls %.*s", f[i].name, (int)len, p);
            snprintf(name, sizeof name, " %.*s ", (int)len, p);
            snprintf(list, sizeof list, " %s ", f[i].uses);
            CHECK(strstr(list, name) != NULL, "%s uses%s", f[i].name, name);
            calls = 1;
        }
        uses = 0;
        for (u = f[i].uses; *u; u += len, u += *u == ' ') {
            len = strcspn(u, " ");
            CHECK(jot_prelude_find(u, len) != NULL, "%s uses %s", f[i].name, u);
            uses = 1;
        }
        CHECK(calls == uses, "%s", f[i].name);
    }
    CHECK(jot_prelude_find("jotm_exp", 3) == NULL, "a part of a name");
    CHECK(jot_prelude_find("jotm_expfx", 10) == NULL, "a part of a name");
    CHECK(jot_prelude_find("", 0) == NULL, "a part of a name");
}

static void *
realloc_hook(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (new_nbytes)
        return realloc(p, new_nbytes);
    free(p);
    return NULL;
}

/* What an OpenCL device without f64 can have: every function of floats but lgamma */
static void
test_single(void)
{
    const Dialect *cl = jot_dialect_find("opencl");
    int n, singles = 0;
    const PreludeFn *f = jot_prelude_table(&n);

    for (int i = 0; i < n; i++) {
        Mem mem = {0};
        Text text = {0};

        if (strcmp(f[i].ret, "double") == 0 || strstr(f[i].params, "double"))
            continue;
        mem.hooks.realloc = realloc_hook;
        text.mem = &mem;
        CHECK(jot_emit_prelude(cl, f[i].name, strlen(f[i].name), &text), "%s", f[i].name);
        singles++;
        CHECK(!strstr(text.s, "double") == !strstr(f[i].name, "lgamma"), "%s: %s", f[i].name,
              text.s);
        jot_text_free(&text);
    }
    CHECK(singles > 150, "%d functions without double", singles);
}

/* A program that prints a hash of the results of each function without pointer parameters. */
static void
print_program(FILE *to)
{
    const PreludeFn *f;
    int i, n;

    print_prelude(to);
    fputs("#include <stdio.h>\n"
          "static jot_u64 c, h;\n"
          "static jot_u64 raw(void)\n{\n"
          "    jot_u64 r = jotm_rand_u64(5u, c), k = c / 3u % 12u;\n    c++;\n"
          "    return k < 4u ? r : k < 8u ? r >> (r >> 58) : r & 7u ? (r & 127u) - 64u : 0u;\n}\n"
          "static double arg_double(void)\n{\n"
          "    jot_u64 r = jotm_rand_u64(6u, c), k = c++ % 8u;\n"
          "    double d = (double)(jot_i64)(r >> 11) * 2.220446049250313e-16 - 1.0;\n"
          "    return k < 2u ? jotm_frombits(r) : k < 4u ? d : k < 6u ? d * 12.0\n"
          "        : k < 7u ? d * 750.0 : (double)(jot_i64)(r & 15u) * 0.5 - 4.0;\n}\n"
          "static float arg_float(void)\n{\n"
          "    jot_u64 k = c & 8u;\n"
          "    return k ? jotm_frombitsf((jot_u32)raw()) : (float)arg_double();\n}\n"
          "static void out_bits(jot_u64 u)\n{\n    h = (h ^ u) * (((jot_u64)1 << 40) + 435u);\n"
          "    h ^= h >> 29;\n}\n"
          "static void out_double(double x)\n{\n"
          "    out_bits(jotm_isnan(x) ? 1u : jotm_bits(x));\n}\n"
          "static void out_float(float x)\n{\n"
          "    out_bits(jotm_isnanf(x) ? 1u : jotm_bitsf(x));\n}\n",
          to);
    /* a reduction by its three results */
    fputs("static float reduced(float (*f)(float, jot_i32 *, float *), float x)\n{\n"
          "    jot_i32 q;\n    float lo, r = f(x, &q, &lo);\n"
          "    out_bits((jot_u64)q & 3u);\n    out_float(lo);\n    return r;\n}\n"
          "int main(void)\n{\n    int i;\n", to);
    for (f = jot_prelude_table(&n), i = 0; i < n; i++) {
        const char *p = f[i].params + 1;
        int real = strcmp(f[i].ret, "float") == 0 || strcmp(f[i].ret, "double") == 0;
        int k = 0, a;

        if (strcmp(f[i].params, "(float x, jot_i32 *q, float *lo)") == 0)
            fprintf(to, "    c = h = 0u;\n    for (i = 0; i < 3000; i++)\n"
                    "        out_float(reduced(%s, arg_float()));\n"
                    "    printf(\"%s %%08x%%08x\\n\", (unsigned)(h >> 32), (unsigned)h);\n",
                    f[i].name, f[i].name);
        if (strchr(p, '*') || strstr(f[i].name, "bits") || strstr(f[i].name, "sinpi"))
            continue;
        fprintf(to, "    c = h = 0u;\n    for (i = 0; i < 3000; i++) {\n");
        for (; *p && *p != ')'; p += strcspn(p, ","), p += strspn(p, ", "), k++) {
            int len = (int)strcspn(p, " ");
            int is_real = strncmp(p, "float", 5) == 0 || strncmp(p, "double", 6) == 0;

            fprintf(to, "        %.*s a%d = (%.*s)%s%.*s();\n", len, p, k, len, p,
                    is_real ? "arg_" : "raw", is_real ? len : 0, p);
        }
        fprintf(to, "        %s%s(%s(", real ? "out_" : "out_bits", real ? f[i].ret : "",
                f[i].name);
        for (a = 0; a < k; a++)
            fprintf(to, "%sa%d", a > 0 ? ", " : "", a);
        fprintf(to, "));\n    }\n    printf(\"%s %%08x%%08x\\n\", (unsigned)(h >> 32), "
                "(unsigned)h);\n", f[i].name);
    }
    fputs("    return 0;\n}\n", to);
}

/* Compile and run with `cc` in dir; the hashes go to dir/number. 0: done, 77: no such compiler. */
static int
compile(const char *dir, int number, const char *cc, const char *flags)
{
    char cmd[1024];

    snprintf(cmd, sizeof cmd, "command -v %s >/dev/null 2>&1", cc);
    if (system(cmd) != 0)
        return 77;
    snprintf(cmd, sizeof cmd, "cd %s && %s -std=c99 -Wall -Wextra -Wpedantic -Werror %s -o p%d p.c "
             "&& ./p%d > %d", dir, cc, flags, number, number, number);
    return system(cmd) != 0;
}

static void
test_text(void)
{
    static const char *const cc[][2] = {
        {"gcc", "-O2 -ffp-contract=off"}, {"clang", "-O2 -ffp-contract=off"}, {"tcc", ""},
        {"gcc", "-O0"}, {"gcc", "-O3 -march=native -ffp-contract=off -fno-trapping-math"},
    };
    char dir[] = "/tmp/jot-prelude-XXXXXX", cmd[256];
    int i, first = -1, rc;
    FILE *to;

    to = NULL;
    if (mkdtemp(dir) != NULL) {
        snprintf(cmd, sizeof cmd, "%s/p.c", dir);
        to = fopen(cmd, "w");
    }
    if (to == NULL) {
        SKIP("compilers: no temporary directory");
        return;
    }
    print_program(to);
    fclose(to);
    for (i = 0; i < (int)(sizeof cc / sizeof *cc); i++) {
        rc = compile(dir, i, cc[i][0], cc[i][1]);
        if (rc == 77) {
            SKIP("%s %s: not installed", cc[i][0], cc[i][1]);
            continue;
        }
        CHECK(rc == 0, "%s %s: %d", cc[i][0], cc[i][1], rc);
        if (rc == 0 && first >= 0) {
            snprintf(cmd, sizeof cmd, "cd %s && diff %d %d", dir, first, i);
            rc = system(cmd);
            CHECK(rc == 0, "the bits of %s and of %s %s", cc[first][0], cc[i][0], cc[i][1]);
        }
        first = rc == 0 && first < 0 ? i : first;
    }
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    if (system(cmd) != 0)
        printf("%s could not be removed\n", dir);
}

int
main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--print")) {
        print_prelude(stdout);
        return 0;
    }
    test_table();
    test_single();
    test_text();
    return DONE();
}
