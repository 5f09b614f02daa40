// SPDX-License-Identifier: GPL-2.0

// Search over threads, events, system calls and interrupts, by name or thread id.
//
// Hits are in lanes, each in order of time. Each lane has the number of hits before each place. A binary search
// finds the next hit of a lane; the earliest of these is the next hit of the trace.

/** The hits of a lane. */
class Hits {
	/** Of `length` places; `isHit` returns whether a place is a hit. */
	constructor(length, isHit) {
		this.before = new Uint32Array(length + 1);
		for (let i = 0; i < length; i++)
			this.before[i + 1] = this.before[i] + (isHit(i) ? 1 : 0);
		this.total = this.before[length];
	}

	/** Returns the place of the hit with this number of hits before it. */
	place(count) {
		let low = 0, high = this.before.length - 1;
		while (low < high) {
			const middle = low + high >>> 1;
			if (this.before[middle + 1] <= count)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}
}

/** Hits of a search for a text. */
class Found {
	constructor(trace, text) {
		const wanted = text.toLowerCase();
		const matching = names => new Set(names.flatMap((name, place) => name.toLowerCase().includes(wanted) ? [place] : []));
		this.threads = new Set(trace.threads.flatMap(({ comm, tid, place }) =>
			comm.toLowerCase().includes(wanted) || String(tid) === wanted ? [place] : []));
		this.events = matching(trace.index.events);
		this.calls = matching(trace.index.calls);
		this.interrupts = matching(trace.index.interrupts.map((_, place) => trace.interruptName(place)));
		/** By CPU: the number of found events before each event. */
		this.marks = new Map();
		/** Lanes with hits: owner, kind of the lane, times, hits. */
		this.lanes = [];
		this.collect(trace);
		this.total = this.lanes.reduce((sum, lane) => sum + lane.hits.total, 0);
	}

	collect(trace) {
		const add = (owner, kind, times, isHit) => {
			const hits = new Hits(times.length, isHit);
			if (hits.total > 0)
				this.lanes.push({ owner, kind, times, hits });
			return hits;
		};
		const slices = (owner, kind, set, shift) => {
			const lane = owner.lanes[kind];
			if (lane && set.size > 0)
				add(owner, kind, lane.starts, i => !isMixed(lane.values[i]) && set.has(lane.values[i] >>> shift));
		};
		for (const cpu of trace.cpus) {
			if (this.events.size > 0) {
				const { times, events } = cpu.marks;
				this.marks.set(cpu, add(cpu, "marks", times, i => this.events.has(events[i])).before);
			}
			slices(cpu, "tasks", this.threads, 1);
			slices(cpu, "hard", this.interrupts, 1);
			slices(cpu, "soft", this.interrupts, 1);
		}
		if (this.calls.size > 0)
			trace.threads.forEach(thread => slices(thread, "calls", this.calls, 2));
	}

	/** Returns the hit after (1) or before (-1) a time, or another hit at the time: its lane, place, and
	 * number from 1 on. After the last hit, the search continues at the first one. */
	next(by, time, current) {
		const candidates = this.lanes.map((lane, order) => ({ lane, order, count: this.count(lane, order, by, time, current) }));
		const valid = candidates.filter(({ lane, count }) => count >= 0 && count < lane.hits.total);
		if (valid.length === 0)
			return this.total === 0 ? null : this.next(by, by > 0 ? -Infinity : Infinity, null);
		const hits = valid.map(({ lane, order, count }) => {
			const place = lane.hits.place(count);
			return { lane, order, place, time: lane.times[place] };
		});
		hits.sort((a, b) => by * (a.time - b.time || a.order - b.order));
		const [hit] = hits;
		hit.number = this.lanes.reduce((sum, lane, order) => sum + this.count(lane, order, 1, hit.time, hit), 0);
		return hit;
	}

	/** Returns the number of hits in a lane before the next hit; -1 if no hit follows. */
	count(lane, order, by, time, current) {
		const { times, hits } = lane;
		if (current && order === current.order)
			return by > 0 ? hits.before[current.place + 1] : hits.before[current.place] - 1;
		// Hits at the same time are in the order of the lanes.
		const isBefore = current !== null && order < current.order;
		const place = notBefore(times, isBefore ? nextAfter(time) : time);
		return by > 0 ? hits.before[place] : hits.before[place] - 1;
	}
}

/** Returns a time just after this one: hits have integer times. */
const nextAfter = time => time + 0.5;

/** The search field of the timeline. */
class Search {
	constructor(trace, timeline) {
		this.trace = trace;
		this.timeline = timeline;
		this.hit = null;
		this.field = element("input", {
			type: "search", placeholder: "Search names (/)", "aria-label": "Search the timeline",
			oninput: () => this.later(), onkeydown: event => this.key(event),
		});
		this.count = element("span", { class: "count", role: "status" });
		this.only = element("input", { type: "checkbox", onchange: () => this.filter() });
		this.buttons = [
			element("button", { type: "button", title: "Previous (Shift and Enter, N)", "aria-label": "Previous hit", onclick: () => this.go(-1) }, "\u2039"),
			element("button", { type: "button", title: "Next (Enter, n)", "aria-label": "Next hit", onclick: () => this.go(1) }, "\u203a"),
		];
		this.parts = [this.field, ...this.buttons, this.count, element("label", {}, this.only, "only found")];
		this.tell();
	}

	later() {
		clearTimeout(this.timer);
		this.timer = setTimeout(() => this.find(), 120);
	}

	find() {
		clearTimeout(this.timer);
		this.timer = null;
		const text = this.field.value.trim();
		if (text === this.text)
			return;
		this.text = text;
		this.hit = null;
		this.timeline.found = text ? new Found(this.trace, text) : null;
		this.filter();
		this.tell();
	}

	/** Shows all threads, or only the found ones. */
	filter() {
		const { found, rows } = this.timeline;
		rows.only = found && this.only.checked ? found.threads : null;
		rows.arrange();
		this.timeline.arranged();
	}

	/** Jumps to the next hit, or the previous one. */
	go(by) {
		this.find();
		const { found, view, rows } = this.timeline;
		if (!found)
			return;
		const start = by > 0 ? view.from : view.to;
		this.hit = found.next(by, this.hit ? this.hit.time : start, this.hit);
		this.tell();
		if (!this.hit)
			return;
		const { lane, place } = this.hit;
		const row = rows.find(lane.owner);
		this.timeline.arranged();
		const band = row?.bands.find(band => band.kind === lane.kind);
		if (band)
			this.timeline.reveal(lane.kind === "marks" ? ofMark(row, band, lane.owner.marks, place) : ofSlice(row, band, lane.owner.lanes[lane.kind], place));
		else
			this.timeline.view.reveal(this.hit.time, this.hit.time);
	}

	tell() {
		const { found } = this.timeline;
		this.buttons.forEach(button => button.disabled = !found || found.total === 0);
		if (!found)
			this.count.textContent = "";
		else if (found.total === 0)
			this.count.textContent = "nothing found";
		else if (this.hit)
			this.count.textContent = `${number(this.hit.number)} of ${number(found.total)}`;
		else
			this.count.textContent = `${counted(found.total, "hit")}, ${counted(found.threads.size, "thread")}`;
	}

	key(event) {
		if (event.key === "Enter")
			this.go(event.shiftKey ? -1 : 1);
		else if (event.key === "Escape")
			this.timeline.canvas.focus();
		else
			return;
		event.preventDefault();
	}
}
