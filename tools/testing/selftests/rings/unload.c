// SPDX-License-Identifier: GPL-2.0
/*
 * Loads a library with an event, records it, and unloads the library, while the threads that recorded go on computing. The
 * kernel reads what a thread's rseq area points to when it preempts the thread. If that were in the library, the process
 * would be killed. Usage: unload LIBRARY COUNT. Prints the number of records.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void (*call)(uint64_t number);
static volatile int has_recorded, ends;

/* Records, then computes without a call of the kernel. */
static void *work(void *unused)
{
	volatile uint64_t sum = 0;

	(void)unused;
	for (int i = 0; i < 100; i++)
		call(i);
	__atomic_fetch_add(&has_recorded, 1, __ATOMIC_SEQ_CST);
	while (!ends)
		sum += 1;
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 2 ? atoi(argv[2]) : 0;

	for (int i = 0; i < count; i++) {
		pthread_t threads[2];
		void *library = dlopen(argv[1], RTLD_NOW);

		if (!library || !(call = (void (*)(uint64_t))dlsym(library, "call"))) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		has_recorded = ends = 0;
		for (int n = 0; n < 2; n++)
			if (pthread_create(&threads[n], NULL, work, NULL))
				return 1;
		while (has_recorded < 2)
			;
		dlclose(library);
		/* Long enough to be preempted. */
		for (volatile int wait = 0; wait < 20000000; wait++)
			;
		ends = 1;
		for (int n = 0; n < 2; n++)
			pthread_join(threads[n], NULL);
	}
	printf("%d\n", 200 * count);
	return 0;
}
