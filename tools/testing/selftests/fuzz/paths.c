// SPDX-License-Identifier: GPL-2.0
/* The existing files, by kind, and the names of the events. */
#define _GNU_SOURCE
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

static char **paths;
static size_t path_count, control_count;
size_t stream_count;
int likes_streams;
static char **events;
static size_t event_count;

int is_stream(const char *path)
{
	const char *name = strrchr(path, '/') + 1;

	return !strncmp(name, "cpu", 3) && name[3] >= '0' && name[3] <= '9';
}

static int is_control(const char *path)
{
	return !is_stream(path) && !strstr(path, "/events/");
}

static int add_path(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	(void)stat;
	(void)ftw;
	if (type != FTW_F && type != FTW_D)
		return 0;
	paths = realloc(paths, (path_count + 1) * sizeof(*paths));
	paths[path_count++] = strdup(path);
	return 0;
}

/* Streams, then controls, then the rest. */
static int by_kind(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	int kinds = (is_control(x) + 2 * is_stream(x)) - (is_control(y) + 2 * is_stream(y));

	return kinds ? -kinds : strcmp(x, y);
}

/* The directory of rtrace's files. */
static const char *our_files(void)
{
	const char *given = getenv("RTRACE_FILES");

	return given && *given ? given : "/sys/kernel/debug/rtrace";
}

void find_paths(int argc, char **argv)
{
	const char *const ours[] = { our_files(), "/sys/module/rtrace/parameters" };
	size_t i;
	int arg;

	for (arg = 4; arg < argc; arg++)
		nftw(argv[arg], add_path, 16, FTW_PHYS);
	for (i = 0; argc <= 4 && i < lengthof(ours); i++)
		nftw(ours[i], add_path, 16, FTW_PHYS);
	if (!path_count) {
		fprintf(stderr, "fuzz: no files\n");
		exit(2);
	}
	qsort(paths, path_count, sizeof(*paths), by_kind);
	for (i = 0; i < path_count; i++) {
		stream_count += is_stream(paths[i]);
		control_count += is_control(paths[i]);
	}
}

void find_events(void)
{
	char line[256];
	FILE *file;

	snprintf(line, sizeof(line), "%s/available_events", our_files());
	file = fopen(line, "r");
	while (file && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = 0;
		events = realloc(events, (event_count + 1) * sizeof(*events));
		events[event_count++] = strdup(line);
	}
	if (file)
		fclose(file);
	if (!event_count) {
		events = realloc(events, sizeof(*events));
		events[event_count++] = strdup("sched:sched_switch");
	}
}

const char *any_path(void)
{
	u32 n = below(likes_streams ? 55 : 100);

	if (n < 45 && stream_count)
		return paths[below(stream_count)];
	if (n < 85 && control_count)
		return paths[stream_count + below(control_count)];
	return paths[below(path_count)];
}

const char *any_stream_path(void)
{
	u32 n = below(stream_count);

	return stream_count ? paths[n] : NULL;
}

const char *any_event(void)
{
	return events[below(event_count)];
}
