// SPDX-License-Identifier: GPL-2.0

// Timeline: rows of CPUs and threads over time, and the chosen thing.

const OVERVIEW = 38, RULER = 24;

/** Distance in pixels at which a click still chooses an event or a short slice. */
const REACH = 4;

class Timeline {
	/** `chosen` is called with the chosen thing, or with null, after each choice. */
	constructor(trace, theme, chosen) {
		this.trace = trace;
		this.theme = theme;
		this.chosen = chosen;
		this.rows = new Rows(trace);
		this.view = new View(trace.duration, () => this.moved());
		this.ruler = new Ruler(trace.duration);
		this.overview = new Overview(trace);
		this.levels = new Levels(trace, () => this.redraw());
		this.frames = new Frames();
		this.selection = null;
		/** Hits of the search (search.js). */
		this.found = null;
		this.measured = null;
		this.mouse = null;
		this.build();
		this.pointer = new Pointer(this);
	}

	build() {
		this.overviewCanvas = element("canvas", { class: "overview" });
		this.rulerCanvas = element("canvas", { class: "ruler" });
		this.canvas = element("canvas", { tabindex: "0", role: "img", "aria-label": "Timeline of CPUs and threads; the tables have its figures" });
		this.space = element("div");
		this.level = element("div", { class: "level", role: "status" });
		this.tip = element("div", { class: "tip", hidden: true });
		this.scroller = element("div", { class: "rows" }, this.canvas, this.space);
		this.root = element("div", { class: "timeline" },
			element("div", { class: "head" }, this.overviewCanvas, this.rulerCanvas), this.scroller, this.tip, this.level);
		this.scroller.addEventListener("scroll", () => this.redraw());
		new ResizeObserver(() => this.resize()).observe(this.scroller);
	}

	/** Adjusts the canvases to the size of their places on the page. */
	resize() {
		this.width = this.scroller.clientWidth;
		this.height = this.scroller.clientHeight;
		if (this.width === 0)
			return;
		for (const [canvas, height] of [[this.overviewCanvas, OVERVIEW], [this.rulerCanvas, RULER], [this.canvas, this.height]]) {
			canvas.style.width = `${this.width}px`;
			canvas.style.height = `${height}px`;
			canvas.width = Math.round(this.width * devicePixelRatio);
			canvas.height = Math.round(height * devicePixelRatio);
		}
		this.arranged();
	}

	/** Handles changed rows: the chosen thing is in another row, or in none. */
	arranged() {
		const thing = this.selection;
		this.levels.look(this.view, this.span);
		if (thing && !this.rows.list.includes(thing.row)) {
			const row = this.rows.list.find(row => row.owner && row.owner === thing.row.owner);
			const band = row?.bands.find(band => band.kind === thing.band?.kind);
			this.choose(row ? { ...thing, row, band } : null);
		}
		this.space.style.height = `${Math.max(0, this.rows.height - this.height)}px`;
		this.redraw();
	}

	/** Handles a changed view, in which other threads may be active. */
	moved() {
		this.levels.look(this.view, this.span);
		this.redraw();
		if (!this.rows.activeIn)
			return;
		clearTimeout(this.timer);
		this.timer = setTimeout(() => {
			this.rows.arrange();
			this.arranged();
		}, 150);
	}

	/** Shows all threads, or only threads that are active in the view. */
	showActive(only) {
		this.rows.activeIn = only ? this.view : null;
		this.rows.arrange();
		this.arranged();
	}

	/** Schedules one repaint. */
	redraw() {
		if (this.isDue)
			return;
		this.isDue = true;
		const asked = performance.now();
		requestAnimationFrame(() => {
			this.isDue = false;
			if (!this.width)
				return;
			this.paint();
			this.frames.painted(performance.now() - asked);
		});
	}

	/** Width of the time axis in pixels. */
	get span() {
		return Math.max(1, this.width - LABELS);
	}

	pen(canvas) {
		const context = canvas.getContext("2d");
		context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
		context.fillStyle = this.theme.ground;
		context.fillRect(0, 0, canvas.width, canvas.height);
		context.font = `11px ${this.theme.font}`;
		context.textBaseline = "middle";
		return context;
	}

	paint() {
		const { theme, view } = this;
		const top = this.pen(this.overviewCanvas);
		this.hatch = hatching(top, theme);
		this.overview.paint(top, theme, view, LABELS, this.span, OVERVIEW, this.hatch);
		top.fillStyle = theme.muted;
		top.fillText(this.overview.title, 14, OVERVIEW / 2);
		const rule = this.pen(this.rulerCanvas);
		this.ruler.paint(new Frame(rule, theme, view, LABELS, this.span), RULER);
		rule.fillStyle = theme.muted;
		rule.fillText(`${duration(view.span)} of ${duration(this.trace.duration)}`, 14, RULER / 2);
		this.level.textContent = this.levels.said;
		this.paintRows(this.pen(this.canvas));
	}

