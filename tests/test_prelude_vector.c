/* tests/test_prelude_vector.c - the functions of the prelude on vectors: of every function and
 * number of lanes the bits are those of the scalar, from each compiler that knows vectors, with
 * this machine's instructions and with the least, the compilers' own vectorisers off. And parts of
 * vectors at the edge of what may be touched: the first n lanes of each type, for each n.
 *
 *     test_prelude_vector --all               by each compiler with each machine's instructions
 *     test_prelude_vector [--print names]     the text of e.g. jotm_expf_x16
 *
 * Read before: ccode/emit/prelude_vector.c, tests/test_prelude_text.c.
 *
 * Guards: ccode/emit/dialect_vector.c, ccode/emit/emit.c, ccode/emit/part.c,
 * ccode/emit/prelude_spell.c, ccode/emit/prelude_vector.c. */
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#include "ccode/emit/print.h"
#define JOT_PRELUDE_TEXT
#include "prelude/prelude.h"
#include "tests/hooks.h"
#include "tests/test.h"
#include <unistd.h>

enum { FLOATS, DOUBLES, INTEGERS, KINDS };
static const int widths[] = {2, 4, 8, 16};
#define WIDTHS 4

static void *
realloc_hook(void *ud, void *p, size_t old_nbytes, size_t new_nbytes)
{
    (void)ud, (void)old_nbytes;
    if (new_nbytes)
        return realloc(p, new_nbytes);
    free(p);
    return NULL;
}

/* What a kernel that names these gets; to be freed. */
static char *
text_of(const char *names, Mem *mem, Text *text)
{
    memset(mem, 0, sizeof *mem);
    memset(text, 0, sizeof *text);
    mem->hooks.realloc = realloc_hook;
    text->mem = mem;
    return jot_emit_prelude(jot_dialect_find("gnu"), names, strlen(names), text) ? text->s : NULL;
}

static int
kind_of(const PreludeFn *f)
{
    if (strstr(f->params, "double") || strstr(f->ret, "double"))
        return DOUBLES;
    return strstr(f->params, "float") || strstr(f->ret, "float") ? FLOATS : INTEGERS;
}

/* jot_i32 -> i32, int -> i32, float -> f32 */
static void
lane_of(const char *type, size_t n, char lane[8])
{
    if (n == 5 && !strncmp(type, "float", 5))
        strcpy(lane, "f32");
    else if (n == 6 && !strncmp(type, "double", 6))
        strcpy(lane, "f64");
    else if (n == 3)
        strcpy(lane, "i32");
    else
        snprintf(lane, 8, "%.*s", (int)n - 4, type + 4);
}

/* Arguments as in test_prelude_text: random bits, small integers, ordinary numbers, ends. Each lane
 * has another; NaN is any NaN. */
