// SPDX-License-Identifier: GPL-2.0

// Things that the user can choose on the timeline, and their descriptions.

/** Thing for a whole row. */
function ofRow(row) {
	return { row, threads: row.thread ? new Set([row.thread.place]) : undefined };
}

/** Thing for a slice of a lane. */
function ofSlice(row, band, slices, index) {
	const value = slices.values[index];
	const place = row.thread ? row.thread.place : band.kind === "tasks" && !isMixed(value) ? value >>> 1 : undefined;
	return {
		row, band, index,
		of: slices,
		from: slices.starts[index],
		to: slices.ends[index],
		threads: place === undefined ? undefined : new Set([place]),
	};
}

/** Thing for an event among the marks of a CPU. */
function ofMark(row, band, marks, index) {
	const { times, threads } = marks;
	const thread = threads[index];
	return { row, band, index, of: marks, from: times[index], to: times[index], threads: thread > 0 ? new Set([thread - 1]) : undefined };
}

/** Returns the description of a thing: its title, and facts as pairs. */
function describe(trace, thing) {
	const { row, band, index } = thing;
	if (!band) {
		const title = row.thread ? trace.threadName(row.thread.place) : row.cpu ? `CPU ${row.cpu.number}` : row.name;
		const facts = row.thread && row.thread.pid !== null ? [["process", String(row.thread.pid)]] : [];
		return { title, facts };
	}
	const begin = [["at", moment(thing.from)], ["time of day", `${trace.timeOfDay(thing.from)} UTC`]];
	const where = row.cpu ? [["on", `CPU ${row.cpu.number}`]] : [["of", trace.threadName(row.thread.place)]];
	if (band.kind === "marks") {
		const { events, threads, counts } = thing.of;
		const times = counts[index] > 1 ? [["times", `${number(counts[index])} within ${duration(trace.index.mark_resolution_ns)}`]] : [];
		const by = threads[index] > 0 ? [["thread", trace.threadName(threads[index] - 1)]] : [];
		return { title: trace.index.events[events[index]], facts: [...times, ...by, ...where, ...begin] };
	}
	const value = thing.of.values[index];
	const took = [["took", duration(thing.to - thing.from)]];
	const facts = [...took, ...where, ...begin];
	if (isMixed(value)) {
		const parts = [["taken", percent(mixedRun(value), 1)]];
		if (band.kind === "states")
			parts.push(["waiting for a CPU", percent(mixedWait(value), 1)]);
		return { title: "several, merged", facts: [...parts, ...facts] };
	}
	switch (band.kind) {
	case "tasks": return { title: trace.threadName(value >>> 1), facts };
	case "hard": case "soft": return { title: trace.interruptName(value >>> 1), facts };
	case "calls": return { title: `${trace.index.calls[value >>> 2]}()${value & 2 ? ", failed" : ""}`, facts };
	default: {
		const cpu = cpuOf(value) >= 0 ? [["on", `CPU ${cpuOf(value)}`]] : [];
		return { title: trace.stateName(stateOf(value)), facts: [...took, ...cpu, ...where, ...begin] };
	}
	}
}

/** The panel below the timeline. */
class Details {
	constructor(trace) {
		this.trace = trace;
		this.root = element("div", { class: "details", "aria-live": "polite" });
		this.show(null);
	}

	show(thing) {
		if (!thing) {
			this.root.replaceChildren(element("span", { class: "none" },
				"Click a slice or an event to see what it is. Drag to move, Ctrl and the wheel to zoom, ? for all keys."));
			return;
		}
		const { title, facts } = describe(this.trace, thing);
		this.root.replaceChildren(element("strong", {}, title), definitions({}, facts));
	}
}
