/* command/main.c - jot COMMAND ...: the table of commands, their options, how failures are told.
 *
 * Options stand anywhere: --name value, --name=value, or --name alone where it takes none. One that
 * a command does not have is refused.
 *
 * Read before: command.h. After: model.c. */
#include "command/command.h"
#include <errno.h>
#include <stdarg.h>
#include <time.h>

typedef struct {
    const char *name, *files, *options, *about; /* options: "name=VALUE name", "+": many times;
                                                   about: lines of at most 90 bytes */
    int least, most;                            /* files */
    int (*run)(const Args *a);
} Command;

#define MODEL_OPTIONS " batch=N trust-code json threads=N backend=NAME shape=NAME=SHAPE+"
#define OPEN_OPTION " open=NAME=LEAST..MOST/STEP+"
#define INPUT_OPTIONS " input=NAME=FILE+ mean=A,B,C std=A,B,C scale=S"

static const Command commands[] = {
    {"info", "FILE", MODEL_OPTIONS " tensors no-run",
     "what is in a model or a file of tensors: operators, parameters, shapes, bytes,\n"
     "        multiply-adds, memory", 1, 1, command_info},
    {"run", "MODEL", MODEL_OPTIONS OPEN_OPTION INPUT_OPTIONS " output=NAME=FILE+",
     "run it once: inputs from files, outputs to files, or told in a few numbers", 1, 1,
     command_run},
    {"check", "MODEL", MODEL_OPTIONS OPEN_OPTION INPUT_OPTIONS
     " against=NAME=FILE+ tolerance=R",
     "run it and compare outputs with files; exit code 1 where they differ by more than\n"
     "        R (0.0001) of an element plus R / 100 of its output's largest", 1, 1, command_check},
    {"bench", "MODEL", " batch=N,N threads=N,N seconds=S worst=N roofline=FILE.svg trust-code json"
     " backend=NAME shape=NAME=SHAPE+" INPUT_OPTIONS,
     "how long a run takes, by batch and threads; against the roofline; the worst kernels", 1, 1,
     command_bench},
    {"export", "MODEL", MODEL_OPTIONS OPEN_OPTION " out=FILE name=NAME arena external",
     "write it as one C file without a library (FILE.c; --arena: what it takes of memory;\n"
     "        --open: extents are arguments) or as a model of ONNX (FILE.onnx; --external:\n"
     "        weights beside it)", 1, 1,
     command_export},
    {"convert", "FROM TO", " dtype=NAME q8_0 json",
     "tensors from one format to another: safetensors, npy, npz, gguf, pt (read)", 2, 2,
     command_convert},
    {"draw", "MODEL", MODEL_OPTIONS " out=FILE graph levels",
     "a picture: FILE.html (zoom, search, the C of each kernel) or FILE.svg", 1, 1, command_draw},
    {"cache", "", " clear json dir=FOLDER", "what is kept of compiled kernels, and how to clear it",
     0, 0, command_cache},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* ---- messages ----------------------------------------------------------------------------- */

int
complain(const Args *a, int code, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "jot%s%s: ", a && a->command ? " " : "", a && a->command ? a->command : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return code;
}

int
complain_of(const Args *a, const jot_Ctx *c)
{
    jot_Status s = jot_error(c);

    return complain(a, s == JOT_EIO ? WRONG_FILE : FAILED, "%s", s ? jot_message(c)
                                                                   : "out of memory");
}

int
complain_writing(const Args *a, const jot_Ctx *c)
{
    return jot_error(c) == JOT_EUSE ? complain(a, WRONG_USE, "%s", jot_message(c))
                                    : complain_of(a, c);
}

bool
ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);

    return n > k && !strcmp(s + n - k, end);
}

double
seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void
json_say(cJSON *object)
{
    char *text = cJSON_Print(object);

    puts(text ? text : "{}");
    cJSON_free(text);
    cJSON_Delete(object);
}

/* ---- options ------------------------------------------------------------------------------ */

const char *
args_each(const Args *a, const char *name, int k)
{
    for (int i = 0; i < a->options; i++)
        if (!strcmp(a->option[i].name, name) && !k--)
            return a->option[i].value;
    return NULL;
}

const char *
args_text(const Args *a, const char *name, const char *otherwise)
{
    for (int i = a->options; i-- > 0;)
        if (!strcmp(a->option[i].name, name))
            return a->option[i].value;
    return otherwise;
}

bool
args_has(const Args *a, const char *name)
{
    return args_text(a, name, NULL) != NULL;
}

int
args_numbers(const Args *a, const char *name, const char *otherwise, int64_t lo, int64_t *to,
             int most)
{
    return numbers_in(a, name, args_text(a, name, otherwise), lo, to, most);
}

int
numbers_in(const Args *a, const char *name, const char *text, int64_t lo, int64_t *to, int most)
{
    const char *s = text;
    char *end;
    int n = 0;

    for (; n < most; s = end + 1) {
        errno = 0;
        long long v = strtoll(s, &end, 10);
        if (end == s || errno || v < lo || (*end && *end != ',')) {
            complain(a, WRONG_USE, "--%s: whole numbers from %lld on asked, as in 1,8; %s found",
                     name, (long long)lo, text);
            return 0;
        }
        to[n++] = v;
        if (!*end)
            return n;
    }
    complain(a, WRONG_USE, "--%s: more than %d numbers", name, most);
    return 0;
}

