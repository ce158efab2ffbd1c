/* tests/fake_nvrtc.c - an NVRTC that is none: the text behind a few definitions, through g++, to a
 * shared object, the "cubin" that tests/fake_cuda.c loads. Lines keep their numbers.
 *
 *     __global__ void NAME(..)        + NAME__go(void **arguments), NAME__n(): how many,
 *                                     NAME__most: items of a group
 *     __syncthreads()                 fake_sync(its line)
 *     *p, with FAKE_CHECK             fake_access(p, bytes, how, from where); *p
 *     asm volatile("OP %0, ..;" : "+f"(x) : "r"(y))   ->   fake_asm("OP ..", fake_at("+f", x), ..)
 *     __shared__ float t[96];                         ->   float (&t)[96] = place in fake_shared
 *     extern __shared__ float t[];                    ->   float *t = what the launch gives
 *
 * The access is what g++ makes of -fsanitize=thread, without that library: its calls are answered by
 * the text itself.
 *
 * Read before: tests/fake_cuda.h. After: tests/fake_ptx.c. */
#define _GNU_SOURCE
#include "tests/fake_cuda.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the text ----------------------------------------------------------------------------- */

static int
is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static const char *
skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        p += *p == '\\' && p[1];
    return *p ? p + 1 : p;
}

/* From an opening parenthesis to behind the one that closes it. */
static const char *
skip_round(const char *p)
{
    int depth = 0;

    do {
        if (*p == '"')
            p = skip_string(p) - 1;
        depth += (*p == '(') - (*p == ')');
    } while (*p++ && depth);
    return p;
}

/* What lies on which line stays there. */
static void
keep_lines(FILE *to, const char *from, const char *end)
{
    for (; from < end; from++)
        if (*from == '\n')
            fputc('\n', to);
}

/* asm [volatile] ("text" : outs : ins : clobbers) */
static const char *
rewrite_asm(FILE *to, const char *p)
{
    const char *end, *last = p;
    int part = 0;

    p = strchr(p, '(');
    end = skip_round(p) - 1;
    fputs("fake_asm(", to);
    for (p++; p < end;) {
        const char *string = p;

        if (*p == ':') {
            part++, p++;
            continue;
        }
        if (*p != '"') {
            p++;
            continue;
        }
        p = skip_string(p);
        keep_lines(to, last, string);
        last = string;
        if (part == 0)
            fwrite(string, 1, (size_t)(p - string), to), fputc(' ', to);
        else if (part < 3) {
            const char *place = p;

            p = skip_round(strchr(p, '('));
            fprintf(to, ", fake_at(%.*s, %.*s)", (int)(place - string), string, (int)(p - place),
                    place);
        }
    }
    fputc(')', to);
    keep_lines(to, last, end);
    return end + 1;
}

/* [extern] __shared__ [__align__(16)] TYPE NAME[N]; */
static const char *
rewrite_shared(FILE *to, const char *p)
{
    const char *name, *open, *end;
    bool given = !strncmp(p, "extern", 6);

    p = strstr(p, "__shared__") + strlen("__shared__");
    p += strspn(p, " ");
    if (!strncmp(p, "__align__", 9))
        p = skip_round(strchr(p, '('));
    open = strchr(p, '[');
    end = strchr(open, ']') + 1;
    for (name = open; is_word(name[-1]); name--)
        ;
    if (given) {
        fprintf(to, "%.*s*%.*s = (%.*s*)fake_given()", (int)(name - p), p, (int)(open - name), name,
                (int)(name - p), p);
        return end;
    }
    fprintf(to, "%.*s(&%.*s)%.*s = *(%.*s(*)%.*s)fake_take(sizeof(%.*s) * (unsigned long)(%.*s))",
            (int)(name - p), p, (int)(open - name), name, (int)(end - open), open, (int)(name - p),
            p, (int)(end - open), open, (int)(name - p), p, (int)(end - open) - 2, open + 1);
    return end;
}

