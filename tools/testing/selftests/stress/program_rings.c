// SPDX-License-Identifier: GPL-2.0
/*
 * Records events of a program through rings. Prints "CALLS LOST": the number of records that it has made, and of those that
 * had no room.
 *
 *	program_rings record COUNT [THREADS [PAUSE]]
 *	    each thread records COUNT events, with a pause of PAUSE microseconds after each 1,000
 *	program_rings kill COUNT [THREADS]
 *	    the same, then waits for a signal
 *	program_rings storm COUNT THREADS
 *	    the same, while signals interrupt the threads, whose handler records, too, and may leave by siglongjmp()
 *	program_rings leave COUNT THREADS
 *	    returns from main() when COUNT events are recorded, while the threads go on recording
 *	program_rings fork COUNT
 *	    the parent and a child record COUNT events each, and a grandchild, that has the descriptors of both, sleeps
 *	program_rings exec COUNT PROGRAM...
 *	    records COUNT events, then executes the program
 *
 * Each record has the number of its thread, a number that grows by one, and a sum over both.
 */
#define _GNU_SOURCE
#include <rtrace/event.h>

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

RTRACE_EVENT(rings, number, (u32, thread), (u32, handler), (u64, number), (x64, sum));
RTRACE_EVENT(rings, text, (u8, thread), (string, text));
RTRACE_EVENT(rings, empty);

static long count, pause_us;
static int storms;
static __thread uint32_t me;
static __thread uint64_t numbers[2];
static __thread sigjmp_buf away;
static __thread volatile sig_atomic_t may_leave;
static uint64_t calls;

static void record(int handler)
{
	uint64_t number = numbers[handler]++;

	rtrace_event(rings, number, me, handler, number, (number ^ me) * 0x9E3779B97F4A7C15ull + handler);
}

static void on_signal(int signal)
{
	if (!me)
		return;
	record(1);
	if (signal == SIGUSR2 && may_leave)
		siglongjmp(away, 1);
}

/* Records until the process ends. */
static void *work_on(void *number)
{
	me = (uintptr_t)number;
	for (;;) {
		record(0);
		__atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *work(void *number)
{
	volatile long left = count;

	me = (uintptr_t)number;
	sigsetjmp(away, 1);
	may_leave = storms;
	while (left > 0) {
		record(0);
		left--;
		if (pause_us && left % 1000 == 0)
			usleep(pause_us);
	}
	may_leave = 0;
	if (!storms) {
		rtrace_event(rings, text, me, "of a thread");
		rtrace_event(rings, empty);
	}
	__atomic_fetch_add(&calls, numbers[0] + numbers[1] + 2 * !storms, __ATOMIC_RELAXED);
	return NULL;
}

static void run(int threads)
{
	pthread_t *all = calloc(threads, sizeof(*all));

	for (long i = 0; i < threads; i++)
		if (pthread_create(&all[i], NULL, work, (void *)(i + 1)))
			exit(1);
	if (storms) {
		unsigned int random = getpid();
		struct timespec moment = { 0, 50000 };

		for (int sent = 0; sent < 20000; sent++) {
			random = random * 1103515245 + 12345;
			/* A thread that has ended is no error: it is not joined yet. */
			pthread_kill(all[(random >> 8) % threads], random & 0x10000 ? SIGUSR1 : SIGUSR2);
			if (!(random & 0x70000))
				nanosleep(&moment, NULL);
		}
	}
	for (int i = 0; i < threads; i++)
		pthread_join(all[i], NULL);
	free(all);
}

static void show(void)
{
	printf("%llu %llu\n", (unsigned long long)calls, (unsigned long long)rtrace_lost());
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";
	int threads = argc > 3 ? atoi(argv[3]) : 1;

	if (!*what)
		return 2;
	count = atol(argv[2]);
	if (!strcmp(what, "record")) {
		pause_us = argc > 4 ? atol(argv[4]) : 0;
		run(threads);
		show();
	} else if (!strcmp(what, "kill")) {
		run(threads);
		show();
		pause();
	} else if (!strcmp(what, "storm")) {
		struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

		sigfillset(&action.sa_mask);
		sigaction(SIGUSR1, &action, NULL);
		sigaction(SIGUSR2, &action, NULL);
		storms = 1;
		run(threads);
		show();
	} else if (!strcmp(what, "leave")) {
		pthread_t thread;

		for (long i = 0; i < threads; i++)
			if (pthread_create(&thread, NULL, work_on, (void *)(i + 1)))
				return 1;
		while (__atomic_load_n(&calls, __ATOMIC_RELAXED) < (uint64_t)count)
			usleep(1000);
	} else if (!strcmp(what, "fork")) {
		int status;

		work((void *)1);
		if (!fork()) {
			numbers[0] = 0;
			work((void *)2);
			/* It keeps the descriptors, and outlives its parents. */
			if (!fork()) {
				close(1);
				sleep(5);
				_exit(0);
			}
			_exit(rtrace_lost() != 0);
		}
		wait(&status);
		if (status)
			return 1;
		calls += count + 2;
		show();
	} else if (!strcmp(what, "exec")) {
		work((void *)1);
		show();
		execvp(argv[3], argv + 3);
		return 1;
	} else {
		return 2;
	}
	return 0;
}
