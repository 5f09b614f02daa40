// SPDX-License-Identifier: GPL-2.0
/*
 * C for what the kernel offers only as macros or inline functions. Only the frames of call
 * stacks and counters are on the way of an event; all of it is notrace nevertheless.
 */
#include <linux/capability.h>
#include <linux/cgroup.h>
#include <linux/cpumask.h>
#include <linux/dcache.h>
#include <linux/export.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/namei.h>
#include <linux/pagemap.h>
#include <linux/perf_event.h>
#include <linux/sched/isolation.h>
#include <linux/sched/signal.h>
#include <linux/sched/task_stack.h>
#include <linux/sysfs.h>
#include <linux/topology.h>
#include <linux/trace_events.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>
#include <linux/uprobes.h>
#include <linux/user_namespace.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <asm/cpufeature.h>
#include <asm/irq_regs.h>
#include <asm/tsc.h>
#include <asm/unwind.h>

#include "faults.h"
#include "helpers.h"
#include "rtrace.h"

/*
 * The module's parameters. They stand here and not in the module! macro, whose parameters have
 * no file under /sys/module.
 */
static u8 delivery_barrier;
module_param(delivery_barrier, byte, 0444);
MODULE_PARM_DESC(delivery_barrier,
		 "1: order packets by a barrier at delivery; 0 (default): by an interrupt when they are read");

static unsigned long long origin;
module_param(origin, ullong, 0444);
MODULE_PARM_DESC(origin,
		 "Where buffer positions begin, rounded down to a lap; for tests of their wrap (default: 0)");

/* Octal, with or without a zero in front, as tracefs' mount option of this name. */
static int set_mode(const char *text, const struct kernel_param *param)
{
	u16 mode;
	int err = kstrtou16(text, 8, &mode);

	if (err)
		return err;
	if ((mode & ~0777) || (mode & 0700) != 0700)
		return -EINVAL;
	*(u16 *)param->arg = mode;
	return 0;
}

static int get_mode(char *text, const struct kernel_param *param)
{
	return sysfs_emit(text, "%#o\n", *(u16 *)param->arg);
}

static const struct kernel_param_ops mode_ops = {
	.set = set_mode,
	.get = get_mode,
};

static u16 mode = 0700;
module_param_cb(mode, &mode_ops, &mode, 0444);
__MODULE_PARM_TYPE(mode, "octal");
MODULE_PARM_DESC(mode,
		 "Mode of the directories in debugfs; files have no more of it than they need (default: 0700)");

static int set_gid(const char *text, const struct kernel_param *param)
{
	unsigned int gid;
	int err = kstrtouint(text, 0, &gid);

	if (err)
		return err;
	if (!gid_valid(KGIDT_INIT(gid)))
		return -EINVAL;
	*(unsigned int *)param->arg = gid;
	return 0;
}

static const struct kernel_param_ops gid_ops = {
	.set = set_gid,
	.get = param_get_uint,
};

static unsigned int gid;
module_param_cb(gid, &gid_ops, &gid, 0444);
__MODULE_PARM_TYPE(gid, "uint");
MODULE_PARM_DESC(gid, "Group of the directories and files in debugfs (default: 0)");

/*
 * Settings that the default session and its first channel have when the module is loaded: what each says
 * is written to the file of its name (file/given.rs).
 */
#define SETTING(name, description)		\
	static char *name;			\
	module_param(name, charp, 0444);	\
	MODULE_PARM_DESC(name, description);	\
	notrace const char *rtrace_given_##name(void) { return name; }

SETTING(clock, "Clock of the first trace: tsc or mono (default: the best)");
SETTING(channel_mode, "Mode of channel0: discard or overwrite (default: overwrite)");
SETTING(subbuf_size, "Size of its sub-buffers: bytes, or with K, M, G (default: 1M)");
SETTING(subbuf_count, "How many it has of them, a power of two (default: 4)");
SETTING(tracing_cpus, "The CPUs that it records: a list such as 0,2-3 (default: all)");
SETTING(contexts, "What it records beside each event: names with commas between them (default: nothing)");
SETTING(set_event, "Its events: patterns with commas between them (default: the default events)");
SETTING(set_filter, "Which records of them: PATTERN EXPRESSION, with semicolons between several (default: all)");
SETTING(memory, "Where its buffers are: the name of memory that reserve_mem= reserves (default: none: allocated)");
SETTING(enable, "1: record from now on (default: 0)");

