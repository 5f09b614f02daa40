// SPDX-License-Identifier: GPL-2.0

// Time that the page needs to show a change, for tests and for curious users: `rtrace.timeline.frames`.

/** Milliseconds from which a user notices a pause. */
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

	/** Counts a painted frame. `ms` is the time since the change that the frame shows, in milliseconds. */
	painted(ms) {
		this.count++;
		this.pauses += ms > PAUSE ? 1 : 0;
		this.longest = Math.max(this.longest, ms);
	}
}
