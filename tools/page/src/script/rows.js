// SPDX-License-Identifier: GPL-2.0

// Rows of the timeline: the CPUs and threads, their order and their heights. Lengths are CSS pixels.

/** Width of the column of labels. */
const LABELS = 196;

/** Height of a group's title. */
const TITLE = 24;

class Rows {
	constructor(trace) {
		this.trace = trace;
		this.order = "ran";
		/** Places of the visible threads; null if all are visible. */
		this.only = null;
		/** Only threads that are active in this view are visible; null for no limit. */
		this.activeIn = null;
		this.closed = new Set();
		const has = (owners, kind) => owners.some(owner => owner.lanes[kind]);
		this.hasInterrupts = has(trace.cpus, "hard") || has(trace.cpus, "soft");
		this.hasCalls = has(trace.threads, "calls");
		this.firsts = new Float64Array(trace.threads.map(thread => {
			const lanes = Object.values(thread.lanes);
			return Math.min(...lanes.map(lane => lane.starts[0] ?? Infinity), Infinity);
		}));
		this.arrange();
	}

	/** Sorts the rows and sets their positions. */
	arrange() {
		this.list = [];
		this.height = 0;
		const add = row => {
			row.top = this.height;
			this.height += row.height;
			this.list.push(row);
		};
		const group = (name, count, rows) => {
			add({ kind: "title", name, count, height: TITLE });
			if (!this.closed.has(name))
				rows().forEach(add);
		};
		const threads = this.threads();
		group("CPUs", this.trace.cpus.length, () => this.trace.cpus.map(cpu => this.cpuRow(cpu)));
		group("Threads", threads.length, () => threads.map(thread => this.threadRow(thread)));
	}

	/** Opens or closes a group. */
	toggle(name) {
		if (!this.closed.delete(name))
			this.closed.add(name);
		this.arrange();
	}

	threads() {
		const { trace, only, activeIn } = this;
		const isActive = lane => lane && lane.spent(activeIn.from, activeIn.to).some(time => time > 0);
		const threads = trace.threads.filter(thread =>
			(!only || only.has(thread.place)) && Object.keys(thread.lanes).length > 0 &&
			(!activeIn || isActive(thread.lanes.states)));
		const by = {
			ran: (a, b) => a.place - b.place,
			name: (a, b) => a.comm.localeCompare(b.comm) || a.tid - b.tid,
			tid: (a, b) => a.tid - b.tid,
			first: (a, b) => this.firsts[a.place] - this.firsts[b.place],
		};
		return threads.sort(by[this.order]);
	}

	cpuRow(cpu) {
		const bands = [{ kind: "tasks", top: 3, height: 18 }];
		let bottom = 22;
		if (this.hasInterrupts) {
			bands.push({ kind: "hard", top: bottom, height: 5, title: "interrupts" });
			bands.push({ kind: "soft", top: bottom + 6, height: 5 });
			bottom += 13;
		}
		bands.push({ kind: "marks", top: bottom + 1, height: 9, title: "events" });
		return { kind: "cpu", cpu, owner: cpu, bands, height: bottom + 14 };
	}

	threadRow(thread) {
		const bands = this.hasCalls
			? [{ kind: "states", top: 3, height: 7 }, { kind: "calls", top: 11, height: 13 }]
			: [{ kind: "states", top: 3, height: 14 }];
		return { kind: "thread", thread, owner: thread, bands, height: this.hasCalls ? 27 : 20 };
	}

	/** Returns the number of the row at this height. */
	at(y) {
		let low = 0, high = this.list.length;
		while (low < high) {
			const middle = low + high >>> 1;
			if (this.list[middle].top + this.list[middle].height <= y)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	/** Returns the row of a CPU or thread, if no filter hides it. A closed group of the row is opened. */
	find(owner) {
		const is = row => row.owner === owner;
		const found = this.list.find(is);
		if (found || this.closed.size === 0)
			return found;
		this.closed.clear();
		this.arrange();
		return this.list.find(is);
	}
}
