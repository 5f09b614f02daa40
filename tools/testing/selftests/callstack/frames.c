// SPDX-License-Identifier: GPL-2.0
/*
 * For channel/callstack: makes system calls from known stacks.
 *
 *	frames DEPTH POLICY [FRAME-POINTER]
 *
 * calls sched_get_priority_min(POLICY) from DEPTH nested functions, and prints the code addresses of the
 * stack by frame pointers, from the call outwards to the caller of main(). With FRAME-POINTER it makes the
 * call with that frame pointer; then it prints the address of the call only. `self` is a frame that is its
 * own caller.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

extern const char behind_call[];

__attribute__((noinline, noclone)) static long call(unsigned int steps, long policy, const void *pointer)
{
	void **frame = __builtin_frame_address(0);
	long result = SYS_sched_get_priority_min;

	printf("0x%lx\n", (unsigned long)behind_call);
	if (!pointer) {
		pointer = frame;
		while (steps--) {
			printf("0x%lx\n", (unsigned long)frame[1]);
			frame = frame[0];
		}
	}
	fflush(stdout);
#ifdef __aarch64__
	/* A call of a function would overwrite these registers: set them last. */
	register const void *fp asm("x9") = pointer;
	register long number asm("x8") = result;
	register long argument asm("x0") = policy;

	asm volatile("stp x29, x30, [sp, #-16]!\n\t"
		     "mov x29, %2\n\t"
		     "svc #0\n"
		     ".globl behind_call\n"
		     "behind_call:\n\t"
		     "ldp x29, x30, [sp], #16"
		     : "+r"(argument) : "r"(number), "r"(fp) : "memory");
	result = argument;
#else
	asm volatile("push %%rbp\n\t"
		     "mov %2, %%rbp\n\t"
		     "syscall\n"
		     ".globl behind_call\n"
		     "behind_call:\n\t"
		     "pop %%rbp"
		     : "+a"(result) : "D"(policy), "r"(pointer) : "rcx", "r11", "memory");
#endif
	return result;
}

__attribute__((noinline, noclone)) static long descend(unsigned int depth, unsigned int steps, long policy,
							const void *pointer)
{
	long result = depth > 1 ? descend(depth - 1, steps, policy, pointer) : call(steps, policy, pointer);

	asm volatile("" : "+r"(result)); /* this frame stays */
	return result;
}

int main(int argc, char **argv)
{
	static void *self[2];
	const void *pointer = NULL;
	unsigned int depth;

	if (argc < 3)
		return 2;
	self[0] = self;
	self[1] = (void *)behind_call;
	if (argc > 3)
		pointer = strcmp(argv[3], "self") ? (void *)strtoul(argv[3], NULL, 0) : self;
	depth = strtoul(argv[1], NULL, 0);
	/* DEPTH functions, call() and main(). */
	descend(depth, depth + 2, strtol(argv[2], NULL, 0), pointer);
	return 0;
}
