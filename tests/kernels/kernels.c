/* tests/kernels/kernels.c - one line for each kernel that networks, workloads of the bench, graphs
 * of tests and drawn programs have on some thirty machines that are not here; or a comparison with
 * the digest of them in the repository. Kernels that are as they were have lost nothing, and need
 * no timer to say so.
 *
 *     kernels print [all | MACHINE PROGRAM] [text]   machine, program, kernel, hash of its text;
 *                                                    text: and what was hashed
 *     kernels check FILE [quick | first]             compare with the digest; quick: a few of them;
 *                                                    first: these, up to a machine that has others
 *     kernels store FILE                             write it
 *
 * What is checked is a share of all programs on each machine, another one on the next; `all` leaves
 * none out. A process for each machine, as many at a time as JOBS says, else as there are cores.
 *
 *     digest      = machine LABEL
 *                   g17 3 4 k7Qz3fA 0aZfQi       program, kernels, launches, hash; a sign for each
 *                                                kernel, the preludes, the plan, the launches
 *
 * A hash of 42 bits says whether a program is as it was, a sign of 6 bits which of its kernels is
 * not, but for one in 64.
 *
 * Read before: kernels.h, record.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/kernels/kernels.h"

static const Kind *const kinds[] = {&kind_graphs, &kind_contractions, &kind_blocks, &kind_drawn,
                                    &kind_wild, &kind_nets, &kind_work};
enum { KINDS = sizeof kinds / sizeof kinds[0], LABEL = 120, LINE = 4096, HASH = 7 };

typedef struct {
    bool all, quick, first, text;
    const char *machine, *program; /* parts of their labels; NULL: any */
} Ask;

/* ---- which ones --------------------------------------------------------------------------- */

static int
kind_count(const Kind *kind)
{
    int n = kind->n;

    while (!kind->n && kind->label(n))
        n++;
    return n;
}

static void
program_label(const Kind *kind, int i, char *to)
{
    if (kind->label)
        snprintf(to, LABEL, "%s %s", kind->name, kind->label(i));
    else
        snprintf(to, LABEL, "%s %d", kind->name, i);
}

/* One word, for the digest. */
static void
program_word(const Kind *kind, int i, char *to)
{
    if (kind->words)
        snprintf(to, LABEL, "%s", kind->label(i));
    else
        snprintf(to, LABEL, "%c%d", kind->name[0], i);
}

static bool
chosen(const Ask *ask, int machine, const Kind *kind, int i)
{
    char label[LABEL], word[LABEL];

    if (ask->machine && strcmp(ask->machine, machine_label(machine)))
        return false;
    program_label(kind, i, label);
    program_word(kind, i, word);
    if (ask->program)
        return !strcmp(word, ask->program) || strstr(label, ask->program);
    if (ask->quick && (i + 5 * machine) % kind->quick)
        return false;
    return ask->all || (i + 5 * machine) % kind->share == 0;
}

/* ---- the lines of a record ---------------------------------------------------------------- */

static char
sign(uint64_t hash)
{
    return "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_-"[hash % 64];
}

static void
digest_line(const Record *r, const char *program, char *to)
{
    uint64_t hash = 0;
    char word[HASH + 1] = "", signs[LINE / 2];
    int k;

    for (k = 0; k < r->n; k++) {
        hash = text_hash(hash, (const char *)&r->part[k].hash, sizeof r->part[k].hash);
        signs[k] = sign(r->part[k].hash >> 7);
    }
    signs[k] = 0;
    for (k = 0; k < HASH; k++, hash /= 64)
        word[k] = sign(hash);
    snprintf(to, LINE, "%s %d %d %s %s", program, r->n - TAIL, r->launches, word, signs);
}

static void
print_record(const Ask *ask, const Record *r, const char *machine, const char *label, FILE *to)
{
    for (int k = 0; k < r->n; k++) {
        const char *s = r->part[k].text;

        fprintf(to, "%s\t%s\t%s\t%016llx\n", machine, label, r->part[k].name,
                (unsigned long long)r->part[k].hash);
        for (; ask->text && *s; s += strcspn(s, "\n"), s += *s == '\n')
            fprintf(to, "| %.*s\n", (int)strcspn(s, "\n"), s);
    }
}

/* ---- a machine, in a process of its own --------------------------------------------------- */

typedef enum { PRINT, DIGEST } What;

