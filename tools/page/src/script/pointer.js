// SPDX-License-Identifier: GPL-2.0

// Actions of the mouse on the timeline.

class Pointer {
	constructor(timeline) {
		this.timeline = timeline;
		const { canvas, overviewCanvas } = timeline;
		canvas.addEventListener("wheel", event => this.wheel(event), { passive: false });
		canvas.addEventListener("pointerdown", event => this.press(event));
		canvas.addEventListener("pointermove", event => this.move(event));
		canvas.addEventListener("pointerup", event => this.release(event));
		canvas.addEventListener("pointerleave", () => this.leave());
		overviewCanvas.addEventListener("pointerdown", event => this.moveWindow(event));
		overviewCanvas.addEventListener("pointermove", event => event.buttons & 1 && this.moveWindow(event));
	}

	wheel(event) {
		const pixels = event.deltaMode === 1 ? 16 : 1;
		if (event.ctrlKey || event.metaKey) {
			event.preventDefault();
			this.timeline.view.zoom(2 ** (event.deltaY * pixels / 200), this.timeline.time(Math.max(LABELS, event.offsetX)));
		} else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			event.preventDefault();
			this.timeline.view.pan((event.deltaX || event.deltaY) * pixels / this.timeline.span * this.timeline.view.span);
		}
	}

	press(event) {
		if (event.button !== 0)
			return;
		this.timeline.canvas.setPointerCapture(event.pointerId);
		this.timeline.canvas.focus({ preventScroll: true });
		this.drag = { x: event.offsetX, y: event.offsetY, far: false, measures: event.shiftKey && event.offsetX > LABELS };
		this.timeline.tip.hidden = true;
	}

	move(event) {
		this.timeline.mouse = { x: event.offsetX, y: event.offsetY };
		const { drag } = this;
		if (!drag) {
			this.showTip();
			this.timeline.redraw();
			return;
		}
		const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
		drag.far ||= Math.abs(dx) + Math.abs(dy) > REACH;
		if (!drag.far)
			return;
		if (drag.measures) {
			this.timeline.measured = [this.timeline.time(drag.x), this.timeline.time(Math.max(LABELS, event.offsetX))];
			this.showMeasured(event);
			this.timeline.redraw();
		} else {
			this.timeline.scroller.classList.add("dragged");
			[drag.x, drag.y] = [event.offsetX, event.offsetY];
			this.timeline.scroller.scrollTop -= dy;
			this.timeline.view.pan(-dx / this.timeline.span * this.timeline.view.span);
		}
	}

	release(event) {
		const { drag } = this;
		this.drag = null;
		this.timeline.scroller.classList.remove("dragged");
		if (!drag || drag.far || event.button !== 0)
			return;
		const thing = this.timeline.thingAt(event.offsetX, event.offsetY);
		if (thing && thing.row.kind === "title") {
			this.timeline.rows.toggle(thing.row.name);
			this.timeline.arranged();
		} else {
			this.timeline.choose(thing);
		}
	}

	leave() {
		this.timeline.mouse = null;
		this.timeline.tip.hidden = true;
		this.timeline.redraw();
	}

	showTip() {
		const { x, y } = this.timeline.mouse;
		const thing = this.timeline.thingAt(x, y);
		if (!thing || !thing.band) {
			this.timeline.tip.hidden = true;
			return;
		}
		const { title, facts } = describe(this.timeline.trace, thing);
		const lines = facts.slice(0, 3).map(([term, what]) => element("div", {}, `${term} ${what}`));
		this.placeTip(x, y, element("b", {}, title), ...lines);
	}

	showMeasured(event) {
		const [from, to] = this.timeline.measured;
		this.placeTip(event.offsetX, event.offsetY, element("b", {}, duration(Math.abs(to - from))));
	}

	placeTip(x, y, ...children) {
		this.timeline.tip.replaceChildren(...children);
		this.timeline.tip.hidden = false;
		const { offsetWidth, offsetHeight } = this.timeline.tip;
		const top = this.timeline.scroller.offsetTop + y;
		this.timeline.tip.style.left = `${Math.max(0, x + 14 + offsetWidth > this.timeline.width ? x - offsetWidth - 8 : x + 14)}px`;
		this.timeline.tip.style.top = `${top + 16 + offsetHeight > this.timeline.scroller.offsetTop + this.timeline.height ? top - offsetHeight - 8 : top + 16}px`;
	}

	moveWindow(event) {
		const middle = (event.offsetX - LABELS) / this.timeline.span * this.timeline.trace.duration;
		this.timeline.view.show(middle - this.timeline.view.span / 2, middle + this.timeline.view.span / 2);
	}
}
