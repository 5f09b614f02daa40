// SPDX-License-Identifier: GPL-2.0

// Parts of a trace with every slice and event. The overview of a large trace merges short slices and near
// events. In its range of time, a part replaces only merged slices and events: every other slice of the
// overview is exact.

/** Largest width of a merged slice, in pixels, at which the page needs no part. */
const COARSE = 3;

/** Time before and after the view that a part from the server also covers, in lengths of the view. */
const AROUND = 0.5;

/** Milliseconds without a movement before the page sends a request to the server. */
const REST = 150;

/** Number of parts from the server that the page keeps. */
const KEPT = 6;

/** Passes the slices of each lane to `take`, with the owner and the kind of the lane. `index` lists the
 * lanes. */
function lanesOf(trace, index, [pauses, lengths, values], take) {
	const starts = pauses, ends = lengths, numbers = new Uint32Array(values);
	const cpus = new Map(trace.cpus.map(cpu => [cpu.number, cpu]));
	let first = 0;
	for (const { kind, of, slices } of index) {
		let time = 0;
		for (let i = first; i < first + slices; i++) {
			time += pauses[i];
			starts[i] = time;
			time += lengths[i];
			ends[i] = time;
		}
		const part = column => column.subarray(first, first + slices);
		const owner = kind === "states" || kind === "calls" ? trace.threads[of] : cpus.get(of);
		take(owner, kind, new Slices(kind, part(starts), part(ends), part(numbers)));
		first += slices;
	}
}

function marksOf(trace, index, [pauses, events, threads, counts], take) {
	const times = pauses;
	const whole = [times, new Uint32Array(events), new Uint32Array(threads), new Uint32Array(counts)];
	const cpus = new Map(trace.cpus.map(cpu => [cpu.number, cpu]));
	let first = 0;
	for (const { cpu, marks } of index) {
		for (let i = first + 1; i < first + marks; i++)
			times[i] += times[i - 1];
		const [t, e, th, c] = whole.map(column => column.subarray(first, first + marks));
		take(cpus.get(cpu), { times: t, events: e, threads: th, counts: c });
		first += marks;
	}
}

/** A part of the trace. */
class Part {
	/** Unpacks the output of detail.rs. */
	static async unpack(trace, text) {
		const part = new Part(JSON.parse(text));
		const { data } = part;
		const columns = names => Promise.all(names.map(name => unpack(data.columns[name])));
		lanesOf(trace, data.lanes, await columns(SLICE_COLUMNS), (owner, kind, slices) => {
			if (!part.fine.has(owner))
				part.fine.set(owner, {});
			part.fine.get(owner)[kind] = slices;
		});
		marksOf(trace, data.marks, await columns(MARK_COLUMNS), (cpu, marks) => part.marks.set(cpu, marks));
		data.columns = null;
		return part;
	}

	constructor(data) {
		this.data = data;
		this.from = data.from_ns;
		this.to = data.to_ns;
		/** Nanoseconds: even in this part, shorter slices are merged. */
		this.resolution = Math.max(data.slice_resolution_ns, data.mark_resolution_ns);
		this.fine = new Map();
		this.marks = new Map();
		this.lanes = new Map();
	}

	/** Returns the slices of a lane. Slices of the part replace the merged slices of the overview. */
	lane(owner, kind) {
		const whole = owner.lanes[kind], fine = this.fine.get(owner)?.[kind];
		if (!whole || !fine)
			return whole;
		if (!this.lanes.has(fine))
			this.lanes.set(fine, this.join(whole, fine));
		return this.lanes.get(fine);
	}

	join(whole, fine) {
		const starts = [], ends = [], values = [];
		const take = (slices, i) => {
			starts.push(slices.starts[i]);
			ends.push(slices.ends[i]);
			values.push(slices.values[i]);
		};
		for (let i = whole.endsBehind(this.from); i < whole.length && whole.starts[i] < this.to; i++) {
			if (!isMixed(whole.values[i])) {
				take(whole, i);
				continue;
			}
			const count = starts.length;
			for (let k = fine.endsBehind(whole.starts[i]); k < fine.length && fine.ends[k] <= whole.ends[i]; k++) {
				if (fine.starts[k] >= whole.starts[i])
					take(fine, k);
			}
			// The part does not know the state of this thread.
			if (starts.length === count)
				take(whole, i);
		}
		return new Slices(whole.kind, Float64Array.from(starts), Float64Array.from(ends), Uint32Array.from(values));
	}

