/* bench/floor.h - what this machine can do, measured in this process: bench/floor.c, floor_work.c.
 */
#ifndef JOT_FLOOR_H
#define JOT_FLOOR_H

/* f32 operations per second of so many threads, multiply-adds counted twice. */
double floor_peak(int threads);
/* Seconds that plain loops on so many threads take to read and write so many bytes (0 for none). */
double floor_bytes(double read, double write, int threads);
/* Seconds of a loop by hand with the workload's sizes, reads and writes; 0: there is none. */
double floor_work(const char *name, int threads);
/* Seconds of the fastest of some runs of part(arg, 0..n-1, n), all at a time, with n = 1 or
 * threads. */
typedef void FloorPart(void *arg, int part, int parts);
double floor_best(FloorPart *part, void *arg, int threads);

#endif