notrace u16 rtrace_mode(void)
{
	return mode;
}

/* Gives a file in debugfs to the group, or a directory, which gets its mode, too. */
notrace void rtrace_set_access(struct dentry *entry)
{
	struct inode *inode = d_inode(entry);

	inode->i_gid = KGIDT_INIT(gid);
	if (S_ISDIR(inode->i_mode))
		inode->i_mode = S_IFDIR | mode;
}

notrace bool rtrace_sees_addresses(void)
{
	/* (7.3 does not export has_capability_noaudit().) */
	return ns_capable_noaudit(&init_user_ns, CAP_SYSLOG);
}

notrace u8 rtrace_delivery_barrier(void)
{
	return delivery_barrier;
}

notrace u64 rtrace_origin(void)
{
	return origin;
}

/* Constant rate, runs through all idle states, and the kernel did not find it out of step. */
notrace bool rtrace_tsc_is_trustworthy(void)
{
	return boot_cpu_has(X86_FEATURE_CONSTANT_TSC) &&
	       boot_cpu_has(X86_FEATURE_NONSTOP_TSC) &&
	       !check_tsc_unstable() && tsc_khz;
}

/* The type of the last argument differs between kernels. */
notrace int rtrace_call_on_cpu(int cpu, smp_call_func_t func, void *info)
{
	return smp_call_function_single(cpu, func, info, true);
}

/* For a timer's callback: when it was due, by the timer's clock. */
notrace u64 rtrace_hrtimer_due(const struct hrtimer *timer)
{
	return ktime_to_ns(hrtimer_get_expires(timer));
}

/* Of the code that the interrupt has interrupted in which this is called; or NULL. */
notrace struct pt_regs *rtrace_interrupted(void)
{
	return get_irq_regs();
}

/*
 * For a timer's callback: let it run again one period later. What bindgen makes of the
 * result's names differs between kernels.
 */
notrace enum hrtimer_restart rtrace_hrtimer_again(struct hrtimer *timer, s64 period_ns)
{
	hrtimer_forward_now(timer, ns_to_ktime(period_ns));
	return HRTIMER_RESTART;
}

notrace void rtrace_init_work(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
}

/* The CPU after @cpu (-1: the first) that is online, or possible; nr_cpu_ids or more: none. */
notrace int rtrace_cpu_next(int cpu, bool online)
{
	return cpumask_next(cpu, online ? cpu_online_mask : cpu_possible_mask);
}

/*
 * Whether the kernel keeps its own work off @cpu. (cpu_is_isolated() says nothing of nohz_full=; cpusets replace
 * the mask of isolated partitions under RCU.)
 */
notrace bool rtrace_cpu_is_isolated(int cpu)
{
	guard(rcu)();
	return !housekeeping_cpu(cpu, HK_TYPE_DOMAIN) || !housekeeping_cpu(cpu, HK_TYPE_KERNEL_NOISE);
}

notrace bool rtrace_is_killed(void)
{
	return fatal_signal_pending(current);
}

/*
 * Zeroed pages, near @cpu, which need not be online; for rtrace_vfree(). Tries hard, but not so
 * hard that processes are killed for it, which may be anybody's. (Of the kernel's own functions
 * those that take a node have the OOM killer called.)
 */
notrace void *rtrace_vmalloc_near(size_t count, int cpu)
{
	const gfp_t gfp = GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_RETRY_MAYFAIL;
	struct page **pages = __vmalloc(array_size(count, sizeof(*pages)), gfp);
	size_t got = 0;
	void *memory = NULL;

	if (!pages)
		return NULL;
	while (got < count) {
		/* As many at a time as vmalloc() takes. */
		size_t more = alloc_pages_bulk_node(gfp, cpu_to_node(cpu),
						    min_t(size_t, count - got, 100), pages + got);
		if (!more)
			break;
		got += more;
	}
	if (got == count)
		memory = vmap(pages, count, VM_MAP_PUT_PAGES, PAGE_KERNEL);
	if (!memory) {
		while (got)
			__free_page(pages[--got]);
		vfree(pages);
	}
	return memory;
}

notrace void rtrace_vfree(const void *memory)
{
	vfree(memory);
}

