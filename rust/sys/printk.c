// SPDX-License-Identifier: GPL-2.0
/* Messages of the kernel crate: of pr_info!() and the like, and of a panic. */
#include <linux/kernel.h>
#include <linux/printk.h>
#include <linux/stdarg.h>
#include <linux/string.h>

#include "helpers.h"

/* Formats core::fmt::Arguments. A function of the kernel crate, from the private runtime. */
char *rust_fmt_argument(char *to, char *end, const void *arguments);
int rtrace_rust_printk(const char *format, ...);

/*
 * The kernel crate calls this function instead of _printk(); Kbuild renames the symbol. _printk() would format
 * %pA by the kernel's own Rust, whose core::fmt::Arguments has another layout if another rustc compiled it; a
 * kernel without CONFIG_RUST refuses %pA.
 *
 * The format is a level, which has two characters, then "%s: %pA", or "%pA" if the message continues a line.
 * Longer messages are cut.
 */
notrace int rtrace_rust_printk(const char *format, ...)
{
	const char *name = "", *colon = "";
	char text[512], *end;
	va_list args;

	va_start(args, format);
	if (strstr(format, "%s: ")) {
		name = va_arg(args, const char *);
		colon = ": ";
	}
	end = rust_fmt_argument(text, text + sizeof(text) - 1, va_arg(args, const void *));
	va_end(args);
	*min(end, text + sizeof(text) - 1) = '\0';
	return _printk("%.2s%s%s%s", format, name, colon, text);
}
