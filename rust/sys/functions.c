// SPDX-License-Identifier: GPL-2.0
/* Functions that ftrace can trace. */
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "helpers.h"

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
#else
notrace int rtrace_each_function(const char *pattern, unsigned long *addresses, unsigned int count,
				 int (*see)(unsigned long function, void *data), void *data)
{
	return -EOPNOTSUPP;
}
#endif
