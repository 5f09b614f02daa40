#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests when two measurements agree and so are a result. (scripts/test runs it.)"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from report import Apart, agreed, number

REPORT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "report.py")


class Agreed(unittest.TestCase):
    def test_the_same_to_the_digit_shown(self):
        self.assertEqual(agreed(54.0, 54.04), 54.0)
        self.assertEqual(agreed(94.0, 94.1), 94.0)
        self.assertEqual(agreed(1164.0, 1170.0), 1164.0)
        self.assertIsNone(agreed(None, None))

    def test_apart(self):
        for values in ((5.0, 12.4), (5.0, 5.2), (94.0, 95.0), (287.0, 289.0), (1164.0, 1176.0), (0.0, -0.2)):
            self.assertIsInstance(agreed(*values), Apart, values)
        self.assertEqual(number(agreed(5.0, 12.4)), "5 ≠ 12.4")

    def test_of_tables_item_by_item(self):
        first = {"cpus": 2, "tracers": {"rtrace": 94.0, "LTTng": 1164.0}, "versions": ["a 1"]}
        second = {"cpus": 2, "tracers": {"rtrace": 94.0, "LTTng": 1300.0}, "versions": ["a 1"]}
        result = agreed(first, second)
        self.assertEqual((result["cpus"], result["tracers"]["rtrace"], result["versions"]), (2, 94.0, ["a 1"]))
        self.assertEqual(result["tracers"]["LTTng"].values, (1164.0, 1300.0))

    def test_a_part_that_one_measurement_lacks(self):
        with self.assertRaises(KeyError):
            agreed({"a": 1.0}, {})


class Report(unittest.TestCase):
    """The issue's own figures, from files to table."""

    FIRST = {"local": 5.0, "locked": 5.0, "irq-off": 14.2, "preempt-off": 9.0}
    SECOND = {"local": 12.4, "locked": 5.0, "irq-off": 25.4, "preempt-off": 19.3}

    def report(self, first, second):
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(f"{directory}/again")
            with open(f"{directory}/versions", "w") as file:
                file.write("rtrace test\n")
            for path, rows in (("primitives", first), ("again/primitives", second)):
                if rows:
                    with open(f"{directory}/{path}.json", "w") as file:
                        json.dump({"tables": {"A reservation and a commit": rows}}, file)
            return subprocess.run([sys.executable, REPORT, directory], capture_output=True, text=True)

    def test_what_differs_is_no_result(self):
        said = self.report(self.FIRST, self.SECOND).stdout
        self.assertRegex(said, r"\| local +\| 5 ≠ 12\.4 +\|")
        self.assertRegex(said, r"\| locked +\| 5 +\|")
        self.assertIn("not a result", said)

    def test_what_agrees_is_one(self):
        said = self.report(self.FIRST, self.FIRST).stdout
        self.assertRegex(said, r"\| irq-off +\| 14\.2 +\|")
        self.assertNotIn("not a result", said)

    def test_measured_once(self):
        done = self.report(self.FIRST, None)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("primitives was measured once", done.stderr)


class Arm64(unittest.TestCase):
    """The page of arm64."""

    def test_its_calls_and_its_title(self):
        calls = {"tracers": {"rtrace": {"getppid": 300.0, "ppoll": 1000.0}, "LTTng": {"getppid": 1500.0, "ppoll": 2500.0}}}
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(f"{directory}/again")
            for path, text in (("versions", "rtrace test\n"), ("calls.json", json.dumps(calls)), ("again/calls.json", json.dumps(calls))):
                with open(f"{directory}/{path}", "w") as file:
                    file.write(text)
            document = f"{directory}/performance-tables-arm64.md"
            with open(document, "w") as file:
                file.write("an old table\n\n## Real hardware\n\nkept\n")
            subprocess.run([sys.executable, REPORT, directory, document], stdout=subprocess.DEVNULL, check=True)
            with open(document) as file:
                page = file.read()
        self.assertIn("# Performance: the tables for arm64", page)
        self.assertTrue(page.endswith("\n\n## Real hardware\n\nkept\n"))
        self.assertNotIn("an old table", page)
        self.assertRegex(page, r"\| ppoll\(\) of 1 descriptor +\| 1000 +\| 2500 \(2\.5x\) +\|")
        self.assertNotIn("| poll()", page)


