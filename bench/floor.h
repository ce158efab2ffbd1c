/* bench/floor.h - what this machine can do, measured in this process: bench/floor.c. */
#ifndef JOT_FLOOR_H
#define JOT_FLOOR_H

double floor_peak(void); /* f32 operations per second of one core, multiply-adds counted twice */
/* Seconds that a plain loop takes to read and write so many bytes (0 for none). */
double floor_bytes(double read, double write);

#endif
