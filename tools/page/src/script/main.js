// SPDX-License-Identifier: GPL-2.0

// Builds the page.

/** Legend of the colours. */
function legend(timeline) {
	const items = [["run", "running"], ["wait", "woken, waits"], ["sent-off", "preempted, waits"], ["deep", "uninterruptible"], ["sleep", "sleeps"]];
	if (timeline.rows.hasInterrupts)
		items.push(["hard", "hard interrupt"], ["soft", "soft interrupt"]);
	const entries = items.map(([colour, text]) => {
		const patch = element("i");
		patch.style.background = `var(--${colour})`;
		return element("li", {}, patch, text);
	});
	const gap = element("li", {}, element("i", { class: "hatched" }), "events missing");
	return element("ul", { class: "legend", "aria-label": "Colours" }, ...entries, ...timeline.trace.index.gaps.length > 0 ? [gap] : []);
}

async function start() {
	const trace = await Trace.read();
	showHead(trace);
	const tabs = new Tabs();
	let timeline = null, flame = null;
	const theme = new Theme(byId("theme"), () => {
		timeline?.redraw();
		flame?.redraw();
	});
	const details = new Details(trace);
	timeline = new Timeline(trace, theme, thing => details.show(thing));
	const search = new Search(trace, timeline);
	const order = element("select", { onchange: () => {
		timeline.rows.order = order.value;
		timeline.rows.arrange();
		timeline.arranged();
	} }, ...[["ran", "that ran longest"], ["first", "seen first"], ["name", "by name"], ["tid", "by thread id"]]
		.map(([value, text]) => element("option", { value }, text)));
	const active = element("input", { type: "checkbox", onchange: () => timeline.showActive(active.checked) });
	const moments = trace.index.parts.map(({ why, begin_ns }, place) => element("option", { value: String(place) }, `${moment(begin_ns)}: ${why}`));
	const important = element("select", { "aria-label": "Important moments", onchange: () => {
		const part = trace.index.parts[Number(important.value)];
		if (important.value !== "" && part)
			view.show(part.from_ns, part.to_ns);
		important.value = "";
	} }, element("option", { value: "" }, "Important moments"), ...moments);
	const button = (text, title, onclick) => element("button", { type: "button", title, onclick }, text);
	const { view } = timeline;
	const zoom = factor => view.zoom(factor, (view.from + view.to) / 2);
	// Threads with rows, by thread id.
	const rowed = new Map(trace.threads.filter(thread => Object.keys(thread.lanes).length > 0).map(thread => [thread.tid, thread]));
	// Links from a table to the timeline.
	const follow = {
		has: tid => rowed.has(tid),
		thread: tid => {
			tabs.choose("timeline");
			timeline.resize();
			if (!timeline.rows.find(rowed.get(tid))) {
				search.only.checked = active.checked = false;
				search.filter();
				timeline.showActive(false);
			}
			timeline.arranged();
			timeline.reveal(ofRow(timeline.rows.find(rowed.get(tid))));
		},
		moment: ns => {
			tabs.choose("timeline");
			timeline.resize();
			view.show(ns - 1e6, ns + 1e6);
		},
	};
	tabs.add("timeline", "Timeline", () => [
		element("div", { class: "toolbar" },
			...search.parts,
			element("label", {}, active, "only active here"),
			element("label", {}, "Threads", order),
			moments.length > 0 ? important : null,
			button("+", "Zoom in (w, +)", () => zoom(1 / ZOOM)), button("\u2212", "Zoom out (s, -)", () => zoom(ZOOM)), button("Fit", "The whole trace (f)", () => view.fit()),
			element("span", { class: "space" }), legend(timeline)),
		timeline.root, details.root], "filled");
	for (const name of answersOf(trace.report))
		tabs.add(name, titleOf(name), () => [viewOf(trace, name, follow)]);
	if (trace.stacks.counts.length > 0) {
		tabs.add("flame", "Flame graph", () => {
			flame = new Flame(trace, theme);
			return flame.parts;
		}, "filled");
	}
	listenToKeys(timeline, search, tabs);
	byId("loading").remove();
	tabs.choose("timeline");
	// For tests, and for users who inspect the page.
	globalThis.rtrace = { trace, timeline, search, tabs, theme };
	document.documentElement.dataset.ready = "true";
}

start().catch(error => {
	const what = globalThis.DecompressionStream ? String(error) : "this browser is too old: it has no DecompressionStream";
	byId("loading")?.replaceChildren(`The page cannot be shown: ${what}`);
	throw error;
});