/* The number of programs that failed. */
static int
run_machine(const Ask *ask, int machine, What what, FILE *to)
{
    char label[LABEL], word[LABEL], line[LINE];
    int failed = 0;

    for (int k = 0; k < KINDS; k++)
        for (int i = 0, n = kind_count(kinds[k]); i < n; i++) {
            Record r;

            if (!chosen(ask, machine, kinds[k], i))
                continue;
            program_label(kinds[k], i, label);
            record_program(&r, machine, kinds[k], i);
            if (!r.ok) {
                fprintf(stderr, "%s, %s: %s\n", machine_label(machine), label, r.message);
                failed = 1;
            }
            if (what == DIGEST) {
                program_word(kinds[k], i, word);
                digest_line(&r, word, line);
                fprintf(to, "%s\n", line);
            } else
                print_record(ask, &r, machine_label(machine), label, to);
            fflush(to);
            record_free(&r);
        }
    return failed;
}

static int
jobs(void)
{
    const char *given = getenv("JOBS");
    long n = given ? atoi(given) : sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 64 ? 64 : (int)n;
}

/* The lines of machines, each one's in a file of its own, which the caller closes. */
static bool
run_machines(const Ask *ask, What what, int from, int n, FILE **file)
{
    int begun = from, ended = from, status;
    bool ok = true;

    fflush(stdout);
    for (; ended < n; ended++) {
        for (; begun < n && begun - ended < jobs(); begun++) {
            file[begun] = tmpfile();
            if (!file[begun]) {
                perror("kernels: a temporary file");
                exit(1);
            }
            if (!fork())
                exit(run_machine(ask, begun, what, file[begun]));
        }
        if (wait(&status) < 0 || status) {
            if (status && !WIFEXITED(status))
                fprintf(stderr, "kernels: a process ended by signal %d\n", WTERMSIG(status));
            ok = false;
        }
    }
    for (int k = from; k < n; k++)
        rewind(file[k]);
    return ok;
}

/* ---- printed and stored ------------------------------------------------------------------- */

static bool
print_all(const Ask *ask, What what, FILE *to)
{
    FILE *file[machine_count()];
    bool ok = run_machines(ask, what, 0, machine_count(), file);
    char line[LINE];

    for (int k = 0; k < machine_count(); k++) {
        if (what == DIGEST)
            fprintf(to, "machine %s\n", machine_label(k));
        while (fgets(line, sizeof line, file[k]))
            fputs(line, to);
        fclose(file[k]);
    }
    return ok;
}

/* ---- compared ----------------------------------------------------------------------------- */

typedef struct { char *text, **line; int n; bool *met; } Stored;

static bool
read_stored(const char *path, Stored *s)
{
    FILE *f = fopen(path, "r");
    size_t n = 0, cap = 0;

    memset(s, 0, sizeof *s);
    if (!f) {
        perror(path);
        return false;
    }
    do {
        cap = 2 * cap + 65536;
        s->text = realloc(s->text, cap + 1);
        n += fread(s->text + n, 1, cap - n, f);
    } while (n == cap);
    fclose(f);
    s->text[n] = 0;
    for (char *p = s->text, *next; *p; p = next) {
        next = p + strcspn(p, "\n");
        if (*next)
            *next++ = 0;
        s->line = realloc(s->line, (size_t)(s->n + 1) * sizeof *s->line);
        s->line[s->n++] = p;
    }
    s->met = calloc((size_t)s->n + 1, sizeof *s->met);
    return true;
}

/* Do two lines begin with the same word? */
static bool
same_program(const char *a, const char *b)
{
    size_t n = strcspn(a, " ");

    return n == strcspn(b, " ") && !memcmp(a, b, n);
}

static int
find_stored(const Stored *s, const char *machine, const char *line)
{
    bool here = false;

    for (int k = 0; k < s->n; k++) {
        if (!strncmp(s->line[k], "machine ", 8))
            here = !strcmp(s->line[k] + 8, machine);
        else if (here && same_program(s->line[k], line))
            return k;
    }
    return -1;
}

/* What the first word of a line stands for. */
static void
word_label(const char *line, char *to)
{
    char word[LABEL];

    snprintf(to, LABEL, "%.*s", (int)strcspn(line, " "), line);
    for (int k = 0; k < KINDS; k++)
        for (int i = 0, n = kind_count(kinds[k]); i < n; i++) {
            program_word(kinds[k], i, word);
            if (same_program(word, line)) {
                program_label(kinds[k], i, to);
                return;
            }
        }
}