static void
fake_rewrite(FILE *to, const char *text)
{
    for (const char *p = text; *p;) {
        bool begins = p == text || !is_word(p[-1]);

        if (begins && !strncmp(p, "asm", 3) && !is_word(p[3]))
            p = rewrite_asm(to, p);
        else if (begins && (!strncmp(p, "__shared__", 10) || !strncmp(p, "extern __shared__", 17)))
            p = rewrite_shared(to, p);
        else
            fputc(*p++, to);
    }
}

/* ---- what is compiled ---------------------------------------------------------------------- */

static const char shim[] =
    "struct fake_dim { unsigned x, y, z; };\n"
    "#define FAKE_BODY __attribute__((no_sanitize(\"thread\")))\n"
    "#define FAKE_OWN static __attribute__((always_inline)) inline\n"
    "extern \"C\" { fake_dim threadIdx, blockIdx, blockDim, gridDim;\n"
    "void (*fake_sync)(int);\n"
    "void *(*fake_take)(unsigned long), *(*fake_given)();\n"
    "unsigned long (*fake_offset)(const void *);\n"
    "struct fake_operand { const char *how; void *p; int nbytes; };\n"
    "void (*fake_ptx)(const char *, fake_operand *, int, int);\n"
    "void (*fake_access)(const void *, int, int, const void *);\n"
    "float fmaf(float, float, float); double fma(double, double, double);\n"
    "float sqrtf(float), rintf(float), floorf(float), ceilf(float), truncf(float);\n"
    "double sqrt(double), rint(double), floor(double), ceil(double), trunc(double); }\n"
    "#define __fmaf_rn fmaf\n#define __fma_rn fma\n#define __fsqrt_rn sqrtf\n"
    "#define __dsqrt_rn sqrt\n"
    "#define __global__\n#define __device__\n#define __forceinline__ inline\n"
    "#define __launch_bounds__(...)\n"
    "#define __align__(n) __attribute__((aligned(n)))\n"
    "#define __cvta_generic_to_shared(p) fake_offset((const void *)(p))\n"
    "template <class T> FAKE_OWN fake_operand fake_at(const char *how, const T &x)\n"
    "{ return fake_operand{how, (void *)&x, (int)sizeof x}; }\n"
    "template <class... O> FAKE_OWN void fake_asm(const char *text, O... o)\n"
    "{ fake_operand all[] = {o..., fake_operand()};\n"
    "fake_ptx(text, all, sizeof...(O), __CUDA_ARCH__ / 10); }\n"
    "#define __syncthreads() fake_sync(__LINE__)\n"
    "template <class T> FAKE_BODY __attribute__((noinline)) static T atomicCAS(T *p, T a, T b)\n"
    "{ fake_access(p, sizeof *p, 2, __builtin_return_address(0));\n"
    "T was = *p; if (was == a) *p = b; return was; }\n"
    "template <class... A> struct fake_do\n"
    "{ FAKE_BODY fake_do(void (*f)(A...), A... a) { f(a...); } };\n"
    "template <class... A> FAKE_BODY static void fake_go(void (*f)(A...), void **p)\n"
    "{ int i = 0; fake_do<A...>{f, *(A *)p[i++]...}; }\n"
    "template <class... A> static int fake_n(void (*)(A...)) { return sizeof...(A); }\n";

/* What g++ calls at each access; in the text's own hands. Those of volatile are atomic: they are
 * used beside atomicCAS alone. */
static const char check_shim[] =
    "#define FAKE_CALL(name, n, how) FAKE_BODY void __tsan_##name(void *p) \\\n"
    "{ fake_access(p, n, how, __builtin_return_address(0)); }\n"
    "#define FAKE_CALLS(n) FAKE_CALL(read##n, n, 0) FAKE_CALL(write##n, n, 1) \\\n"
    "FAKE_CALL(unaligned_read##n, -n, 0) FAKE_CALL(unaligned_write##n, -n, 1) \\\n"
    "FAKE_CALL(volatile_read##n, n, 2) FAKE_CALL(volatile_write##n, n, 2)\n"
    "extern \"C\" {\n#pragma GCC visibility push(hidden)\n"
    "FAKE_CALLS(1) FAKE_CALLS(2) FAKE_CALLS(4) FAKE_CALLS(8) FAKE_CALLS(16)\n"
    "FAKE_BODY void __tsan_init() {}\n"
    "#define FAKE_RANGE(name, how) FAKE_BODY void __tsan_##name##_range(void *p, long n) \\\n"
    "{ fake_access(p, -(int)n, how, __builtin_return_address(0)); }\n"
    "FAKE_RANGE(read, 0) FAKE_RANGE(write, 1)\n"
    "#pragma GCC visibility pop\n}\n";

