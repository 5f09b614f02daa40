// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: calls N [CPU]... | calls -c CHILDREN N | calls -32 N
 *
 * Makes N calls of sched_get_priority_min(2) on each of these CPUs (default: all online ones),
 * at the same time, numbered from 0 by their argument. No other process makes this call. With -c this process makes N
 * calls, then its child makes N, then that one's child, and so on. With -32 this process makes each of N calls also
 * as a 32-bit program does, and then a 32-bit call that does not exist; on arm64 a child makes each of these. If not
 * all could be made, prints why and exits with status 1.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* Makes calls in a process of its own, on this CPU, after the other end of the pipe was closed. */
static void make_calls(long n, int cpu, int pipe)
{
	cpu_set_t only;
	char byte;

	CPU_ZERO(&only);
	CPU_SET(cpu, &only);
	if (sched_setaffinity(0, sizeof(only), &only))
		err(1, "calls: CPU %d", cpu);
	if (read(pipe, &byte, 1) != 0)
		err(1, "calls: read");
	for (long i = 0; i < n; i++)
		sched_get_priority_min(i);
	exit(0);
}

/* Makes the calls of the children; each is the child of the previous one. */
static int call_in_children(long number, int children)
{
	int status;

	switch (children ? fork() : 1) {
	case -1:
		err(1, "calls: fork");
	case 0:
		sched_get_priority_min(number);
		exit(call_in_children(number + 1, children - 1));
	}
	if (children && (wait(&status) < 0 || status))
		return 1;
	return 0;
}

/* Makes a call by the entry for 32-bit programs, whose numbers differ. */
#ifdef __x86_64__
static int call_32(int number, int argument)
{
	int result;

	asm volatile("int $0x80"
		     : "=a" (result)
		     : "0" (number), "b" (argument), "c" (0), "d" (0), "S" (0), "D" (0)
		     : "memory", "r8", "r9", "r10", "r11");
	return result;
}
#else
enum { BASE = 0x10000, MOVW_R0 = 0xe3000000, MOVW_R7 = 0xe3007000, SVC_0 = 0xef000000, EXIT = 1 };

/* Returns the instruction of ARM that moves a number to a register. */
static Elf32_Word movw(Elf32_Word instruction, unsigned int number)
{
	return instruction | (number & 0xf000) << 4 | (number & 0xfff);
}

/* The child executes a 32-bit program, whose exit status is the lowest byte of the result. */
static int call_32(int number, int argument)
{
	struct {
		Elf32_Ehdr header;
		Elf32_Phdr segment;
		Elf32_Word code[5];
	} program = {
		.header = {
			.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_EXEC, .e_machine = EM_ARM, .e_version = EV_CURRENT, .e_flags = EF_ARM_EABI_VER5,
			.e_entry = BASE + sizeof(Elf32_Ehdr) + sizeof(Elf32_Phdr), .e_ehsize = sizeof(Elf32_Ehdr),
			.e_phoff = sizeof(Elf32_Ehdr), .e_phentsize = sizeof(Elf32_Phdr), .e_phnum = 1,
		},
		.segment = {
			.p_type = PT_LOAD, .p_vaddr = BASE, .p_filesz = sizeof(program), .p_memsz = sizeof(program),
			.p_flags = PF_R | PF_X, .p_align = BASE,
		},
		.code = { movw(MOVW_R7, number), movw(MOVW_R0, argument), SVC_0, movw(MOVW_R7, EXIT), SVC_0 },
	};
	int file = memfd_create("program", 0), status;
	char *none[] = { NULL };

	if (file < 0 || write(file, &program, sizeof(program)) != sizeof(program))
		err(1, "calls: memfd_create");
	switch (fork()) {
	case -1:
		err(1, "calls: fork");
	case 0:
		fexecve(file, none, none);
		errx(1, "calls: the kernel runs no 32-bit programs");
	}
	if (wait(&status) < 0 || !WIFEXITED(status))
		errx(1, "calls: the 32-bit program failed");
	close(file);
	return (signed char)WEXITSTATUS(status);
}
#endif

static int make_calls_32(int n)
{
	enum { SCHED_GET_PRIORITY_MIN = 160, NONE = 9999 };

	for (int i = 0; i < n; i++) {
		int result = call_32(SCHED_GET_PRIORITY_MIN, i);

		if (result != sched_get_priority_min(i) && result >= -1)
			errx(1, "calls: the kernel takes no calls of 32-bit programs");
	}
	call_32(NONE, 7);
	return 0;
}

int main(int argc, char **argv)
{
	int processes = 0, begin[2], status, failed = 0;
	cpu_set_t cpus;
	long n;

	if (argc == 4 && !strcmp(argv[1], "-c")) {
		n = atol(argv[3]);
		for (long i = 0; i < n; i++)
			sched_get_priority_min(i);
		return call_in_children(n, atoi(argv[2]));
	}
	if (argc == 3 && !strcmp(argv[1], "-32"))
		return make_calls_32(atoi(argv[2]));
	if (argc < 2)
		errx(2, "usage: calls N [CPU]... | calls -c CHILDREN N | calls -32 N");
	n = atol(argv[1]);
	CPU_ZERO(&cpus);
	for (int i = 2; i < argc; i++)
		CPU_SET(atoi(argv[i]), &cpus);
	if (argc == 2 && sched_getaffinity(0, sizeof(cpus), &cpus))
		err(1, "calls: sched_getaffinity");
	if (pipe(begin))
		err(1, "calls: pipe");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &cpus))
			continue;
		switch (fork()) {
		case -1:
			err(1, "calls: fork");
		case 0:
			close(begin[1]);
			make_calls(n, cpu, begin[0]);
		}
		processes++;
	}
	close(begin[1]);
	while (processes-- && wait(&status) > 0)
		failed |= status;
	return failed ? 1 : 0;
}
