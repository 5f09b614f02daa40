// SPDX-License-Identifier: GPL-2.0
/*
 * For the stress tests: fires stress:stress_record and stress:stress_huge on every CPU, from
 * every context, each interrupting the others, and counts what it fired.
 *
 *	echo 1 > /sys/kernel/debug/rtrace_stress/run	counters to 0, fire
 *	echo 0 > /sys/kernel/debug/rtrace_stress/run	stop; when it returns nothing fires
 *	cat /sys/kernel/debug/rtrace_stress/fired	"CPU CONTEXT NUMBER" of each
 *
 * Parameters (/sys/module/rtrace_stress/parameters) control it; they take effect at the start.
 *
 * A delay between reserve and commit, without any help from rtrace: a data breakpoint is on
 * the last byte of the record that the thread passes. rtrace reads it when it copies the
 * record to the reserved space. The breakpoint's handler waits, and fires records of its
 * own; pending interrupts are taken when it returns, still before the commit.
 */
#include <linux/cpu.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/hw_breakpoint.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/perf_event.h>
#include <linux/rwsem.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/smpboot.h>
#ifdef CONFIG_X86
#include <asm/apic.h>
#include <asm/nmi.h>
#endif

#include "rtrace.h"
#include "record.h"

#include "features.h"

#define microseconds(us) ns_to_ktime((us) * 1000ULL)

