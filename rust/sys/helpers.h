/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C wrappers of the kernel's macros and inline functions, grouped by the file that defines them. The C compiler
 * and bindgen both read this header, so both have the same prototypes. All functions are notrace.
 */
#ifndef RTRACE_SYS_HELPERS_H
#define RTRACE_SYS_HELPERS_H

#include <linux/types.h>

#include <linux/hrtimer_types.h>
#include <linux/smp.h>
#include <linux/uprobes.h>
#include <linux/workqueue.h>

struct cgroup;
struct dentry;
struct file;
struct file_operations;
struct fprobe;
struct kretprobe;
struct kretprobe_instance;
struct inode;
struct module;
struct new_utsname;
struct page;
struct perf_event;
struct perf_sample_data;
struct pt_regs;
struct rtrace_trace_call;
struct rtrace_trace_event;
struct tracepoint;
struct uprobe;

/* clock.c */
u64 rtrace_tsc_frequency(void);

/* A time in which clocks stood still, or a setting of the wall clock. */
struct rtrace_clock_leap {
	u64 slept;	/* nanoseconds of sleep: the monotonic clock lacks them */
	u64 missed;	/* nanoseconds that the time stamp counter lacks */
	u64 ticks;	/* the same in its ticks */
	u64 stood;	/* nanoseconds that the kernel's clocks lack, while the time stamp counter went on */
	s64 set;	/* nanoseconds by which the wall clock was set forward */
	bool distrusted;	/* from now on the kernel does not trust the time stamp counter */
};

struct rtrace_clock_watch {
	struct list_head node;
	void (*leapt)(struct rtrace_clock_watch *watch, const struct rtrace_clock_leap *leap);
};

void rtrace_clock_watch_add(struct rtrace_clock_watch *watch);
void rtrace_clock_watch_remove(struct rtrace_clock_watch *watch);

/* cpu.c */
int rtrace_call_on_cpu(int cpu, smp_call_func_t func, void *info);
int rtrace_cpu_next(int cpu, bool online);
bool rtrace_cpu_is_isolated(int cpu);

/* filesystem.c */

/* The tree of files. The callbacks run with s_umount held. */
struct rtrace_tree_operations {
	int (*fill)(void *tree, struct dentry *root);	/* creates all entries */
	void (*forget)(void *tree);	/* the entries die after it */
	void (*set_access)(void *tree);	/* calls rtrace_set_access() for all entries */
	void (*put)(void *file);	/* releases an inode's file, without s_umount */
};

int rtrace_fs_register(void *tree, const struct rtrace_tree_operations *operations);
void rtrace_fs_unregister(void);
struct dentry *rtrace_fs_create(struct dentry *parent, const char *name, umode_t mode, void *file,
				const struct file_operations *operations);
int rtrace_dir_wait(struct dentry *dir);
void rtrace_fs_remove(struct dentry *dentry);
void rtrace_set_access(struct dentry *entry, umode_t mode);

/* functions.c */
int rtrace_each_function(const char *pattern, unsigned long *addresses, unsigned int count,
			 int (*see)(unsigned long function, void *data), void *data);
void rtrace_limit_calls(struct fprobe *probe, int calls);
int rtrace_fprobe_forget(struct fprobe *probe, unsigned long *left, unsigned int count);
int rtrace_each_matching(const char *pattern, unsigned long *addresses, unsigned int count,
			 int (*see)(unsigned long function, void *data), void *data);

/* kprobe.c */
struct kretprobe *rtrace_kretprobe_of(struct kretprobe_instance *instance);
void *rtrace_kretprobe_data(struct kretprobe_instance *instance);
unsigned int rtrace_task_count(void);

/* modules.c */
bool rtrace_is_own_code(unsigned long address);
bool rtrace_module_has(struct module *module, unsigned long address, bool only_init);
int rtrace_module_functions(const char *name, unsigned long *to, int room);
bool rtrace_module_is_of_kernel(struct module *module);

/* nofault.c */

/* The memory to read. */
enum rtrace_space {
	RTRACE_KERNEL,
	RTRACE_USER,
	RTRACE_USER_FAULTS,	/* may sleep: missing pages are fetched from disk */
};

bool rtrace_read(u64 address, enum rtrace_space space, u64 *value, size_t size);
ssize_t rtrace_read_text(u64 address, enum rtrace_space space, char *to, size_t room);

/* pages.c */
void *rtrace_reserved(const char *name, u64 *len);
void *rtrace_vmalloc_near(size_t count, int cpu);
void rtrace_vfree(const void *memory);
struct page *rtrace_page_of(const void *address);
void *rtrace_direct(const void *address);
void rtrace_get_page(struct page *page);
void rtrace_put_page(struct page *page);

