// SPDX-License-Identifier: GPL-2.0
/* Loaded modules: their code, and their functions that ftrace can trace. */
#include <linux/kobject.h>
#include <linux/module.h>

#include "helpers.h"

notrace bool rtrace_is_own_code(unsigned long address)
{
	return within_module_core(address, THIS_MODULE);
}

/* Whether @address is code of @module: with @only_init, code for its initialisation alone. */
notrace bool rtrace_module_has(struct module *module, unsigned long address, bool only_init)
{
	return within_module_init(address, module) ||
	       (!only_init && within_module_core(address, module));
}

/*
 * Stores addresses of functions of a loaded module that ftrace can trace, as many as there is room for. Returns
 * the number of all its functions, or -ENOENT. Modules cannot call the kernel's find_module(). So this searches
 * the kernel's list of the entries of /sys/module.
 */
notrace int rtrace_module_functions(const char *name, unsigned long *to, int room)
{
	struct kobject *found = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, name);
	struct module *module;
	unsigned int i;
	int count = 0;

	if (!found)
		return -ENOENT;
	/* NULL for an entry that is part of the kernel. */
	module = container_of(found, struct module_kobject, kobj)->mod;
	if (!module || !try_module_get(module)) {
		kobject_put(found);
		return -ENOENT;
	}
	for (i = 0; i < module->num_ftrace_callsites; i++) {
		/* The functions for its initialisation are freed. */
		if (!within_module_core(module->ftrace_callsites[i], module))
			continue;
		/* A pointer precedes each function if a call site has its own operations (arm64). */
		if (count < room)
			to[count] = module->ftrace_callsites[i] +
				    (IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_CALL_OPS) ? sizeof(void *) : 0);
		count++;
	}
	module_put(module);
	kobject_put(found);
	return count;
}

/* Whether @module was built with the kernel, and not out of its tree. */
notrace bool rtrace_module_is_of_kernel(struct module *module)
{
	return !test_bit(TAINT_OOT_MODULE, &module->taints);
}
