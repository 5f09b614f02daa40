// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Records events of this program with rtrace. Usage: own_events [COUNT]
 *
 *   cc -O2 -o own_events own_events.c
 *   rtrace record -e 'user.shop' -o trace -- ./own_events 3
 */
#include <rtrace/event.h>

#include <stdio.h>
#include <stdlib.h>

RTRACE_EVENT(shop, request, (u32, status), (string, path));

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 1;

	for (int i = 0; i < count; i++) {
		char path[32];

		/* While nobody records the event, this does nothing but test a word. */
		if (rtrace_enabled(shop, request)) {
			snprintf(path, sizeof(path), "/cart/%d", i);
			rtrace_event(shop, request, 200 + i, path);
		}
	}
	return 0;
}