/* Counts on this CPU all the time, or not at all: pinned, so it is never put off for another. */
static notrace struct perf_event *perf_event_on(struct perf_event_attr *attr, int cpu,
						rtrace_overflow_t handler, void *context)
{
	struct perf_event *event;

	attr->size = sizeof(*attr);
	attr->pinned = 1;
	event = perf_event_create_kernel_counter(attr, cpu, NULL, handler, context);
	if (!IS_ERR(event) && event->state == PERF_EVENT_STATE_ERROR) {
		perf_event_release_kernel(event);
		return ERR_PTR(-ENOSPC);
	}
	return event;
}

notrace struct perf_event *rtrace_counter_new(u32 type, u64 config, int cpu)
{
	struct perf_event_attr attr = { .type = type, .config = config };

	return perf_event_on(&attr, cpu, NULL, NULL);
}

/* Has the handler called @frequency times per second. */
notrace struct perf_event *rtrace_sampler_new(u32 type, u64 config, u32 frequency, int cpu,
					      rtrace_overflow_t handler, void *context)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.freq = 1,
		.sample_freq = frequency,
	};

	return perf_event_on(&attr, cpu, handler, context);
}

static notrace void no_handler(struct perf_event *event, struct perf_sample_data *data,
			       struct pt_regs *regs)
{
}

/* Whether the machine has such counters that interrupt, be they free or not. */
notrace bool rtrace_sampler_possible(u32 type, u64 config)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.freq = 1,
		.sample_freq = 1,
		.disabled = 1,
	};
	struct perf_event *event = perf_event_on(&attr, raw_smp_processor_id(), no_handler, NULL);

	bool interrupts;

	if (IS_ERR(event))
		return PTR_ERR(event) == -ENOSPC || PTR_ERR(event) == -EBUSY;
	interrupts = !(event->pmu->capabilities & PERF_PMU_CAP_NO_INTERRUPT);
	perf_event_release_kernel(event);
	return interrupts;
}

/*
 * Has the handler called for each event, with its record, once: it has to say so by the period, for some
 * events are counted in other units (perf_swevent_event()).
 */
notrace struct perf_event *rtrace_recorder_new(u32 type, u64 config, int cpu,
					       rtrace_overflow_t handler, void *context)
{
	struct perf_event_attr attr = {
		.type = type,
		.config = config,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_PERIOD,
	};

	return perf_event_on(&attr, cpu, handler, context);
}

/* For its handler: returns its context. NMI-safe. */
notrace void *rtrace_perf_record_read(struct perf_event *event, struct perf_sample_data *data,
				      struct rtrace_perf_record *record)
{
	record->data = data->raw->frag.data;
	record->size = data->raw->frag.size;
	return event->overflow_handler_context;
}
NOKPROBE_SYMBOL(rtrace_perf_record_read);

/* For a handler of perf's: returns its context. NMI-safe. */
notrace void *rtrace_sample_read(struct perf_event *event, struct perf_sample_data *data,
				 struct rtrace_sample *sample)
{
	sample->period = data->period;
	/* Is something else where there is no timer. */
	sample->due = ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer));
	/* The kernel's MAX_INTERRUPTS, which no header has. */
	sample->is_throttled = event->hw.interrupts == ~0ULL;
	return event->overflow_handler_context;
}

/*
 * The stack of the kernel's code that was interrupted with these registers, the innermost address first,
 * as arch_stack_walk() has it, which is not exported; 0 addresses of a program. NMI-safe.
 */
notrace u32 rtrace_kernel_stack(struct pt_regs *regs, u64 *addresses, u32 room)
{
	struct unwind_state state;
	unsigned long address;
	u32 taken = 0;

	if (user_mode(regs) || !room)
		return 0;
	addresses[taken++] = instruction_pointer(regs);
	for (unwind_start(&state, current, regs, NULL); !unwind_done(&state) && taken < room;
	     unwind_next_frame(&state)) {
		address = unwind_get_return_address(&state);
		if (!address)
			break;
		addresses[taken++] = address;
	}
	return taken;
}

/*
 * As perf_event_read_local() for a counter of this CPU, which is not exported; the pmu's read() may
 * be called in any context, NMI included. Interrupts off keep perf from scheduling it meanwhile.
 */
