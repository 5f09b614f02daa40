// SPDX-License-Identifier: GPL-2.0

// Which part of the trace's time is to be seen.

/** It is never shorter: nanoseconds. */
const SHORTEST = 50;

class View {
	/** Of a trace of so many nanoseconds; calls `changed` after each change. */
	constructor(duration, changed) {
		this.duration = duration;
		this.changed = changed;
		this.from = 0;
		this.to = duration;
	}

	get span() {
		return this.to - this.from;
	}

	/** From this time to that, as far as the trace has it. */
	show(from, to) {
		const span = Math.min(this.duration, Math.max(SHORTEST, to - from));
		const middle = (from + to) / 2;
		this.from = Math.min(Math.max(0, middle - span / 2), Math.max(0, this.duration - span));
		this.to = this.from + span;
		this.changed();
	}

	/** So many times as much, with `at` staying where it is. */
	zoom(factor, at) {
		const span = Math.min(this.duration, Math.max(SHORTEST, this.span * factor));
		const from = at - (at - this.from) * span / this.span;
		this.show(from, from + span);
	}

	/** So many nanoseconds later. */
	pan(ns) {
		const by = Math.min(Math.max(ns, -this.from), this.duration - this.to);
		this.show(this.from + by, this.to + by);
	}

	/** All. */
	fit() {
		this.show(0, this.duration);
	}

	/** So that this is to be seen, with something around it; as near as before, if it fits, and not too far
	 * away. */
	reveal(from, to) {
		const length = to - from;
		const span = Math.min(Math.max(this.span, length * 1.5), Math.max(length * 1000, this.duration / 1000));
		if (span !== this.span || from < this.from || to > this.to)
			this.show((from + to - span) / 2, (from + to + span) / 2);
	}
}
