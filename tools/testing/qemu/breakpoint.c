// SPDX-License-Identifier: GPL-2.0
/*
 * breakpoint SECONDS: patches an instruction that another thread executes all the time, as the
 * kernel patches its own (smp_text_poke_batch_finish() in arch/x86/kernel/alternative.c): a
 * breakpoint, the other bytes, the first byte, and all CPUs synchronized after each step. Prints how
 * often the breakpoint was hit repeatedly after its removal.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define LENGTH 5
#define BREAKPOINT 0xcc
#define RETURN 0xc3
/* A breakpoint that was hit before its removal may be handled later, but not this often. */
#define STALE 200

static const unsigned char NOP[LENGTH] = { 0x0f, 0x1f, 0x44 }, JUMP[LENGTH] = { 0xe9 };

/* The same bytes, for writing and for executing. */
static volatile unsigned char *written, *executed;
static atomic_bool patching;
static atomic_ulong patches, calls, hits, stale;

static void membarrier(int command)
{
	if (syscall(SYS_membarrier, command, 0, 0))
		err(2, "membarrier");
}

/* Handles a breakpoint: continues after the instruction; or at it again, if the hit is unexpected. */
static void hit(int signal, siginfo_t *info, void *context)
{
	static unsigned long last, again;
	greg_t *ip = &((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned long patch = patches;

	(void)signal;
	(void)info;
	hits++;
	if (!patching && *written != BREAKPOINT && patch == patches) {
		again = patch == last ? again + 1 : 1;
		last = patch;
		if (again < STALE) {
			*ip = (greg_t)executed;
			return;
		}
		stale += again == STALE;
	}
	*ip = (greg_t)executed + LENGTH;
}

static void *execute(void *unused)
{
	for (;;) {
		((void (*)(void))executed)();
		calls++;
	}
	return unused;
}

static void patch(const unsigned char *to)
{
	patches++;
	patching = true;
	*written = BREAKPOINT;
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
	for (int i = 1; i < LENGTH; i++)
		written[i] = to[i];
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
	*written = *to;
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE);
	patching = false;
}

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = hit, .sa_flags = SA_SIGINFO };
	const struct timespec pause = { .tv_nsec = 20000 };
	const size_t page = 4096;
	int file = memfd_create("breakpoint", 0);
	pthread_t thread;
	time_t end;

	if (argc != 2 || atoi(argv[1]) <= 0)
		errx(2, "usage: breakpoint SECONDS");
	if (file < 0 || ftruncate(file, page))
		err(2, "memfd");
	written = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	executed = mmap(NULL, page, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
	if (written == MAP_FAILED || executed == MAP_FAILED)
		err(2, "mmap");
	memcpy((void *)written, NOP, LENGTH);
	written[LENGTH] = RETURN;
	membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE);
	if (sigaction(SIGTRAP, &action, NULL) || pthread_create(&thread, NULL, execute, NULL))
		err(2, "cannot begin");
	end = time(NULL) + atoi(argv[1]);
	while (time(NULL) < end) {
		unsigned long before;

		patch(patches % 2 ? NOP : JUMP);
		/* Waits until it was executed some times, or a breakpoint is hit instead. */
		before = calls;
		for (int i = 0; i < 2000 && calls < before + 3; i++)
			nanosleep(&pause, NULL);
	}
	printf("%lu patches, %lu calls, %lu breakpoints hit, after %lu patches %d times when it was gone\n",
	       patches, calls, hits, stale, STALE);
	return 0;
}