int
fake_arch(void)
{
    const char *arch = getenv("FAKE_CUDA_ARCH");

    return arch && *arch ? atoi(arch) : 70;
}

unsigned
fake_group_nbytes(void)
{
    int arch = fake_arch();

    return (arch >= 90 ? 227u : arch >= 80 ? 163u : arch == 75 ? 64u : 96u) << 10;
}

typedef struct {
    char *text, *log;
    unsigned char *object;
    size_t nbytes;
} Program;

API int nvrtcVersion(int *major, int *minor) { return *major = 12, *minor = 0, OK; }
API int nvrtcGetNumSupportedArchs(int *n) { return *n = 1, OK; }
API int nvrtcGetSupportedArchs(int *arch) { return *arch = fake_arch(), OK; }

API int
nvrtcCreateProgram(Program **p, const char *text, const char *name, int n, const char *const *h,
                   const char *const *i)
{
    MAY_REFUSE;
    (void)name, (void)n, (void)h, (void)i;
    *p = calloc(1, sizeof **p);
    (*p)->text = strdup(text);
    return OK;
}

API int
nvrtcDestroyProgram(Program **p)
{
    free((*p)->text);
    free((*p)->log);
    free((*p)->object);
    free(*p);
    return OK;
}

/* For each kernel a function that takes its arguments by address, and their number. */
static void
write_entries(FILE *f, const char *text)
{
    static const char head[] = "extern \"C\" __global__ void";
    const char *at = text;

    while ((at = strstr(at, head)) != NULL) {
        const char *name;
        int n, most = ITEMS;

        at += sizeof head - 1;
        name = at + strspn(at, " \n");
        if (!strncmp(name, "__launch_bounds__(", 18)) { /* (items, ..): a launch has no more */
            most = atoi(name + 18);
            name = strchr(name, ')') + 1;
            name += strspn(name, " \n");
        }
        n = (int)strcspn(name, "(");

        fprintf(f, "extern \"C\" void %.*s__go(void **p) { fake_go(%.*s, p); }\n"
                "extern \"C\" { int %.*s__n(void) { return fake_n(%.*s); }\n"
                "int %.*s__most = %d; }\n",
                n, name, n, name, n, name, n, name, n, name, most);
    }
}

static char *
read_all(const char *path, size_t room, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *p;

    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    p = malloc(room + *n + 1);
    if (fread(p + room, 1, *n, f) != *n)
        *n = 0;
    p[room + *n] = 0;
    fclose(f);
    return p;
}

/* A text's name, and its object's: the same for all architectures if the text names no
 * instruction. */
static uint64_t
text_hash(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3;
    return hash;
}

static uint64_t
object_hash(const char *text, bool all)
{
    bool any = !strstr(text, "asm") && !strstr(text, "__CUDA_ARCH");

    uint64_t kind = (any ? 0 : (uint64_t)fake_arch() * 4 + 2 * all) + fake_checks();

    return (text_hash(text) ^ kind) * 0x100000001b3;
}

/* With FAKE_KEEP, a directory, a text that was compiled before is not compiled again; texts and
 * objects lie there. */
static const char *
kept_path(uint64_t hash, const char *suffix, char path[300])
{
    const char *dir = getenv("FAKE_KEEP");

    if (!dir || !*dir)
        return NULL;
    snprintf(path, 300, "%s/%016llx%s", dir, (unsigned long long)hash, suffix);
    return path;
}

