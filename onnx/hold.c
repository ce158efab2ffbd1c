/* onnx/hold.c - what a model holds, for as long as it is alive: memory, names, files, plans, and
 * messages, whose unpacking may take ONNX_TIMES times the bytes that there are, and some more for
 * small files: protobuf-c asks our allocator, which refuses beyond.
 *
 * Read before: onnx/parts.h. After: onnx/model.c, onnx/tensor.c. */
#include "onnx/parts.h"
#include "io/parts.h"
#include <sys/mman.h>

enum { ONNX_FREE = 1 << 20 };

/* ---- memory and names ---- */

void *
onnx_take(OnnxArena *arena, size_t n, size_t nbytes)
{
    OnnxBlock *b = nbytes && n > (SIZE_MAX - 64) / nbytes ? NULL : calloc(1, 64 + n * nbytes);
    if (!b)
        return NULL;
    b->next = arena->first;
    arena->first = b;
    return (char *)b + 64;
}

void
onnx_drop(OnnxArena *arena)
{
    for (OnnxBlock *b = arena->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    arena->first = NULL;
}

char *
onnx_copy(OnnxArena *arena, const char *s)
{
    size_t n = strlen(s) + 1;
    char *to = onnx_take(arena, n, 1);
    return to ? memcpy(to, s, n) : NULL;
}

static uint64_t
map_hash(const char *s)
{
    uint64_t h = 14695981039346656037u;
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 1099511628211u;
    return h ^ h >> 32;
}

/* The place of name, or the empty one where it would be; there is always one. */
static int
map_at(const OnnxMap *map, const char *name)
{
    int k = (int)(map_hash(name) & (uint64_t)(map->room - 1));
    while (map->v[k].name && strcmp(map->v[k].name, name))
        k = (k + 1) & (map->room - 1);
    return k;
}

static bool
map_grow(OnnxMap *map)
{
    OnnxMap to = {map->n, map->room ? 2 * map->room : 16, NULL};

    if (to.room > 1 << 28 || !(to.v = calloc((size_t)to.room, sizeof *to.v)))
        return false;
    for (int k = 0; k < map->room; k++)
        if (map->v[k].name)
            to.v[map_at(&to, map->v[k].name)] = map->v[k];
    free(map->v);
    *map = to;
    return true;
}

bool
onnx_map_put(OnnxMap *map, const char *name, void *value)
{
    if (2 * map->n >= map->room && !map_grow(map))
        return false;
    int k = map_at(map, name);
    map->n += !map->v[k].name;
    map->v[k].name = name;
    map->v[k].value = value;
    return true;
}

void *
onnx_map_get(const OnnxMap *map, const char *name)
{
    return map->room ? map->v[map_at(map, name)].value : NULL;
}

/* ---- files ---- */

/* beside: what to do where it is not there. */
bool
onnx_map_file(jot_Ctx *ctx, const char *path, const char *beside, OnnxFile *f)
{
    char why[IO_WHY] = "the file is empty";
    IoBytes b;
    jot_Status status = io_map(path, &b, why);

    if (status || !b.n) {
        jot_raise(ctx, status ? status : JOT_EIO, "onnx: %s: %s%s", path ? path : "(no name)", why,
                  beside);
        return false;
    }
    f->p = b.p;
    f->n = b.n;
    return true;
}

/* Files of external data stand in the model's folder or below. */
static bool
file_inside(const char *location)
{
    for (const char *s = location; s; s = strchr(s, '/'), s = s ? s + 1 : NULL)
        if (!strncmp(s, "..", 2) && (!s[2] || s[2] == '/'))
            return false;
    return *location && *location != '/';
}

const OnnxFile *
onnx_file(jot_Onnx *m, const char *location)
{
    OnnxFile *f;
    char *path;

    if (!m->folder || !file_inside(location)) {
        jot_raise(m->ctx, JOT_EIO, "onnx: external data in %s: %s", location,
                  m->folder ? "outside of the model's folder" : "the model has no folder");
        return NULL;
    }
    path = onnx_take(&m->arena, strlen(m->folder) + strlen(location) + 2, 1);
    f = onnx_take(&m->arena, 1, sizeof *f);
    if (!path || !f) {
        jot_raise(m->ctx, JOT_EMEM, "onnx: no memory");
        return NULL;
    }
    sprintf(path, "%s/%s", m->folder, location);
    for (OnnxFile *g = m->files; g; g = g->next)
        if (!strcmp(g->path, path))
            return g;
    f->path = path;
    if (!onnx_map_file(m->ctx, path, ": weights that the model keeps beside itself: move both, or "
                   "write one file", f))
        return NULL;
    f->next = m->files;
    return m->files = f;
}

/* ---- the end ---- */

static void *
budget_alloc(void *ud, size_t nbytes)
{
    jot_Onnx *m = ud;
    if (nbytes > m->budget)
        return NULL;
    m->budget -= nbytes;
    void *p = malloc(nbytes ? nbytes : 1);
    m->starved |= !p;
    return p;
}

static void
budget_free(void *ud, void *p)
{
    (void)ud;
    free(p);
}

ProtobufCAllocator
onnx_budget(jot_Onnx *m, size_t nbytes)
{
    ProtobufCAllocator a = {budget_alloc, budget_free, m};
    m->starved = false;
    m->budget = nbytes > (SIZE_MAX - ONNX_FREE) / ONNX_TIMES ? SIZE_MAX
                                                             : ONNX_FREE + ONNX_TIMES * nbytes;
    return a;
}

/* The last one who has it: messages and files go. */
void
onnx_unref(void *model, const void *data)
{
    jot_Onnx *m = model;
    ProtobufCAllocator by = {budget_alloc, budget_free, m};

    (void)data;
    if (--m->refs)
        return;
    if (m->message)
        jot_onnx__model__free_unpacked(m->message, &by);
    if (m->tensor)
        jot_onnx__tensor__free_unpacked(m->tensor, &by);
    for (int k = 0; k < m->graphs.room; k++)
        if (m->graphs.v[k].name)
            jot_onnx__graph__free_unpacked(m->graphs.v[k].value, &by);
    for (OnnxFile *f = m->files; f; f = f->next)
        munmap((void *)(uintptr_t)f->p, f->n);
    free(m->graphs.v);
    free(m->weights.v);
    free(m->functions.v);
    onnx_drop(&m->arena);
    free(m);
}

void
onnx_plan_free(OnnxPlan *p)
{
    for (int k = 0; p->data && k < p->n; k++)
        free(p->data[k]);
    jot_func_free(p->f);
    onnx_drop(&p->arena);
    free(p);
}

void
onnx_opened_free(OnnxOpened *o)
{
    for (int k = 0; o->result && k < o->m->n_out; k++)
        free((void *)(uintptr_t)o->result[k].data);
    jot_func_free(o->f);
    onnx_drop(&o->arena);
    free(o);
}

void
onnx_open_drop(jot_Onnx *m)
{
    while (m->opened) {
        OnnxOpened *next = m->opened->next;
        onnx_opened_free(m->opened);
        m->opened = next;
    }
    m->n_opened = 0;
}

void
jot_onnx_free(jot_Onnx *m)
{
    if (!m)
        return;
    for (OnnxPlan *p = m->plans, *next; p; p = next) {
        next = p->next;
        onnx_plan_free(p);
    }
    onnx_open_drop(m);
    jot_close(m->fold);
    onnx_unref(m, NULL);
}