/* parameter.c */
u8 rtrace_delivery_barrier(void);
unsigned int rtrace_program_rings(void);
unsigned int rtrace_program_ring_size(void);
unsigned int rtrace_program_nice(void);
unsigned long rtrace_program_memory_user(void);
unsigned long rtrace_program_memory(void);
bool rtrace_is_mode(unsigned int mode);
u16 rtrace_mode(void);
unsigned int rtrace_gid(void);
unsigned int rtrace_programs(void);
const char *rtrace_given(const char *name, size_t len);
u64 rtrace_origin(void);

/* perf.c */
struct perf_event *rtrace_counter_new(u32 type, u64 config, int cpu);
u64 rtrace_counter_read(struct perf_event *event);

/* As perf_overflow_handler_t. */
typedef void (*rtrace_overflow_t)(struct perf_event *event, struct perf_sample_data *data,
				  struct pt_regs *regs);

/* Properties of a sample, as perf reports them. */
struct rtrace_sample {
	u64 event;		/* perf's id of the event, never used again */
	u64 period;		/* count since the previous sample */
	u64 due;		/* of a timer: its monotonic expiry time */
	bool is_throttled;	/* perf stops the event until the next tick */
};

struct perf_event *rtrace_sampler_new(u32 type, u64 config, u32 frequency, int cpu,
				      rtrace_overflow_t handler, void *context);
bool rtrace_sampler_possible(u32 type, u64 config);
struct perf_event *rtrace_recorder_new(u32 type, u64 config, int cpu, rtrace_overflow_t handler,
				       void *context);

/* Data that perf has recorded for an event. */
struct rtrace_perf_record {
	const void *data;
	size_t size;
};

void *rtrace_perf_record_read(struct perf_event *event, struct perf_sample_data *data,
			      struct rtrace_perf_record *record);
void *rtrace_sample_read(struct perf_event *event, struct perf_sample_data *data,
			 struct rtrace_sample *sample);

/* privilege.c */
bool rtrace_opener_has(const struct file *file, int capability, int other);
const struct cred *rtrace_be_kernel(void);
void rtrace_be_caller(const struct cred *own);
bool rtrace_is_last_reference(struct file *file);

/* stack.c */

/* How stacks of the kernel are taken. */
enum rtrace_stacks {
	RTRACE_STACKS_LEARNT,	/* by learnt rules; what they do not describe, by the kernel's unwinder */
	RTRACE_STACKS_KERNEL,	/* by the kernel's unwinder */
	RTRACE_STACKS_COMPARED,	/* by both, and those of the kernel's unwinder count */
};

/* Most addresses of a stack that is compared. */
#define RTRACE_STACK_ROOM 74

int rtrace_stacks_begin(void);
void rtrace_stacks_end(void);
enum rtrace_stacks rtrace_stacks(void);
bool rtrace_set_stacks(enum rtrace_stacks wanted);
u64 rtrace_compared_stacks(bool that_differed);
u32 rtrace_user_stack(u64 *addresses, u32 room);
u32 rtrace_interrupted_stack(struct pt_regs *regs, u64 *addresses, u32 room);
u32 rtrace_stack_of(u64 ip, u64 sp, u64 fp, u64 *addresses, u32 room);

/* system.c */
void rtrace_init_work(struct work_struct *work, work_func_t func);
bool rtrace_yield(void);
size_t rtrace_cgroup_ancestor_place(int level);
void rtrace_cgroup_put(struct cgroup *cgroup);
const struct new_utsname *rtrace_utsname(void);

/* timer.c */
void rtrace_hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *timer));
u64 rtrace_hrtimer_due(const struct hrtimer *timer);
struct pt_regs *rtrace_interrupted(void);
enum hrtimer_restart rtrace_hrtimer_again(struct hrtimer *timer, s64 period_ns);

/* trace_event.c */

/* A field of an event of ftrace and perf, as the event's `format` file shows it. */
struct rtrace_trace_field {
	const char *name;
	const char *type;
	u32 offset;
	u32 size;
	u32 count;		/* number of array elements if known, else 0 */
	bool is_signed;
	bool is_address;	/* shown as a pointer, whatever the type */
};

struct rtrace_trace_event *rtrace_trace_event_get(const char *system, const char *name);
void rtrace_trace_event_put(struct rtrace_trace_event *event);
u64 rtrace_trace_event_id(const struct rtrace_trace_event *event);
const void *rtrace_trace_event_field(const struct rtrace_trace_event *event, const void *before,
				     struct rtrace_trace_field *field);
