// SPDX-License-Identifier: GPL-2.0

// Elements of the page. Strings of a trace are inserted as text only, never as HTML.

/** Creates an element with attributes, listeners ("onclick": a function), and children: elements or texts. */
function element(tag, attributes = {}, ...children) {
	const made = document.createElement(tag);
	for (const [name, value] of Object.entries(attributes)) {
		if (name.startsWith("on"))
			made.addEventListener(name.slice(2), value);
		else if (value !== undefined && value !== null && value !== false)
			made.setAttribute(name, value === true ? "" : value);
	}
	made.append(...children.filter(child => child !== undefined && child !== null));
	return made;
}

const byId = id => document.getElementById(id);

/** Creates a list of terms and their values, from pairs. */
function definitions(attributes, pairs) {
	const rows = pairs.map(([term, what, style]) =>
		element("div", {}, element("dt", {}, term), element("dd", { class: style }, what)));
	return element("dl", attributes, ...rows);
}