	/** Returns the number of found events before each mark of a CPU. */
	hits(cpu, found) {
		if (this.found !== found) {
			this.found = found;
			this.before = new Map();
		}
		if (!this.before.has(cpu)) {
			const { events } = this.marks.get(cpu);
			this.before.set(cpu, new Hits(events.length, i => found.events.has(events[i])).before);
		}
		return this.before.get(cpu);
	}
}

/** Chooses the data that the rows show: the overview, or a part. */
class Levels {
	/** `changed` is called when the shown data changes. */
	constructor(trace, changed) {
		this.trace = trace;
		this.changed = changed;
		this.resolution = Math.max(trace.index.slice_resolution_ns, trace.index.mark_resolution_ns);
		/** Parts in the page: their descriptions, and the unpacked parts. */
		this.own = trace.index.parts.map((what, number) => ({ ...what, number, part: null }));
		/** Parts from the server, the newest last. */
		this.served = [];
		this.shown = null;
		/** Text on the page about the shown data. */
		this.said = "";
	}

	/** Returns the slices of a lane. */
	lane(owner, kind) {
		return this.shown ? this.shown.lane(owner, kind) : owner.lanes[kind];
	}

	/** Returns the events of a CPU. */
	marks(cpu) {
		return this.shown?.marks.get(cpu) ?? cpu.marks;
	}

	/** Returns the number of found events before each event of a CPU. */
	hits(cpu, found) {
		return found && this.shown?.marks.has(cpu) ? this.shown.hits(cpu, found) : found?.marks.get(cpu);
	}

	/** Shows the best data for a view with a width in pixels. */
	look(view, width) {
		const finest = view.span / Math.max(1, width) * COARSE;
		// An answer to an earlier request belongs to another view, and is not shown.
		this.asked = null;
		clearTimeout(this.timer);
		if (this.resolution <= finest)
			return this.show(null, "");
		const near = ({ from, to }) => from <= view.from && view.to <= to;
		const has = part => near(part) && part.resolution <= finest;
		const served = this.served.findLast(has);
		if (served)
			return this.show(served, "every event");
		const own = this.own.find(({ from_ns, to_ns }) => near({ from: from_ns, to: to_ns }));
		if (own)
			return this.unpack(own);
		const coarse = this.served.findLast(near);
		this.show(coarse ?? null, this.trace.index.is_served ? "reading the trace ..." : "merged: this time is in the page as an overview only");
		if (this.trace.index.is_served)
			this.ask(view);
	}

	show(part, said) {
		if (this.shown === part && this.said === said)
			return;
		this.shown = part;
		this.said = said;
		this.changed();
	}

	/** Shows a part of the page. The part is unpacked when it is shown for the first time. */
	async unpack(own) {
		if (!own.part) {
			own.part = Part.unpack(this.trace, byId(`part-${own.number}`).textContent);
			byId(`part-${own.number}`).remove();
		}
		const asked = this.asked = {};
		const part = await own.part;
		if (this.asked === asked)
			this.show(part, `every event: ${own.why}`);
	}

	/** Requests the view, and some time around it, from the server after a delay. */
	ask(view) {
		const asked = this.asked = {};
		clearTimeout(this.timer);
		this.request?.abort();
		this.request = new AbortController();
		const { signal } = this.request;
		this.timer = setTimeout(async () => {
			const margin = view.span * AROUND;
			const from = Math.floor(Math.max(0, view.from - margin));
			const to = Math.ceil(Math.min(this.trace.duration, view.to + margin));
			let said;
			try {
				const answer = await fetch(`part?from=${from}&to=${to}`, { signal });
				if (answer.ok) {
					this.served.push(await Part.unpack(this.trace, await answer.text()));
					this.served.splice(0, this.served.length - KEPT);
				} else {
					said = answer.status === 413 ? "merged: zoom in to see every event" : `merged: ${await answer.text()}`;
				}
			} catch {
				said = "merged: rtrace report --serve has ended";
			}
			if (this.asked !== asked)
				return;
			const [part] = this.served.slice(-1);
			const is = part && part.from <= view.from && view.to <= part.to;
			this.show(is ? part : null, said ?? (part.resolution > 0 ? "merged: zoom in to see every event" : "every event"));
		}, REST);
	}
}