#ifndef RTRACE_HAS_HRTIMER_SETUP
static void hrtimer_setup(struct hrtimer *timer, enum hrtimer_restart (*function)(struct hrtimer *timer),
			  clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

static unsigned int batch = 32;
module_param(batch, uint, 0644);
MODULE_PARM_DESC(batch, "records that a thread fires at a time, at most");
static unsigned int rest_us = 1000;
module_param(rest_us, uint, 0644);
MODULE_PARM_DESC(rest_us, "microseconds that a thread rests after each batch");
static unsigned int irq_us = 500;
module_param(irq_us, uint, 0644);
MODULE_PARM_DESC(irq_us, "microseconds between interrupts on a CPU, about; 0: none");
static unsigned int softirq_us = 900;
module_param(softirq_us, uint, 0644);
MODULE_PARM_DESC(softirq_us, "microseconds between softirqs on a CPU, about; 0: none");
static unsigned int nmi;
module_param(nmi, uint, 0644);
MODULE_PARM_DESC(nmi, "of 100 interrupts, how many send an NMI to some CPU");
static unsigned int delay_us;
module_param(delay_us, uint, 0644);
MODULE_PARM_DESC(delay_us, "microseconds between reserve and commit, at most; 0: no delay");
static unsigned int burst = 3;
module_param(burst, uint, 0644);
MODULE_PARM_DESC(burst, "records fired between reserve and commit, at most; now and then 100 times that");
static unsigned long seed;
module_param(seed, ulong, 0644);
MODULE_PARM_DESC(seed, "of all random decisions");

/* State of one CPU. Each context touches only its own part, and never interrupts itself. */
struct cpu_state {
	u64 fired[STRESS_CONTEXTS];
	u64 random[STRESS_CONTEXTS];
	u8 huge[STRESS_CONTEXTS][STRESS_HUGE];
	char text[STRESS_CONTEXTS][STRESS_TEXT_MAX + 1];
	struct hrtimer irq;
	struct hrtimer softirq;
	struct irq_work work;
	call_single_data_t call;
	/* Set when the timers and the breakpoint are set up; only the thread reads it. */
	bool ready;
	struct perf_event *breakpoint;
	/* The record with the breakpoint, and whether the breakpoint counts now. */
	struct stress_record trap;
	bool armed;
};

static struct cpu_state __percpu *states;
static DEFINE_PER_CPU(struct task_struct *, threads);
static struct rtrace_event *record_event, *huge_event;
static struct dentry *dir;
static DEFINE_MUTEX(run_mutex);
/* Held for reading while a thread fires. */
static DECLARE_RWSEM(firing);
static bool running;
/* NMIs may be this module's, even if they come late. */
static bool sends_nmi;

/* Returns one of 0 to n - 1. */
static u32 random_below(struct cpu_state *this, enum stress_context who, u32 n)
{
	this->random[who] = stress_mix(this->random[who]);
	return n ? (this->random[who] >> 32) % n : 0;
}

static void fire_huge(struct cpu_state *this, const struct stress_record *record)
{
	u8 *bytes = this->huge[record->context];
	u32 at;

	memcpy(bytes, record, sizeof(*record));
	for (at = sizeof(*record); at < STRESS_HUGE; at++)
		bytes[at] = stress_byte(record->check, at);
	rtrace_event_emit(huge_event, bytes, STRESS_HUGE, NULL);
}

#ifdef CONFIG_ARM64
/*
 * Turns this CPU's watchpoints of kernel addresses on or off. arm64 steps over an access that hits a watchpoint only if
 * the event has no handler of its own; otherwise the access hits it again forever. So they are on only while a record
 * with the breakpoint is fired, until the first hit.
 */
static void watch(bool on)
{
	u64 control = read_sysreg(mdscr_el1) & ~MDSCR_EL1_KDE;

	write_sysreg(on ? control | MDSCR_EL1_KDE : control, mdscr_el1);
	isb();
}
#else
static void watch(bool on)
{
}
#endif

/*
 * Fires the next record of this CPU and context. The same context does not interrupt this code:
 * preemption, softirqs or interrupts are off, as in that context.
 */
static void fire(struct cpu_state *this, enum stress_context who)
{
	u64 seq = this->fired[who]++;
	u64 check = stress_check(smp_processor_id(), who, seq);
	struct stress_record here = { .mark = STRESS_MARK };
	struct stress_record *record = &here;
	char *text = this->text[who];
	bool trap = who == STRESS_THREAD && this->breakpoint && !random_below(this, who, 4);
	u32 len = stress_text_len(check);
	u32 at;

	if (trap)
		record = &this->trap;
	record->seq = seq;
	record->cpu = smp_processor_id();
	record->context = who;
	record->check = check;
	if (stress_is_huge(check)) {
		fire_huge(this, record);
		return;
	}
	for (at = 0; at < len; at++)
		text[at] = stress_byte(check, at);
	text[len] = 0;
	WRITE_ONCE(this->armed, trap);
	if (trap)
		watch(true);
	rtrace_event_emit(record_event, record, sizeof(*record), text);
	if (trap)
		watch(false);
	WRITE_ONCE(this->armed, false);
}

static void fire_some(struct cpu_state *this, enum stress_context who, u32 most)
{
	u32 n = random_below(this, who, most + 1);

	while (n--)
		fire(this, who);
}

/* Runs between reserve and commit of a thread's record. */
static void trapped(struct perf_event *event, struct perf_sample_data *data, struct pt_regs *regs)
{
	struct cpu_state *this = this_cpu_ptr(states);
	u32 most = READ_ONCE(burst);

	watch(false);
	if (!READ_ONCE(this->armed))
		return;
	WRITE_ONCE(this->armed, false);
	udelay(random_below(this, STRESS_DEBUG, READ_ONCE(delay_us) + 1));
	/* Occasionally so many that small buffers wrap. */
	fire_some(this, STRESS_DEBUG, random_below(this, STRESS_DEBUG, 50) ? most : 100 * most);
}

#ifdef CONFIG_X86
static int nmi_handler(unsigned int type, struct pt_regs *regs)
{
	struct cpu_state *this = this_cpu_ptr(states);

	if (READ_ONCE(running)) {
		fire_some(this, STRESS_NMI, 3);
		if (!random_below(this, STRESS_NMI, 4))
			irq_work_queue(&this->work);
	}
	return READ_ONCE(sends_nmi) ? NMI_HANDLED : NMI_DONE;
}

/* In an interrupt, so that no CPU of the mask goes offline. */
static void send_nmi(struct cpu_state *this)
{
	u32 cpu = random_below(this, STRESS_IRQ, nr_cpu_ids);

	if (cpu_online(cpu))
		apic->send_IPI(cpu, NMI_VECTOR);
}

static int add_nmi_handler(void)
{
	return register_nmi_handler(NMI_LOCAL, nmi_handler, 0, "rtrace_stress");
}

static void remove_nmi_handler(void)
{
	unregister_nmi_handler(NMI_LOCAL, "rtrace_stress");
}
#else
/* There are no NMIs that a module could send. */
static void send_nmi(struct cpu_state *this)
{
}

static int add_nmi_handler(void)
{
	return 0;
}

static void remove_nmi_handler(void)
{
}
#endif

/* Also from irq_work and cross calls, which are interrupts as well. */
static void fire_irq(struct cpu_state *this)
{
	if (READ_ONCE(running))
		fire_some(this, STRESS_IRQ, 3);
}

static void work_runs(struct irq_work *work)
{
	fire_irq(this_cpu_ptr(states));
}

static void called(void *info)
{
	fire_irq(this_cpu_ptr(states));
}

static enum hrtimer_restart again(struct cpu_state *this, enum stress_context who,
				  struct hrtimer *timer, u32 us)
{
	if (!READ_ONCE(running))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, microseconds(us / 2 + random_below(this, who, us) + 1));
	return HRTIMER_RESTART;
}

static enum hrtimer_restart irq_ticks(struct hrtimer *timer)
{
	struct cpu_state *this = this_cpu_ptr(states);

