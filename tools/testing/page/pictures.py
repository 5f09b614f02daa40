#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""pictures.py CHROMIUM PAGE DIR: pictures for the tutorial, of the page of a trace of samples/late-wakeup.py."""

import os
import sys

from browser import Browser, Failure

WIDTH, HEIGHT = 1100, 620
# A larger picture makes the repository large.
MOST_BYTES = 150_000


def main():
    chromium, page, folder = sys.argv[1:]
    browser = Browser(chromium)
    try:
        browser.call("Emulation.setDeviceMetricsOverride", width=WIDTH, height=HEIGHT, deviceScaleFactor=1,
                     mobile=False)
        browser.open(page)
        late(browser)
        save(browser, os.path.join(folder, "timeline.png"))
        browser.evaluate("document.getElementById('tab-latency').click()")
        save(browser, os.path.join(folder, "latency.png"))
    finally:
        browser.close()


def late(browser):
    """The longest wait of `player`, in the middle, and the threads of the sample."""
    browser.evaluate("""(() => {
        const { timeline, trace } = rtrace;
        const { report, begin_s, begin_ns } = trace.index;
        const worst = report.latency.worst.find(wait => wait.comm === "player");
        // The number is larger than a double can hold: the second's part is exact enough.
        const woken = Number(BigInt(Math.round(worst.woken_ns / 1000)) - BigInt(begin_s) * 1000000n) * 1000 - begin_ns;
        timeline.view.show(woken - worst.latency_ns * 2, woken + worst.latency_ns * 3);
        const order = document.querySelector(".toolbar select");
        order.value = "ran";
        order.dispatchEvent(new Event("change"));
        const row = timeline.rows.find(trace.threads.find(thread => thread.tid === worst.tid && thread.lanes.states));
        const band = row.bands.find(band => band.kind === "states") ?? row.bands[0];
        timeline.choose(null);
    })()""")


def save(browser, path):
    browser.screenshot(path)
    size = os.path.getsize(path)
    if size > MOST_BYTES:
        raise Failure(f"{path} has {size} bytes")
    print(f"{path}: {size} bytes")


main()
