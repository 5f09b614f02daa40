// SPDX-License-Identifier: GPL-2.0

// How long the page takes to show a change, for tests and for a curious reader: `rtrace.timeline.frames`.

/** Milliseconds from which a person sees a pause. */
const PAUSE = 50;

class Frames {
	constructor() {
		this.clear();
	}

	clear() {
		this.count = 0;
		this.pauses = 0;
		this.longest = 0;
	}

	/** A frame was painted, so many milliseconds after the change that it shows. */
	painted(ms) {
		this.count++;
		this.pauses += ms > PAUSE ? 1 : 0;
		this.longest = Math.max(this.longest, ms);
	}
}
