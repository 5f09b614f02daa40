// SPDX-License-Identifier: GPL-2.0

// Tables that can be sorted and searched.

/** Number of rows that are shown at first. */
const FIRST_ROWS = 200;

/** Returns the heading of a field's column. */
const heading = field => ({ blocked: "blocked how", left: "left its CPU" })[field] ?? field.replace(/_ns$/, "").replaceAll("_", " ");

/** Returns the content of a cell. A thread id or a moment is a link to the timeline. */
function cell(trace, field, value, follow) {
	if (value === null || value === undefined)
		return "-";
	if (/(^|_)tid$/.test(field) && follow.has(value))
		return element("button", { type: "button", title: "Show it on the timeline", onclick: () => follow.thread(value) }, String(value));
	if (isEpoch(field, value)) {
		const ns = trace.sinceBegin(value);
		return element("button", { type: "button", title: "Show it on the timeline", onclick: () => follow.moment(ns) }, trace.timeOfDay(ns));
	}
	if (field.endsWith("_ns"))
		return duration(value);
	if (typeof value === "number")
		return /(^|_)bytes$/.test(field) ? bytes(value) : /(^|_)(tid|pid|cpu|number|fd|sector)$/.test(field) ? String(value) : number(value);
	if (isGroup(value))
		return Object.entries(value).map(([name, part]) =>
			`${name} ${typeof part === "number" && field.endsWith("blocked") ? duration(part) : part}`).join(", ");
	return String(value);
}

/** Whether a value is in nanoseconds since 1970, and no duration: only these numbers are texts (html.rs). */
const isEpoch = (field, value) => field.endsWith("_ns") && typeof value === "string";

/** Whether a value is a group of named values. */
const isGroup = value => typeof value === "object" && value !== null;

/** Returns the value to sort by. */
function weight(value) {
	if (value === null || value === undefined)
		return -Infinity;
	if (isGroup(value))
		return Object.values(value).reduce((sum, part) => sum + part, 0);
	return value;
}

function compare(a, b) {
	if (typeof a === "string" && typeof b === "string")
		return a.localeCompare(b);
	return a < b ? -1 : a > b ? 1 : 0;
}

class Table {
	/** Table of `rows`, which are objects, with these fields as columns. Each of `columns` is a pair: a
	 * heading, and a function that makes the cell of a row. `title` is null if the title is already above
	 * the table. */
	constructor(trace, title, rows, fields, follow, columns = []) {
		Object.assign(this, { trace, rows, fields, follow, columns });
		this.limit = FIRST_ROWS;
		this.sorted = rows;
		this.numeric = new Set(fields.filter(field => rows.some(row => typeof row[field] === "number") || field.endsWith("_ns")));
		this.count = element("span", { class: "count", role: "status" });
		this.filter = element("input", { type: "search", placeholder: "Search", "aria-label": title ? `Search: ${title}` : "Search", oninput: () => this.fill() });
		this.body = element("tbody");
		this.headings = fields.map(field => element("th", { scope: "col", class: this.numeric.has(field) ? "number" : null },
			element("button", { type: "button", onclick: () => this.sort(field) }, heading(field))));
		const more = columns.map(([name]) => element("th", { scope: "col" }, name));
		this.all = element("button", { type: "button", onclick: () => { this.limit = Infinity; this.fill(); } }, "Show all");
		this.root = element("section", {},
			title ? element("h3", {}, title) : null,
			element("div", { class: "tools" }, rows.length > 8 ? this.filter : null, this.count),
			element("table", { class: "data", "aria-label": title ?? "Answer" },
				element("thead", {}, element("tr", {}, ...this.headings, ...more)), this.body),
			this.all);
		this.fill();
	}

	/** Sorts by a field, numbers in descending order. The next call reverses the order. */
	sort(field) {
		const first = this.numeric.has(field) ? "descending" : "ascending";
		const other = first === "ascending" ? "descending" : "ascending";
		const place = this.fields.indexOf(field);
		const direction = this.headings[place].getAttribute("aria-sort") === first ? other : first;
		this.headings.forEach(heading => heading.removeAttribute("aria-sort"));
		this.headings[place].setAttribute("aria-sort", direction);
		const sign = direction === "ascending" ? 1 : -1;
		this.sorted = [...this.rows].sort((a, b) => sign * compare(weight(a[field]), weight(b[field])));
		this.fill();
	}

	fill() {
		const wanted = this.filter.value.trim().toLowerCase();
		const text = row => this.fields.map(field => isGroup(row[field]) ? "" : String(row[field] ?? "")).join(" ").toLowerCase();
		const rows = wanted ? this.sorted.filter(row => text(row).includes(wanted)) : this.sorted;
		const shown = rows.slice(0, this.limit);
		this.body.replaceChildren(...shown.map(row => this.row(row)));
		this.all.hidden = shown.length === rows.length;
		this.all.textContent = `Show all ${number(rows.length)}`;
		this.count.textContent = wanted ? `${number(rows.length)} of ${number(this.rows.length)}` : counted(rows.length, "row");
	}

	row(row) {
		const cells = this.fields.map(field => {
			const style = this.numeric.has(field) ? "number" : isGroup(row[field]) ? "long" : null;
			return element("td", { class: style }, cell(this.trace, field, row[field], this.follow));
		});
		const more = this.columns.map(([, make]) => element("td", {}, make(row)));
		return element("tr", {}, ...cells, ...more);
	}
}