static const char frame[] =
    "#include <stdio.h>\n#include <string.h>\n#define N 3072\n"
    "static jot_u64 c;\nstatic int bad;\n"
    "static jot_u64 mix(jot_u64 x)\n{\n    x = (x + 88172645463325252u) * 6364136223846793005u;\n"
    "    x = (x ^ x >> 32) * 1442695040888963407u;\n    return x ^ x >> 29;\n}\n"
    "static jot_u64 raw(void)\n{\n"
    "    jot_u64 r = mix(c), k = c / 3u % 12u;\n    c++;\n"
    "    return k < 4u ? r : k < 8u ? r >> (r >> 58) : r & 7u ? (r & 127u) - 64u : 0u;\n}\n"
    "static double arg_f64(void)\n{\n"
    "    static const double ends[] = {0.0, -0.0, 1.0, -1.0, 0.5, 1e300 * 1e300, -1e300 * 1e300,\n"
    "        2.0, -2.0, 5e-324, 1e-45, -1e-45, 3.4e38, 1e308, 8388609.0, 4503599627370497.0,\n"
    "        16777217.0, 1.5, 2.5, -1.25, 1e-40, 127.5, 128.0, 2147483648.0, -2147483649.0,\n"
    "        9223372036854775808.0, 4294967296.0, 0.625, 88.72284, -103.9};\n"
    "    jot_u64 r = mix(c + 77u), k = c++ % 11u, x;\n"
    "    double d = (double)(jot_i64)(r >> 11) * 2.220446049250313e-16 - 1.0;\n"
    "    if (k < 2u) {\n        memcpy(&d, &r, sizeof d);\n        return d;\n    }\n"
    "    x = r & 31u;\n"
    "    return k < 4u ? d : k < 6u ? d * 12.0 : k < 7u ? d * 750.0 : k < 8u ? d * 1e7\n"
    "        : k < 9u && x < 30u ? ends[x] : (double)(jot_i64)(r & 15u) * 0.5 - 4.0;\n}\n"
    "static float arg_f32(void)\n{\n    float f;\n    jot_u32 u = (jot_u32)raw();\n"
    "    if (c & 8u)\n        return (float)arg_f64();\n"
    "    memcpy(&f, &u, sizeof f);\n    return f;\n}\n"
    "static void check(const char *name, int lanes, const void *want, const void *got, int size,\n"
    "                  int real)\n{\n"
    "    const char *w = want, *g = got;\n    int i, told = 0;\n"
    "    for (i = 0; i < N; i++, w += size, g += size) {\n"
    "        float f[2];\n        double d[2];\n"
    "        if (!memcmp(w, g, (size_t)size))\n            continue;\n"
    "        memcpy(&f[0], w, 4);\n        memcpy(&f[1], g, 4);\n"
    "        if (real && size == 4 && f[0] != f[0] && f[1] != f[1])\n            continue;\n"
    "        if (size == 8) {\n            memcpy(&d[0], w, 8);\n            memcpy(&d[1], g, 8);\n"
    "            if (real && d[0] != d[0] && d[1] != d[1])\n                continue;\n        }\n"
    "        bad++;\n        if (told++ < 2)\n"
    "            printf(\"%s_x%d: argument %d, lane %d\\n\", name, lanes, i, i % lanes);\n"
    "    }\n}\n";

typedef struct { char lane[8]; bool out; } Param;

static int
params_of(const PreludeFn *f, Param *param)
{
    const char *p = f->params + 1;
    int n = 0;
    for (; *p && *p != ')'; n++) {
        size_t word = strcspn(p, " "), all = strcspn(p, ",)");
        lane_of(p, word, param[n].lane);
        param[n].out = memchr(p, '*', all) != NULL;
        p += all;
        p += strspn(p, ", ");
    }
    return n;
}

static void
print_call(FILE *to, const PreludeFn *f, const Param *param, int n, int lanes)
{
    fprintf(to, lanes ? "%s_x%d(" : "%s(", f->name, lanes);
    for (int i = 0; i < n; i++)
        if (lanes)
            fprintf(to, param[i].out ? "%s&v%d" : "%sv%d", i ? ", " : "", i);
        else
            fprintf(to, param[i].out ? "%s&a%d[i]" : "%sa%d[i]", i ? ", " : "", i);
    fprintf(to, ")");
}

