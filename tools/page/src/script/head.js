// SPDX-License-Identifier: GPL-2.0

// Head of the page: the identity of the trace, and notes about it.

/** Shows the machine, and the trace's figures. */
function showHead(trace) {
	const { report } = trace;
	const of = name => report.env[name] ?? "?";
	document.title = `${of("hostname")}, ${trace.index.date} - rtrace`;
	byId("machine").textContent = `${of("hostname")}, Linux ${of("kernel_release")}`;
	const lost = report.lost_is_exact ? number(report.lost) : `${number(report.lost)} and more`;
	byId("facts").replaceWith(definitions({ id: "facts" }, [
		["begin", trace.index.date],
		["duration", duration(report.duration_ns)],
		["events", number(report.recorded)],
		["lost", lost, report.lost > 0 || !report.lost_is_exact ? "lost" : null],
		["trace", `${report.trace}, ${bytes(report.bytes)}`],
	]));
	const notes = [];
	const note = (text, style) => notes.push(element("p", { class: style }, text));
	if (trace.index.gaps.length > 0)
		note("Events are missing: the timeline shows where, by hatching. The figures are lower bounds: times across such a gap are not counted.");
	trace.index.losses.forEach(line => note(line));
	report.warnings.forEach(warning => note(warning));
	const { slice_resolution_ns, mark_resolution_ns, nameless_threads } = trace.index;
	const { is_served, parts } = trace.index;
	const merged = [
		slice_resolution_ns > 0 ? `slices shorter than ${duration(slice_resolution_ns)}` : null,
		mark_resolution_ns > 0 ? `events of one kind and thread within ${duration(mark_resolution_ns)}` : null,
	].filter(Boolean).join(", and ");
	const rest = is_served ? "Zoom in: the page then reads every event from the trace."
		: `${parts.length > 0 ? `Every event is in the page around ${counted(parts.length, "important moment")}: choose one above the timeline. ` : ""}\`rtrace report --serve\` shows all.`;
	if (merged)
		note(`This trace is too large for one page: the timeline merges ${merged}. The tables are exact. ${rest}`);
	if (nameless_threads > 0)
		note(`${counted(nameless_threads, "thread")} that ran least have no row and no name on the timeline.`);
	trace.index.left_out.forEach(why => note(`Not on this page: ${why}.`, "plain"));
	byId("notes").replaceChildren(...notes);
}