	paintRows(context) {
		const { rows, height } = this;
		const scroll = this.scroller.scrollTop;
		const frame = new Frame(context, this.theme, this.view, LABELS, this.span);
		this.ruler.paintGrid(frame, Math.min(height, rows.height - scroll));
		for (let n = rows.at(scroll); n < rows.list.length; n++) {
			const row = rows.list[n];
			const top = row.top - scroll;
			if (top > height)
				break;
			if (row.kind === "title")
				this.paintTitle(frame, row, top);
			else
				this.paintRow(frame, row, top);
		}
		this.paintChosen(frame, scroll);
	}

	paintTitle(frame, row, top) {
		const { context, theme } = frame;
		context.fillStyle = theme.raised;
		context.fillRect(0, top, this.width, row.height);
		context.fillStyle = theme.text;
		frame.colour = null;
		const sign = this.rows.closed.has(row.name) ? "\u25b8" : "\u25be";
		context.fillText(`${sign} ${row.name}`, 10, top + row.height / 2);
		context.fillStyle = theme.muted;
		context.fillText(number(row.count), 26 + widthOf(context, row.name), top + row.height / 2);
	}

	paintRow(frame, row, top) {
		const { theme } = frame;
		frame.box(theme.grid, 0, frame.width, top + row.height - 1, 1);
		for (const band of row.bands) {
			if (band.kind === "marks") {
				const hits = this.levels.hits(row.cpu, this.found);
				paintMarks(frame, this.levels.marks(row.cpu), top + band.top, band.height, hits, event => this.trace.index.events[event]);
			} else {
				paintSlices(frame, this.levels.lane(row.owner, band.kind), top + band.top, band.height, this.look(band.kind));
			}
		}
		if (row.cpu)
			paintGaps(frame, row.cpu.gaps, top, row.height - 1, this.hatch);
		else
			for (const cpu of this.trace.cpus)
				paintGaps(frame, cpu.gaps, top, row.height - 1, null);
		this.paintLabel(frame, row, top);
	}

	paintLabel(frame, row, top) {
		const { context, theme } = frame;
		const isChosen = this.selection && this.selection.row === row;
		const isFound = row.thread && this.found?.threads.has(row.thread.place);
		context.fillStyle = isChosen ? theme.accentGround : theme.ground;
		context.fillRect(0, top, LABELS - 1, row.height - 1);
		context.fillStyle = theme.line;
		context.fillRect(LABELS - 1, top, 1, row.height);
		context.save();
		context.beginPath();
		context.rect(0, top, LABELS - 6, row.height);
		context.clip();
		context.fillStyle = isFound ? theme.hit : theme.text;
		const middle = row.cpu ? top + 12 : top + row.height / 2;
		const name = row.cpu ? `CPU ${row.cpu.number}` : row.thread.comm || "?";
		context.fillText(name, 14, middle);
		context.fillStyle = theme.muted;
		if (row.thread)
			context.fillText(String(row.thread.tid), 20 + widthOf(context, name), middle);
		for (const band of row.bands)
			if (band.title)
				context.fillText(band.title, 70, top + band.top + band.height / 2);
		context.restore();
		frame.colour = null;
	}

	/** Returns the appearance of a lane's slices. */
	look(kind) {
		const { theme, trace, found } = this;
		const threads = found && found.threads.size > 0 ? found.threads : this.selection?.threads;
		const none = () => false;
		switch (kind) {
		case "tasks": {
			const isFaded = value => threads && !threads.has(value >>> 1);
			return {
				colour: value => isFaded(value) ? theme.faded : theme.ofText(trace.threads[value >>> 1]?.comm ?? ""),
				text: value => trace.threads[value >>> 1]?.comm ?? "",
				ink: value => isFaded(value) ? theme.muted : theme.sliceText,
				isLine: none,
				parts: [theme.busy],
			};
		}
		case "hard": case "soft":
			return { colour: () => theme[kind], text: () => "", isLine: none, parts: [theme[kind]] };
		case "calls": {
			const isFaded = value => found && found.calls.size > 0 && !found.calls.has(value >>> 2);
			return {
				colour: value => isFaded(value) ? theme.faded : theme.ofText(trace.index.calls[value >>> 2]),
				text: value => trace.index.calls[value >>> 2],
				ink: value => isFaded(value) ? theme.muted : theme.sliceText,
				mark: value => (value & 2) !== 0,
				isLine: none,
				parts: [theme.busy],
			};
		}
		default:
			return {
				colour: value => theme.ofState(stateOf(value)),
				text: value => cpuOf(value) >= 0 ? `CPU ${cpuOf(value)}` : "",
				ink: () => theme.ground,
				isLine: value => stateOf(value) >= BLOCKED && stateOf(value) !== BLOCKED + UNINTERRUPTIBLE,
				parts: [theme.run, theme.wait, theme.deep],
				line: theme.sleep,
			};
		}
	}