static void
print_test(FILE *to, const PreludeFn *f, int lanes)
{
    Param param[8];
    int n = params_of(f, param);
    bool truth = !strcmp(f->ret, "int");
    char ret[8];
    lane_of(f->ret, strlen(f->ret), ret);
    if (truth)
        strcpy(ret, kind_of(f) == DOUBLES ? "i64" : "i32");
    fprintf(to, "static void test_%s_x%d(void)\n{\n    typedef float f32;\n    typedef double f64;\n"
            "    typedef jot_i8 i8;\n    typedef jot_u8 u8;\n    typedef jot_i16 i16;\n"
            "    typedef jot_u16 u16;\n    typedef jot_i32 i32;\n    typedef jot_u32 u32;\n"
            "    typedef jot_i64 i64;\n    typedef jot_u64 u64;\n"
            "    static %s want[N], got[N];\n    int i;\n    c = 0;\n", f->name, lanes, ret);
    for (int i = 0; i < n; i++)
        fprintf(to, "    static %s a%d[N], b%d[N];\n", param[i].lane, i, i);
    fprintf(to, "    for (i = 0; i < N; i++) {\n");
    for (int i = 0; i < n; i++)
        if (!param[i].out)
            fprintf(to, "        a%d[i] = (%s)%s%s();\n", i, param[i].lane,
                    param[i].lane[0] == 'f' ? "arg_" : "raw",
                    param[i].lane[0] == 'f' ? param[i].lane : "");
    fprintf(to, "    }\n    for (i = 0; i < N; i++)\n        want[i] = %s", truth ? "-" : "");
    print_call(to, f, param, n, 0);
    fprintf(to, ";\n    for (i = 0; i < N; i += %d) {\n        jot_%sx%d r;\n", lanes, ret, lanes);
    for (int i = 0; i < n; i++) {
        fprintf(to, "        jot_%sx%d v%d;\n", param[i].lane, lanes, i);
        if (!param[i].out)
            fprintf(to, "        memcpy(&v%d, &a%d[i], sizeof v%d);\n", i, i, i);
    }
    fprintf(to, "        r = ");
    print_call(to, f, param, n, lanes);
    fprintf(to, ";\n        memcpy(&got[i], &r, sizeof r);\n");
    for (int i = 0; i < n; i++)
        if (param[i].out)
            fprintf(to, "        memcpy(&b%d[i], &v%d, sizeof v%d);\n", i, i, i);
    fprintf(to, "    }\n    check(\"%s\", %d, want, got, sizeof want[0], %d);\n", f->name, lanes,
            ret[0] == 'f');
    for (int i = 0; i < n; i++)
        if (param[i].out)
            fprintf(to, "    check(\"%s: out %d\", %d, a%d, b%d, sizeof a%d[0], %d);\n", f->name, i,
                    lanes, i, i, i, param[i].lane[0] == 'f');
    fprintf(to, "}\n");
}

/* A program over all functions of a kind. Returns how many. */
static int
print_program(FILE *to, int kind, int lanes)
{
    const PreludeFn *f;
    int n, count = 0;
    char *names = calloc(1, 1 << 16);
    Mem mem;
    Text text;
    for (int i = (f = jot_prelude_table(&n), 0); i < n && names; i++)
        if (kind_of(&f[i]) == kind && strcmp(f[i].name, "jotm_fused"))
            sprintf(names + strlen(names), "%s %s_x%d ", f[i].name, f[i].name, lanes);
    /* the types of all arguments, though a function may be inside another's text */
    fputs(names && text_of(names, &mem, &text) ? text.s : "", to);
    jot_text_free(&text);
    free(names);
    fputs(frame, to);
    for (int i = 0; i < n; i++)
        if (kind_of(&f[i]) == kind && strcmp(f[i].name, "jotm_fused")) {
            print_test(to, &f[i], lanes);
            count++;
        }
    fprintf(to, "int main(void)\n{\n");
    for (int i = 0; i < n; i++)
        if (kind_of(&f[i]) == kind && strcmp(f[i].name, "jotm_fused"))
            fprintf(to, "    test_%s_x%d();\n", f[i].name, lanes);
    fprintf(to, "    printf(\"%%d differ\\n\", bad);\n    return bad != 0;\n}\n");
    return count;
}