bool
args_number(const Args *a, const char *name, double otherwise, double *to)
{
    const char *s = args_text(a, name, NULL);
    char *end;

    *to = s ? strtod(s, &end) : otherwise;
    if (!s || (end != s && !*end && *to >= 0))
        return true;
    complain(a, WRONG_USE, "--%s: a number from 0 on asked, %s found", name, s);
    return false;
}

/* Where `name` stands in a list of options; NULL: it is none of them. */
static const char *
option_of(const char *options, const char *name, size_t n)
{
    for (const char *at = options; (at = strstr(at, name)) != NULL; at++)
        if (at > options && at[-1] == ' ' && (at[n] == '=' || at[n] == ' ' || !at[n]))
            return at;
    return NULL;
}

/* One argument, and perhaps the next; how many were used, 0: a message is out. */
static int
take_option(Args *a, const Command *c, char **arg)
{
    char *name = *arg + 2, *value = strchr(name, '=');
    size_t n = value ? (size_t)(value - name) : strlen(name);
    char word[40] = "";
    const char *option;
    int used = 1;

    if (n < sizeof word)
        memcpy(word, name, n);
    option = *word ? option_of(c->options, word, n) : NULL;
    if (!option || a->options == OPTIONS) {
        complain(a, WRONG_USE, option ? "%s: too many options"
                                      : "there is no option %s; see jot help %s", *arg, c->name);
        return 0;
    }
    if (option[n] == '=' && !value) {
        if (!arg[1]) {
            complain(a, WRONG_USE, "%s wants a value: see jot help %s", *arg, c->name);
            return 0;
        }
        value = arg[1];
        used = 2;
    } else if (option[n] == '=') {
        *value++ = 0;
    } else if (value) {
        complain(a, WRONG_USE, "--%s takes no value", word);
        return 0;
    }
    a->option[a->options].name = name;
    a->option[a->options++].value = value ? value : "";
    return used;
}

static int
usage(const Command *only)
{
    if (!only)
        puts("jot: models, looked at, run, timed, drawn and written as C\n");
    for (int k = 0; k < COMMANDS; k++) {
        const Command *c = &commands[k];
        if (only && c != only)
            continue;
        printf("  jot %s%s%s\n        %s\n", c->name, *c->files ? " " : "", c->files, c->about);
        if (!only)
            continue;
        for (const char *s = c->options; *(s += strspn(s, " ")); s += strcspn(s, " ")) {
            int n = (int)strcspn(s, " +");
            printf("        --%.*s%s%s\n", n, s, !strncmp(s, "out=", 4) ? ", -o FILE" : "",
                   s[n] == '+' ? " (as often as there are names)" : "");
        }
    }
    if (!only)
        puts("\njot help COMMAND has the options; jot --version; man jot. Exit codes: 0 done, 1 "
             "values\ndiffer, 2 wrong use, 3 a file that cannot be used, 4 a failure while "
             "running.");
    return DONE_WELL;
}

static const Command *
command_named(const char *name)
{
    for (int k = 0; k < COMMANDS; k++)
        if (!strcmp(commands[k].name, name))
            return &commands[k];
    return NULL;
}

static int
run_command(const Command *c, int argc, char **argv)
{
    static Args a;
    int used;

    a.command = c->name;
    for (int k = 0; k < argc; k += used) {
        used = 1;
        if (!strncmp(argv[k], "--", 2) && argv[k][2]) {
            used = take_option(&a, c, &argv[k]);
            if (!used)
                return WRONG_USE;
        } else if (!strcmp(argv[k], "-o") && option_of(c->options, "out", 3) && k + 1 < argc
                   && a.options < OPTIONS) {
            a.option[a.options].name = "out";
            a.option[a.options++].value = argv[k + 1];
            used = 2;
        } else if (a.files == c->most || a.files == FILES) {
            return complain(&a, WRONG_USE, "what is %s? It takes %d file%s: jot %s %s", argv[k],
                            c->most, c->most == 1 ? "" : "s", c->name, c->files);
        } else {
            a.file[a.files++] = argv[k];
        }
    }
    if (a.files < c->least)
        return complain(&a, WRONG_USE, "it wants %s: jot %s %s; see jot help %s",
                        c->least == 1 ? "a file" : "two files", c->name, c->files, c->name);
    a.json = args_has(&a, "json");
    return c->run(&a);
}

int
main(int argc, char **argv)
{
    const Command *c = argc > 1 ? command_named(argv[1]) : NULL;

    if (c && argc > 2 && !strcmp(argv[2], "--help"))
        return usage(c);
    if (c) {
        int code = run_command(c, argc - 2, argv + 2);
        if (fflush(stdout) || ferror(stdout))
            return complain(NULL, FAILED, "standard output: %s", strerror(errno));
        return code;
    }
    if (argc > 1 && !strcmp(argv[1], "--version")) {
        int v = jot_version();
        printf("jot %d.%d.%d\n", v / 10000, v / 100 % 100, v % 100);
        return DONE_WELL;
    }
    if (argc < 2 || !strcmp(argv[1], "help") || !strcmp(argv[1], "--help")) {
        c = argc > 2 ? command_named(argv[2]) : NULL;
        if (argc > 2 && !c)
            return complain(NULL, WRONG_USE, "there is no command %s: see jot help", argv[2]);
        usage(c);
        return argc < 2 ? WRONG_USE : DONE_WELL;
    }
    return complain(NULL, WRONG_USE, "there is no command %s: see jot help", argv[1]);
}