notrace u64 rtrace_counter_read(struct perf_event *event)
{
	unsigned long flags;
	u64 value;

	raw_local_irq_save(flags);
	if (READ_ONCE(event->oncpu) == raw_smp_processor_id())
		event->pmu->read(event);
	value = local64_read(&event->count);
	raw_local_irq_restore(flags);
	return value;
}

/* Where a cgroup has its ancestor of this level, itself included, in bytes from its beginning. */
notrace size_t rtrace_cgroup_ancestor_place(int level)
{
	return offsetof(struct cgroup, ancestors) + level * sizeof(struct cgroup *);
}

notrace void rtrace_cgroup_put(struct cgroup *cgroup)
{
	cgroup_put(cgroup);
}

/*
 * The whole pages of memory that reserve_mem= on the command line has reserved under a name. Such memory
 * was taken from what the kernel would have allocated: it is mapped and has pages.
 */
notrace void *rtrace_reserved(const char *name, u64 *len)
{
	phys_addr_t start, size, end;

	if (!reserve_mem_find_by_name(name, &start, &size))
		return NULL;
	end = PAGE_ALIGN_DOWN(start + size);
	start = PAGE_ALIGN(start);
	if (start >= end || !pfn_valid(PHYS_PFN(start)) || !pfn_valid(PHYS_PFN(end - 1)))
		return NULL;
	*len = end - start;
	return phys_to_virt(start);
}

notrace struct page *rtrace_page_of(const void *address)
{
	return is_vmalloc_addr(address) ? vmalloc_to_page(address) : virt_to_page(address);
}

/* The beginning of the page that holds an address, where all memory is mapped. */
notrace void *rtrace_direct(const void *address)
{
	return page_address(rtrace_page_of(address));
}

notrace void rtrace_get_page(struct page *page)
{
	get_page(page);
}

notrace void rtrace_put_page(struct page *page)
{
	put_page(page);
}

/*
 * Waits until no handler runs that was unregistered; where handlers @may_sleep, until none has preemption disabled.
 * Handlers that may sleep may still run then: see rtrace_retire().
 */
notrace void rtrace_synchronize_probes(bool may_sleep)
{
	synchronize_srcu(&tracepoint_srcu);
	if (may_sleep)
		synchronize_rcu();
}

/* Whether its handlers may sleep. */
notrace bool rtrace_tracepoint_may_sleep(struct tracepoint *tracepoint)
{
	return tracepoint_is_faultable(tracepoint);
}

/* The tracepoint of the module at this place, or NULL. */
notrace struct tracepoint *rtrace_module_tracepoint(struct module *module, size_t at)
{
	return at < module->num_tracepoints ? tracepoint_ptr_deref(&module->tracepoints_ptrs[at]) : NULL;
}

/* The same for those of a module, when none of its code runs any more. */
notrace void rtrace_synchronize_module_probes(struct module *module)
{
	bool faultable = false;
	size_t at;

	for (at = 0; at < module->num_tracepoints; at++)
		faultable |= tracepoint_is_faultable(rtrace_module_tracepoint(module, at));
	synchronize_srcu(&tracepoint_srcu);
	/* Who waits for these waits for system calls, too, whose arguments may have to be fetched. */
	if (faultable)
		synchronize_rcu_tasks_trace();
}

/* What uname(2) answers in the initial namespace; lives for ever. */
notrace const struct new_utsname *rtrace_utsname(void)
{
	return init_utsname();
}

/* The frame in which the task that runs has left user space, if it was there. NMI-safe. */
notrace bool rtrace_user_frame(struct rtrace_user_frame *frame)
{
	struct pt_regs *regs;

	if (current->flags & (PF_KTHREAD | PF_USER_WORKER) || !current->mm)
		return false;
	regs = task_pt_regs(current);
	frame->ip = instruction_pointer(regs);
	frame->fp = frame_pointer(regs);
	frame->word = user_64bit_mode(regs) ? 8 : 4;
	return true;
}

/*
 * From a frame to that of the caller, by the frame pointer; false if none can be read without a
 * fault, and @frame says nothing then. NMI-safe.
 */
