// SPDX-License-Identifier: GPL-2.0
/*
 * Leaps of the kernel's clocks. There are four kinds: the machine slept, the wall clock was set, the time stamp
 * counter started over, or the time stamp counter went on while a hypervisor stopped the kernel's clocks. The kernel
 * may also find that the time stamp counter is not reliable.
 *
 * Code that keeps a copy of the kernel's clocks is notified (pvclock_gtod_register_notifier()) at four points:
 * at each tick that advances the clocks, when the wall clock is set, before a suspend, and at the resume. The
 * first update after a suspend is always the resume. This holds for suspend to idle (CPUs idle, interrupts
 * off), suspend to memory and hibernation (one CPU online, interrupts off). So the first event after a resume
 * already has the right time.
 */
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/spinlock.h>
#include <linux/timekeeper_internal.h>
#include <linux/timekeeping.h>

#include "counter.h"
#include "helpers.h"

/* The clocks at an update. */
struct reading {
	u64 tsc_before, tsc_after;	/* just before and after @boot was read */
	u64 boot;			/* since boot, sleep included */
	u64 slept;			/* the part of @boot in which the machine slept */
	u64 wall;			/* wall clock less @boot */
	bool brackets;			/* whether @boot was read between @tsc_before and @tsc_after */
};

/* Written under the timekeeper's lock, once the notifier is registered. */
static struct reading last;
static bool has_last, has_tsc;

static LIST_HEAD(watches);
/* Nests within the timekeeper's lock: the holder must not read a clock. */
static DEFINE_RAW_SPINLOCK(watches_lock);

/*
 * Compares the time stamp counter with the kernel's clocks, from @last to @now. A difference counts only above
 * an eighth of the elapsed time plus 20 ms. Two clocks differ by far less while one of them is adjusted.
 */
static notrace void compare_tsc(const struct reading *now, struct rtrace_clock_leap *leap)
{
	s64 elapsed = now->boot - last.boot;
	/* Negative if the counter started over. */
	s64 counted_at_least = now->tsc_before - last.tsc_after;
	s64 counted_at_most = now->tsc_after - last.tsc_before;
	s64 due, tolerance, missed, ahead;

	if (!has_tsc || !last.brackets || elapsed < 0)
		return;
	due = mul_u64_u32_div(elapsed, counter_khz(), NSEC_PER_MSEC);
	tolerance = due / 8 + 20 * (s64)counter_khz();
	missed = due - counted_at_most;
	ahead = counted_at_least - due;
	if (missed > tolerance) {
		leap->ticks = missed;
		leap->missed = mul_u64_u32_div(missed, NSEC_PER_MSEC, counter_khz());
	} else if (now->brackets && ahead > tolerance) {
		leap->stood = mul_u64_u32_div(ahead, NSEC_PER_MSEC, counter_khz());
	}
}

static notrace int clocks_updated(struct notifier_block *block, unsigned long was_set, void *data)
{
	const struct timekeeper *keeper = data;
	const struct tk_read_base *mono = &keeper->tkr_mono;
	struct reading now = { .slept = ktime_to_ns(keeper->offs_boot), .brackets = !was_set };
	struct rtrace_clock_leap leap = {};
	struct rtrace_clock_watch *watch;

	now.wall = ktime_to_ns(keeper->offs_real) - now.slept;
	now.tsc_before = counter_ordered();
	/*
	 * The kernel updates the timekeeper before it sets a clock or resumes. The fast clock cannot be read while
	 * the kernel resumes. At a tick, the timekeeper's time may be stale, so the fast clock is read instead.
	 */
	now.boot = now.slept + (was_set ? ktime_to_ns(mono->base) + (mono->xtime_nsec >> mono->shift)
					: ktime_get_mono_fast_ns());
	now.tsc_after = counter_ordered();
	if (has_last) {
		leap.slept = now.slept - last.slept;
		leap.set = now.wall - last.wall;
		compare_tsc(&now, &leap);
	}
	last = now;
	has_last = true;
	if (has_tsc && !counter_is_trusted()) {
		has_tsc = false;
		leap.distrusted = true;
	}
	if (!leap.slept && !leap.set && !leap.ticks && !leap.stood && !leap.distrusted)
		return NOTIFY_OK;
	guard(raw_spinlock_irqsave)(&watches_lock);
	list_for_each_entry(watch, &watches, node)
		watch->leapt(watch, &leap);
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = clocks_updated };
static DEFINE_MUTEX(notifier_lock);
static unsigned int users;

/* Calls @watch->leapt at each leap from now on, with interrupts off, within the timekeeper's lock. */
notrace void rtrace_clock_watch_add(struct rtrace_clock_watch *watch)
{
	scoped_guard(raw_spinlock_irqsave, &watches_lock)
		list_add_tail(&watch->node, &watches);
	guard(mutex)(&notifier_lock);
	if (users++)
		return;
	has_last = false;
	has_tsc = counter_frequency();
	pvclock_gtod_register_notifier(&notifier);
}

/* Removes @watch. When this returns, @watch->leapt does not run any more. */
notrace void rtrace_clock_watch_remove(struct rtrace_clock_watch *watch)
{
	scoped_guard(mutex, &notifier_lock)
		if (!--users)
			pvclock_gtod_unregister_notifier(&notifier);
	guard(raw_spinlock_irqsave)(&watches_lock);
	list_del(&watch->node);
}

/* Ticks per second of the time stamp counter, or 0 if the counter is not fit for a trace's clock. */
notrace u64 rtrace_tsc_frequency(void)
{
	return counter_frequency();
}