/* Compile and run. 0: done, 77: no such compiler. */
static int
compile(const char *dir, const char *file, const char *cc, const char *flags, const char *level)
{
    char cmd[1024];
    snprintf(cmd, sizeof cmd, "command -v %s >/dev/null 2>&1", cc);
    if (system(cmd) != 0)
        return 77;
    snprintf(cmd, sizeof cmd, "cd %s && %s -std=gnu99 %s -fno-tree-vectorize "
             "-fno-tree-slp-vectorize -ffp-contract=off -fno-trapping-math -fno-math-errno "
             "-fno-strict-aliasing -w -Wno-psabi %s -o p %s && ./p", dir, cc,
             level, flags, file);
    return system(cmd) != 0;
}

/* Each text by one of the four ways, in turns and hardly optimised, or by all of them as kernels
 * are. */
static void
test_bits(const char *dir, bool all)
{
    static const char *const cc[][3] = { /* at -O0 gcc 12 knows no instruction for some of it */
        {"gcc", "-march=native", "-O1"}, {"gcc", "", "-O1"},
        {"clang", "-march=native", "-O0"}, {"clang", "", "-O0"},
    };
    static const size_t by[] = {0, 2, 3, 2, 1, 3}; /* gcc takes longer */
    size_t turn = 0;

    for (int w = 0; w < WIDTHS; w++)
        for (int kind = 0; kind < KINDS; kind++) {
            char path[256];
            FILE *to;
            if ((widths[w] == 2 && kind != DOUBLES)
                || (!all && kind == DOUBLES && widths[w] != 2 && widths[w] != 8))
                continue;
            snprintf(path, sizeof path, "%s/p.c", dir);
            to = fopen(path, "w");
            if (!to)
                continue;
            CHECK(print_program(to, kind, widths[w]) > 40, "functions of kind %d", kind);
            fclose(to);
            turn++;
            for (size_t i = 0; i < sizeof cc / sizeof *cc; i++) {
                int rc;
                if (!all && i != by[turn % 6])
                    continue;
                rc = compile(dir, "p.c", cc[i][0], cc[i][1], all ? "-O2" : cc[i][2]);
                if (rc == 77)
                    SKIP("%s: not installed", cc[i][0]);
                else
                    CHECK(rc == 0, "%d lanes, %s by %s %s", widths[w],
                          kind == FLOATS ? "f32" : kind == DOUBLES ? "f64" : "integers",
                          cc[i][0], cc[i][1]);
            }
        }
}

/* The page that ends behind the part; any byte behind it traps. */
static const char part_frame[] =
    "#include <stdio.h>\n#include <string.h>\n#include <sys/mman.h>\n"
    "enum { PAGE = 65536 };\nstatic int bad;\nstatic unsigned char *page;\n"
    "static void fill(void *p, size_t n)\n{\n    static unsigned r = 1;\n"
    "    for (size_t i = 0; i < n; i++)\n"
    "        ((unsigned char *)p)[i] = (unsigned char)((r = r * 1664525u + 1013904223u) >> 24 | 1);\n"
    "}\n"
    "static void check(const char *name, int n, int right)\n{\n"
    "    if (!right && bad++ < 9)\n        printf(\"%s of %d lanes\\n\", name, n);\n}\n"
    "#define PART(V, SIZE, n) do { \\\n    jot_##V v; unsigned char is[sizeof v], was[PAGE]; \\\n"
    "    int m = (n), nbytes = m * SIZE, rest = (int)sizeof v - nbytes; \\\n"
    "    unsigned char *p = page + PAGE - nbytes; \\\n"
    "    fill(page, PAGE); \\\n    v = jot_ldn_##V(p, n); \\\n    memcpy(is, &v, sizeof v); \\\n"
    "    check(\"load \" #V, m, !memcmp(is, p, nbytes)); \\\n"
    "    for (int i = 0; i < rest; i++) \\\n        check(\"zeros \" #V, m, !is[nbytes + i]); \\\n"
    "    memcpy(was, page, PAGE); \\\n    fill(&v, sizeof v); \\\n    jot_stn_##V(p, v, n); \\\n"
    "    check(\"store \" #V, m, !memcmp(p, &v, nbytes) && !memcmp(was, page, PAGE - nbytes)); \\\n"
    "} while (0)\n"
    "#define BF16(V, L) for (unsigned u = 0, s; u < 65536; u++) { \\\n"
    "    jot_##V v; float f; unsigned char halves[2 * L]; \\\n"
    "    s = u << 16 | (u & 1 ? 0x8000 : u * 40503u >> 9 & 0xffff); memcpy(&f, &s, 4); \\\n"
    "    v = jot_bf16_##V(jot_bc_##V(f)); f = jotm_bf16_to_f32(jotm_f32_to_bf16(f)); \\\n"
    "    check(\"bf16 \" #V, L, !memcmp((char *)&v + sizeof v - 4, &f, 4)); \\\n"
    "    jot_st_cut_##V(halves, v); \\\n"
    "    check(\"cut \" #V, L, !memcmp(halves + 2 * L - 2, (char *)&f + 2, 2)); }\n"
    "#define PARTS(V, L, SIZE) do { \\\n"
    "    for (volatile int k = 0; k <= L; k++) \\\n        PART(V, SIZE, k); \\\n"
    "    PART(V, SIZE, 1); PART(V, SIZE, L / 2); PART(V, SIZE, L / 2 + 1); PART(V, SIZE, L - 1); \\\n"
    "    PART(V, SIZE, L); } while (0)\n"
    "int main(void)\n{\n"
    "    page = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n"
    "    if (page == MAP_FAILED || mprotect(page + PAGE, PAGE, PROT_NONE))\n        return 1;\n";

