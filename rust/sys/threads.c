// SPDX-License-Identifier: GPL-2.0
/*
 * Iteration over all threads, and the state of each: mostly inline functions of the kernel, and its locks.
 *
 * A visitor of rtrace_visit_thread() calls the functions that take a task_struct. The visitor is an RCU reader.
 */
#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/dcache.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/ipc_namespace.h>
#include <linux/nsproxy.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/siphash.h>
#include <linux/time_namespace.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>
#include <linux/utsname.h>
#include <net/net_namespace.h>

#include "threads.h"

/* Key of pseudonym(). */
static siphash_key_t secret;

/* Called once, before the other functions of this file. May sleep. */
void rtrace_threads_init(void)
{
	get_random_bytes(&secret, sizeof(secret));
}

/*
 * Calls @visit with the thread that has the smallest id from @tid on, while RCU keeps it. Returns its id, or 0
 * if there is none. May miss a thread that ends at this moment. May sleep, after the visit.
 */
int rtrace_visit_thread(int tid, rtrace_visit_thread_t visit, void *data)
{
	struct task_struct *thread;
	struct pid *pid;
	int found = 0;

	rcu_read_lock();
	pid = find_ge_pid(tid, &init_pid_ns);
	if (pid) {
		found = pid_nr(pid);
		thread = pid_task(pid, PIDTYPE_PID);
		if (thread)
			visit(thread, data);
	}
	rcu_read_unlock();
	cond_resched();
	return found;
}

/*
 * Whether @picks selects a thread of the process that owns @memory. Also true if the process is being forked: then its id
 * may be unknown, and the handlers of task_newtask have not run. Always true on a kernel that records no owners.
 * Any process context.
 */
notrace bool rtrace_memory_has_thread(struct mm_struct *memory, rtrace_picks_thread_t picks, void *data)
{
#ifdef CONFIG_MEMCG
	struct task_struct *owner, *thread;
	bool has = false;

	rcu_read_lock();
	owner = rcu_dereference(memory->owner);
	if (owner) {
		has = READ_ONCE(owner->__state) == TASK_NEW;
		for_each_thread(owner, thread) {
			if (has)
				break;
			has = picks(task_pid_nr(thread), data);
		}
	}
	rcu_read_unlock();
	return has;
#else
	return true;
#endif
}

/*
 * Whether rtrace_memory_has_thread() can find the thread @tid: not if its process shares the memory of another one
 * (CLONE_VM). True if there is no such thread, or it has no memory. Any process context.
 */
notrace bool rtrace_owns_memory(int tid)
{
	bool owns = true;
#ifdef CONFIG_MEMCG
	struct task_struct *thread, *owner;

	rcu_read_lock();
	thread = pid_task(find_pid_ns(tid, &init_pid_ns), PIDTYPE_PID);
	if (thread) {
		task_lock(thread);
		owner = thread->mm ? rcu_dereference(thread->mm->owner) : NULL;
		owns = !owner || same_thread_group(owner, thread);
		task_unlock(thread);
	}
	rcu_read_unlock();
#endif
	return owns;
}

/* Pseudonym of an address: constant until the module is unloaded, and it does not reveal the address. */
static u64 pseudonym(const void *address)
{
	return address ? siphash_1u64((u64)(unsigned long)address, &secret) : 0;
}

static enum rtrace_status status(struct task_struct *thread)
{
	unsigned int state = READ_ONCE(thread->__state);

	switch (READ_ONCE(thread->exit_state)) {
	case 0:
		break;
	case EXIT_ZOMBIE:
		return RTRACE_ZOMBIE;
	default:
		return RTRACE_DEAD;
	}
	if (state == TASK_RUNNING || (state & TASK_WAKING))
		return RTRACE_RUNNABLE;
	if (state & TASK_NEW)
		return RTRACE_NEW;
	if (state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE))
		return RTRACE_WAITING;
	return RTRACE_OTHER;
}

/* Takes no lock: it may be called while a record is open. */
notrace void rtrace_thread_read(struct task_struct *thread, struct rtrace_thread *to)
{
	to->tid = task_pid_nr(thread);
	to->pid = task_tgid_nr(thread);
	to->ppid = task_tgid_nr(rcu_dereference(thread->real_parent));
	BUILD_BUG_ON(sizeof(to->comm) != sizeof(thread->comm));
	memcpy(to->comm, thread->comm, sizeof(to->comm));
	to->is_kernel = !!(thread->flags & PF_KTHREAD);
	to->status = status(thread);
	to->cpu = task_cpu(thread);
	to->table = pseudonym(READ_ONCE(thread->files));
}