/* Which parts are others, as far as the signs tell. */
static void
tell_difference(const char *machine, const char *was, const char *is)
{
    static const char *const tail[TAIL] = {"preludes", "plan", "launches"};
    char sign[2][LINE], label[LABEL];
    int kernels[2] = {0}, calls[2] = {0}, n = 0, others = 0;

    sscanf(was, "%*s %d %d %*s %4095s", &kernels[0], &calls[0], sign[0]);
    sscanf(is, "%*s %d %d %*s %4095s", &kernels[1], &calls[1], sign[1]);
    word_label(is, label);
    printf("%s, %s:", machine, label);
    if (kernels[0] != kernels[1] || calls[0] != calls[1])
        printf(" %d kernels in %d launches, were %d in %d;", kernels[1], calls[1], kernels[0],
               calls[0]);
    for (int k = 0; k < kernels[0] && k < kernels[1]; k++)
        if (sign[0][k] != sign[1][k] && n++ < 8)
            printf("%s %d", n == 1 ? " other kernels:" : ",", k);
    if (n > 8)
        printf(", %d more", n - 8);
    for (int k = 0; k < TAIL; k++)
        if (sign[0][kernels[0] + k] != sign[1][kernels[1] + k])
            printf("%s %s", n || others++ ? "," : " other", tail[k]);
    printf("%s\n", n || others || kernels[0] != kernels[1] ? "" : " other texts of equal signs");
}

static void
compare_machine(int machine, FILE *file, const Stored *stored, int *same, int *other)
{
    const char *label = machine_label(machine);
    char line[LINE], program[LABEL];

    while (fgets(line, sizeof line, file)) {
        int at;

        line[strcspn(line, "\n")] = 0;
        at = find_stored(stored, label, line);
        if (at >= 0)
            stored->met[at] = true;
        if (at >= 0 && !strcmp(stored->line[at], line)) {
            ++*same;
            continue;
        }
        ++*other;
        if (*other > 40)
            continue;
        word_label(line, program);
        if (at < 0)
            printf("%s, %s: not stored\n", label, program);
        else
            tell_difference(label, stored->line[at], line);
    }
}

static int
check(const Ask *ask, const char *path)
{
    int n = machine_count(), step = ask->first ? jobs() : n, same = 0, other = 0;
    FILE *file[n];
    Stored stored;

    if (!read_stored(path, &stored))
        return 1;
    for (int from = 0, to; from < n && !(ask->first && other); from = to) {
        to = from + step < n ? from + step : n;
        other += !run_machines(ask, DIGEST, from, to, file);
        for (int k = from; k < to; k++) {
            compare_machine(k, file[k], &stored, &same, &other);
            fclose(file[k]);
        }
    }
    for (int k = 0; k < stored.n && !ask->quick; k++)
        if (!stored.met[k] && strncmp(stored.line[k], "machine ", 8)) {
            printf("stored, but not here: %s\n", stored.line[k]);
            other++;
        }
    if (other)
        printf("not as stored. Both texts: `make kernels OUT=file MACHINE=... PROGRAM=... TEXT=1` "
               "here and in a checkout from before, then diff.\nIf it is meant: make "
               "kernels-store, and say in the commit what changed.\n");
    printf("%d passed, %d failed, 0 skipped\n", same, other);
    return other != 0;
}

static int
usage(void)
{
    fprintf(stderr, "kernels print [all | MACHINE PROGRAM] [text]\n"
                    "kernels check FILE [quick | first]\nkernels store FILE\n");
    return 2;
}

int
main(int argc, char **argv)
{
    Ask ask = {0};
    char beside[4096];
    FILE *to;
    bool ok;

    if (argc < 2)
        return usage();
    if (!strcmp(argv[1], "print")) {
        if (argc > 2 && !strcmp(argv[argc - 1], "text"))
            ask.text = true, argc--;
        if (argc == 3)
            ask.all = !strcmp(argv[2], "all");
        if (argc == 4) {
            ask.machine = *argv[2] ? argv[2] : NULL;
            ask.program = *argv[3] ? argv[3] : NULL;
        }
        return !print_all(&ask, PRINT, stdout);
    }
    if (argc < 3)
        return usage();
    ask.first = argc > 3 && !strcmp(argv[3], "first");
    ask.quick = ask.first || (argc > 3 && !strcmp(argv[3], "quick"));
    if (!strcmp(argv[1], "check"))
        return check(&ask, argv[2]);
    if (strcmp(argv[1], "store"))
        return usage();
    snprintf(beside, sizeof beside, "%s.new", argv[2]); /* the old one is there until this is whole */
    to = fopen(beside, "w");
    ok = to && print_all(&ask, DIGEST, to);
    if (to && fclose(to))
        ok = false;
    return !ok || rename(beside, argv[2]);
}
