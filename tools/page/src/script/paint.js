// SPDX-License-Identifier: GPL-2.0

// Paints lanes, marks and gaps: only visible ones, and at most one per pixel.

/** A narrower slice, in pixels, becomes part of a column. A column shows the share of each activity. */
const NARROW = 1.5;

/** Target of painting: a part of a canvas, and its range of time. */
class Frame {
	constructor(context, theme, view, left, width) {
		this.context = context;
		this.theme = theme;
		this.view = view;
		this.left = left;
		this.width = width;
		this.scale = width / view.span;
		this.colour = null;
	}

	/** Returns the distance of a time from the left, in pixels. */
	x(time) {
		return (time - this.view.from) * this.scale;
	}

	/** Paints a rectangle between two distances from the left. */
	box(colour, from, to, top, height) {
		if (colour !== this.colour)
			this.context.fillStyle = this.colour = colour;
		from = Math.max(from, 0);
		to = Math.min(to, this.width);
		if (to > from)
			this.context.fillRect(this.left + from, top, to - from, height);
	}

	/** Paints text in a slice, shortened to the width of the slice. */
	label(text, colour, from, to, top, height) {
		from = Math.max(from, 0) + 3;
		const room = Math.min(to, this.width) - 3 - from;
		if (room < 14)
			return;
		let shown = text;
		const width = widthOf(this.context, text);
		if (width > room) {
			const letters = Math.floor(text.length * room / width) - 1;
			if (letters < 2)
				return;
			shown = `${text.slice(0, letters)}\u2026`;
		}
		this.context.fillStyle = this.colour = colour;
		this.context.fillText(shown, this.left + from, top + height / 2 + 0.5);
	}
}

const widths = new Map();

/** Returns the width of a text. Each text is measured once, because all canvases have the same font. */
function widthOf(context, text) {
	let width = widths.get(text);
	if (width === undefined) {
		if (widths.size > 20000)
			widths.clear();
		width = context.measureText(text).width;
		widths.set(text, width);
	}
	return width;
}

/** Paints a lane. For the value of a slice, `look` has the colour, the text, and whether the slice is only a
 * line. It also has the colours of a column's parts. */
function paintSlices(frame, slices, top, height, look) {
	if (!slices)
		return;
	const { view, scale, width } = frame;
	const { starts, ends, values, length } = slices;
	const sums = new Float64Array(PARTS), before = new Float64Array(PARTS);
	const columns = new Columns(frame, top, height, look);
	// The column whose begin belongs to `before`, and the first unpainted column.
	let known = -1, next = 0;
	let i = slices.endsBehind(view.from);
	while (i < length && starts[i] < view.to) {
		const from = frame.x(starts[i]), to = frame.x(ends[i]);
		const value = values[i];
		if (to - from >= NARROW) {
			columns.flush();
			if (isMixed(value)) {
				columns.add(Math.max(0, Math.floor(from)), Math.min(width, Math.ceil(to)),
					mixedRun(value), mixedWait(value), 0);
				columns.flush();
			} else {
				paintSlice(frame, value, from, to, top, height, look);
			}
			i++;
			continue;
		}
		const column = Math.max(next, Math.floor(from));
		if (column >= width)
			break;
		const end = view.from + (column + 1) / scale;
		const behind = slices.endsBehind(end, i);
		if (known !== column) {
			before.fill(0);
			slices.before(before, view.from + column / scale, i, 1);
		}
		sums.fill(0);
		slices.before(sums, end, behind, 1);
		columns.add(column, column + 1, (sums[RUN] - before[RUN]) * scale, (sums[WAIT] - before[WAIT]) * scale,
			(sums[DEEP] - before[DEEP]) * scale);
		before.set(sums);
		known = next = column + 1;
		i = behind;
	}
	columns.flush();
}

function paintSlice(frame, value, from, to, top, height, look) {
	const colour = look.colour(value);
	if (look.isLine(value)) {
		frame.box(colour, from, to, top + height / 2 - 1, 2);
		return;
	}
	// A small gap separates the slice from the next one.
	frame.box(colour, from, to - from > 4 ? to - 1 : to, top, height);
	if (look.mark && look.mark(value))
		frame.box(frame.theme.deep, from, to, top + height - 2, 2);
	if (to - from > 20 && height > 10)
		frame.label(look.text(value), look.ink(value), from, to, top, height);
}

/** Columns of pixels. Adjacent equal columns are painted as one. */
class Columns {
	constructor(frame, top, height, look) {
		Object.assign(this, { frame, top, height, look });
		this.from = this.to = -1;
		this.run = this.wait = this.deep = 0;
	}

