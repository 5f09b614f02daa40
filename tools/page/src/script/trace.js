// SPDX-License-Identifier: GPL-2.0

// The trace that the page holds.

class Trace {
	/** Reads it from the page. */
	static async read() {
		const trace = new Trace(JSON.parse(byId("trace").textContent));
		trace.takeLanes(await column("slice-pauses"), await column("slice-lengths"), await column("slice-values"));
		trace.takeMarks(await column("mark-pauses"), await column("mark-events"),
			await column("mark-threads"), await column("mark-counts"));
		trace.stacks = {
			parents: await column("stack-parents"),
			labels: await column("stack-labels"),
			counts: await column("stack-counts"),
		};
		return trace;
	}

	/** With the index: what html.rs writes as JSON. */
	constructor(index) {
		this.index = index;
		this.report = index.report;
		/** Nanoseconds. */
		this.duration = Math.max(1, index.report.duration_ns);
		this.cpus = index.cpus.map(cpu => ({
			number: cpu,
			lanes: {},
			marks: { times: new Float64Array(), events: new Uint32Array(), threads: new Uint32Array(), counts: new Uint32Array() },
			gaps: index.gaps.filter(gap => gap.cpu === cpu),
		}));
		this.threads = index.threads.map((thread, place) => ({ ...thread, place, lanes: {} }));
	}

	takeLanes(pauses, lengths, values) {
		const starts = pauses, ends = lengths, numbers = new Uint32Array(values);
		const cpus = new Map(this.cpus.map(cpu => [cpu.number, cpu]));
		let first = 0;
		for (const { kind, of, slices } of this.index.lanes) {
			let time = 0;
			for (let i = first; i < first + slices; i++) {
				time += pauses[i];
				starts[i] = time;
				time += lengths[i];
				ends[i] = time;
			}
			const part = column => column.subarray(first, first + slices);
			const owner = kind === "states" || kind === "calls" ? this.threads[of] : cpus.get(of);
			owner.lanes[kind] = new Slices(kind, part(starts), part(ends), part(numbers));
			first += slices;
		}
	}

	takeMarks(pauses, events, threads, counts) {
		const times = pauses;
		const whole = [times, new Uint32Array(events), new Uint32Array(threads), new Uint32Array(counts)];
		const cpus = new Map(this.cpus.map(cpu => [cpu.number, cpu]));
		let first = 0;
		for (const { cpu, marks } of this.index.marks) {
			for (let i = first + 1; i < first + marks; i++)
				times[i] += times[i - 1];
			const [t, e, th, c] = whole.map(column => column.subarray(first, first + marks));
			cpus.get(cpu).marks = { times: t, events: e, threads: th, counts: c };
			first += marks;
		}
	}

	/** A thread by its place, as "comm tid". */
	threadName(place) {
		const thread = this.threads[place];
		return thread ? `${thread.comm || "?"} ${thread.tid}` : "a thread that ran little";
	}

	/** An interrupt by its place. */
	interruptName(place) {
		const { is_hard, number, name } = this.index.interrupts[place];
		return `${is_hard ? "irq" : "softirq"} ${number} ${name}`;
	}

	/** What a thread's state is called: a number of stateOf(). */
	stateName(state) {
		switch (state) {
		case RUNNING: return "running";
		case WOKEN: return "runnable, was woken";
		case SENT_OFF: return "runnable, was sent off its CPU";
		default: return `blocked: ${this.index.ways[state - BLOCKED]}`;
		}
	}

	/** The time of day of so many nanoseconds from the begin on. */
	timeOfDay(ns) {
		return timeOfDay(this.index.begin_s, this.index.begin_ns, ns);
	}

	/** Nanoseconds from the begin on, of a number or text: nanoseconds since 1970. */
	sinceBegin(epoch) {
		return Number(BigInt(epoch) - BigInt(this.index.begin_s) * 1000000000n - BigInt(this.index.begin_ns));
	}
}
