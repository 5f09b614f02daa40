// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel counters of perf: plain counters, samplers, and recorders of trace events.
 *
 * Code that handles events calls the read functions. So these are notrace and NMI-safe.
 */
#include <linux/err.h>
#include <linux/kprobes.h>
#include <linux/perf_event.h>
#include <linux/smp.h>

#include "helpers.h"

/*
 * Creates an event that counts on @cpu all the time. It is pinned, so perf never suspends it for another event.
 * Fails with -ENOSPC if it cannot count.
 */
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

/* Creates an event that calls @handler @frequency times per second. */
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

/* Whether the machine has counters of this kind that interrupt, even if all of them are in use. */
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
 * Creates an event that calls @handler once for each event, with its record. Some events count in other units;
 * PERF_SAMPLE_PERIOD makes perf call the handler once for them too (perf_swevent_event()).
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

/* Reads the record of an event, for its handler. Returns the handler's context. NMI-safe. */
notrace void *rtrace_perf_record_read(struct perf_event *event, struct perf_sample_data *data,
				      struct rtrace_perf_record *record)
{
	record->data = data->raw->frag.data;
	record->size = data->raw->frag.size;
	return event->overflow_handler_context;
}
NOKPROBE_SYMBOL(rtrace_perf_record_read);

/* Reads the properties of a sample, for its handler. Returns the handler's context. NMI-safe. */
notrace void *rtrace_sample_read(struct perf_event *event, struct perf_sample_data *data,
				 struct rtrace_sample *sample)
{
	sample->event = event->id;
	sample->period = data->period;
	/* Meaningless for an event without a timer. */
	sample->due = ktime_to_ns(hrtimer_get_expires(&event->hw.hrtimer));
	/* The kernel's MAX_INTERRUPTS, which no header defines. */
	sample->is_throttled = event->hw.interrupts == ~0ULL;
	return event->overflow_handler_context;
}

/*
 * Reads a counter of this CPU, as perf_event_read_local() does, which is not exported. The pmu's read() may be
 * called in any context, NMI included. While interrupts are off, perf cannot schedule the event.
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