	fire_irq(this);
	if (random_below(this, STRESS_IRQ, 100) < READ_ONCE(nmi))
		send_nmi(this);
	if (!random_below(this, STRESS_IRQ, 4)) {
		u32 cpu = random_below(this, STRESS_IRQ, nr_cpu_ids);

		if (cpu_online(cpu))
			smp_call_function_single_async(cpu, &this->call);
	}
	if (!random_below(this, STRESS_IRQ, 4))
		irq_work_queue(&this->work);
	return again(this, STRESS_IRQ, timer, READ_ONCE(irq_us));
}

static enum hrtimer_restart softirq_ticks(struct hrtimer *timer)
{
	enum hrtimer_restart restart;
	struct cpu_state *this;

	/* With PREEMPT_RT this is a thread. */
	preempt_disable();
	this = this_cpu_ptr(states);
	if (READ_ONCE(running))
		fire_some(this, STRESS_SOFTIRQ, 3);
	restart = again(this, STRESS_SOFTIRQ, timer, READ_ONCE(softirq_us));
	preempt_enable();
	return restart;
}

static void remove_breakpoint(struct cpu_state *this)
{
	if (this->breakpoint)
		perf_event_release_kernel(this->breakpoint);
	this->breakpoint = NULL;
}

/* The breakpoint of a CPU that went offline is already gone. */
static void set_breakpoint(struct cpu_state *this, unsigned int cpu)
{
	struct perf_event_attr attr;
	struct perf_event *event;

	remove_breakpoint(this);
	if (!delay_us)
		return;
	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&this->trap.mark;
	attr.bp_len = HW_BREAKPOINT_LEN_1;
	attr.bp_type = HW_BREAKPOINT_RW;
	event = perf_event_create_kernel_counter(&attr, cpu, NULL, trapped, NULL);
	if (IS_ERR(event))
		pr_warn_once("no data breakpoint on CPU %u: %pe\n", cpu, event);
	else
		this->breakpoint = event;
}

static void get_ready(struct cpu_state *this, unsigned int cpu)
{
	set_breakpoint(this, cpu);
	if (irq_us)
		hrtimer_start(&this->irq, microseconds(irq_us), HRTIMER_MODE_REL_PINNED_HARD);
	if (softirq_us)
		hrtimer_start(&this->softirq, microseconds(softirq_us),
			      HRTIMER_MODE_REL_PINNED_SOFT);
	this->ready = true;
}

static int thread_should_run(unsigned int cpu)
{
	return READ_ONCE(running);
}

/*
 * With PREEMPT_RT the thread that ends sleeps may be parked before this one, when the CPU goes offline. So the sleep must
 * also end when this thread shall park, which usleep_range() does not.
 */