class Out(unittest.TestCase):
    """Workloads and the ways out, from files to table."""

    def report(self, part, data, **variants):
        """PART.json, and one file of each variant: PART-VARIANT.json."""
        with tempfile.TemporaryDirectory() as directory:
            with open(f"{directory}/versions", "w") as file:
                file.write("rtrace test\n")
            for name, contents in ((part, data), *((f"{part}-{variant}", of) for variant, of in variants.items())):
                if contents:
                    with open(f"{directory}/{name}.json", "w") as file:
                        json.dump(contents, file)
            return subprocess.run([sys.executable, REPORT, directory], capture_output=True, text=True, check=True).stdout

    def test_workloads_are_measured_in_a_guest_for_each_way(self):
        def runs(*added, **lost):
            return {"pipe": {"bare": 9000.0, "added": added[0], "of": list(added), **lost}}

        def of(ours, theirs, version, **lost):
            return {"operations": {"pipe": "round trip"}, "versions": [version],
                    "runs": {"none": runs(20.0, -30.0), "rtrace": runs(ours, ours), "LTTng": runs(theirs, theirs, **lost)}}

        said = self.report("workloads", None, recorder=of(1000.0, 3000.0, "linux-perf 7"), disk=of(2000.0, 8000.0, "dbench 4", lost=5))
        recorder, disk = said.split("to disk**")
        self.assertIn("flight recorder**", recorder)
        self.assertRegex(recorder, r"\| pipe \(round trip\) \| 9000 +\| 30 +\| 1000 +\| 3000 \(3\.0x\) +\|")
        self.assertRegex(disk, r"\| pipe \(round trip\) \| 9000 +\| 30 +\| 2000 +\| 8000 \(4\.0x\), 5 lost +\|")
        self.assertIn("dbench 4, linux-perf 7.", said)

    def test_over_the_network_the_sum_compares(self):
        one = {"rate": 1000, "bytes": 60.0, "sender": [2_000_000, 1_998_000, 2_001_000], "receiver": [1_000_000, 1_002_000, 999_000]}
        other = {"rate": 500, "bytes": 60.0, "sender": [4_000_000, 4_000_000, 5_000_000], "receiver": [2_000_000] * 3}
        said = self.report("network", {"step": 1.25, "tracers": {"rtrace": one, "LTTng": other}})
        self.assertRegex(said, r"\| rtrace +\| 1000 +\| 3,000,000 +\| 2,000,000 +\| 1,000,000 +\| 60 +\|")
        self.assertRegex(said, r"\| LTTng +\| 500 \(0\.50x\) +\| 6,000,000 \(2\.0x\) ±500,000 +\|")

    def test_by_mmap(self):
        said = self.report("mapped", {"tracers": {
            "rtrace, mapped_reader": {"bytes": 60.0, "file": [1_000_000, 1_000_000], "nowhere": [2000, 2000]},
            "perf": {"bytes": 120.0, "file": [2_000_000, 2_000_000], "nowhere": [9000, 9000]}}})
        self.assertRegex(said, r"\| perf +\| 2,000,000 \(2\.0x\) +\| 9000 \(4\.5x\) +\| 120 +\|")

    def test_traces_of_others(self):
        said = self.report("foreign", {"traces": {"LTTng": {"events": 20_000, "readers": {
            "rtrace report": 500.0, "babeltrace2, text": 5000.0}}}})
        self.assertRegex(said, r"\| LTTng, 20,000 events \| babeltrace2, text \| 5000 \(10\.0x\) +\|")

    def test_a_snapshot(self):
        said = self.report("snapshot", {"memory": [1 << 20, 64], "rate": 200, "tracers": {
            "rtrace": {"ns": [100_000_000, 100_000_000], "mib": 63.0, "fired": 20_000, "lost": 0},
            "LTTng": {"ns": [300_000_000, 300_000_000, 400_000_000], "mib": 63.0, "fired": 60_000, "lost": 34_952}}})
        self.assertIn("64 MiB", said)
        self.assertRegex(said, r"\| rtrace +\| 100 +\| 63 +\| 20,000 +\| 0 +\|")
        self.assertRegex(said, r"\| LTTng +\| 300 \(3\.0x\) ±50 +\| 63 +\| 60,000 +\| 34,952 +\|")


if __name__ == "__main__":
    unittest.main()
