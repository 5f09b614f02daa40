// SPDX-License-Identifier: GPL-2.0

// The keyboard.

/** Share of the view by which a key pans, and factor by which a key zooms. */
const PAN = 0.15, ZOOM = 1.4;

/** Handles the keys of the page. Keys of the timeline work only while it is shown. */
function listenToKeys(timeline, search, tabs) {
	const { view, scroller } = timeline;
	const zoom = factor => view.zoom(factor, timeline.mouse && timeline.mouse.x > LABELS ? timeline.time(timeline.mouse.x) : (view.from + view.to) / 2);
	const pan = part => view.pan(part * view.span);
	const keys = {
		w: () => zoom(1 / ZOOM), "+": () => zoom(1 / ZOOM), "=": () => zoom(1 / ZOOM),
		s: () => zoom(ZOOM), "-": () => zoom(ZOOM),
		a: () => pan(-PAN), ArrowLeft: () => pan(-PAN),
		d: () => pan(PAN), ArrowRight: () => pan(PAN),
		ArrowUp: () => scroller.scrollBy(0, -60), ArrowDown: () => scroller.scrollBy(0, 60),
		PageUp: () => scroller.scrollBy(0, -timeline.height * 0.9), PageDown: () => scroller.scrollBy(0, timeline.height * 0.9),
		f: () => view.fit(), 0: () => view.fit(),
		z: () => timeline.zoomToChosen(),
		",": () => timeline.step(-1), ".": () => timeline.step(1),
		n: () => search.go(1), N: () => search.go(-1),
		Escape: () => timeline.choose(null),
	};
	document.addEventListener("keydown", event => {
		const isTyping = event.target.closest("input, select, dialog, [role=tab]");
		if (isTyping || event.ctrlKey || event.altKey || event.metaKey)
			return;
		if (event.key === "?") {
			byId("keys").showModal();
		} else if (event.key === "/") {
			tabs.choose("timeline");
			search.field.focus();
			search.field.select();
		} else if (tabs.chosen === "timeline" && keys[event.key]) {
			keys[event.key]();
		} else {
			return;
		}
		event.preventDefault();
	});
	byId("help").addEventListener("click", () => byId("keys").showModal());
}
