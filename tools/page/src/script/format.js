// SPDX-License-Identifier: GPL-2.0

// Numbers and times as text for the user.

const grouped = new Intl.NumberFormat("en");

/** Formats an integer. */
const number = value => grouped.format(value);

/** Formats a number of things: "1 event", "2 events". */
const counted = (count, what) => `${number(count)} ${what}${count === 1 ? "" : "s"}`;

/** Formats a duration in nanoseconds, with four significant digits. */
function duration(ns) {
	const [unit, size] = ns < 1e3 ? ["ns", 1] : ns < 1e6 ? ["us", 1e3] : ns < 1e9 ? ["ms", 1e6] : ["s", 1e9];
	const value = ns / size;
	const digits = size === 1 ? 0 : value < 10 ? 3 : value < 100 ? 2 : value < 1000 ? 1 : 0;
	return `${value.toFixed(digits)} ${unit}`;
}

/** Formats nanoseconds since the begin of the trace, to the nanosecond: "1.234 567 890 s". */
function moment(ns) {
	const seconds = Math.floor(ns / 1e9);
	const rest = String(Math.round(ns - seconds * 1e9)).padStart(9, "0");
	return `${number(seconds)}.${rest.replace(/(\d{3})(?=\d)/g, "$1\u202f")} s`;
}

/** Returns the time of day, UTC, of the moment `ns` nanoseconds after a start. `seconds` and `nanoseconds`
 * are the start, since 1970. */
function timeOfDay(seconds, nanoseconds, ns) {
	const later = nanoseconds + ns;
	const second = seconds + Math.floor(later / 1e9);
	const rest = String(Math.round(later % 1e9)).padStart(9, "0");
	const date = new Date(second * 1000);
	return Number.isNaN(date.getTime()) ? "?" : `${date.toISOString().slice(11, 19)}.${rest}`;
}

/** Formats a number of bytes. */
function bytes(count) {
	const units = ["B", "KiB", "MiB", "GiB", "TiB"];
	const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(1, count)) / 10));
	return power === 0 ? `${count} B` : `${(count / 1024 ** power).toFixed(1)} ${units[power]}`;
}

/** Formats a share in percent. */
const percent = (part, whole) => whole > 0 ? `${(100 * part / whole).toFixed(1)} %` : "-";