	paintChosen(frame, scroll) {
		const { context, theme } = frame;
		const thing = this.selection;
		if (thing && thing.band) {
			const from = Math.max(-2, frame.x(thing.from)), to = Math.min(frame.width + 2, frame.x(thing.to));
			if (to >= 0 && from <= frame.width) {
				context.strokeStyle = theme.text;
				context.lineWidth = 2;
				context.strokeRect(LABELS + from - 1, thing.row.top - scroll + thing.band.top - 1, Math.max(2, to - from) + 2, thing.band.height + 2);
			}
		}
		if (this.measured) {
			const [from, to] = this.measured.map(time => frame.x(time)).sort((a, b) => a - b);
			context.globalAlpha = 0.18;
			frame.box(theme.accent, from, to, 0, this.height);
			context.globalAlpha = 1;
			frame.box(theme.accent, from, from + 1, 0, this.height);
			frame.box(theme.accent, to - 1, to, 0, this.height);
		} else if (this.mouse && this.mouse.x > LABELS) {
			frame.box(theme.line, this.mouse.x - LABELS, this.mouse.x - LABELS + 1, 0, this.height);
		}
	}

	/** Returns the time at a distance from the left of the canvas. */
	time(x) {
		return this.view.from + (x - LABELS) / this.span * this.view.span;
	}

	/** Returns the thing at a point of the canvas, or null. */
	thingAt(x, y) {
		const row = this.rows.list[this.rows.at(y + this.scroller.scrollTop)];
		if (!row)
			return null;
		if (x < LABELS || row.kind === "title")
			return ofRow(row);
		const within = y + this.scroller.scrollTop - row.top;
		const band = row.bands.find(band => within >= band.top - 1 && within <= band.top + band.height + 1);
		if (!band)
			return null;
		const time = this.time(x), reach = REACH / this.span * this.view.span;
		if (band.kind === "marks") {
			const marks = this.levels.marks(row.cpu);
			const { times } = marks;
			const next = notBefore(times, time);
			const near = [next - 1, next].filter(i => i >= 0 && i < times.length && Math.abs(times[i] - time) <= reach);
			near.sort((a, b) => Math.abs(times[a] - time) - Math.abs(times[b] - time));
			return near.length > 0 ? ofMark(row, band, marks, near[0]) : null;
		}
		const slices = this.levels.lane(row.owner, band.kind);
		if (!slices)
			return null;
		let i = slices.at(time);
		if (i < 0)
			i = [time - reach, time + reach].map(time => slices.at(time)).find(i => i >= 0) ?? -1;
		return i >= 0 ? ofSlice(row, band, slices, i) : null;
	}

	/** Chooses a thing, or nothing. */
	choose(thing) {
		this.selection = thing;
		this.measured = null;
		this.chosen(thing);
		this.redraw();
	}

	/** Chooses a thing and makes it visible. */
	reveal(thing) {
		const { row } = thing;
		const { scrollTop } = this.scroller;
		if (row.top < scrollTop || row.top + row.height > scrollTop + this.height)
			this.scroller.scrollTop = row.top + row.height / 2 - this.height / 2;
		if (thing.from !== undefined)
			this.view.reveal(thing.from, thing.to);
		this.choose(thing);
	}

	/** Chooses the thing before (-1) or after (1) the chosen one in its lane. */
	step(by) {
		const thing = this.selection;
		if (!thing || !thing.band)
			return;
		const index = thing.index + by;
		const isMark = thing.band.kind === "marks";
		const length = isMark ? thing.of.times.length : thing.of.length;
		if (index >= 0 && index < length)
			this.reveal((isMark ? ofMark : ofSlice)(thing.row, thing.band, thing.of, index));
	}

	/** Zooms in on the measured range, or on the chosen thing. */
	zoomToChosen() {
		const thing = this.selection;
		if (this.measured) {
			const [from, to] = this.measured.sort((a, b) => a - b);
			this.measured = null;
			this.view.show(from, to);
		} else if (thing && thing.from !== undefined) {
			const margin = (thing.to - thing.from) / 10;
			this.view.show(thing.from - margin, thing.to + margin);
		}
	}
}
