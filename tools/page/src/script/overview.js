// SPDX-License-Identifier: GPL-2.0

// The whole trace as a strip: the load of all CPUs, places with missing events, and the range that the rows
// show.

class Overview {
	constructor(trace) {
		this.trace = trace;
		this.whole = { from: 0, to: trace.duration, span: trace.duration };
		this.values = [];
		this.lanes = trace.cpus.map(cpu => cpu.lanes.tasks).filter(Boolean);
	}

	/** Title beside the strip. */
	get title() {
		return this.lanes.length > 0 ? "CPUs busy" : "events";
	}

	/** Returns the fill level of each column of pixels: 0 to 1. */
	columns(width) {
		if (this.values.length === width)
			return this.values;
		const { trace, whole } = this;
		const edge = column => whole.span * column / width;
		const between = (column, count) => Array.from({ length: width }, (_, at) => count(edge(at), edge(at + 1)));
		if (this.lanes.length > 0) {
			this.values = between(width, (from, to) =>
				this.lanes.reduce((sum, lane) => sum + lane.spent(from, to)[RUN], 0) / (to - from) / trace.cpus.length);
		} else {
			const times = trace.cpus.map(cpu => cpu.marks.times);
			const counts = between(width, (from, to) =>
				times.reduce((sum, column) => sum + notBefore(column, to) - notBefore(column, from), 0));
			const most = Math.max(1, ...counts);
			this.values = counts.map(count => count / most);
		}
		return this.values;
	}

	/** Paints the trace without the view, once for each theme and size. */
	strip(theme, width, height, hatch) {
		const key = [theme.busy, width, height, devicePixelRatio].join();
		if (this.key === key)
			return this.image;
		this.key = key;
		this.image = document.createElement("canvas");
		this.image.width = Math.round(width * devicePixelRatio);
		this.image.height = Math.round(height * devicePixelRatio);
		const context = this.image.getContext("2d");
		context.scale(devicePixelRatio, devicePixelRatio);
		const frame = new Frame(context, theme, this.whole, 0, width);
		this.columns(width).forEach((value, column) => {
			const bar = Math.round(value * (height - 4));
			if (bar > 0)
				frame.box(theme.busy, column, column + 1, height - bar, bar);
		});
		for (const cpu of this.trace.cpus)
			paintGaps(frame, cpu.gaps, 0, height, hatch);
		return this.image;
	}

	paint(context, theme, view, left, width, height, hatch) {
		const frame = new Frame(context, theme, this.whole, left, width);
		context.drawImage(this.strip(theme, width, height, hatch), left, 0, width, height);
		const from = frame.x(view.from), to = Math.max(frame.x(view.to), from + 2);
		context.globalAlpha = 0.65;
		frame.box(theme.ground, 0, from, 0, height);
		frame.box(theme.ground, to, width, 0, height);
		context.globalAlpha = 1;
		if (view.span < this.whole.span) {
			frame.box(theme.accent, from - 1, from + 1, 0, height);
			frame.box(theme.accent, to - 1, to + 1, 0, height);
		}
	}
}
