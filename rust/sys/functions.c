// SPDX-License-Identifier: GPL-2.0
/* Functions that ftrace can trace. */
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "helpers.h"
#include "linux.h"

/* Sets how many calls that have not returned @probe sees, if the kernel has such a limit. It misses further calls. */
notrace void rtrace_limit_calls(struct fprobe *probe, int calls)
{
#ifndef RTRACE_HAS_FPROBE_ON_GRAPH
	probe->nr_maxactive = calls;
#endif
}

/*
 * Leaves @probe only the functions @left, after a module was unloaded. An fprobe on the function graph forgets the
 * module's functions itself; else they stay in its filter. May sleep.
 */
notrace int rtrace_fprobe_forget(struct fprobe *probe, unsigned long *left, unsigned int count)
{
#ifdef RTRACE_HAS_FPROBE_ON_GRAPH
	return 0;
#else
	return ftrace_set_filter_ips(&probe->ops, left, count, 0, 1);
#endif
}

#ifdef CONFIG_DYNAMIC_FTRACE
/* The kernel's struct ftrace_hash, which no header defines. */
struct function_hash {
	unsigned long size_bits;
	struct hlist_head *buckets;
	unsigned long count;
};

/*
 * Calls @see for each function that the filter of @ops selects, until @see returns an error. Returns -EOPNOTSUPP if
 * this kernel lays out filters differently.
 */
static int each_of(struct ftrace_ops *ops, int (*see)(unsigned long function, void *data), void *data)
{
	const struct function_hash *hash = (const struct function_hash *)rcu_access_pointer(ops->func_hash->filter_hash);
	struct ftrace_func_entry *entry;
	unsigned long bucket, count = 0;
	int err;

	if (!hash || hash->size_bits > 20 || hash->count > UINT_MAX ||
	    !virt_addr_valid(hash->buckets))
		return -EOPNOTSUPP;
	for (bucket = 0; bucket < 1UL << hash->size_bits; bucket++) {
		hlist_for_each_entry(entry, &hash->buckets[bucket], hlist) {
			if (++count > hash->count)
				return -EOPNOTSUPP;
			err = see(entry->ip, data);
			if (err)
				return err;
		}
	}
	return count && count == hash->count ? 0 : -EOPNOTSUPP;
}

/*
 * Calls @see for each function that ftrace can trace, and that is at one of the addresses or, without addresses, has a
 * name that matches the pattern. Stops when @see returns an error. Sets a filter, but never registers it, so no code is
 * patched. Returns -ENOENT if there is no function, and -EOPNOTSUPP if this kernel lays out filters differently. May
 * sleep.
 */
notrace int rtrace_each_function(const char *pattern, unsigned long *addresses, unsigned int count,
				 int (*see)(unsigned long function, void *data), void *data)
{
	struct ftrace_ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL);
	char *copy = kstrdup(pattern, GFP_KERNEL);
	int err = -ENOMEM;

	if (ops && copy) {
		if (addresses)
			err = ftrace_set_filter_ips(ops, addresses, count, 0, 1);
		else
			err = ftrace_set_filter(ops, copy, strlen(copy), 1);
		if (err == -EINVAL)
			err = -ENOENT;
		if (!err)
			err = each_of(ops, see, data);
		ftrace_free_filter(ops);
	}
	kfree(copy);
	kfree(ops);
	return err;
}

#ifdef RTRACE_HAS_FPROBE_ON_GRAPH
/*
 * As rtrace_each_function(), but the pattern matches each name of a function, and a function with several matching names
 * may be seen twice. The kernel exports no other way to find them than the registration of an fprobe. So this registers
 * one that is off, and unregisters it at once.
 */
notrace int rtrace_each_matching(const char *pattern, unsigned long *addresses, unsigned int count,
				 int (*see)(unsigned long function, void *data), void *data)
{
	struct fprobe probe = { .flags = FPROBE_FL_DISABLED };
	int at, err;

	err = addresses ? register_fprobe_ips(&probe, addresses, count) : register_fprobe(&probe, pattern, NULL);
	if (err)
		return err;
	for (at = 0; !err && at < probe.hlist_array->size; at++)
		err = see(probe.hlist_array->array[at].addr, data);
	unregister_fprobe(&probe);
	return err;
}
#else
/* The names are those that ftrace knows, because an fprobe has no list of functions. */
notrace int rtrace_each_matching(const char *pattern, unsigned long *addresses, unsigned int count,
				 int (*see)(unsigned long function, void *data), void *data)
{
	return rtrace_each_function(pattern, addresses, count, see, data);
}
#endif
#else
notrace int rtrace_each_function(const char *pattern, unsigned long *addresses, unsigned int count,
				 int (*see)(unsigned long function, void *data), void *data)
{
	return -EOPNOTSUPP;
}

notrace int rtrace_each_matching(const char *pattern, unsigned long *addresses, unsigned int count,
				 int (*see)(unsigned long function, void *data), void *data)
{
	return -EOPNOTSUPP;
}
#endif
