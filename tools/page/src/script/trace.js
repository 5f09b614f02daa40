// SPDX-License-Identifier: GPL-2.0

// The trace that the page holds.

/** The columns of slices and of events (data.rs). */
const SLICE_COLUMNS = ["slice-pauses", "slice-lengths", "slice-values"];
const MARK_COLUMNS = ["mark-pauses", "mark-events", "mark-threads", "mark-counts"];

class Trace {
	/** Reads the trace from the page. */
	static async read() {
		const trace = new Trace(JSON.parse(byId("trace").textContent));
		const columns = names => Promise.all(names.map(column));
		lanesOf(trace, trace.index.lanes, await columns(SLICE_COLUMNS), (owner, kind, slices) => owner.lanes[kind] = slices);
		marksOf(trace, trace.index.marks, await columns(MARK_COLUMNS), (cpu, marks) => cpu.marks = marks);
		trace.stacks = {
			parents: await column("stack-parents"),
			labels: await column("stack-labels"),
			counts: await column("stack-counts"),
		};
		return trace;
	}

	/** `index` is the JSON that html.rs writes. */
	constructor(index) {
		this.index = index;
		this.report = index.report;
		/** Duration in nanoseconds. */
		this.duration = Math.max(1, index.report.duration_ns);
		this.cpus = index.cpus.map(cpu => ({
			number: cpu,
			lanes: {},
			marks: { times: new Float64Array(), events: new Uint32Array(), threads: new Uint32Array(), counts: new Uint32Array() },
			gaps: index.gaps.filter(gap => gap.cpu === cpu),
		}));
		this.threads = index.threads.map((thread, place) => ({ ...thread, place, lanes: {} }));
	}

	/** Returns the name of the thread at a place: "comm tid". */
	threadName(place) {
		const thread = this.threads[place];
		return thread ? `${thread.comm || "?"} ${thread.tid}` : "a thread that ran little";
	}

	/** Returns the name of the interrupt at a place. */
	interruptName(place) {
		const { is_hard, number, name } = this.index.interrupts[place];
		return `${is_hard ? "irq" : "softirq"} ${number} ${name}`;
	}

	/** Returns the name of a thread's state, which is a number of stateOf(). */
	stateName(state) {
		switch (state) {
		case RUNNING: return "running";
		case WOKEN: return "runnable, was woken";
		case SENT_OFF: return "runnable, was preempted";
		default: return `blocked: ${this.index.ways[state - BLOCKED]}`;
		}
	}

	/** Returns the time of day of a moment in nanoseconds from the begin of the trace. */
	timeOfDay(ns) {
		return timeOfDay(this.index.begin_s, this.index.begin_ns, ns);
	}

	/** Returns nanoseconds from the begin of the trace. `epoch` is in nanoseconds since 1970, as a number or
	 * a text. */
	sinceBegin(epoch) {
		return Number(BigInt(epoch) - BigInt(this.index.begin_s) * 1000000000n - BigInt(this.index.begin_ns));
	}
}
