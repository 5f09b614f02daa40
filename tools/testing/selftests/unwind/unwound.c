// SPDX-License-Identifier: GPL-2.0
/*
 * For channel/user-stacks: makes system calls from functions without frame pointers, in all ways in which one function can
 * be above another on a stack.
 *
 *	unwound [calls]
 *
 * calls sched_get_priority_min(N) with another N from each, and prints N, the address behind the call, and the return
 * addresses that libgcc's unwinder finds there, the innermost first. With `calls` it only calls, for functions with
 * return probes of the kernel: libgcc's unwinder does not know the addresses that these have replaced.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

extern const char behind_call[];

static long number = 7000;
static int only_calls;

struct found {
	unsigned long addresses[200];
	int count;
};

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *data)
{
	struct found *found = data;

	if (found->count < 200 && _Unwind_GetIP(context))
		found->addresses[found->count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

__attribute__((noinline, noclone)) static void call(void)
{
	struct found found = {};
	long result;

	number++;
	if (!only_calls)
		_Unwind_Backtrace(note, &found);
	printf("%ld %p", number, (const void *)behind_call);
	/* The first one is in this function. */
	for (int i = 1; i < found.count; i++)
		printf(" 0x%lx", found.addresses[i]);
	printf("\n");
	fflush(stdout);
#ifdef __aarch64__
	register long syscall_number asm("x8") = SYS_sched_get_priority_min;
	register long argument asm("x0") = number;

	asm volatile("svc #0\n.globl behind_call\nbehind_call:" : "+r"(argument) : "r"(syscall_number) : "memory");
	result = argument;
#else
	asm volatile("syscall\n.globl behind_call\nbehind_call:"
		     : "=a"(result) : "0"((long)SYS_sched_get_priority_min), "D"(number) : "rcx", "r11", "memory");
#endif
	asm volatile("" : : "r"(result), "r"(&found) : "memory");
}

#define here() asm volatile("" ::: "memory") /* the call before is no jump */

__attribute__((noinline, noclone)) static void deep(int depth)
{
	volatile long room[3] = { depth };

	if (depth)
		deep(depth - 1);
	else
		call();
	here();
	room[0] = room[0] + 1;
}

/* The size of the frame is known when it runs only. */
__attribute__((noinline, noclone)) static void variable(size_t size)
{
	char *room = alloca(size);

	memset(room, 1, size);
	call();
	here();
	asm volatile("" : : "r"(room) : "memory");
}

/* The stack is aligned again. */
__attribute__((noinline, noclone)) static void aligned(size_t size)
{
	volatile char room[128] __attribute__((aligned(64))) = {};
	char *more = alloca(size);

	memset(more, 1, size);
	call();
	here();
	asm volatile("" : : "r"(more), "r"(room) : "memory");
}

static int compared;

static int compare(const void *one, const void *other)
{
	if (!compared++)
		call();
	return *(const int *)one - *(const int *)other;
}

static void on_signal(int signal)
{
	(void)signal;
	call();
	here();
}

/* Unwinding of the thread calls this for each frame. */
static void clean(int *depth)
{
	if (*depth < 3)
		call();
	here();
}

__attribute__((noinline, noclone)) static void leave(int depth)
{
	int guard __attribute__((cleanup(clean))) = depth;

	if (depth)
		leave(depth - 1);
	else if (number)
		pthread_exit(NULL);
	here();
	guard++;
}

static void *in_thread(void *unused)
{
	(void)unused;
	deep(3);
	leave(4);
	return NULL;
}

int main(int argc, char **argv)
{
	static char other_stack[1 << 16];
	stack_t stack = {};
	struct sigaction action = {};
	int numbers[] = { 5, 3, 9, 1 };
	pthread_t thread;

	only_calls = argc > 1 && !strcmp(argv[1], "calls");
	call();
	deep(1);
	deep(100);
	for (size_t size = 8; size < 5000; size = size * 3 + 1)
		variable(size), aligned(size);
	qsort(numbers, 4, sizeof(*numbers), compare);
	action.sa_handler = on_signal;
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	stack.ss_sp = other_stack;
	stack.ss_size = sizeof(other_stack);
	sigaltstack(&stack, NULL);
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR2, &action, NULL);
	raise(SIGUSR2);
	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
	return 0;
}
