/* base.h - what the rest of jot needs instead of libc: memory, growable arrays, an arena, a text
 * writer, hashing and bit masks. Freestanding: C99's freestanding headers and memcpy, memmove,
 * memset, memcmp.
 *
 * Running out of memory is an answer here, not an accident. An allocation that is refused returns
 * NULL (0, false) and raises `failed` in its Mem; passes may go on with the sink record that
 * jot_vec_push hands out and their driver looks at the flag after each pass.
 *
 * Read before: core.h (jot_Hooks). After: ops/index/index.h. */
#ifndef JOT_BASE_H
#define JOT_BASE_H
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core.h"

#ifndef JOT_FN
#define JOT_FN /* functions shared between our files; `static` in the one-file build */
#endif
/* Checked where uint32_t is unsigned: without a system it may be unsigned long, as wide. */
#if defined(__GNUC__) && !defined(__TINYC__) && (defined(__unix__) || defined(__APPLE__))
#define JOT_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define JOT_PRINTF(fmt, args)
#endif

/* A function that is not inlined: its frame is large, and a recursion calls it. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define JOT_DISTINCT __attribute__((noinline))
#else
#define JOT_DISTINCT
#endif

/* 1 in builds with AddressSanitizer or MemorySanitizer. There freed memory is not kept for reuse,
 * and a growing array moves at every growth, so that the sanitizer sees pointers into the old
 * one. */
#if defined(__SANITIZE_ADDRESS__)
#define JOT_WATCHED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
#define JOT_WATCHED 1
#endif
#endif
#ifndef JOT_WATCHED
#define JOT_WATCHED 0
#endif

/* a*b + c is rounded twice, as in every kernel: gcc does so under -std=c99, clang when told. */
#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* Invariants of jot itself: checked in builds with JOT_CHECKED (all tests), which need the host. */
#ifdef JOT_CHECKED
#define JOT_ASSERT(cond, what) ((cond) ? (void)0 : jot_base_bug(__FILE__, __LINE__, what))
JOT_FN void jot_base_bug(const char *file, int line, const char *what); /* backends/host/host.c */
#else
#define JOT_ASSERT(cond, what) ((void)0)
#endif

void *memcpy(void *restrict to, const void *restrict from, size_t nbytes);
void *memmove(void *to, const void *from, size_t nbytes);
void *memset(void *to, int byte, size_t nbytes);
int memcmp(const void *a, const void *b, size_t nbytes);

/* ---- memory: the user's one hook, and blocks kept for reuse (base_mem.c) ---- */
enum { MEM_SMALL = 33, MEM_LARGE = 64 };
typedef struct MemBlock MemBlock;
typedef struct {
    jot_Hooks hooks;
    size_t live_nbytes; /* in use */
    size_t most_nbytes; /* highest live_nbytes so far */
    size_t held_nbytes; /* taken from the hook and not given back: in use, or kept */
    size_t peak_nbytes; /* highest held_nbytes so far */
    uint64_t calls;     /* number of times the hook was called */
    bool failed;        /* sticky: some allocation was refused */
    size_t refused_nbytes; /* of the last that was; SIZE_MAX: more than can be said */
    bool keeps;         /* freed blocks are kept */
    uint64_t tick;      /* evaluations so far */
    size_t small_nbytes; /* kept in `small` */
    MemBlock *small[MEM_SMALL], *large[MEM_LARGE], *oldest, *newest;
    uint64_t sink[64];  /* what a refused jot_vec_push hands out */
} Mem;

/* Grow, shrink (new_nbytes may be 0: free) or allocate (p NULL, old 0). Contents kept, new bytes
 * are not cleared. On refusal returns NULL, raises mem->failed, and p stays valid. */
JOT_FN void *jot_mem_realloc(Mem *mem, void *p, size_t old_nbytes, size_t new_nbytes);
/* count * size bytes, cleared; NULL on refusal or when the product overflows. */
JOT_FN void *jot_mem_new(Mem *mem, size_t count, size_t size);
JOT_FN void jot_mem_free(Mem *mem, void *p, size_t nbytes);
/* keep: whether freed blocks are kept for reuse from now on. tick: an evaluation has ended; blocks
 * that were not reused for many evaluations are given back. close: give back all kept blocks. */
JOT_FN void jot_mem_keep(Mem *mem, bool keeps);
JOT_FN void jot_mem_tick(Mem *mem);
JOT_FN void jot_mem_close(Mem *mem);

/* ---- growable arrays: Vec(T) a = {0}; *jot_vec_push(mem, a) = x; a.v[i]; jot_vec_free(mem, a) */
#define Vec(T) struct { T *v; uint32_t n, cap; }
/* Make room for `more` elements beyond n. False on refusal (the array is as before). */
#define jot_vec_reserve(mem, vec, more) \
    ((uint64_t)(vec).n + (uint32_t)(more) <= (vec).cap || \
     jot_vec_grow((mem), (void **)(void *)&(vec).v, &(vec).cap, (vec).n, (more), sizeof *(vec).v))