notrace bool rtrace_caller_frame(struct rtrace_user_frame *frame)
{
	const void __user *at = (const void __user *)(unsigned long)frame->fp;
	u64 wide[2];
	u32 narrow[2];

	if (frame->fp % frame->word)
		return false;
	if (frame->word == 8) {
		if (copy_from_user_nofault(wide, at, sizeof(wide)))
			return false;
		frame->fp = wide[0];
		frame->ip = wide[1];
	} else {
		if (copy_from_user_nofault(narrow, at, sizeof(narrow)))
			return false;
		frame->fp = narrow[0];
		frame->ip = narrow[1];
	}
	return true;
}

/*
 * Reads the lowest @size bytes of @value, the others are 0; false if that cannot be. NMI-safe but for
 * RTRACE_USER_FAULTS.
 */
notrace bool rtrace_read(u64 address, enum rtrace_space space, u64 *value, size_t size)
{
	const void __user *user = (const void __user *)(unsigned long)address;

	*value = 0;
	if (space == RTRACE_KERNEL)
		return !copy_from_kernel_nofault(value, (const void *)(unsigned long)address, size);
	if (!copy_from_user_nofault(value, user, size))
		return true;
	return space == RTRACE_USER_FAULTS && !rtrace_fault_in(address, size) &&
	       !copy_from_user_nofault(value, user, size);
}

/*
 * The bytes of the text there, without its NUL, @room at most; negative if that cannot be read. Word by
 * word: a word that is aligned is on one page. Context as for rtrace_read().
 */
notrace ssize_t rtrace_read_text(u64 address, enum rtrace_space space, char *to, size_t room)
{
	size_t got = 0, len, part;
	char word[8];

	while (got < room) {
		part = sizeof(word) - (address + got) % sizeof(word);
		if (!rtrace_read(address + got, space, (u64 *)word, part))
			return -EFAULT;
		len = strnlen(word, min(part, room - got));
		memcpy(to + got, word, len);
		got += len;
		if (len < part)
			break;
	}
	return got;
}

/* The regular file of this name, kept until rtrace_path_free(). */
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

/* Without CONFIG_UPROBES these are inline functions; the first says -ENOSYS. */
notrace struct uprobe *rtrace_uprobe_register(struct path *path, u64 offset,
					      struct uprobe_consumer *consumer)
{
	return uprobe_register(d_real_inode(path->dentry), offset, 0, consumer);
}

/* The consumer may still run then: see rtrace_retire(). */
notrace void rtrace_uprobe_unregister(struct uprobe *uprobe, struct uprobe_consumer *consumer)
{
	uprobe_unregister_nosync(uprobe, consumer);
}

notrace bool rtrace_is_own_code(unsigned long address)
{
	return within_module_core(address, THIS_MODULE);
}

/* Whether code of the module's is there: what is for its beginning alone, or all. */
notrace bool rtrace_module_has(struct module *module, unsigned long address, bool only_init)
{
	return within_module_init(address, module) ||
	       (!only_init && within_module_core(address, module));
}

/*
 * The functions of a loaded module that can be traced, as many as there is room for. Returns how
 * many there are, or -ENOENT. The kernel's find_module() is not for modules; its list of what is
 * in /sys/module is.
 */
notrace int rtrace_module_functions(const char *name, unsigned long *to, int room)
{
	struct kobject *found = kset_find_obj(THIS_MODULE->mkobj.kobj.kset, name);
	struct module *module;
	unsigned int i;
	int count = 0;

	if (!found)
		return -ENOENT;
	/* NULL for what is part of the kernel. */
	module = container_of(found, struct module_kobject, kobj)->mod;
	if (!module || !try_module_get(module)) {
		kobject_put(found);
		return -ENOENT;
	}
	for (i = 0; i < module->num_ftrace_callsites; i++) {
		/* Those of its beginning are gone. */
		if (!within_module_core(module->ftrace_callsites[i], module))
			continue;
		if (count < room)
			to[count] = module->ftrace_callsites[i];
		count++;
	}
	module_put(module);
	kobject_put(found);
	return count;
}

/* Whether it was built with the kernel, and not outside of its source. */
notrace bool rtrace_module_is_of_kernel(struct module *module)
{
	return !test_bit(TAINT_OOT_MODULE, &module->taints);
}

/* As perf asks who makes an event of a kprobe. */
notrace bool rtrace_may_probe(void)
{
	return perfmon_capable();
}

#ifdef CONFIG_DYNAMIC_FTRACE
/* The kernel's struct ftrace_hash, which no header has. */
struct function_hash {
	unsigned long size_bits;
	struct hlist_head *buckets;
	unsigned long count;
};

