// SPDX-License-Identifier: GPL-2.0
/* The texts that are written: valid ones for the file, and similar ones. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fuzz.h"

char text[BUFFER];
static size_t text_len;

static void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	text_len += vsnprintf(text + text_len, sizeof(text) - text_len, format, args);
	va_end(args);
	if (text_len >= sizeof(text))
		text_len = sizeof(text) - 1;
}

static void say_pattern(void)
{
	static const char *const words[] = {
		"sched", "sched:*", "irq", "?", "[", "sched:sched_[sw]*", ":", "::", "!", "!!sched",
		"stress:*", "*mknod*", "sched:", ":sched_switch", "\\", "[!", "nmi", "timer:*",
		"a:b:c", "\t", "stress:stress_record"
	};
	/* These take long. */
	static const char *const wide[] = { "*", "syscalls:*", "syscalls", "*:*", "[a-z]*", "*read*" };
	char *at;

	say("%s", one_in(3) ? "!" : "");
	if (one_in(16)) {
		say("%s", wide[below(lengthof(wide))]);
		return;
	}
	if (one_in(2)) {
		say("%s", words[below(lengthof(words))]);
		return;
	}
	say("%s", any_event());
	at = text + text_len - 1 - below(8);
	if (one_in(3) && at > text)
		*at = "*?[]!:x"[below(7)];
}

static void say_number(void)
{
	static const char *const units[] = { "", "", "K", "M", "k", "G", "T", " K", "KK" };

	switch (below(4)) {
	case 0:
		say("%llu%s", (unsigned long long)any_number(), units[below(lengthof(units))]);
		break;
	case 1:
		say("%s%u", one_in(4) ? "-" : one_in(4) ? "0x" : "", below(100000));
		break;
	default:
		/* Valid, and small enough for tracing to continue. */
		say("%u", 1u << below(18));
	}
}

size_t say_something(const char *path)
{
	static const char *const other[] = {
		"0", "1", "X", "2", "01", "yes", "discard", "overwrite", "tsc", "mono", "", " ", "\n",
		"1\n0", "\xff\xfe", "\xf0\x9f\x98\x80", "%s%n%p", "discard overwrite"
	};
	const char *name = path ? strrchr(path, '/') + 1 : "";
	u32 words;

	text_len = 0;
	if (one_in(20)) {
		for (text_len = 0; text_len < any_size() % 4000; text_len++)
			text[text_len] = below(256);
	} else if (one_in(100)) {
		while (text_len < 60000 + below(10000))
			say("%s ", any_event());
	} else if (one_in(10)) {
		say("%s", other[below(lengthof(other))]);
	} else if (!strcmp(name, "set_event")) {
		for (words = 1 + below(5); words; words--) {
			say_pattern();
			say("%c", " \t\n  "[below(5)]);
		}
	} else if (!strcmp(name, "enable")) {
		say("%u", below(2));
	} else if (!strcmp(name, "mode")) {
		say(one_in(2) ? "discard" : "overwrite");
	} else if (!strcmp(name, "clock")) {
		say(one_in(2) ? "mono" : "tsc");
	} else {
		say_number();
	}
	say(one_in(2) ? "\n" : "");
	return text_len;
}
