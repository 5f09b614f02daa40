// SPDX-License-Identifier: GPL-2.0
/* Functions that ftrace can trace. */
#include <linux/ftrace.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "helpers.h"

#ifdef CONFIG_DYNAMIC_FTRACE
/* The kernel's struct ftrace_hash, which no header defines. */
struct function_hash {
	unsigned long size_bits;
	struct hlist_head *buckets;
	unsigned long count;
};

/*
 * Calls @see for each function that ftrace can trace, until @see returns an error. The list is that of a filter
 * which selects all functions. The filter is never registered, so no code is patched. Returns -EOPNOTSUPP if
 * this kernel lays out filters differently. May sleep.
 */
notrace int rtrace_each_function(int (*see)(unsigned long function, void *data), void *data)
{
	unsigned char all[] = "*";
	const struct function_hash *hash;
	struct ftrace_func_entry *entry;
	unsigned long bucket, count = 0;
	struct ftrace_ops *ops = kzalloc(sizeof(*ops), GFP_KERNEL);
	int err;

	if (!ops)
		return -ENOMEM;
	err = ftrace_set_filter(ops, all, 1, 1);
	if (err)
		goto out;
	hash = (const struct function_hash *)rcu_access_pointer(ops->func_hash->filter_hash);
	err = -EOPNOTSUPP;
	if (!hash || !hash->size_bits || hash->size_bits > 20 || hash->count > UINT_MAX ||
	    !virt_addr_valid(hash->buckets))
		goto out;
	for (bucket = 0; bucket < 1UL << hash->size_bits; bucket++) {
		hlist_for_each_entry(entry, &hash->buckets[bucket], hlist) {
			if (++count > hash->count)
				goto out;
			err = see(entry->ip, data);
			if (err)
				goto out;
		}
		err = -EOPNOTSUPP;
	}
	if (count && count == hash->count)
		err = 0;
out:
	ftrace_free_filter(ops);
	kfree(ops);
	return err;
}
#else
notrace int rtrace_each_function(int (*see)(unsigned long function, void *data), void *data)
{
	return -EOPNOTSUPP;
}
#endif
