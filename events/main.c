// SPDX-License-Identifier: GPL-2.0
/*
 * rtrace-events: the events of the kernel's tracepoints, for rtrace. The other objects, one for each header, contain the
 * events and their probes. Each object adds to three sections; zero-length arrays in first.c and last.c mark their
 * begin and end. The description of an event stays after loading, because the event may be a module's, and is needed when
 * that is loaded. The text by which ftrace shows it is freed after loading.
 */
#include <linux/kernel.h>
#include <linux/module.h>

#include "probe.h"

/* Characters of a C identifier. */
#define RTRACE_IDENTIFIER "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

extern const struct rtrace_tracepoint rtrace_first[], rtrace_last[];
extern const struct rtrace_class rtrace_first_class[], rtrace_last_class[];
extern const struct rtrace_names rtrace_first_names[], rtrace_last_names[];

/*
 * Returns whether the text casts the field to a pointer before printing: then it is an address, whatever its
 * type.
 */
static bool __init rtrace_is_address(const char *text, const char *field)
{
	char pattern[48];
	const char *cast;
	int len = scnprintf(pattern, sizeof(pattern), "entry->%s", field);

	for (cast = text; (cast = strstr(cast, "*)")); ) {
		cast = skip_spaces(cast + 2);
		if (!strncmp(cast, pattern, len) && strchr(",) ", cast[len]))
			return true;
	}
	return false;
}

static void __init rtrace_find_addresses(const struct rtrace_class *class)
{
	struct rtrace_field *field;

	for (field = class->fields; field < class->fields + class->nr_fields; field++)
		if (field->type == RTRACE_UNSIGNED && field->size == sizeof(long) && !field->count &&
		    rtrace_is_address(class->text, field->name))
			field->type = RTRACE_ADDRESS;
}

/*
 * Returns the field that the expression consists of, ignoring casts, parentheses, and masks. NULL for any other
 * expression.
 */
static struct rtrace_field * __init rtrace_field_of(const struct rtrace_class *class,
						    const char *expression)
{
	static const char entry[] = "__entry->";
	struct rtrace_field *field;
	const char *rest;
	size_t len;

	while (*expression == '(' || *expression == ' ') {
		const char *cast = expression + 1 + strspn(expression + 1, RTRACE_IDENTIFIER " ");

		expression = *expression == '(' && *cast == ')' ? cast + 1 : expression + 1;
	}
	if (strncmp(expression, entry, strlen(entry)))
		return NULL;
	expression += strlen(entry);
	len = strspn(expression, RTRACE_IDENTIFIER);
	rest = expression + len;
	rest += strspn(rest, ") ");
	if (*rest && *rest != '&')
		return NULL;
	for (field = class->fields; field < class->fields + class->nr_fields; field++)
		if (strlen(field->name) == len && !strncmp(field->name, expression, len))
			return field->type <= RTRACE_HEX && !field->count ? field : NULL;
	return NULL;
}

static bool __init rtrace_are_same(const struct rtrace_field *field, const struct rtrace_names *names)
{
	size_t i;

	if (field->nr_value_names != names->nr_names)
		return false;
	for (i = 0; i < names->nr_names; i++)
		if (field->value_names[i].value != names->names[i].value ||
		    strcmp(field->value_names[i].name, names->names[i].name))
			return false;
	return true;
}

/* Names a field's values. A field with different names in two places is shown as a number. */
static void __init rtrace_name_values(const struct rtrace_names *names)
{
	struct rtrace_field *field = rtrace_field_of(*names->class, names->expression);

	if (!field)
		return;
	if (!field->value_names) {
		field->value_names = names->names;
		field->nr_value_names = names->nr_names;
	} else if (!rtrace_are_same(field, names)) {
		field->nr_value_names = 0;
	}
}

static int __init rtrace_events_init(void)
{
	const struct rtrace_class *class;
	const struct rtrace_names *names;
	int known;

	for (class = rtrace_first_class; class < rtrace_last_class; class++)
		rtrace_find_addresses(class);
	for (names = rtrace_first_names; names < rtrace_last_names; names++)
		rtrace_name_values(names);
	known = rtrace_tracepoints_register(rtrace_first, rtrace_last - rtrace_first);
	if (known < 0)
		return known;
	pr_info("%d events of tracepoints\n", known);
	return 0;
}

static void __exit rtrace_events_exit(void)
{
	rtrace_tracepoints_unregister(THIS_MODULE);
}

module_init(rtrace_events_init);
module_exit(rtrace_events_exit);
MODULE_DESCRIPTION("Events of the tracepoints of the kernel and its modules, for rtrace");
MODULE_LICENSE("GPL");
