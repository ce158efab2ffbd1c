/* backends/cc.h - what the files of the cc backend share: its state, and the compiler as a program.
 * Read before: backends/host.h. After: backends/cc_program.c, cc.c. */
#ifndef JOT_CC_H
#define JOT_CC_H
#include "backends/host.h"
#ifndef JOT_NO_HOST

typedef struct {
    char *cc;              /* path of the compiler */
    size_t cc_nbytes;
    Cache cache;
    const char *march;     /* instead of -march=native; NULL: that */
    Text key;              /* what an object depends on besides its text; empty: not asked yet */
    HostChild *child;      /* who may end the compiler before its time; NULL: nobody */
} CcState;

/* Most that a compiler may take, to say its version and to compile: no one waits for ever. */
enum { CC_ASK_SECONDS = 20, CC_SECONDS = 600 };

/* The command that compiles file `from` to the object `to`, of a text of that kind; as a line that
 * a shell takes. */
enum { CC_ARGUMENTS = 40 };
JOT_FN int jot_cc_kind(Bytes text);
JOT_FN void jot_cc_command(const CcState *cc, int kind, const char **argv, const char *from,
                           const char *to);
JOT_FN void jot_cc_command_text(const char **argv, Text *text);
/* Fill in the key: command, version, machine. Without `ask` the version must be in the cache. */
JOT_FN bool jot_cc_identify(jot_Ctx *ctx, CcState *cc, bool ask);
/* The compiler that was asked for by name; NULL: any. Find it, or one; false: *why says why. */
JOT_FN const char *jot_cc_wanted(const jot_Ctx *ctx);
JOT_FN bool jot_cc_find(jot_Ctx *ctx, CcState *cc, bool ask, char *why, size_t why_nbytes);

#endif
#endif
