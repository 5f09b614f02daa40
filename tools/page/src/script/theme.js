// SPDX-License-Identifier: GPL-2.0

// Light and dark theme, and the colours of the canvases.

const THEMES = ["auto", "light", "dark"];

class Theme {
	/** Calls `changed` after each change. */
	constructor(button, changed) {
		this.changed = changed;
		this.button = button;
		this.choice = "auto";
		this.dark = matchMedia("(prefers-color-scheme: dark)");
		this.dark.addEventListener("change", () => this.apply());
		button.addEventListener("click", () => {
			this.choice = THEMES[(THEMES.indexOf(this.choice) + 1) % THEMES.length];
			this.apply();
		});
		this.apply();
	}

	apply() {
		const isDark = this.choice === "dark" || this.choice === "auto" && this.dark.matches;
		document.documentElement.dataset.theme = isDark ? "dark" : "light";
		this.button.textContent = `Theme: ${this.choice}`;
		this.read();
		this.changed();
	}

	/** Reads the colours of the style sheet. */
	read() {
		const style = getComputedStyle(document.documentElement);
		const get = name => style.getPropertyValue(`--${name}`).trim();
		for (const name of ["ground", "raised", "line", "grid", "text", "muted", "accent", "accent-ground", "hit", "busy", "run", "wait",
			"sent-off", "deep", "sleep", "other", "hard", "soft", "mark", "gap", "gap-ground", "slice-text"])
			this[name.replace(/-(.)/g, (_, letter) => letter.toUpperCase())] = get(name);
		const [saturation, lightness] = [get("slice-saturation"), get("slice-lightness")];
		this.hues = Array.from({ length: 24 }, (_, hue) => `hsl(${hue * 15} ${saturation} ${lightness})`);
		this.faded = this.grid;
		this.font = getComputedStyle(document.body).fontFamily;
	}

	/** Returns a colour that is the same for equal texts. */
	ofText(text) {
		let hash = 0;
		for (let i = 0; i < text.length; i++)
			hash = Math.imul(hash ^ text.charCodeAt(i), 0x9e3779b1) >>> 0;
		return this.hues[(hash >>> 7) % this.hues.length];
	}

	/** Returns the colour of a thread's state. */
	ofState(state) {
		switch (state) {
		case RUNNING: return this.run;
		case WOKEN: return this.wait;
		case SENT_OFF: return this.sentOff;
		case BLOCKED + INTERRUPTIBLE: case BLOCKED + IDLE: return this.sleep;
		case BLOCKED + UNINTERRUPTIBLE: return this.deep;
		default: return this.other;
		}
	}
}
