// SPDX-License-Identifier: GPL-2.0

// The visible range of the trace's time.

/** Shortest length in nanoseconds. */
const SHORTEST = 50;

class View {
	/** For a trace of `duration` nanoseconds. `changed` is called after each change. */
	constructor(duration, changed) {
		this.duration = duration;
		this.changed = changed;
		this.from = 0;
		this.to = duration;
	}

	get span() {
		return this.to - this.from;
	}

	/** Shows a range of time, limited to the trace. */
	show(from, to) {
		const span = Math.min(this.duration, Math.max(SHORTEST, to - from));
		const middle = (from + to) / 2;
		this.from = Math.min(Math.max(0, middle - span / 2), Math.max(0, this.duration - span));
		this.to = this.from + span;
		this.changed();
	}

	/** Multiplies the length by `factor`. The time `at` keeps its position. */
	zoom(factor, at) {
		const span = Math.min(this.duration, Math.max(SHORTEST, this.span * factor));
		const from = at - (at - this.from) * span / this.span;
		this.show(from, from + span);
	}

	/** Moves the view by `ns` nanoseconds. */
	pan(ns) {
		const by = Math.min(Math.max(ns, -this.from), this.duration - this.to);
		this.show(this.from + by, this.to + by);
	}

	/** Shows the whole trace. */
	fit() {
		this.show(0, this.duration);
	}

	/** Makes a range visible, with some time around it. The length of the view stays the same, if the range
	 * fits and is not far too short for it. */
	reveal(from, to) {
		const length = to - from;
		const span = Math.min(Math.max(this.span, length * 1.5), Math.max(length * 1000, this.duration / 1000));
		if (span !== this.span || from < this.from || to > this.to)
			this.show((from + to - span) / 2, (from + to + span) / 2);
	}
}
