// SPDX-License-Identifier: GPL-2.0

// Slices of a lane, by time. Slices do not overlap.
//
// If many slices fall into one pixel, the shares of their activities are needed without a loop over them.
// Therefore the lane has sums for every 16th slice. A pixel costs two binary searches, however many slices it
// has.

/** log2 of the slices between two sums. */
const STRIDE = 4;

/** Places of the activities in the sums of a lane. Only lanes of thread states use WAIT and DEEP. */
const RUN = 0, WAIT = 1, DEEP = 2, PARTS = 3;

/** Whether a slice is mixed. A mixed slice has the shares of several activities, in thousandths. */
const isMixed = value => (value & 1) === 1;
const mixedRun = value => (value >>> 1 & 0x3ff) / 1000;
const mixedWait = value => (value >>> 11) / 1000;

/** State in the value of a thread's slice (lanes.rs). The value also has the number of the CPU. */
const RUNNING = 0, WOKEN = 1, SENT_OFF = 2, BLOCKED = 3;
const stateOf = value => value >>> 1 & 0xf;
const cpuOf = value => (value >>> 5) - 1;

/** Places in Left::NAMES (schedule_events.rs), the ways to leave a CPU: interruptible sleep, uninterruptible
 * sleep, and a kernel thread that waits for work. */
const INTERRUPTIBLE = 1, UNINTERRUPTIBLE = 2, IDLE = 8;

class Slices {
	/** For a lane of this kind, from typed arrays of the same length. Times are nanoseconds. */
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

	/** Adds `time` nanoseconds of a slice to the sums of its activities. */
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

	/** Returns the first slice, from `low` on, that ends after a time; the number of slices if none does. */
	endsBehind(time, low = 0) {
		const { ends, length } = this;
		// The wanted slice is usually near.
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

	/** Returns the slice at a time; -1 if there is none. */
	at(time) {
		const i = this.endsBehind(time);
		return i < this.length && this.starts[i] <= time ? i : -1;
	}

	/** Adds the activities from the begin of the lane until `to` to `sums`, multiplied by `sign`. `i` is the
	 * first slice that ends after `to`. */
	before(sums, to, i, sign) {
		const base = (i >> STRIDE) * PARTS;
		for (let part = 0; part < PARTS; part++)
			sums[part] += sign * this.sums[base + part];
		for (let k = i >> STRIDE << STRIDE; k < i; k++)
			this.add(sums, k, sign * (this.ends[k] - this.starts[k]));
		if (i < this.length && this.starts[i] < to)
			this.add(sums, i, sign * (to - this.starts[i]));
	}

	/** Returns the sums of the activities from `from` to `to`. */
	spent(from, to) {
		const sums = new Float64Array(PARTS);
		this.before(sums, to, this.endsBehind(to), 1);
		this.before(sums, from, this.endsBehind(from), -1);
		return sums;
	}
}