static void
test_parts(const char *dir)
{
    static const char *const cc[] = {"gcc", "clang"}, *const flags[] = {
        "-march=native", "",
#if defined __x86_64__ && defined __GNUC__
        "-march=x86-64-v3",
#endif
    };
    char path[256], names[8192], calls[8192];
    size_t n = 0, m = 0;
    Mem mem;
    Text text;
    FILE *to;

    n += (size_t)snprintf(names, sizeof names, "jotm_f32_to_bf16 jotm_bf16_to_f32 ");
    for (int lanes = 4; lanes <= 16; lanes *= 2) {
        n += (size_t)snprintf(names + n, sizeof names - n, "jot_bf16_f32x%d jot_st_cut_f32x%d "
                              "jot_bc_f32x%d ", lanes, lanes, lanes);
        m += (size_t)snprintf(calls + m, sizeof calls - m, "    BF16(f32x%d, %d)\n", lanes, lanes);
    }

    for (int bits = 8; bits <= 64; bits *= 2)
        for (int nbytes = bits > 32 ? 16 : 8; nbytes <= 64; nbytes *= 2) {
            char v[16];
            snprintf(v, sizeof v, "%c%dx%d", bits < 32 ? 'u' : 'f', bits, nbytes * 8 / bits);
            n += (size_t)snprintf(names + n, sizeof names - n, "jot_ldn_%s jot_stn_%s ", v, v);
            m += (size_t)snprintf(calls + m, sizeof calls - m, "    PARTS(%s, %d, %d);\n", v,
                                  nbytes * 8 / bits, bits / 8);
        }
    snprintf(path, sizeof path, "%s/parts.c", dir);
    if (!text_of(names, &mem, &text) || !(to = fopen(path, "w"))) {
        CHECK(false, "no text of parts");
        return;
    }
    CHECK(!strstr(text.s, "memcpy(&v, p, (unsigned)n * 8u)"), "longs go by memory: %s", text.s);
    fprintf(to, "%s", text.s);
    fprintf(to, "%s%s    printf(\"%%d differ\\n\", bad);\n    return bad != 0;\n}\n", part_frame, calls);
    fclose(to);
    jot_text_free(&text);
    for (size_t i = 0; i < 2 * (sizeof flags / sizeof *flags); i++) {
        int rc;
        if ((i / 2 + i) % (size_t)test_many(2, 1)) /* in make test each flag by one of the two */
            continue;
#if defined __x86_64__ && defined __GNUC__
        if (i / 2 == 2 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
            continue;
#endif
        rc = compile(dir, "parts.c", cc[i % 2], flags[i / 2], "-O2");
        if (rc == 77)
            SKIP("%s: not installed", cc[i % 2]);
        else
            CHECK(rc == 0, "parts of vectors by %s %s", cc[i % 2], flags[i / 2]);
    }
}

/* How many have a form of their own, and that those which matter do. */
static void
test_forms(void)
{
    static const char each[] = "for (int l = 0";
    const PreludeFn *f;
    int n, forms = 0;
    for (int i = (f = jot_prelude_table(&n), 0); i < n; i++) {
        Text text = {0};
        Mem mem;
        char name[64];
        size_t len = (size_t)snprintf(name, sizeof name, "%s_x16", f[i].name);
        memset(&mem, 0, sizeof mem);
        mem.hooks.realloc = realloc_hook;
        text.mem = &mem;
        if (strcmp(f[i].name, "jotm_fused")) {
            CHECK(jot_prelude_vector(name, len, &text), "%s", name);
            forms += text.s && !strstr(text.s, each);
            if (text.s && strstr(text.s, each) && getenv("JOT_TEST_TELL"))
                printf("lane by lane: %s\n", name);
        }
        jot_text_free(&text);
    }
    CHECK(forms > 190, "%d of %d functions have a form", forms, n);
}

/* What one kernel names many times it calls: the same bits as in kernels that name it a few times,
 * where it is a part of them. */
static void
test_called(void)
{
    enum { LONG = 40, SHORT = 5, N = 37 };
    jot_Config config = {.backend = "cc", .cache_dir = "", .dump = "c", .hooks.log = keep_log};
    jot_Ctx *c = jot_open(&config);
    float v[N];
    jot_Var x, y[3];

    if (jot_error(c)) {
        SKIP("%s", jot_message(c));
        jot_close(c);
        return;
    }
    for (int k = 0; k < N; k++)
        v[k] = (float)k * 7 - 100;
    x = jot_array(c, JOT_F32, JOT_SHAPE(N), v);
    for (int way = 0; way < 3; way++) { /* the second time in short pieces, then one of them */
        y[way] = x;
        for (int k = 0; k < (way == 2 ? SHORT : LONG); k++) {
            y[way] = jot_sin(y[way]);
            if (way == 1 && k % SHORT == SHORT - 1)
                y[way] = jot_stop_fuse(y[way]);
        }
        logged[0] = 0;
        CHECK(jot_run(c, JOT_VARS(y[way])), "%s", jot_message(c));
        CHECK(strstr(logged, "jotm_sinf_x") != NULL || way == 1, "no vectors: %.2000s", logged);
        CHECK((strstr(logged, "_called(") != NULL) == (way == 0), "way %d: %.2000s", way, logged);
    }
    CHECK(jot_data(y[0]) && jot_data(y[1]) && !memcmp(jot_data(y[0]), jot_data(y[1]), sizeof v),
          "other values: %s", jot_message(c));
    jot_close(c);
}

int
main(int argc, char **argv)
{
    char dir[] = "/tmp/jot-prelude-XXXXXX", cmd[256];
    if (argc > 2 && !strcmp(argv[1], "--print")) {
        Mem mem;
        Text text;
        fputs(text_of(argv[2], &mem, &text), stdout);
        return 0;
    }
    test_forms();
    test_called();
    if (!mkdtemp(dir)) {
        SKIP("compilers: no temporary directory");
        return DONE();
    }
    test_parts(dir);
    test_bits(dir, argc > 1 && !strcmp(argv[1], "--all"));
    snprintf(cmd, sizeof cmd, "rm -r %s", dir);
    if (system(cmd) != 0)
        printf("%s could not be removed\n", dir);
    return DONE();
}
