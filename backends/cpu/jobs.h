/* backends/cpu/jobs.h - the queue of texts that are compiled beside the program: what its two
 * sides, the program's (jobs.c) and the workers' (workers.c), share.
 * Read before: backends/cpu/cc.h. After: backends/cpu/jobs.c, workers.c. */
#ifndef JOT_JOBS_H
#define JOT_JOBS_H
#include "backends/cpu/cc.h"
#include "target/thresholds.h"
#ifndef JOT_NO_HOST

typedef enum { QUEUED, RUNNING, ENDED } JobStage;
typedef struct Job Job;
struct Job {
    CompileJob job;             /* first: what the plan sees */
    Job *next;
    size_t nbytes;              /* of this block: job, symbols, names, texts */
    JobStage stage;
    bool dropped, told;         /* nobody wants it; its messages were handed over */
    const char *what, *text;
    size_t text_nbytes, unit_nbytes; /* unit: of all texts that are compiled as one with it */
    int together;               /* how many these are */
    int kind;                   /* of the text: CC_VECTORS, CC_LIBRARIES */
    KernelSym *sym;
    int n;
    void *module;
    double began;
    jot_Stats stats;
    char *log;                  /* in malloc's memory */
    char message[1024];
};

/* Variables of the environment that the workers have copies of: jot_jobs_names. */
enum { JOBS_WORKERS = 4, JOBS_NAMES = 5 };
JOT_FN const char *const *jot_jobs_names(void);

typedef struct {
    Jobs *jobs;
    pthread_t thread;
    HostChild *child;
} JobsWorker;

struct Jobs {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    Job *first;                 /* all that were started and not freed, the oldest first */
    int wanted, started;
    bool quit;
    double byte;                /* seconds per byte, learned */
    const char *env[JOBS_NAMES], *cc, *cache_dir, *target; /* copies, in strings */
    int lanes;
    Arena strings;
    CcHung hung;                /* the workers' */
    JobsWorker worker[JOBS_WORKERS];
};

JOT_FN void jot_jobs_threads(Jobs *jobs); /* starts the workers, as many as can be */

#endif
#endif
