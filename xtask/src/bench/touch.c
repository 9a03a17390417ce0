/* Maps private anonymous memory without huge pages, writes a word to each page, unmaps it; so many rounds.
 *
 * Prints pages a second of wall time and of CPU time of the touching alone. What bench fault is held against.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	size_t bytes = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	long rounds = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	size_t page = sysconf(_SC_PAGESIZE);
	double wall = 0, cpu = 0;
	cpu_set_t allowed, one;

	if (bytes < page || rounds < 1)
		return 2;
	/* The highest CPU: interrupts and housekeeping prefer the lowest. */
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int i = CPU_SETSIZE - 1; i >= 0; i--) {
		if (CPU_ISSET(i, &allowed)) {
			CPU_ZERO(&one);
			CPU_SET(i, &one);
			sched_setaffinity(0, sizeof(one), &one);
			break;
		}
	}
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	for (long r = 0; r < rounds; r++) {
		char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			return 1;
		double cpu_before = now(CLOCK_THREAD_CPUTIME_ID);
		double before = now(CLOCK_MONOTONIC);
		for (size_t i = 0; i < bytes; i += page)
			*(volatile uint64_t *)(memory + i) = 1;
		wall += now(CLOCK_MONOTONIC) - before;
		cpu += now(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
		munmap(memory, bytes);
	}
	double pages = (double)(bytes / page) * rounds;
	printf("%.3f %.3f\n", pages / wall, pages / cpu);
	return 0;
}