	/** Adds columns between two pixels, with the shares of running, waiting and uninterruptible time. */
	add(from, to, run, wait, deep) {
		run = this.pixels(run);
		wait = this.pixels(wait);
		deep = this.pixels(deep);
		if (from !== this.to || run !== this.run || wait !== this.wait || deep !== this.deep) {
			this.flush();
			Object.assign(this, { from, run, wait, deep });
		}
		this.to = to;
	}

	/** Returns the height of a share. A share above 0 has at least one pixel. */
	pixels(part) {
		return part > 1e-9 ? Math.max(1, Math.round(Math.min(1, part) * this.height)) : 0;
	}

	flush() {
		if (this.to <= this.from)
			return;
		const { line, parts } = this.look;
		if (line && this.run + this.wait + this.deep <= this.height / 2)
			this.frame.box(line, this.from, this.to, this.top + this.height / 2 - 1, 2);
		let bottom = this.top + this.height;
		bottom = this.stack(parts[RUN], this.run, bottom);
		bottom = this.stack(parts[WAIT], this.wait, bottom);
		this.stack(parts[DEEP], this.deep, bottom);
		this.from = this.to = -1;
	}

	/** Paints a share on top of the shares below it. Returns the upper edge. */
	stack(colour, height, bottom) {
		height = Math.min(height, bottom - this.top);
		if (height > 0)
			this.frame.box(colour, this.from, this.to, bottom - height, height);
		return bottom - height;
	}
}

/** Returns the index of the first time that is not before `time`. */
function notBefore(times, time, low = 0) {
	let step = 1, high = low;
	while (high < times.length && times[high] < time) {
		low = high + 1;
		high += step;
		step *= 2;
	}
	high = Math.min(high, times.length);
	while (low < high) {
		const middle = low + high >>> 1;
		if (times[middle] < time)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/** Paints the events of a CPU; denser events are darker. For each event, `hits` has the number of found
 * events before it; `name` returns the name of an event. */
function paintMarks(frame, marks, top, height, hits, name) {
	const { view, scale, theme, width } = frame;
	const { times, events } = marks;
	const strengths = [0.3, 0.42, 0.55, 0.68, 0.8, 0.92];
	const colours = strengths.map(strength => `rgba(${theme.mark}, ${strength})`);
	const end = notBefore(times, view.to);
	// Adjacent equal columns are painted as one.
	let room = 0, colour = null, begin = 0, behind = 0;
	const flush = () => colour && frame.box(colour, begin, behind, top, height);
	for (let i = notBefore(times, view.from); i < end;) {
		const column = Math.floor(frame.x(times[i]));
		const next = Math.max(i + 1, Math.min(end, notBefore(times, view.from + (column + 1) / scale, i)));
		const isHit = hits && hits[next] > hits[i];
		const strength = Math.min(colours.length - 1, 31 - Math.clz32(next - i));
		const look = isHit ? theme.hit : colours[strength];
		if (look !== colour || column !== behind) {
			flush();
			[colour, begin] = [look, column];
		}
		behind = column + 1;
		if (next === i + 1 && column >= room) {
			const limit = next < times.length ? frame.x(times[next]) : width;
			const text = name(events[i]);
			if (limit - column > widthOf(frame.context, text) + 10) {
				frame.label(text, isHit ? theme.hit : theme.muted, column, limit, top, height);
				room = limit;
			}
		}
		i = next;
	}
	flush();
}

/** Paints the places where events are missing. */
function paintGaps(frame, gaps, top, height, hatch) {
	let painted = -1;
	for (const gap of gaps) {
		const from = Math.max(frame.x(gap.from_ns), painted);
		const to = Math.max(frame.x(gap.to_ns), from + 2);
		if (to < 0 || frame.x(gap.from_ns) > frame.width || frame.x(gap.to_ns) <= painted)
			continue;
		frame.box(frame.theme.gapGround, from, to, top, height);
		if (hatch)
			frame.box(hatch, from, to, top, height);
		painted = to;
	}
}

/** Returns a pattern of oblique lines. */
function hatching(context, theme) {
	const tile = document.createElement("canvas");
	tile.width = tile.height = 8;
	const pen = tile.getContext("2d");
	pen.strokeStyle = theme.gap;
	pen.lineWidth = 1.2;
	for (const offset of [-8, 0, 8]) {
		pen.moveTo(offset, 8);
		pen.lineTo(offset + 8, 0);
	}
	pen.stroke();
	return context.createPattern(tile, "repeat");
}
