// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: held
 *
 * The thread `owner` holds locks for which two threads wait, a known number of times. Prints a line for each lock and
 * thread:
 *
 *   ADDRESS KIND WAITER waits failed
 *
 * A thread waits for sure: the owner looks into /proc until the thread sleeps in futex(2).
 * The owner also locks `inner` while it holds `outer`, so that it holds `outer` longer:
 *
 *   ADDRESS outer|inner owner times
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NESTED 20

/* Functions of the program's own, whose calls and returns can be probed. (The C library's function may jump to another one
 * instead of returning.) */
__attribute__((noinline)) void take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void give(pthread_mutex_t *mutex)
{
	pthread_mutex_unlock(mutex);
	__asm__ volatile("" ::: "memory");
}

/* A thread that locks what it is told to. */
struct waiter {
	const char *name;
	pid_t tid;
	/* Pipes: orders to the thread, and its answers. */
	int orders[2], answers[2];
};

struct order {
	pthread_mutex_t *mutex;
	int is_timed;
};

static void *wait_for_orders(void *argument)
{
	struct waiter *waiter = argument;
	struct order order;
	int result;

	prctl(PR_SET_NAME, waiter->name);
	waiter->tid = syscall(SYS_gettid);
	if (write(waiter->answers[1], "r", 1) != 1)
		err(1, "write");
	while (read(waiter->orders[0], &order, sizeof(order)) == sizeof(order)) {
		if (order.is_timed) {
			struct timespec until;

			clock_gettime(CLOCK_REALTIME, &until);
			until.tv_nsec += 2000000;
			until.tv_sec += until.tv_nsec / 1000000000;
			until.tv_nsec %= 1000000000;
			result = pthread_mutex_timedlock(order.mutex, &until);
			if (result != ETIMEDOUT)
				errx(1, "a wait for a lock that is held ended with %s", strerror(result));
		} else {
			take(order.mutex);
			give(order.mutex);
		}
		if (write(waiter->answers[1], "d", 1) != 1)
			err(1, "write");
	}
	return NULL;
}

static void answer(struct waiter *waiter)
{
	char byte;

	if (read(waiter->answers[0], &byte, 1) != 1)
		err(1, "read");
}

static void start(struct waiter *waiter, const char *name)
{
	pthread_t thread;

	waiter->name = name;
	if (pipe(waiter->orders) || pipe(waiter->answers))
		err(1, "pipe");
	if (pthread_create(&thread, NULL, wait_for_orders, waiter))
		errx(1, "pthread_create failed");
	answer(waiter);
}

/* Whether the thread sleeps in futex(2), by the state and the number of the call in /proc. */
static int sleeps(const struct waiter *waiter)
{
	char path[64], text[256] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", waiter->tid);
	file = fopen(path, "r");
	if (!file)
		err(1, "%s", path);
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	/* A thread that runs has the text `running`. */
	return atoi(text) == SYS_futex;
}

/* The waiter waits `waits` times for the mutex, and `failed` times in vain. */
static void hold(struct waiter *waiter, pthread_mutex_t *mutex, const char *kind, int waits, int failed)
{
	for (int n = 0; n < waits + failed; n++) {
		struct order order = { .mutex = mutex, .is_timed = n >= waits };

		take(mutex);
		if (write(waiter->orders[1], &order, sizeof(order)) != sizeof(order))
			err(1, "write");
		if (order.is_timed)
			answer(waiter);
		else
			while (!sleeps(waiter))
				usleep(100);
		give(mutex);
		if (!order.is_timed)
			answer(waiter);
	}
	printf("%p %s %s %d %d\n", (void *)mutex, kind, waiter->name, waits + failed, failed);
}

int main(void)
{
	static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER, outer = PTHREAD_MUTEX_INITIALIZER,
			       inner = PTHREAD_MUTEX_INITIALIZER, inherits;
	static struct waiter first, second;
	pthread_mutexattr_t attributes;

	prctl(PR_SET_NAME, "owner");
	pthread_mutexattr_init(&attributes);
	if (pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) || pthread_mutex_init(&inherits, &attributes))
		errx(1, "no mutex that inherits priorities");
	start(&first, "first");
	start(&second, "second");
	hold(&first, &plain, "plain", 5, 2);
	hold(&second, &plain, "plain", 3, 0);
	hold(&second, &inherits, "inherits", 4, 0);
	for (int n = 0; n < NESTED; n++) {
		take(&outer);
		take(&inner);
		give(&inner);
		give(&outer);
	}
	printf("%p outer owner %d\n%p inner owner %d\n", (void *)&outer, NESTED, (void *)&inner, NESTED);
	return 0;
}
