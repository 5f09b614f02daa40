// SPDX-License-Identifier: GPL-2.0
/* Privileges of an open file, and its references. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/fs.h>
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

/* Whether the caller has the only reference to the open file. A shell duplicates the descriptor of a redirection. */
notrace bool rtrace_is_last_reference(struct file *file)
{
	return file_count(file) == 1;
}
