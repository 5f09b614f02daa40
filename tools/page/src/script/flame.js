// SPDX-License-Identifier: GPL-2.0

// Flame graph: each frame of a call stack, with the number of stacks that contain it. The outermost caller is
// on top.

/** Height of a frame in pixels. */
const FRAME = 18;

/** Width in pixels below which a frame is not painted. */
const THIN = 0.4;

class Flame {
	constructor(trace, theme) {
		this.trace = trace;
		this.theme = theme;
		this.labels = trace.index.labels;
		this.grow();
		this.top = this.root;
		this.canvas = element("canvas", { role: "img", "aria-label": "Flame graph of the call stacks" });
		this.tip = element("div", { class: "tip", hidden: true });
		this.scroller = element("div", { class: "flame" }, this.canvas, this.tip);
		this.field = element("input", { type: "search", placeholder: "Frame", "aria-label": "Search the flame graph", oninput: () => this.redraw() });
		this.said = element("span", { class: "count", role: "status" });
		// The children of the root are events.
		this.event = element("select", { "aria-label": "Event", onchange: () => this.zoom(this.root.children[Number(this.event.value)] ?? this.root) },
			element("option", { value: "-1" }, "all events"),
			...this.root.children.map((node, place) => element("option", { value: String(place) }, `${node.label}: ${counted(node.count, "stack")}`)));
		this.back = element("button", { type: "button", onclick: () => this.zoom(this.root) }, "All");
		this.parts = [
			element("div", { class: "toolbar" }, this.event, this.field, this.back, this.said, element("span", { class: "space" }),
				element("span", { class: "count" }, "events, then thread, user stack, kernel stack; a frame is as wide as it is frequent; click to zoom")),
			this.scroller,
		];
		this.canvas.addEventListener("click", event => this.zoom(this.at(event) ?? this.root));
		this.canvas.addEventListener("pointermove", event => this.point(event));
		this.canvas.addEventListener("pointerleave", () => this.tip.hidden = true);
		new ResizeObserver(() => this.redraw()).observe(this.scroller);
	}

	/** Builds the tree. A node has its children, its count including the children, its depth and its
	 * position. */
	grow() {
		const { parents, labels, counts } = this.trace.stacks;
		this.root = { label: "all", count: 0, children: [], depth: 0, parent: null };
		const nodes = Array.from(labels, (label, i) => ({ label: this.labels[label], count: counts[i], children: [], depth: 0, parent: null }));
		nodes.forEach((node, i) => {
			node.parent = parents[i] > 0 ? nodes[parents[i] - 1] : this.root;
			node.depth = node.parent.depth + 1;
			node.parent.children.push(node);
		});
		for (let i = nodes.length - 1; i >= 0; i--)
			nodes[i].parent.count += nodes[i].count;
		this.depth = nodes.reduce((most, node) => Math.max(most, node.depth), 0);
		const place = node => {
			let begin = node.begin;
			for (const child of node.children.sort((a, b) => b.count - a.count)) {
				child.begin = begin;
				begin += child.count;
			}
		};
		this.root.begin = 0;
		place(this.root);
		nodes.forEach(place);
	}

	zoom(node) {
		this.top = node;
		this.redraw();
	}

	redraw() {
		if (this.isDue)
			return;
		this.isDue = true;
		requestAnimationFrame(() => {
			this.isDue = false;
			this.paint();
		});
	}

	paint() {
		const width = this.scroller.clientWidth, height = (this.depth + 1) * FRAME;
		if (width === 0)
			return;
		this.width = width;
		const { canvas, theme, top } = this;
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
		canvas.width = Math.round(width * devicePixelRatio);
		canvas.height = Math.round(height * devicePixelRatio);
		const context = canvas.getContext("2d");
		context.scale(devicePixelRatio, devicePixelRatio);
		context.font = `11px ${theme.font}`;
		context.textBaseline = "middle";
		this.frame = new Frame(context, theme, { from: top.begin, to: top.begin + top.count, span: Math.max(1, top.count) }, 0, width);
		this.wanted = this.field.value.trim().toLowerCase();
		this.hits = 0;
		for (let node = top.parent; node; node = node.parent)
			this.paintFrame(node, 0, width, true);
		this.paintTree(top, false);
		const share = this.wanted ? `${counted(this.hits, "stack")}, ${percent(this.hits, top.count)}` : counted(top.count, "stack");
		this.said.textContent = share;
		this.back.disabled = top === this.root;
		const chosen = this.root.children.findIndex(node => node.begin <= top.begin && top.begin + top.count <= node.begin + node.count);
		this.event.value = String(top === this.root ? -1 : chosen);
	}

	/** Paints a node and its descendants. `isIn` says whether an ancestor is a hit, whose stacks are already
	 * counted. */
	paintTree(node, isIn) {
		const from = this.frame.x(node.begin), to = this.frame.x(node.begin + node.count);
		const isHit = this.wanted && node.label.toLowerCase().includes(this.wanted);
		if (isHit && !isIn)
			this.hits += node.count;
		if (to - from >= THIN)
			this.paintFrame(node, from, to, false);
		// A node too narrow to paint may contain hits to count.
		if (to - from >= THIN || this.wanted)
			node.children.forEach(child => this.paintTree(child, isIn || isHit));
	}

	paintFrame(node, from, to, isBelow) {
		const { theme, frame } = this;
		const isHit = this.wanted && node.label.toLowerCase().includes(this.wanted);
		const colour = isHit ? theme.hit : isBelow || this.wanted ? theme.raised : theme.ofText(node.label);
		const ink = isHit ? theme.ground : isBelow || this.wanted ? theme.text : theme.sliceText;
		frame.box(colour, from, to - from > 3 ? to - 1 : to, node.depth * FRAME, FRAME - 1);
		frame.label(node.label, ink, from, to, node.depth * FRAME, FRAME - 1);
	}

	/** Returns the node at the mouse, if there is one. */
	at(event) {
		const depth = Math.floor(event.offsetY / FRAME);
		let node = this.top;
		while (node && node.depth > depth)
			node = node.parent;
		const at = this.frame.view.from + event.offsetX / this.frame.scale;
		while (node && node.depth < depth)
			node = node.children.find(child => child.begin <= at && at < child.begin + child.count);
		return node;
	}

	point(event) {
		const node = this.at(event);
		this.tip.hidden = !node;
		if (!node)
			return;
		this.tip.replaceChildren(element("b", {}, node.label),
			element("div", {}, `${counted(node.count, "stack")}, ${percent(node.count, this.root.count)} of all`));
		this.tip.style.left = `${Math.min(event.offsetX + 12, this.width - this.tip.offsetWidth - 4)}px`;
		this.tip.style.top = `${event.offsetY + 16}px`;
	}
}