/*
 * Shows each function that ftrace can trace to @see, until that returns an error. A filter of all functions has them; it is not used, so that no
 * code changes. -EOPNOTSUPP: the kernel lays filters out otherwise. May sleep.
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

notrace struct kretprobe *rtrace_kretprobe_of(struct kretprobe_instance *instance)
{
	return get_kretprobe(instance);
}

notrace void *rtrace_kretprobe_data(struct kretprobe_instance *instance)
{
	return instance->data;
}

#ifdef CONFIG_EVENT_TRACING
/* The kernel's struct ftrace_event_field, which no header has; see fields_are_as_known(). */
struct trace_field {
	struct list_head link;
	const char *name;
	const char *type;
	int filter_type;
	int offset;
	int size;
	unsigned int is_signed : 1;
	unsigned int needs_test : 1;
	int len;
};

static struct trace_event_call *call_of(const struct rtrace_trace_event *event)
{
	return ((const struct trace_event_file *)event)->event_call;
}

/* The field that stands before in the list is that which comes behind it in the record. */
static const struct trace_field *field_after(struct trace_event_call *call,
					     const struct trace_field *field)
{
	const struct list_head *fields = trace_get_fields(call);
	const struct list_head *next = field ? field->link.prev : fields->prev;

	return next == fields ? NULL : list_entry(next, struct trace_field, link);
}

/*
 * Whether the kernel lays its list of fields out as struct trace_field says: what it says of an event is
 * what a public structure says of it.
 */
static bool fields_are_as_known(struct trace_event_call *call)
{
	const struct trace_event_fields *known = call->class->fields_array;
	const struct trace_field *field = NULL;
	size_t end = sizeof(struct trace_entry);

	for (; known->type; known++) {
		field = field_after(call, field);
		if (!field || known->type == TRACE_FUNCTION_TYPE)
			return false;
		end = ALIGN(end, known->align);
		if (field->name != known->name || field->offset != end ||
		    field->size != known->size || field->is_signed != known->is_signed ||
		    field->len != known->len || strncmp(field->type, known->type, 4))
			return false;
		end += known->size;
	}
	return field && !field_after(call, field);
}

/*
 * Whether the event's text casts the field to a pointer before it is shown: then it is an address, whatever its
 * type. The rule of events/main.c.
 */
static bool is_shown_as_pointer(const struct trace_event_call *call, const struct trace_field *field)
{
	const char *cast = call->print_fmt;
	size_t len = strlen(field->name);

	while (cast && (cast = strstr(cast, "*)"))) {
		cast = skip_spaces(cast + 2);
		if (!strncmp(cast, "REC->", 5) && !strncmp(cast + 5, field->name, len) &&
		    strchr(",) ", cast[5 + len]))
			return true;
	}
	return false;
}

/* Whether perf gets it; an event of an event (eprobe) accepts a counter, and never gives it anything. */
static bool is_of_perf(const struct trace_event_call *call)
{
	if (call->class->reg == trace_event_reg)
		return call->class->perf_probe;
	return !(call->flags & TRACE_EVENT_FL_EPROBE);
}

/*
 * What ftrace calls @system:@name, kept until rtrace_trace_event_put(): the module that it is of stays.
 * -EINVAL: there is none; -ENODEV: perf does not have it; -EOPNOTSUPP: nothing is known of this kernel's
 * fields. May sleep.
 */
notrace struct rtrace_trace_event *rtrace_trace_event_get(const char *system, const char *name)
{
	struct trace_event_file *file = trace_get_event_file(NULL, system, name);
	struct trace_event_file *known;
	int err = 0;

	if (IS_ERR(file))
		return ERR_CAST(file);
	/* With fields of several sizes, signed ones and arrays. */
	known = trace_get_event_file(NULL, "sched", "sched_switch");
	if (IS_ERR(known) || !fields_are_as_known(known->event_call))
		err = -EOPNOTSUPP;
	else if (!is_of_perf(file->event_call))
		err = -ENODEV;
	if (!IS_ERR(known))
		trace_put_event_file(known);
	if (!err)
		return (struct rtrace_trace_event *)file;
	trace_put_event_file(file);
	return ERR_PTR(err);
}