/* Moved there at once: several programs may write the same. */
static void
keep(const char *dir, const char *file, const char *path)
{
    char command[700];
    int me = (int)getpid();

    snprintf(command, sizeof command, "cp %s/%s %s.%d && mv %s.%d %s", dir, file, path, me, path,
        me, path);
    if (system(command))
        fake_stop("it cannot be kept", command);
}

static void
keep_all(const char *dir, const char *text, bool all)
{
    char path[300];
    FILE *f;

    if (!kept_path(object_hash(text, all), ".so", path))
        return;
    keep(dir, "k.so", path);
    snprintf(path, sizeof path, "%s/k.cu", dir);
    f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
    keep(dir, "k.cu", kept_path(text_hash(text), ".cu", path));
}

static void
take_object(Program *p, const char *path)
{
    uint64_t size;

    p->object = (unsigned char *)read_all(path, 8, &p->nbytes);
    if (!p->object)
        return;
    size = p->nbytes;
    memcpy(p->object, &size, 8);
    p->nbytes += 8;
}

API int
nvrtcCompileProgram(Program *p, int n, const char *const *options)
{
    char dir[] = "/tmp/fake_cuda.XXXXXX", path[300], command[800];
    bool all = false; /* sm_90a: what only this one has */
    size_t nlog = 0;
    FILE *f;
    int rc;

    MAY_REFUSE;
    for (int i = 0; i < n; i++)
        all |= strstr(options[i], "_90a") != NULL;
    if (kept_path(object_hash(p->text, all), ".so", path))
        take_object(p, path);
    if (p->object)
        return p->log = strdup(""), OK;
    if (!mkdtemp(dir))
        return INVALID;
    snprintf(path, sizeof path, "%s/k.cc", dir);
    f = fopen(path, "w");
    fputs(shim, f);
    if (fake_checks())
        fputs(check_shim, f);
    fprintf(f, "#line 1 \"text\"\n");
    fake_rewrite(f, p->text);
    write_entries(f, p->text);
    fprintf(f, "extern \"C\" { int fake_waits = %d;\n"
               "extern const char fake_text[] = R\"!!(%s)!!\"; }\n",
            strstr(p->text, "__syncthreads") || strstr(p->text, "asm"), p->text);
    fclose(f);
    snprintf(command, sizeof command,
             "cd %s && g++ -w -O0 -ffp-contract=off -fno-strict-aliasing %s "
             "-fwrapv -march=native -fPIC -c -D__CUDA_ARCH__=%d0 %s -o k.o k.cc >log 2>&1 "
             "&& g++ -shared -nostdlib -fno-use-linker-plugin -o k.so k.o -lm >>log 2>&1", dir,
             fake_checks() ? "-g1 -gdwarf-4 -fno-omit-frame-pointer -fsanitize=thread --param "
                             "tsan-distinguish-volatile=1 --param tsan-instrument-func-entry-exit=0"
                           : "", fake_arch(), all ? "-D__CUDA_ARCH_FEAT_SM90_ALL=1" : "");
    rc = system(command);
    snprintf(path, sizeof path, "%s/log", dir);
    p->log = read_all(path, 0, &nlog);
    snprintf(path, sizeof path, "%s/k.so", dir);
    if (!rc) {
        take_object(p, path);
        keep_all(dir, p->text, all);
    }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command) || rc ? 6 : OK;
}

API int nvrtcGetProgramLogSize(Program *p,
    size_t *n) { return *n = p->log ? strlen(p->log) + 1 : 1, OK; }
API int nvrtcGetProgramLog(Program *p, char *log) { return strcpy(log, p->log ? p->log : ""), OK; }
API int nvrtcGetCUBINSize(Program *p, size_t *n) { MAY_REFUSE; return *n = p->nbytes, OK; }
API int nvrtcGetCUBIN(Program *p, char *to) { MAY_REFUSE; return memcpy(to, p->object, p->nbytes),
    OK; }
API int nvrtcGetPTXSize(Program *p, size_t *n) { return *n = p->nbytes, OK; }
API int nvrtcGetPTX(Program *p, char *to) { return memcpy(to, p->object, p->nbytes), OK; }