/* Append one cleared element and yield a pointer to it; on refusal a pointer to the sink, and n is
 * as before. Elements are at most sizeof mem->sink bytes. */
#define jot_vec_push(mem, vec) \
    (jot_vec_reserve((mem), (vec), 1) \
         ? (memset(&(vec).v[(vec).n], 0, sizeof *(vec).v), &(vec).v[(vec).n++]) \
         : (memset((mem)->sink, 0, sizeof (mem)->sink), (void *)(mem)->sink))
#define jot_vec_free(mem, vec) \
    (jot_mem_free((mem), (vec).v, (size_t)(vec).cap * sizeof *(vec).v), \
     (vec).v = NULL, (vec).n = (vec).cap = 0)
JOT_FN bool jot_vec_grow(Mem *mem, void **v, uint32_t *cap, uint32_t n, uint32_t more, size_t size);

/* ---- arena: many small cleared records with one lifetime ---- */
typedef struct ArenaBlock ArenaBlock;
typedef struct {
    Mem *mem;
    ArenaBlock *head; /* block being filled; earlier ones follow */
} Arena;
JOT_FN void *jot_arena_new(Arena *arena, size_t count, size_t size); /* 16-byte aligned */
JOT_FN char *jot_arena_copy(Arena *arena, const char *text, size_t n); /* n bytes and a final 0 */
JOT_FN void jot_arena_join(Arena *arena, Arena *from);                 /* all that `from` has */
JOT_FN void jot_arena_free(Arena *arena);                              /* everything at once */
#define jot_arena_array(arena, T, count) ((T *)jot_arena_new((arena), (count), sizeof(T)))

/* ---- text writer ---- */
typedef struct {
    Mem *mem;   /* NULL: `s` is a fixed buffer of `cap` bytes and what does not fit is cut off */
    char *s;    /* always ends in a 0 once something was written */
    size_t n, cap;
} Text;
/* A subset of printf: %d %i %u %x %ld %lu %lld %llu %zu %c %s %.*s %g %%, with a width (or *), '-'
 * and '0'. %g writes a double so that it reads back exactly (shortest of a decimal or a C99 hex
 * float). */
JOT_FN void jot_text_f(Text *text, const char *format, ...) JOT_PRINTF(2, 3);
JOT_FN void jot_text_v(Text *text, const char *format, va_list args);
JOT_FN void jot_text_put(Text *text, const char *s, size_t n);
JOT_FN void jot_text_free(Text *text);
/* Text of x that a C compiler reads back as the same double (float if is_f32: with suffix f).
 * Finite values only: infinities and NaN have no literal. Returns the length; buf holds 40. */
JOT_FN int jot_text_float(char *buf, double x, bool is_f32);

/* A structure into the caller's of another version: what both have, and 0 beyond. */
JOT_FN void jot_sized(void *to, size_t to_nbytes, const void *from, size_t from_nbytes);

/* ---- strings, hashing, bits ---- */
JOT_FN size_t jot_str_len(const char *s);
JOT_FN bool jot_char_word(char c); /* of a name: a letter, a digit, _ */
JOT_FN bool jot_str_eq(const char *a, const char *b);
JOT_FN uint64_t jot_str_seed(const char *word); /* 12 of "random:12" */
JOT_FN uint64_t jot_hash(uint64_t seed, const void *p, size_t nbytes);
JOT_FN uint64_t jot_hash_u64(uint64_t seed, uint64_t value);
/* The place of a number among n, from 1 on; 0: it is not among them. */
JOT_FN uint32_t jot_find_u32(const uint32_t *v, uint32_t n, uint32_t what);
JOT_FN int jot_bits_count(uint64_t bits);
JOT_FN int jot_bits_first(uint64_t bits); /* index of the lowest 1, -1 for none */

/* ---- sorting: ascending by key, tie, a, b; tmp has room for n ---- */
typedef struct { uint64_t key, tie; uint32_t a, b; } Rank;
JOT_FN void jot_rank_sort(Rank *v, Rank *tmp, uint32_t n);

/* ---- checked 64-bit arithmetic: false (and *r unchanged) on overflow ---- */
JOT_FN bool jot_add_ok(int64_t a, int64_t b, int64_t *r);
JOT_FN bool jot_mul_ok(int64_t a, int64_t b, int64_t *r);
JOT_FN int64_t jot_floor_div(int64_t a, int64_t b); /* b != 0 */
JOT_FN int64_t jot_floor_mod(int64_t a, int64_t b); /* b != 0; sign of b */

#endif
