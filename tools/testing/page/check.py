#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""check.py CHROMIUM PAGE DIR [load]: opens a page of `rtrace report --html`, a file or the address of --serve, and
operates it as people do. Prints PASS and FAIL lines, and as comments how fast it paints; puts screenshots
into DIR. `load`: the trace is that of tools/synthetic/examples/load.rs, with the maps of tools/testing/run page, so losses and
maps are known. With PAGE_LIMITS=1 a slow page fails."""

import os
import sys
import time
import traceback

from browser import Browser, Failure

SHIFT, CONTROL = 8, 2
# On a machine with nothing else to do: seconds until the page is shown, and milliseconds of a frame.
OPENS, PAUSE = 3, 50
LIMITS = os.environ.get("PAGE_LIMITS") == "1"
IS_LOAD = sys.argv[4:] == ["load"]

TESTS = []


def test(function):
    TESTS.append(function)
    return function


def expect(condition, what):
    if not condition:
        raise Failure(what)


def view(browser):
    return browser.evaluate("[rtrace.timeline.view.from, rtrace.timeline.view.to]")


def span(browser):
    begin, end = view(browser)
    return end - begin


def place(browser):
    """A point in the rows of the timeline."""
    return 800, browser.evaluate("rtrace.timeline.canvas.getBoundingClientRect().top") + 60


def text(browser, selector):
    return browser.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")


def type_text(browser, letters):
    browser.call("Input.insertText", text=letters)
    browser.settle()


def pixels(browser, script):
    """Evaluates a script that has PIXELS(canvas, x, y, width, height): of a copy, because a canvas that is read
    is painted differently from then on."""
    return browser.evaluate(script.replace("PIXELS", """((canvas, x, y, width, height) => {
        const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
        pen.drawImage(canvas, -x, -y);
        return pen.getImageData(0, 0, width, height).data;
    })"""))


def ink(browser):
    """The number of pixels of the rows that are not ground, as painted."""
    return pixels(browser, """(() => {
        const { canvas } = rtrace.timeline;
        const data = new Uint32Array(PIXELS(canvas, 200, 0, canvas.width - 200, canvas.height).buffer);
        return data.reduce((sum, pixel) => sum + (pixel !== data[0] ? 1 : 0), 0);
    })()""")


@test
def what_the_head_says(browser):
    head = text(browser, "header")
    for what in ("Linux", "begin", "duration", "events", "lost"):
        expect(what in head, f"no {what!r} in {head!r}")
    expect(ink(browser) > 5000, "the timeline is empty")


@test
def losses_are_told_and_hatched(browser):
    gaps = browser.evaluate("rtrace.trace.index.gaps")
    notes = text(browser, "#notes")
    if IS_LOAD:
        found = {gap["cpu"] for gap in gaps}, *(sum(gap[what] for gap in gaps) for what in ("events", "packets"))
        expect(found == ({2}, 1234, 3), f"CPUs, events and packets of the gaps: {found}")
        expect("1,234 and more" in text(browser, "#facts"), f"the head says {text(browser, '#facts')!r}")
    expect(bool(gaps) == ("Events are missing" in notes), f"{len(gaps)} gaps, and it says {notes!r}")
    if gaps:
        gap = gaps[0]
        browser.evaluate(f"rtrace.timeline.view.show({gap['from_ns']}, {gap['to_ns']})")
        browser.screenshot(shot("losses"))
        # The hatching is red, on the CPU's row.
        red = pixels(browser, """(() => {
            const { canvas, rows, trace } = rtrace.timeline;
            const row = rows.list.find(row => row.cpu && row.cpu.gaps.length > 0);
            const data = PIXELS(canvas, 200, row.top, canvas.width - 200, row.height);
            let red = 0;
            for (let i = 0; i < data.length; i += 4)
                red += data[i] > data[i + 1] + 40 && data[i] > data[i + 2] + 40 ? 1 : 0;
            return red;
        })()""")
        expect(red > 1000, f"{red} red pixels where events are missing")


@test
def keys_zoom_and_pan(browser):
    browser.key("f")
    whole = span(browser)
    for key in "w+":
        before = span(browser)
        browser.key(key)
        expect(span(browser) < before, f"{key} does not zoom in")
    for key in ("d", "ArrowRight"):
        before = view(browser)
        browser.key(key)
        after = view(browser)
        expect(after[0] > before[0] and abs(span(browser) - (before[1] - before[0])) < 1, f"{key} does not pan")
    for key in ("a", "ArrowLeft"):
        before = view(browser)[0]
        browser.key(key)
        expect(view(browser)[0] < before, f"{key} does not pan back")
    for key in "s-":
        before = span(browser)
        browser.key(key)
        expect(span(browser) > before, f"{key} does not zoom out")
    browser.key("w")
    browser.key("f")
    expect(span(browser) == whole, "f does not show all")


@test
def the_wheel_zooms_at_the_mouse(browser):
    x, y = place(browser)
    time = browser.evaluate(f"rtrace.timeline.time({x})")
    browser.mouse("mouseMoved", x, y)
    browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400, modifiers=CONTROL)
    browser.wait("rtrace.timeline.view.span < rtrace.trace.duration")
    moved = abs(browser.evaluate(f"rtrace.timeline.time({x})") - time)
    expect(moved < span(browser) / 500, f"the time under the mouse moved by {moved} ns")


@test
def the_mouse_drags_and_measures(browser):
    before = view(browser)
    x, y = place(browser)
    browser.drag((x, y), (x - 200, y))
    after = view(browser)
    expect(after[0] > before[0], "dragging to the left does not go on")
    browser.drag((x - 200, y), (x + 100, y), SHIFT)
    measured = browser.evaluate("rtrace.timeline.measured")
    expect(measured and measured[1] > measured[0], "Shift and drag do not measure")
    expect(view(browser) == after, "measuring moves the timeline")
    browser.key("z")
    shown = view(browser)
    expect(abs(shown[0] - measured[0]) + abs(shown[1] - measured[1]) < 200, f"z shows {shown}, not {measured}")


@test
def a_slice_can_be_chosen(browser):
    browser.key("f")
    browser.evaluate("""(() => {
        const { timeline, trace } = rtrace;
        const slices = trace.cpus[0].lanes.tasks;
        const i = slices.length >> 1;
        timeline.scroller.scrollTop = 0;
        timeline.view.show(slices.starts[i] - 1000, slices.ends[i] + 1000);
    })()""")
    browser.settle()
    x, y = browser.evaluate("""(() => {
        const { left, top, width } = rtrace.timeline.canvas.getBoundingClientRect();
        const row = rtrace.timeline.rows.list.find(row => row.cpu);
        return [left + LABELS_ + (width - LABELS_) / 2, top + row.top + 12];
    })()""".replace("LABELS_", "196"))
    browser.mouse("mouseMoved", x, y)
    browser.settle()
    tip = text(browser, ".timeline .tip")
    browser.click(x, y)
    details = text(browser, ".details")
    expect("took" in details and "on" in details, f"it says {details!r}")
    expect("took" in tip, f"the tip says {tip!r}")
    browser.screenshot(shot("chosen"))
    before = browser.evaluate("rtrace.timeline.selection.index")
    browser.key(".")
    expect(browser.evaluate("rtrace.timeline.selection.index") == before + 1, ". does not go to the next")
    browser.key("Escape", "")
    expect(browser.evaluate("rtrace.timeline.selection === null"), "Escape does not choose nothing")


@test
def search_jumps_to_events(browser):
    browser.key("f")
    name = browser.evaluate("rtrace.trace.index.events[0]")
    browser.key("/")
    type_text(browser, name)
    browser.key("Enter", "\r")
    browser.wait("rtrace.search.hit !== null")
    hits = browser.evaluate("rtrace.timeline.found.total")
    times = []
    for _ in range(3):
        times.append(browser.evaluate("rtrace.timeline.selection.from"))
        begin, end = view(browser)
        expect(begin <= times[-1] <= end, "the hit is not in view")
        browser.key("Enter", "\r")
    expect(hits < 4 or times == sorted(times) and times[0] <= times[-1], f"hits at {times}")
    expect(text(browser, ".toolbar .count").startswith("4 of "), text(browser, ".toolbar .count"))
    browser.key("Enter", "\r", SHIFT)
    expect(browser.evaluate("rtrace.timeline.selection.from") == times[2], "Shift and Enter do not go back")
    browser.screenshot(shot("search"))


@test
def search_finds_each_event_once(browser):
    """Walks through all hits of something rare, and compares with all that there are."""
    found = browser.evaluate("""(() => {
        const { search, timeline, trace } = rtrace;
        const counts = new Map();
        for (const cpu of trace.cpus)
            for (const event of cpu.marks.events)
                counts.set(event, (counts.get(event) ?? 0) + 1);
        const [event] = [...counts].sort((a, b) => a[1] - b[1])[0];
        const name = trace.index.events[event];
        for (const text of ['', name]) {
            search.field.value = text;
            search.find();
        }
        const { total, lanes } = timeline.found;
        const seen = new Set();
        timeline.view.fit();
        const steps = Math.min(total, 300);
        for (let n = 0; n < steps; n++) {
            search.go(1);
            seen.add(`${search.hit.order} ${search.hit.place}`);
        }
        const numbered = search.hit.number;
        return { total, steps, seen: seen.size, numbered };
    })()""")
    expect(found["seen"] == found["steps"] == found["numbered"], f"{found}")


@test
def merged_times_have_their_parts(browser):
    """Where the overview merges, a part that the page has or asks for shows every event."""
    is_merged = browser.evaluate("rtrace.timeline.levels.resolution > 0")
    parts = browser.evaluate("rtrace.trace.index.parts")
    served = browser.evaluate("rtrace.trace.index.is_served")
    notes = text(browser, "#notes")
    expect(is_merged == ("merges" in notes), f"it says {notes!r}")
    if not is_merged:
        expect(not parts, "parts of a trace that the page has as a whole")
        return
    if served:
        browser.evaluate("(({ view }, { duration }) => view.show(duration * 0.4, duration * 0.4 + 2e6))(rtrace.timeline, rtrace.trace)")
    else:
        expect(parts, "no important moment is in the page")
        browser.evaluate(f"rtrace.timeline.view.show({parts[0]['from_ns']}, {parts[0]['to_ns']})")
    browser.wait("rtrace.timeline.levels.said.startsWith('every event')")
    browser.settle()
    browser.screenshot(shot("part"))
    found = browser.evaluate("""(() => {
        const { levels, view } = rtrace.timeline;
        let mixed = 0, slices = 0, events = 0, several = 0;
        for (const cpu of rtrace.trace.cpus) {
            for (const kind of Object.keys(cpu.lanes)) {
                const lane = levels.lane(cpu, kind);
                for (let i = lane.endsBehind(view.from); i < lane.length && lane.starts[i] < view.to; i++) {
                    slices++;
                    mixed += isMixed_(lane.values[i]) ? 1 : 0;
                    if (i > 0 && lane.starts[i] < lane.ends[i - 1])
                        throw new Error(`${kind} of CPU ${cpu.number} overlaps at ${lane.starts[i]}`);
                }
            }
            const { times, counts } = levels.marks(cpu);
            times.forEach((time, i) => {
                if (time >= view.from && time <= view.to) {
                    events++;
                    several += counts[i] > 1 ? 1 : 0;
                }
            });
        }
        return { mixed, slices, events, several };
    })()""".replace("isMixed_", "(value => (value & 1) === 1)"))
    expect(found["slices"] > 10 and found["events"] > 10 and found["several"] == 0, f"{found}")
    expect(found["mixed"] <= len(browser.evaluate("rtrace.trace.cpus")) * 6, f"{found}")
    browser.evaluate("rtrace.timeline.view.fit()")
    expect(browser.evaluate("rtrace.timeline.levels.said") == "", "the whole trace is no overview")


@test
def only_threads_that_are_found(browser):
    browser.evaluate("rtrace.search.field.value = ''; rtrace.search.find()")
    rows = "rtrace.timeline.rows.list.filter(row => row.thread).length"
    all_rows = browser.evaluate(rows)
    tid = browser.evaluate("rtrace.trace.threads[0].tid")
    browser.evaluate(f"rtrace.search.field.value = '{tid}'; rtrace.search.find(); rtrace.search.only.click()")
    found = browser.evaluate("rtrace.timeline.found.threads.size")
    expect(0 < found == browser.evaluate(rows) <= all_rows, f"{found} found of {all_rows}")
    browser.evaluate("rtrace.search.only.click(); rtrace.search.field.value = ''; rtrace.search.find()")
    expect(browser.evaluate(rows) == all_rows, "not all threads come back")


@test
def a_choice_survives_sorting(browser):
    browser.evaluate("""(() => {
        const { timeline, trace } = rtrace;
        const row = timeline.rows.find(trace.threads.findLast(thread => thread.lanes.states));
        const band = row.bands[0];
        timeline.choose({ row, band, of: timeline.levels.lane(row.owner, band.kind), index: 0, from: 0, to: 1 });
    })()""")
    for order in ("tid", "name", "ran"):
        browser.evaluate(f"""(() => {{
            const order = document.querySelector('.toolbar select');
            order.value = '{order}';
            order.dispatchEvent(new Event('change'));
        }})()""")
        kept = browser.evaluate("""(({ selection, rows }) => rows.list.includes(selection.row)
            && selection.row.bands.includes(selection.band)
            && selection.row.thread === rtrace.trace.threads.findLast(thread => thread.lanes.states))(rtrace.timeline)""")
        expect(kept, f"sorted by {order}, another row is chosen")
    browser.evaluate("rtrace.timeline.choose(null)")


@test
def groups_close(browser):
    before = browser.evaluate("rtrace.timeline.rows.list.length")
    browser.evaluate("rtrace.timeline.scroller.scrollTop = 0")
    left, top = browser.evaluate("(r => [r.left, r.top])(rtrace.timeline.canvas.getBoundingClientRect())")
    browser.click(left + 40, top + 12)
    expect(browser.evaluate("rtrace.timeline.rows.list.length") < before, "a click on its title does not close a group")
    browser.click(left + 40, top + 12)
    expect(browser.evaluate("rtrace.timeline.rows.list.length") == before, "it does not open again")


@test
def tables_sort_and_search(browser):
    names = browser.evaluate("[...document.querySelectorAll('[role=tab]')].map(tab => tab.id.slice(4))")
    for name in names:
        browser.evaluate(f"document.getElementById('tab-{name}').click()")
        browser.screenshot(shot(f"tab-{name}"))
    browser.evaluate("document.getElementById('tab-events').click()")
    browser.evaluate("document.querySelector('#view-events section > button').click()")
    cells = "[...document.querySelectorAll('#view-events tbody tr')].map(row => row.cells[0].textContent)"
    browser.evaluate("document.querySelector('#view-events th button').click()")
    up = browser.evaluate(cells)
    browser.evaluate("document.querySelector('#view-events th button').click()")
    down = browser.evaluate(cells)
    order = browser.evaluate("(names => names.sort((a, b) => a.localeCompare(b)))(" + cells + ")")
    expect(len(up) > 1 and up == order and down == order[::-1], f"{up[:3]} and {down[:3]}")
    expect(browser.evaluate("document.querySelector('#view-events th').ariaSort") == "descending", "no aria-sort")
    if browser.evaluate("document.querySelector('#view-events input') !== null"):
        browser.evaluate(f"""(() => {{
            const field = document.querySelector('#view-events input');
            field.value = {up[0]!r};
            field.dispatchEvent(new Event('input'));
        }})()""")
        found = browser.evaluate(cells)
        expect(up[0] in found and len(found) < len(up), f"{found}")


@test
def maps_have_bars_by_key(browser):
    if not IS_LOAD:
        return
    expect(browser.evaluate("document.getElementById('tab-maps') !== null"), "no tab of maps")
    browser.evaluate("document.getElementById('tab-maps').click()")
    rows = browser.evaluate("[...document.querySelectorAll('#view-maps tbody tr')].map(row => [...row.cells].map(cell => cell.textContent.trim()))")
    expect(rows == [["</script>", "8", "8", "6", "100.0 %"], ["b", "1", "1", "1", "25.0 %"], ["b", "16", "17", "3", "100.0 %"]], f"{rows}")
    expect("no room" in text(browser, "#view-maps dl"), "losses are missing")


@test
def figures_are_those_of_their_section(browser):
    """An answer and its parts may have figures of the same name."""
    browser.evaluate("document.getElementById('tab-latency').click()")
    shown = browser.evaluate("""[...document.querySelectorAll('#view-latency h2')].map(title => {
        const facts = title.nextElementSibling.nextElementSibling;
        return [title.textContent, [...facts.querySelectorAll('div')].map(fact => fact.lastChild.textContent)[0] ?? ''];
    })""")
    latency = browser.evaluate("rtrace.trace.report.latency")
    timed = [part.get("timed", 0) for part in (latency, latency["preempted"])]
    expect(shown == [["Latency", f"{timed[0]:,}"], ["Preempted threads", f"{timed[1]:,}" if timed[1] else ""]], f"{shown} of {timed}")


@test
def a_row_of_a_table_leads_to_the_timeline(browser):
    browser.evaluate("document.getElementById('tab-threads').click()")
    tid = browser.evaluate("(button => { button.click(); return button.textContent; })(document.querySelector('#view-threads td button'))")
    browser.settle()
    expect(browser.evaluate("rtrace.tabs.chosen") == "timeline", "the timeline is not shown")
    expect(str(browser.evaluate("rtrace.timeline.selection.row.thread.tid")) == tid, "another thread is chosen")


@test
def names_are_texts(browser):
    """No element comes from a name of the trace."""
    expect(browser.evaluate("document.querySelectorAll('img, main script').length") == 0, "a name is HTML")


@test
def dark_and_light(browser):
    browser.evaluate("rtrace.tabs.choose('timeline')")
    grounds = []
    for _ in range(3):
        browser.evaluate("document.getElementById('theme').click()")
        browser.settle()
        theme = browser.evaluate("document.documentElement.dataset.theme")
        pixel = pixels(browser, "[...PIXELS(rtrace.timeline.rulerCanvas, 2, 2, 1, 1)]")
        grounds.append((theme, sum(pixel[:3])))
        browser.screenshot(shot(f"theme-{theme}"))
    brightness = dict(grounds)
    expect(brightness["light"] > 600 and brightness["dark"] < 200, f"{grounds}")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    browser.wait("document.documentElement.dataset.theme === 'dark'")
    browser.call("Emulation.setEmulatedMedia", features=[])


@test
def texts_have_contrast(browser):
    """WCAG AA: 4.5 to 1, in both themes."""
    for theme in ("light", "dark"):
        browser.evaluate(f"rtrace.theme.choice = '{theme}'; rtrace.theme.apply()")
        low = browser.evaluate("""(() => {
            const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
            const light = colour => {
                pen.fillStyle = colour;
                pen.fillRect(0, 0, 1, 1);
                const [r, g, b] = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3)
                    .map(part => part / 255).map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
            };
            const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
            const { theme } = rtrace;
            const pairs = [["text", "ground"], ["text", "raised"], ["muted", "ground"], ["muted", "raised"], ["accent", "ground"], ["hit", "ground"]]
                .map(([ink, ground]) => [ink, ground, ratio(theme[ink], theme[ground])]);
            theme.hues.forEach((hue, n) => pairs.push(["sliceText", `hue ${n}`, ratio(theme.sliceText, hue)]));
            return pairs.filter(([,, value]) => value < 4.5);
        })()""")
        expect(not low, f"{theme}: {low}")
    browser.evaluate("rtrace.theme.choice = 'auto'; rtrace.theme.apply()")


@test
def it_moves(browser):
    """No limit: other programs use the machine, too. The figures are for people, and for LIMITS."""
    figures = browser.evaluate("""(async () => {
        const { timeline, trace } = rtrace, { view, frames } = timeline;
        const found = {};
        const frame = () => new Promise(requestAnimationFrame);
        const move = async (name, count, step) => {
            await frame();
            frames.clear();
            const begin = performance.now();
            for (let n = 0; n < count; n++) {
                step(n);
                await frame();
            }
            const rate = frames.count / (performance.now() - begin) * 1000;
            found[name] = { count: frames.count, pauses: frames.pauses, longest: frames.longest, rate };
        };
        view.fit();
        await move("zoom", 180, n => view.zoom(n < 90 ? 0.93 : 1 / 0.93, trace.duration / 3));
        for (const part of [0.5, 0.01, 0.0001]) {
            view.show(trace.duration * 0.4, trace.duration * (0.4 + 0.5 * part));
            await move(`pan ${part * 50} %`, 60, n => view.pan((n < 30 ? 1 : -1) * view.span / 40));
        }
        view.fit();
        await move("scroll", 40, n => timeline.scroller.scrollTop += n < 20 ? 40 : -40);
        return found;
    })()""")
    events = browser.evaluate("rtrace.trace.report.recorded")
    for name, figure in figures.items():
        print(f"# {events} events, {name}: {figure['rate']:.0f} frames a second, the longest {figure['longest']:.0f} ms, "
              f"{figure['pauses']} of {figure['count']} longer than {PAUSE} ms")
    expect(figures["zoom"]["count"] >= 90, "it did not paint")
    if LIMITS:
        expect(not any(figure["pauses"] for figure in figures.values()), f"it pauses: {figures}")


def reason(failure):
    """The text of a Failure, and the place of another exception: a fault of this program, or an answer it does not expect."""
    text = str(failure) if isinstance(failure, Failure) else "".join(traceback.format_exception(failure)[-3:]).rstrip()
    return text.replace("\n", "\n# ")


def main():
    global shot
    chromium, page, folder = sys.argv[1:4]
    shot = lambda name: os.path.join(folder, f"{name}.png")
    browser = Browser(chromium)
    failed = 0
    try:
        begin = time.monotonic()
        browser.open(page)
        seconds = time.monotonic() - begin
        print(f"# the page opens in {seconds:.1f} s")
        if LIMITS and seconds > OPENS:
            raise Failure(f"it takes {seconds:.1f} s")
        browser.screenshot(shot("whole"))
        for function in TESTS:
            name = f"page: {function.__name__.replace('_', ' ')}"
            try:
                function(browser)
                expect(not browser.problems, f"the page complains: {browser.problems}")
                print(f"PASS {name}", flush=True)
            except Exception as failure:
                failed += 1
                browser.problems = []
                print(f"# {reason(failure)}\nFAIL {name}", flush=True)
    except Exception as failure:
        failed += 1
        print(f"# {reason(failure)}\nFAIL page: it opens")
    finally:
        browser.close()
    sys.exit(failed > 0)


main()
