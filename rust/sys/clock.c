// SPDX-License-Identifier: GPL-2.0
/*
 * Leaps of the kernel's clocks: times that the machine slept, settings of the wall clock, and a time stamp
 * counter that started over.
 *
 * The kernel updates whoever keeps a copy of its clocks (pvclock_gtod_register_notifier()): at each tick that
 * advances them, when the wall clock is set, before it suspends them and when it resumes them. A resume is the first
 * update after a suspend, whatever the kind: to idle (CPUs idle, interrupts off), to memory and hibernation (one
 * CPU online, interrupts off). So the first event after a resume has the right time already.
 */
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pvclock_gtod.h>
#include <linux/spinlock.h>
#include <linux/timekeeper_internal.h>
#include <linux/timekeeping.h>
#include <asm/tsc.h>

#include "helpers.h"

/* The clocks at an update. */
struct reading {
	u64 tsc_before, tsc_after;	/* just before and after @boot was read */
	u64 boot;			/* since boot, sleep included */
	u64 slept;			/* the part of @boot in which the machine slept */
	u64 wall;			/* wall clock less @boot */
	bool brackets;			/* whether @tsc_before and @tsc_after do */
};

/* Written under the timekeeper's lock, once the notifier is registered. */
static struct reading last;
static bool has_last, has_tsc;

static LIST_HEAD(watches);
/* Taken within the timekeeper's lock: whoever holds it reads no clock. */
static DEFINE_RAW_SPINLOCK(watches_lock);

/*
 * Ticks that the time stamp counter lacks from @last to @now; 0 if it went on with the other clocks. The limit is
 * far above how much the rates of two clocks may differ while one of them is adjusted (an eighth).
 */
static notrace u64 missed_ticks(const struct reading *now)
{
	const s64 ticks_per_ms = tsc_khz;
	s64 elapsed = now->boot - last.boot;
	/* At most. Negative if it started over. */
	s64 counted = now->tsc_after - last.tsc_before;
	s64 due, missed;

	if (!has_tsc || !last.brackets || elapsed < 0)
		return 0;
	due = mul_u64_u32_div(elapsed, tsc_khz, NSEC_PER_MSEC);
	missed = due - counted;
	return missed > due / 8 + 20 * ticks_per_ms ? missed : 0;
}

static notrace int clocks_updated(struct notifier_block *block, unsigned long was_set, void *data)
{
	const struct timekeeper *keeper = data;
	const struct tk_read_base *mono = &keeper->tkr_mono;
	struct reading now = { .slept = ktime_to_ns(keeper->offs_boot), .brackets = !was_set };
	struct rtrace_clock_leap leap = {};
	struct rtrace_clock_watch *watch;

	now.wall = ktime_to_ns(keeper->offs_real) - now.slept;
	now.tsc_before = rdtsc_ordered();
	/*
	 * Whoever sets a clock or resumes brings the timekeeper up to date just before; the fast clock cannot be
	 * read while the kernel resumes. A tick may have come late.
	 */
	now.boot = now.slept + (was_set ? ktime_to_ns(mono->base) + (mono->xtime_nsec >> mono->shift)
					: ktime_get_mono_fast_ns());
	now.tsc_after = rdtsc_ordered();
	if (has_last) {
		leap.slept = now.slept - last.slept;
		leap.set = now.wall - last.wall;
		leap.ticks = missed_ticks(&now);
		leap.missed = mul_u64_u32_div(leap.ticks, NSEC_PER_MSEC, tsc_khz ?: 1);
	}
	last = now;
	has_last = true;
	if (!leap.slept && !leap.set && !leap.ticks)
		return NOTIFY_OK;
	guard(raw_spinlock_irqsave)(&watches_lock);
	list_for_each_entry(watch, &watches, node)
		watch->leapt(watch, &leap);
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = clocks_updated };
static DEFINE_MUTEX(notifier_lock);
static unsigned int users;

/* Has @watch->leapt called from now on, with interrupts off, within the timekeeper's lock. */
notrace void rtrace_clock_watch_add(struct rtrace_clock_watch *watch)
{
	scoped_guard(raw_spinlock_irqsave, &watches_lock)
		list_add_tail(&watch->node, &watches);
	guard(mutex)(&notifier_lock);
	if (users++)
		return;
	has_last = false;
	has_tsc = rtrace_tsc_is_trustworthy();
	pvclock_gtod_register_notifier(&notifier);
}

/* When this returns, it runs no more. */
notrace void rtrace_clock_watch_remove(struct rtrace_clock_watch *watch)
{
	scoped_guard(mutex, &notifier_lock)
		if (!--users)
			pvclock_gtod_unregister_notifier(&notifier);
	guard(raw_spinlock_irqsave)(&watches_lock);
	list_del(&watch->node);
}
