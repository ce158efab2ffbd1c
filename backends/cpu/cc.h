/* backends/cpu/cc.h - what the files of the cc backend share: its state, and the compiler as a
 * program.
 * Read before: backends/host/host.h. After: backends/cpu/program.c, cc.c. */
#ifndef JOT_CC_H
#define JOT_CC_H
#include "backends/host/host.h"
#ifndef JOT_NO_HOST
#include <pthread.h>

/* Texts that the compiler did not come to an end with, by their hashes: the newest of them, for all
 * who compile for one context. ways: 1 as it is started first, 2 nor with -O1. */
enum { CC_HUNG = 64 };
typedef struct {
    pthread_mutex_t lock;
    struct { uint64_t text; int ways; } v[CC_HUNG];
    unsigned n;            /* noted so far */
} CcHung;

typedef struct {
    char *cc;              /* path of the compiler */
    size_t cc_nbytes;
    Cache cache;
    const char *march;     /* instead of -march=native; NULL: that */
    Text key;              /* what an object depends on besides its text; empty: not asked yet */
    Text self;             /* the file of the library's own code; empty: not asked yet, not known */
    HostChild *child;      /* who may end the compiler before its time; NULL: nobody */
    double seconds;        /* most for one text */
    bool swept;            /* what killed programs left was looked for */
    bool gcc;              /* it says so, as gcc does: it knows flags that others refuse */
    bool libraries;        /* objects do not link, or load, without any */
    CcHung *hung, own;     /* own: where nobody else compiles for the context */
    int jobs;              /* whose kernels are in one text: each unloads what is loaded */
} CcState;

/* Most that a compiler may take, to say its version and to compile, unless JOT_CC_SECONDS says it:
 * no one waits for ever. */
enum { CC_ASK_SECONDS = 20, CC_SECONDS = 600 };

/* The command that compiles file `from` to the object `to`, of a text of that kind; as a line that
 * a shell takes. */
enum { CC_ARGUMENTS = 40 };
enum { CC_VECTORS = 1, CC_LIBRARIES = 2, CC_KINDS = 4, CC_LOW = 4 }; /* low: -O1 */
JOT_FN int jot_cc_kind(Bytes text);
JOT_FN void jot_cc_command(const CcState *cc, int kind, const char **argv, const char *from,
                           const char *to);
JOT_FN void jot_cc_command_text(const char **argv, Text *text);
/* This compiler's objects need libraries: from now on, and in later processes. */
JOT_FN void jot_cc_libraries(jot_Ctx *ctx, CcState *cc);
/* A folder for the compiler's files; before the first one, what killed programs left goes. */
JOT_FN bool jot_cc_work(jot_Ctx *ctx, CcState *cc, WorkDir *work);
JOT_FN bool jot_cc_no_room(int why); /* an errno that another folder may not have */
/* Fill in the key: command, version, machine. Without `ask` the version must be in the cache.
 * False: *why says why. */
enum { CC_WHY = 256 };
JOT_FN bool jot_cc_identify(jot_Ctx *ctx, CcState *cc, bool ask, char *why, size_t why_nbytes);
/* The compiler that was asked for by name; NULL: any. Find it, or one; false: *why says why. */
JOT_FN const char *jot_cc_wanted(const jot_Ctx *ctx);
JOT_FN bool jot_cc_find(jot_Ctx *ctx, CcState *cc, bool ask, char *why, size_t why_nbytes);

/* backends/cpu/texts.c: Backend.kept and keep. */
JOT_FN bool jot_cc_kept(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of, Text *out,
                        size_t *at);
JOT_FN bool jot_cc_keep(Backend *backend, jot_Ctx *ctx, const Text *key, const Text *of,
                        const Text *what);

#endif
#endif
