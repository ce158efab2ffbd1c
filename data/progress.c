/* data/progress.c - one line about how far a training is.
 *
 * Read before: data.h ("progress and curves"). After: data/curves.c. */
#ifndef JOT_NO_HOST
#include "data/parts.h"
#include <stdarg.h>
#include <unistd.h>

static void
prog_write(jot_Progress *p, const char *text, size_t n)
{
    if (p->write)
        p->write(p->user, text, n);
    else {
        fwrite(text, 1, n, stderr);
        fflush(stderr);
    }
}

static bool
prog_terminal(jot_Progress *p)
{
    if (!p->terminal)
        p->terminal = !p->write && isatty(STDERR_FILENO) ? 1 : -1;
    return p->terminal > 0;
}

/* One more part of the line, which is cut off where it ends. */
static void
prog_add(jot_Progress *p, const char *format, ...)
{
    const size_t n = strlen(p->line);
    va_list args;

    va_start(args, format);
    vsnprintf(p->line + n, sizeof p->line - n, format, args);
    va_end(args);
}

/* The line, over the one before where somebody looks on: what is left of that is blanked. */
static void
prog_show(jot_Progress *p, bool ends)
{
    char text[sizeof p->line + 256];
    const bool terminal = prog_terminal(p);
    const int n = (int)strlen(p->line), blanks = terminal && p->width > n ? p->width - n : 0;
    int length = snprintf(text, sizeof text, "%s%s%*s%s", terminal ? "\r" : "", p->line, blanks, "",
                          ends || !terminal ? "\n" : "");

    prog_write(p, text, (size_t)length);
    p->width = ends ? 0 : n;
    p->open = terminal && !ends;
}

void
jot_progress(jot_Progress *p, int64_t epoch, int64_t step, const char *name, double value)
{
    const double now = data_seconds();
    const bool last = p->steps > 0 && step + 1 >= p->steps;

    if (!p->done++)
        p->first = now;
    const double seconds = now - p->first;
    const double rate = p->done > 1 && seconds > 0 ? (double)(p->done - 1) / seconds : 0;
    p->line[0] = 0;
    prog_add(p, "epoch %lld of %lld  step %lld", (long long)epoch + 1, (long long)p->epochs,
             (long long)step + 1);
    if (p->steps > 0)
        prog_add(p, " of %lld", (long long)p->steps);
    if (name)
        prog_add(p, "  %.40s %.4g", name, value);
    if (rate > 0)
        prog_add(p, "  %.3g steps/s", rate);
    const double steps = ((double)p->epochs - (double)epoch) * (double)p->steps - (double)step - 1;
    if (rate > 0 && p->steps > 0 && steps >= 0 && steps / rate < 1e9) {
        const int left = (int)(steps / rate + 0.5);
        prog_add(p, "  %d:%02d left", left / 60, left % 60);
    }
    if (prog_terminal(p) ? last || now - p->shown > 0.1 : last) {
        prog_show(p, last && epoch + 1 >= p->epochs);
        p->shown = now;
    } else
        p->open = true;
}

void
jot_progress_end(jot_Progress *p)
{
    if (p->open)
        prog_show(p, true);
    p->open = false;
}
#endif