static void rest(void)
{
	ktime_t time = microseconds(rest_us);

	set_current_state(TASK_IDLE);
	if (!kthread_should_park())
		schedule_hrtimeout_range(&time, rest_us * 500ULL, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
}

static void thread_runs(unsigned int cpu)
{
	struct cpu_state *this = per_cpu_ptr(states, cpu);
	u32 n;

	down_read(&firing);
	if (running) {
		if (!this->ready)
			get_ready(this, cpu);
		for (n = 1 + random_below(this, STRESS_THREAD, batch); n; n--) {
			preempt_disable();
			fire(this, STRESS_THREAD);
			preempt_enable();
		}
	}
	up_read(&firing);
	if (rest_us)
		rest();
	else
		cond_resched();
}

/* The CPU goes offline: its timers would continue on another CPU. */
static void thread_parks(unsigned int cpu)
{
	struct cpu_state *this = per_cpu_ptr(states, cpu);

	hrtimer_cancel(&this->irq);
	hrtimer_cancel(&this->softirq);
	this->ready = false;
}

static struct smp_hotplug_thread plug = {
	.store = &threads,
	.thread_should_run = thread_should_run,
	.thread_fn = thread_runs,
	.park = thread_parks,
	.thread_comm = "rtrace_stress/%u",
};

static void start_firing(void)
{
	int cpu, who;

	for_each_possible_cpu(cpu) {
		struct cpu_state *state = per_cpu_ptr(states, cpu);

		for (who = 0; who < STRESS_CONTEXTS; who++) {
			state->fired[who] = 0;
			state->random[who] = stress_mix(seed + cpu * STRESS_CONTEXTS + who);
		}
		state->ready = false;
	}
	WRITE_ONCE(sends_nmi, nmi != 0);
	WRITE_ONCE(running, true);
	cpus_read_lock();
	for_each_online_cpu(cpu)
		wake_up_process(per_cpu(threads, cpu));
	cpus_read_unlock();
}

static void nothing(void *info)
{
}

static void stop_firing(void)
{
	int cpu;

	down_write(&firing);
	WRITE_ONCE(running, false);
	up_write(&firing);
	/* Any code that saw `running` set has finished when this interrupt has run: also an NMI. */
	on_each_cpu(nothing, NULL, 1);
	for_each_possible_cpu(cpu) {
		struct cpu_state *state = per_cpu_ptr(states, cpu);

		hrtimer_cancel(&state->irq);
		hrtimer_cancel(&state->softirq);
		irq_work_sync(&state->work);
		remove_breakpoint(state);
	}
	/* The same for cross calls that are still pending. */
	on_each_cpu(nothing, NULL, 1);
}

static int run_get(void *data, u64 *value)
{
	*value = READ_ONCE(running);
	return 0;
}

static int run_set(void *data, u64 value)
{
	guard(mutex)(&run_mutex);
	if (!!value == running)
		return 0;
	if (value)
		start_firing();
	else
		stop_firing();
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(run_fops, run_get, run_set, "%llu\n");

static int fired_show(struct seq_file *file, void *data)
{
	int cpu, who;

	for_each_possible_cpu(cpu)
		for (who = 0; who < STRESS_CONTEXTS; who++)
			seq_printf(file, "%d %d %llu\n", cpu, who,
				   per_cpu_ptr(states, cpu)->fired[who]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(fired);

static const struct rtrace_field record_fields[] = {
	{ "seq", RTRACE_UNSIGNED, sizeof(u64) },
	{ "cpu", RTRACE_UNSIGNED, sizeof(u32) },
	{ "context", RTRACE_UNSIGNED, sizeof(u8) },
	{ "check", RTRACE_HEX, sizeof(u64) },
	{ "mark", RTRACE_HEX, sizeof(u8) },
	{ "text", RTRACE_STRING, 0 },
};

static const struct rtrace_event_desc record_desc = {
	.subsystem = "stress",
	.name = "stress_record",
	.fields = record_fields,
	.nr_fields = ARRAY_SIZE(record_fields),
};

#define PART(n) { "part" #n, RTRACE_TEXT, 255 }
static const struct rtrace_field huge_fields[STRESS_HUGE_FIELDS] = {
	PART(0), PART(1), PART(2), PART(3), PART(4), PART(5), PART(6), PART(7),
	PART(8), PART(9), PART(10), PART(11), PART(12), PART(13), PART(14), PART(15),
};

static const struct rtrace_event_desc huge_desc = {
	.subsystem = "stress",
	.name = "stress_huge",
	.fields = huge_fields,
	.nr_fields = ARRAY_SIZE(huge_fields),
};

static int make_states(void)
{
	int cpu;

	states = alloc_percpu(struct cpu_state);
	if (!states)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		struct cpu_state *state = per_cpu_ptr(states, cpu);

		hrtimer_setup(&state->irq, irq_ticks, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
		hrtimer_setup(&state->softirq, softirq_ticks, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_SOFT);
		state->work = IRQ_WORK_INIT_HARD(work_runs);
		INIT_CSD(&state->call, called, NULL);
		state->trap.mark = STRESS_MARK;
	}
	return 0;
}

static int register_events(void)
{
	record_event = rtrace_event_register(&record_desc);
	if (IS_ERR(record_event))
		return PTR_ERR(record_event);
	huge_event = rtrace_event_register(&huge_desc);
	if (IS_ERR(huge_event)) {
		rtrace_event_unregister(record_event);
		return PTR_ERR(huge_event);
	}
	return 0;
}

static void unregister_events(void)
{
	rtrace_event_unregister(huge_event);
	rtrace_event_unregister(record_event);
}

static int __init stress_init(void)
{
	int error = make_states();

	if (error)
		return error;
	error = register_events();
	if (error)
		goto no_events;
	error = add_nmi_handler();
	if (error)
		goto no_nmi;
	error = smpboot_register_percpu_thread(&plug);
	if (error)
		goto no_threads;
	dir = debugfs_create_dir("rtrace_stress", NULL);
	debugfs_create_file_unsafe("run", 0600, dir, NULL, &run_fops);
	debugfs_create_file("fired", 0400, dir, NULL, &fired_fops);
	return 0;

no_threads:
	remove_nmi_handler();
no_nmi:
	unregister_events();
no_events:
	free_percpu(states);
	return error;
}

static void __exit stress_exit(void)
{
	debugfs_remove(dir);
	run_set(NULL, 0);
	smpboot_unregister_percpu_thread(&plug);
	remove_nmi_handler();
	unregister_events();
	free_percpu(states);
}

module_init(stress_init);
module_exit(stress_exit);
MODULE_DESCRIPTION("Fires records from every context, for rtrace's stress tests");
MODULE_LICENSE("GPL");
