#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Tests which comparisons of records records.py accepts, and which not. (scripts/test runs it.)"""

import contextlib
import io
import unittest

from records import Comparison

DECLARED = {"often": ["pid", "len"], "rare": ["ino"], "bare": []}


def verdict(differences=(), records=(("often", 1000), ("rare", 1)), types=2, printed=("pid", "len", "ino")):
    """The message of a comparison in which fields differ: (EVENT, FIELD, NUMBER). None if all is right."""
    comparison = Comparison(DECLARED)
    left = {(event, field): number for event, field, number in differences}
    with contextlib.redirect_stdout(io.StringIO()):
        for event, number in records:
            for _ in range(number):
                values = {field: 7 for field in DECLARED[event] if field in printed}
                found = dict(values)
                for field in values:
                    if left.get((event, field), 0) > 0:
                        left[event, field] -= 1
                        found[field] = 8
                comparison.record(event, found, {field: str(value) for field, value in values.items()})
        try:
            comparison.end(types)
        except SystemExit as end:
            return str(end)
    return None


class Records(unittest.TestCase):
    def test_equal(self):
        self.assertIsNone(verdict())

    def test_some_that_changed_between_the_probes(self):
        self.assertIsNone(verdict([("often", "len", 10)]))
        self.assertIsNone(verdict([("rare", "ino", 1)], [("often", 1000), ("rare", 10)]))

    def test_a_rare_event_that_is_wrong(self):
        self.assertEqual(verdict([("rare", "ino", 1)]), "rare.ino differs in 1 of 1 records")

    def test_a_field_that_is_wrong(self):
        self.assertEqual(verdict([("often", "pid", 11)]), "often.pid differs in 11 of 1000 records")

    def test_nothing_compared(self):
        self.assertEqual(verdict(records=()), "0 events were compared, not 2")

    def test_too_few_events(self):
        self.assertEqual(verdict(records=[("often", 1000)]), "1 events were compared, not 2")

    def test_fields_that_ftrace_does_not_print(self):
        self.assertIn("no field of rare is in ftrace's text", verdict(printed=("pid", "len")))
        self.assertIn("too few fields were compared: not ['often.pid']", verdict(printed=("len", "ino")))

    def test_an_event_without_fields(self):
        self.assertIsNone(verdict(records=[("often", 9), ("bare", 3)]))


if __name__ == "__main__":
    unittest.main()