const struct rtrace_trace_call *rtrace_module_trace_call(struct module *module,
							 struct tracepoint *tracepoint);
const char *rtrace_trace_call_system(const struct rtrace_trace_call *call);
bool rtrace_trace_call_field(const struct rtrace_trace_call *call, size_t at,
			     struct rtrace_trace_field *field);

/* tracepoint.c */
struct tracepoint *rtrace_module_tracepoint(struct module *module, size_t at);
void rtrace_synchronize_module_probes(struct module *module);
void rtrace_synchronize_probes(bool may_sleep);
bool rtrace_tracepoint_may_sleep(struct tracepoint *tracepoint);

/* uprobe.c */
struct path *rtrace_path_new(const char *name);
void rtrace_path_free(struct path *path);
const struct inode *rtrace_path_overlay(const struct path *path);
bool rtrace_runs_code_of(const struct inode *inode, struct pt_regs *regs);

/* The kernel's consumer of a uprobe, and its handler for each kernel. */
struct rtrace_uprobe_consumer {
	struct uprobe_consumer consumer;
	int (*reached)(struct rtrace_uprobe_consumer *consumer, struct pt_regs *regs);
};

struct uprobe *rtrace_uprobe_register(struct path *path, u64 offset, u64 counter,
				      struct rtrace_uprobe_consumer *consumer);
void rtrace_uprobe_unregister(struct uprobe *uprobe, struct rtrace_uprobe_consumer *consumer);

/* user_stack.c */

/* Where a walk through the stack of a program stands. */
enum rtrace_user_step {
	RTRACE_USER_NONE,	/* the thread is the kernel's, has no memory any more, or begins a program */
	RTRACE_USER_NARROW,	/* at the registers of a 32-bit program */
	RTRACE_USER_RULE,	/* at a frame whose rule is not known */
	RTRACE_USER_LIMIT,	/* at a frame for which there is no room */
	RTRACE_USER_OUTERMOST,	/* the end of the stack was reached */
	RTRACE_USER_UNREADABLE,	/* a word of the stack cannot be read now */
};

struct rtrace_user_walk {
	u64 ip;
	u64 sp;
	u64 fp;
	u64 kept;	/* the register that Processor::kept() names */
	u64 space;	/* name of the address space as it is mapped now */
	u32 taken;	/* number of addresses so far */
	bool exact;	/* the rule is that of ip itself, not of the call before it */
};

/* A known rule. Without one, both words are 0, which is a rule that leads nowhere. */
struct rtrace_user_rule {
	u64 mixed;	/* the key, xor @rule */
	u64 rule;	/* see QuickRule */
};

/* A slot: the rules of two addresses. */
struct rtrace_user_slot {
	struct rtrace_user_rule newer;
	struct rtrace_user_rule older;
};

#define RTRACE_RULE_FROM_FP 1u
#define RTRACE_RULE_FP_SAVED 2u
#define RTRACE_RULE_OUTERMOST 4u

/* The identity of a file and of its contents. All fields of the vDSO are 0. */
struct rtrace_user_file {
	u64 inode;
	u64 filesystem;
	u64 number;
	u64 size;
	s64 changed_sec;
	u32 changed_nsec;
	u32 generation;
};

/* The mapping at an address. */
enum rtrace_user_place {
	RTRACE_PLACE_NOTHING,	/* no code */
	RTRACE_PLACE_MEMORY,	/* code in no file */
	RTRACE_PLACE_FILE,
	RTRACE_PLACE_CHANGES,	/* a thread changes the mappings */
};

struct rtrace_user_mapping {
	struct rtrace_user_file file;
	u64 start;
	u64 end;
	u64 offset;	/* of the address, in the file */
};

enum rtrace_user_step rtrace_user_begin(struct rtrace_user_walk *walk);
enum rtrace_user_step rtrace_user_steps(struct rtrace_user_walk *walk, u64 *addresses, u32 room,
					const struct rtrace_user_slot *slots, u32 bits);
void rtrace_user_keep(struct rtrace_user_slot *slots, u32 bits, u64 space, u64 pc, u64 rule);
u32 rtrace_user_narrow(const struct rtrace_user_walk *walk, u64 *addresses, u32 room);
bool rtrace_user_unprobe(struct rtrace_user_walk *walk);
u64 rtrace_user_code(u64 word);
bool rtrace_user_register(u32 number, u64 *value);
bool rtrace_user_word(u64 at, u64 *word);
enum rtrace_user_place rtrace_user_place_of(u64 pc, struct rtrace_user_mapping *mapping);
int rtrace_user_file_of(int fd, struct rtrace_user_file *to);
int rtrace_user_watch(void);
void rtrace_user_unwatch(void);

#endif
