// SPDX-License-Identifier: GPL-2.0

// Labels of times above the rows, and the lines at these times.

/** Least distance of two times, in pixels. */
const TICK = 110;

class Ruler {
	constructor(duration) {
		[this.unit, this.size] = duration >= 1e9 ? ["s", 1e9] : duration >= 1e6 ? ["ms", 1e6] : ["us", 1e3];
	}

	/** Returns the times of a view that have lines. */
	times(view, width) {
		const least = view.span * TICK / Math.max(1, width);
		const power = 10 ** Math.floor(Math.log10(least));
		this.step = Math.max(1, power * [1, 2, 5, 10].find(factor => power * factor >= least));
		const times = [];
		for (let n = Math.ceil(view.from / this.step); n * this.step <= view.to; n++)
			times.push(n * this.step);
		return times;
	}

	label(time) {
		const digits = Math.max(0, -Math.floor(Math.log10(this.step / this.size) + 1e-9));
		return `${(time / this.size).toFixed(digits)} ${this.unit}`;
	}

	paint(frame, height) {
		const { context, theme, view, width, left } = frame;
		for (const time of this.times(view, width)) {
			const x = Math.round(frame.x(time));
			frame.box(theme.line, x, x + 1, height - 6, 6);
			context.fillStyle = theme.muted;
			frame.colour = null;
			const text = this.label(time);
			if (x + 4 + widthOf(context, text) < width)
				context.fillText(text, left + x + 4, height / 2);
		}
	}

	paintGrid(frame, height) {
		for (const time of this.times(frame.view, frame.width)) {
			const x = Math.round(frame.x(time));
			frame.box(frame.theme.grid, x, x + 1, 0, height);
		}
	}
}
