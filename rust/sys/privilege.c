// SPDX-License-Identifier: GPL-2.0
/* Privileges of an open file and of the caller; references of an open file. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
#include <linux/sched/task.h>
#include <linux/user_namespace.h>

#include "helpers.h"

/*
 * Whether the credentials that opened the file have one of two capabilities. file_ns_capable() would report each
 * refusal to the audit log, although a refusal only hides addresses.
 */
notrace bool rtrace_opener_has(const struct file *file, int capability, int other)
{
	const struct cred *own = override_creds(file->f_cred);
	bool has = ns_capable_noaudit(&init_user_ns, capability) || ns_capable_noaudit(&init_user_ns, other);

	revert_creds(own);
	return has;
}

/* Gives the current task the kernel's credentials, and returns its own for rtrace_be_caller(). */
notrace const struct cred *rtrace_be_kernel(void)
{
	/* They are those of the first task, and never freed. */
	return override_creds(rcu_dereference_protected(init_task.cred, true));
}

notrace void rtrace_be_caller(const struct cred *own)
{
	revert_creds(own);
}

/* Whether the caller has the only reference to the open file. A shell duplicates the descriptor of a redirection. */
notrace bool rtrace_is_last_reference(struct file *file)
{
	return file_count(file) == 1;
}
