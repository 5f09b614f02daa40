// SPDX-License-Identifier: GPL-2.0

// The bars of a histogram, as a column of its table.

/** Returns the heading and the cells of a column: a bar for each row, and the share of this and all earlier
 * rows. */
function barsOf(rows) {
	const most = Math.max(1, ...rows.map(row => row.count));
	const all = rows.reduce((sum, row) => sum + row.count, 0);
	const upTo = new Map();
	let sum = 0;
	for (const row of rows)
		upTo.set(row, sum += row.count);
	return ["up to here", row => {
		const bar = element("i");
		bar.style.width = `${240 * row.count / most}px`;
		return element("div", { class: "bar" }, bar, `\u00a0${percent(upTo.get(row), all)}`);
	}];
}
