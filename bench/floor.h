/* bench/floor.h - what this machine can do, measured in this process: bench/floor.c. */
#ifndef JOT_FLOOR_H
#define JOT_FLOOR_H

/* f32 operations per second of so many threads, multiply-adds counted twice. */
double floor_peak(int threads);
/* Seconds that plain loops on so many threads take to read and write so many bytes (0 for none). */
double floor_bytes(double read, double write, int threads);

#endif
