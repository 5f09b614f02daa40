// SPDX-License-Identifier: GPL-2.0

// The slices of a lane, by time. They do not overlap.
//
// Where many fall into one pixel, what part of it is what must be known without going through them: so
// the sums are kept for every 16th slice, and a pixel costs two binary searches, whatever lies in it.

/** log2 of the slices between two sums. */
const STRIDE = 4;

/** What a time is spent on: the sums of a lane. Lanes but those of a thread's states have RUN only. */
const RUN = 0, WAIT = 1, DEEP = 2, PARTS = 3;

/** A mixed slice has several of them, in thousandths. */
const isMixed = value => (value & 1) === 1;
const mixedRun = value => (value >>> 1 & 0x3ff) / 1000;
const mixedWait = value => (value >>> 11) / 1000;

/** Values of the slices of a thread's states (lanes.rs): what it did, and the CPU's number. */
const RUNNING = 0, WOKEN = 1, SENT_OFF = 2, BLOCKED = 3;
const stateOf = value => value >>> 1 & 0xf;
const cpuOf = value => (value >>> 5) - 1;

/** Places in Left::NAMES (schedule_events.rs), the ways to leave a CPU: asleep, not to be interrupted, and a
 * kernel thread that waits for work. */
const INTERRUPTIBLE = 1, UNINTERRUPTIBLE = 2, IDLE = 8;

class Slices {
	/** Of a lane of this kind: typed arrays of the same length. Times are nanoseconds. */
	constructor(kind, starts, ends, values) {
		this.kind = kind;
		this.starts = starts;
		this.ends = ends;
		this.values = values;
		this.length = starts.length;
		this.sums = new Float64Array(((this.length >> STRIDE) + 1) * PARTS);
		const sum = new Float64Array(PARTS);
		for (let i = 0; i < this.length; i++) {
			if ((i & (1 << STRIDE) - 1) === 0)
				this.sums.set(sum, (i >> STRIDE) * PARTS);
			this.add(sum, i, ends[i] - starts[i]);
		}
		if ((this.length & (1 << STRIDE) - 1) === 0)
			this.sums.set(sum, (this.length >> STRIDE) * PARTS);
	}

	/** Adds so much time of a slice to the sums of what it was spent on. */
	add(sums, i, time) {
		const value = this.values[i];
		if (isMixed(value)) {
			sums[RUN] += time * mixedRun(value);
			sums[WAIT] += time * mixedWait(value);
		} else if (this.kind !== "states") {
			sums[RUN] += time;
		} else {
			const state = stateOf(value);
			if (state === RUNNING)
				sums[RUN] += time;
			else if (state === WOKEN || state === SENT_OFF)
				sums[WAIT] += time;
			else if (state === BLOCKED + UNINTERRUPTIBLE)
				sums[DEEP] += time;
		}
	}

	/** The first slice that ends behind a time, at or behind the slice `low`; their number if none does. */
	endsBehind(time, low = 0) {
		const { ends, length } = this;
		// What is looked for is near, most of the time.
		let step = 1, high = low;
		while (high < length && ends[high] <= time) {
			low = high + 1;
			high += step;
			step *= 2;
		}
		high = Math.min(high, length);
		while (low < high) {
			const middle = low + high >>> 1;
			if (ends[middle] <= time)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	/** The slice at a time; -1 if there is none. */
	at(time) {
		const i = this.endsBehind(time);
		return i < this.length && this.starts[i] <= time ? i : -1;
	}

	/** Adds to `sums` what the time before `to` was spent on, from the lane's begin on. `i` is the first
	 * slice that ends behind it. */
	before(sums, to, i, sign) {
		const base = (i >> STRIDE) * PARTS;
		for (let part = 0; part < PARTS; part++)
			sums[part] += sign * this.sums[base + part];
		for (let k = i >> STRIDE << STRIDE; k < i; k++)
			this.add(sums, k, sign * (this.ends[k] - this.starts[k]));
		if (i < this.length && this.starts[i] < to)
			this.add(sums, i, sign * (to - this.starts[i]));
	}

	/** What the time from `from` to `to` was spent on. */
	spent(from, to) {
		const sums = new Float64Array(PARTS);
		this.before(sums, to, this.endsBehind(to), 1);
		this.before(sums, from, this.endsBehind(from), -1);
		return sums;
	}
}
