// SPDX-License-Identifier: GPL-2.0

// Views of the page. One of them is shown.

class Tabs {
	constructor() {
		this.list = byId("tabs");
		this.views = byId("views");
		this.chosen = null;
		this.list.addEventListener("keydown", event => this.key(event));
	}

	/** Adds a view. `make` returns its children when the view is shown for the first time. */
	add(name, title, make, style) {
		const tab = element("button", {
			type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `view-${name}`, "aria-selected": "false", tabindex: "-1",
			onclick: () => this.choose(name),
		}, title);
		const panel = element("div", { role: "tabpanel", id: `view-${name}`, "aria-labelledby": `tab-${name}`, class: style, hidden: true });
		panel.make = make;
		this.list.append(tab);
		this.views.append(panel);
	}

	choose(name) {
		this.chosen = name;
		for (const tab of this.list.children) {
			const isIt = tab.id === `tab-${name}`;
			tab.setAttribute("aria-selected", String(isIt));
			tab.tabIndex = isIt ? 0 : -1;
		}
		for (const panel of this.views.querySelectorAll("[role=tabpanel]")) {
			panel.hidden = panel.id !== `view-${name}`;
			if (!panel.hidden && panel.make) {
				panel.append(...panel.make());
				panel.make = null;
			}
		}
	}

	key(event) {
		const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (!by)
			return;
		const tabs = [...this.list.children];
		const next = tabs[(tabs.indexOf(document.activeElement) + by + tabs.length) % tabs.length];
		next.focus();
		next.click();
		event.preventDefault();
	}
}