notrace void rtrace_trace_event_put(struct rtrace_trace_event *event)
{
	trace_put_event_file((struct trace_event_file *)event);
}

/* By which perf knows it. */
notrace u64 rtrace_trace_event_id(const struct rtrace_trace_event *event)
{
	return call_of(event)->event.type;
}

/*
 * Says what the field behind @before is, in the order of the record; the first behind the common ones, if
 * that is NULL. What to go on from; NULL if there are no more.
 */
notrace const void *rtrace_trace_event_field(const struct rtrace_trace_event *event,
					     const void *before, struct rtrace_trace_field *to)
{
	struct trace_event_call *call = call_of(event);
	const struct trace_field *field = field_after(call, before);

	if (field)
		*to = (struct rtrace_trace_field){
			.name = field->name,
			.type = field->type,
			.offset = field->offset,
			.size = field->size,
			.count = max(field->len, 0),
			.is_signed = field->is_signed,
			.is_address = is_shown_as_pointer(call, field),
		};
	return field;
}

/*
 * What a module itself says of the event of its tracepoint, as long as it is there; NULL if it has none. Takes
 * no lock: the kernel's list of its fields comes and goes with event_mutex, this stays.
 */
notrace const struct rtrace_trace_call *rtrace_module_trace_call(struct module *module,
								 struct tracepoint *tracepoint)
{
	unsigned int at;

	for (at = 0; at < module->num_trace_events; at++) {
		struct trace_event_call *call = module->trace_events[at];

		if (call->flags & TRACE_EVENT_FL_TRACEPOINT && call->tp == tracepoint)
			return (const struct rtrace_trace_call *)call;
	}
	return NULL;
}

notrace const char *rtrace_trace_call_system(const struct rtrace_trace_call *call)
{
	return ((const struct trace_event_call *)call)->class->system;
}

/* Says what the field at this place is, but for its offset; false if there is none. */
notrace bool rtrace_trace_call_field(const struct rtrace_trace_call *call, size_t at,
				     struct rtrace_trace_field *to)
{
	const struct trace_event_fields *field =
		((const struct trace_event_call *)call)->class->fields_array + at;

	if (!field->type || field->type == TRACE_FUNCTION_TYPE)
		return false;
	*to = (struct rtrace_trace_field){
		.name = field->name,
		.type = field->type,
		.size = field->size,
		.count = max(field->len, 0),
		.is_signed = field->is_signed,
	};
	return true;
}
#else
notrace struct rtrace_trace_event *rtrace_trace_event_get(const char *system, const char *name)
{
	return ERR_PTR(-EOPNOTSUPP);
}

notrace void rtrace_trace_event_put(struct rtrace_trace_event *event)
{
}

notrace u64 rtrace_trace_event_id(const struct rtrace_trace_event *event)
{
	return 0;
}

notrace const void *rtrace_trace_event_field(const struct rtrace_trace_event *event,
					     const void *before, struct rtrace_trace_field *to)
{
	return NULL;
}

notrace const struct rtrace_trace_call *rtrace_module_trace_call(struct module *module,
								 struct tracepoint *tracepoint)
{
	return NULL;
}

notrace const char *rtrace_trace_call_system(const struct rtrace_trace_call *call)
{
	return "";
}

notrace bool rtrace_trace_call_field(const struct rtrace_trace_call *call, size_t at,
				     struct rtrace_trace_field *to)
{
	return false;
}
#endif

/* Defined in rust/api. */
EXPORT_SYMBOL_GPL(rtrace_event_register);
EXPORT_SYMBOL_GPL(rtrace_event_unregister);
EXPORT_SYMBOL_GPL(rtrace_event_enabled);
EXPORT_SYMBOL_GPL(rtrace_event_emit);
EXPORT_SYMBOL_GPL(rtrace_tracepoints_register);
EXPORT_SYMBOL_GPL(rtrace_tracepoints_unregister);
EXPORT_SYMBOL_GPL(rtrace_record_begin);
EXPORT_SYMBOL_GPL(rtrace_record_end);
EXPORT_SYMBOL_GPL(rtrace_aux_register);
EXPORT_SYMBOL_GPL(rtrace_aux_unregister);
EXPORT_SYMBOL_GPL(rtrace_aux_begin);
EXPORT_SYMBOL_GPL(rtrace_aux_end);