/* The lock keeps the thread's namespaces, which RCU does not protect. */
void rtrace_thread_namespaces(struct task_struct *thread, struct rtrace_namespaces *to)
{
	struct nsproxy *proxy;

	memset(to, 0, sizeof(*to));
	task_lock(thread);
	proxy = thread->nsproxy;
	if (proxy) {
		to->cgroup = proxy->cgroup_ns->ns.inum;
		to->ipc = proxy->ipc_ns->ns.inum;
		/* No header defines this structure, which begins with its ns_common. */
		to->mnt = ((const struct ns_common *)proxy->mnt_ns)->inum;
		to->net = proxy->net_ns->ns.inum;
		to->time = proxy->time_ns->ns.inum;
		to->uts = proxy->uts_ns->ns.inum;
	}
	task_unlock(thread);
}

/*
 * Ids in the namespace @up levels above the thread's own. Returns false if there is none, or if the thread has
 * no pid any more.
 */
bool rtrace_thread_pid_ns(struct task_struct *thread, u32 up, struct rtrace_pid_ns *to)
{
	struct pid *pid = task_pid(thread);
	struct pid_namespace *ns;

	if (!pid || up > pid->level)
		return false;
	ns = pid->numbers[pid->level - up].ns;
	to->vtid = pid->numbers[pid->level - up].nr;
	to->vpid = task_tgid_nr_ns(thread, ns);
	to->vppid = task_tgid_nr_ns(rcu_dereference(thread->real_parent), ns);
	to->level = ns->level;
	to->inum = ns->ns.inum;
	return true;
}

/* Ids in the user namespace @up levels above the thread's own. Returns false if there is none. */
bool rtrace_thread_user_ns(struct task_struct *thread, u32 up, struct rtrace_user_ns *to)
{
	const struct cred *cred = __task_cred(thread);
	struct user_namespace *ns = cred->user_ns;

	while (ns && up--)
		ns = ns->parent;
	if (!ns)
		return false;
	to->vuid = from_kuid_munged(ns, cred->uid);
	to->vgid = from_kgid_munged(ns, cred->gid);
	to->level = ns->level;
	to->inum = ns->ns.inum;
	return true;
}

/* Pseudonym of the thread's table of files; 0 if the first thread of its process has the same table. */
u64 rtrace_thread_own_table(struct task_struct *thread)
{
	const struct files_struct *files = READ_ONCE(thread->files);

	if (!thread_group_leader(thread) && files == READ_ONCE(thread->group_leader->files))
		return 0;
	return pseudonym(files);
}

struct files_visit {
	const struct files_struct *files;
	u64 table;
	u32 left;
	char *room;
	size_t room_size;
	rtrace_visit_file_t visit;
	void *data;
};

static int visit_file(const void *data, struct file *file, unsigned int fd)
{
	struct files_visit *this = (void *)data;
	struct dentry *dentry = file->f_path.dentry;
	struct rtrace_file found = {
		.table = this->table,
		.fd = fd,
		.flags = file->f_flags,
		.mode = (__force u32)file->f_mode,
	};

	/* The return value that ends iterate_fd() must not be 0. */
	if (!this->left--)
		return fd + 1;
	if (close_on_exec(fd, this->files))
		found.flags |= O_CLOEXEC;
	found.name = d_path(&file->f_path, this->room, this->room_size);
	if (IS_ERR(found.name)) {
		/* The path is longer than the buffer: use its last component. */
		spin_lock(&dentry->d_lock);
		strscpy(this->room, dentry->d_name.name, this->room_size);
		spin_unlock(&dentry->d_lock);
		found.name = this->room;
	}
	found.name_len = strlen(found.name);
	this->visit(&found, this->data);
	return 0;
}

/*
 * Calls @visit with up to @most open files, from @fd on, with the table's lock held. Returns the descriptor at
 * which to go on, or -1. @room is a buffer for a path.
 */
int rtrace_visit_files(struct task_struct *thread, u32 fd, u32 most, char *room, size_t room_size,
		       rtrace_visit_file_t visit, void *data)
{
	struct files_visit this = {
		.left = most,
		.room = room,
		.room_size = room_size,
		.visit = visit,
		.data = data,
	};
	int next = 0;

	/* The lock keeps the table. */
	task_lock(thread);
	this.files = thread->files;
	if (this.files) {
		this.table = pseudonym(this.files);
		next = iterate_fd(thread->files, fd, visit_file, &this);
	}
	task_unlock(thread);
	return next - 1;
}

/* Sets the niceness of the current thread, and returns the earlier one. May sleep. */
int rtrace_set_nice(int nice)
{
	int earlier = task_nice(current);

	set_user_nice(current, nice);
	return earlier;
}
