// SPDX-License-Identifier: GPL-2.0
/* Uprobes, and the file whose code they probe. */
#include <linux/dcache.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uprobes.h>

#include "helpers.h"
#include "linux.h"

/* Finds the regular file of this name, and keeps it until rtrace_path_free(). */
notrace struct path *rtrace_path_new(const char *name)
{
	struct path *path = kmalloc_obj(*path);
	int err;

	if (!path)
		return ERR_PTR(-ENOMEM);
	err = kern_path(name, LOOKUP_FOLLOW, path);
	if (!err && !d_is_reg(path->dentry)) {
		path_put(path);
		err = -EINVAL;
	}
	if (err) {
		kfree(path);
		return ERR_PTR(err);
	}
	return path;
}

notrace void rtrace_path_free(struct path *path)
{
	path_put(path);
	kfree(path);
}

/*
 * The inode of the file as a program sees it, if the probed code is in another file: overlayfs shows a file of one of its
 * layers, and several mounts may share that layer. Else NULL.
 */
notrace const struct inode *rtrace_path_overlay(const struct path *path)
{
	const struct inode *inode = d_inode(path->dentry);

	return inode == d_real_inode(path->dentry) ? NULL : inode;
}

/* Whether the current task runs code that it has mapped from the file with this inode, as programs see it. May sleep. */
notrace bool rtrace_runs_code_of(const struct inode *inode, struct pt_regs *regs)
{
	struct vm_area_struct *vma;
	bool runs;

	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, instruction_pointer(regs));
	runs = vma && vma->vm_file && d_inode(file_user_path(vma->vm_file)->dentry) == inode;
	mmap_read_unlock(current->mm);
	return runs;
}

/* The handler that the kernel calls. May sleep. */
static notrace int handle(struct uprobe_consumer *consumer, struct pt_regs *regs RTRACE_UPROBE_DATA)
{
	struct rtrace_uprobe_consumer *own = container_of(consumer, struct rtrace_uprobe_consumer, consumer);

	return own->reached(own, regs);
}

/*
 * A counter of 0 is none. Without CONFIG_UPROBES the kernel's functions are inline functions; the first returns -ENOSYS.
 */
notrace struct uprobe *rtrace_uprobe_register(struct path *path, u64 offset, u64 counter,
					      struct rtrace_uprobe_consumer *consumer)
{
	consumer->consumer.handler = handle;
	return uprobe_register(d_real_inode(path->dentry), offset, counter, &consumer->consumer);
}

/* The consumer may still run after this: see rtrace_retire(). */
notrace void rtrace_uprobe_unregister(struct uprobe *uprobe, struct rtrace_uprobe_consumer *consumer)
{
	uprobe_unregister_nosync(uprobe, &consumer->consumer);
}
