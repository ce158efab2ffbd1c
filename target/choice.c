/* target/choice.c - choices among schedules: by price or by a script, and noted.
 *
 * Read before: target/choice.h. After: ccode/schedule/choose.c, plan/tier/trial.c. */
#include "target/choice.h"
#include "target/thresholds.h"

JOT_FN void
jot_choices_free(Choices *choices)
{
    jot_vec_free(choices->mem, choices->path);
    jot_vec_free(choices->mem, choices->seen);
}

JOT_FN Choice
jot_choice_begin(const Target *target)
{
    Choices *all = target->choices;
    Choice c;

    memset(&c, 0, sizeof c);
    c.target = target;
    if (!all || all->quiet)
        return c;
    c.choices = all;
    c.at = all->path.n;
    *(uint64_t *)jot_vec_push(all->mem, all->path) = 0;
    return c;
}

JOT_FN bool
jot_choice_try(Choice *c, uint64_t what, double price, double margin)
{
    Choices *all = c->choices;
    double cost = jot_target_price(c->target, what, price);
    bool wanted = all && c->at < all->nscript && all->script[c->at] == what;
    bool better = wanted || !c->n || (!c->written && cost < margin * c->price);

    if (all) {
        Alternative *seen = jot_vec_push(all->mem, all->seen);

        seen->what = what;
        seen->price = cost;
        seen->at = c->at;
    }
    c->n++;
    if (better) {
        c->what = what;
        c->price = cost;
        c->written = wanted;
    }
    return better;
}

JOT_FN void
jot_choice_end(Choice *c)
{
    Choices *all = c->choices;

    if (!all || c->at >= all->path.n)
        return;
    all->path.v[c->at] = c->what;
    if (c->at < all->nscript && all->script[c->at] != c->what)
        all->missed = true;
}

JOT_FN int
jot_choice_rule(const Target *target, uint64_t what, int n, int rule)
{
    Choice c = jot_choice_begin(target);
    int i, best = rule;

    (void)jot_choice_try(&c, what + (uint64_t)rule, 1, 1);
    for (i = 0; i < n; i++)
        if (i != rule && jot_choice_try(&c, what + (uint64_t)i, CHOICE_RULED, 1))
            best = i;
    jot_choice_end(&c);
    return best;
}

JOT_FN void
jot_choice_quiet(const Target *target, bool quiet)
{
    if (target->choices)
        target->choices->quiet += quiet ? 1 : -1;
}
