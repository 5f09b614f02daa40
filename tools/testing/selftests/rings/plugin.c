// SPDX-License-Identifier: GPL-2.0
/* A library with an event of its own, for unload.c. */
#include <rtrace/event.h>

RTRACE_EVENT(plugin, call, (u64, number));

void call(uint64_t number);

void call(uint64_t number)
{
	rtrace_event(plugin, call, number);
}
