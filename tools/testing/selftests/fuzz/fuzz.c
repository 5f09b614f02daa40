// SPDX-License-Identifier: GPL-2.0
/*
 * Usage: fuzz SEED SECONDS PROCESSES [PATH]...
 *
 * Does random things with the files below the paths (default: rtrace's), from several processes at
 * once. Each has files of its own, and sometimes one that it shares with a fork. It opens,
 * reads, writes (texts that the file may accept, or any), calls ioctls, seeks, splices, polls,
 * maps, duplicates, and closes them, with good and bad arguments. Some processes are killed by
 * SIGKILL at any point. It touches only these files, pipes, and one temporary file. The seed
 * determines all decisions.
 *
 * Continues for up to a minute until something was read, written, got, put and spliced. Prints
 * how often each operation succeeded and was tried. Exits with status 1 if a process cannot be
 * killed.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define MAX_PROCESSES 32

void set_alarms(void)
{
	struct itimerval often = { { 0, 20000 }, { 0, 20000 } };

	setitimer(ITIMER_REAL, &often, NULL);
}

static void nothing(int signal)
{
	(void)signal;
}

static void set_up(void)
{
	struct sigaction action = { .sa_handler = nothing };

	sigaction(SIGALRM, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGIO, SIG_IGN);
	signal(SIGBUS, SIG_DFL);
	set_up_memory();
	set_up_files();
	set_alarms();
}

static pid_t start_process(u64 seed)
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("fuzz: fork");
		exit(2);
	}
	if (pid)
		return pid;
	/* A process group of its own, with its forks. */
	setpgid(0, 0);
	randomness = stress_mix(seed);
	likes_streams = seed & 1;
	set_up();
	for (;;)
		do_something();
}

/* Kills a process and its forks; returns whether they die of it. */
static int kill_process(pid_t pid)
{
	char path[64], line[256];
	int waited, status;
	FILE *file;

	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	for (waited = 0; waited < 3000; waited++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return 1;
		usleep(10000);
	}
	printf("process %d does not die:\n", pid);
	snprintf(path, sizeof(path), "/proc/%d/stack", pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file))
		printf("  %s", line);
	return 0;
}

int main(int argc, char **argv)
{
	pid_t pids[MAX_PROCESSES];
	int processes = argc > 3 ? atoi(argv[3]) : 0;
	u64 next_seed;
	double seconds, passed;
	struct timespec now, begin;
	int i, bad = 0;

	if (processes < 1 || processes > MAX_PROCESSES) {
		fprintf(stderr, "usage: fuzz SEED SECONDS PROCESSES [PATH]...\n");
		return 2;
	}
	next_seed = strtoull(argv[1], NULL, 0) << 16;
	seconds = atof(argv[2]);
	find_paths(argc, argv);
	find_events();
	set_up_counts();
	randomness = stress_mix(next_seed);
	for (i = 0; i < processes; i++)
		pids[i] = start_process(next_seed++);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do {
		usleep(below(200000));
		i = below(processes);
		if (!kill_process(pids[i]))
			return 1;
		counted(KILL, 0);
		pids[i] = start_process(next_seed++);
		clock_gettime(CLOCK_MONOTONIC, &now);
		passed = now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9;
	} while (passed < seconds || (passed < 60 && !got_somewhere()));
	for (i = 0; i < processes; i++)
		bad |= !kill_process(pids[i]);
	print_counts();
	return bad;
}
