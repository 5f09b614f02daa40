# SPDX-License-Identifier: GPL-2.0
"""Compares rtrace's requests of io_uring with what the program that made them printed.

Usage: uring.py PROGRAM DATA REPORT TABLE EVENTS LINES [BPFTRACE]

PROGRAM is the output of the program uring, whose last line is its process id, and DATA its file. REPORT is that of
`rtrace report --io --json -n 0`, TABLE the rows of the table io_uring (`rtrace query --format json`), EVENTS those of its
events, and LINES the output of `rtrace trace -i`. BPFTRACE is the output of bpftrace on the same run.

Exit status 1 if anything differs.
"""

import collections
import json
import re
import sys

COLUMNS = "submitted", "done", "failed"


def rows(path):
    with open(path) as file:
        return json.load(file)["rows"]


def of_program(path):
    """By ring: the counts of each operation. Also the further results, and the process."""
    *lines, pid = open(path).read().split("\n")[:-1]
    counts, further = collections.defaultdict(dict), 0
    for line in lines:
        ring, operation, *numbers = line.split()
        if operation == "further":
            further += int(numbers[0])
        else:
            counts[ring][operation] = tuple(map(int, numbers))
    return counts, further, int(pid)


def sums(rings):
    total = collections.defaultdict(lambda: [0, 0, 0, 0])
    for ring in rings:
        for operation, numbers in ring.items():
            for place, number in enumerate(numbers):
                total[operation][place] += number
    return total


def compare_report(report, counts, further, pid):
    assert report["lost"] == 0, report["lost"]
    uring = report["io"]["uring"]
    assert uring["further"] == further > 0, uring
    assert uring["unknown"] == uring["overflowed"] == 0, uring
    expected = {operation: numbers[:3] for operation, numbers in sums(counts.values()).items()}
    found = {row["operation"]: [row[column] for column in COLUMNS]
             for row in uring["operations"] if row["pid"] == pid}
    assert found == expected, (found, expected)
    by_operation = {row["operation"]: row for row in uring["operations"] if row["pid"] == pid}
    for row in by_operation.values():
        assert row["took"]["timed"] == row["done"] and row["open"] == row["submitted"] - row["done"], row
        assert row["comm"] == "uring", row
    # The program asks for no result of 4 requests, registers a file for 7, and leaves 3 to worker threads.
    assert by_operation["NOP"]["open"] == 4, by_operation["NOP"]
    assert by_operation["READ"]["fixed"] == 7, by_operation["READ"]
    assert by_operation["FSYNC"]["by_worker"] == 3, by_operation["FSYNC"]


def compare_files(report, pid, data):
    uses = {use["file"] or use["fd"]: use for use in report["io"]["files"]["uses"] if use["pid"] == pid}
    moved = lambda name: [uses[name][column] for column in ("reads", "read_bytes", "writes", "written_bytes", "errors")]
    # 15 reads of 50 bytes; 20 writes by the program's thread, and 8 by the kernel's.
    written = sum(range(100, 120)) + 8 * 10
    assert moved(data) == [15, 15 * 50, 28, written, 0], (data, uses)
    assert moved("[fixed file]") == [7, 7 * 20, 0, 0, 0], uses
    # No such descriptor.
    assert moved(999) == [0, 0, 0, 0, 6], uses
    # 30 bytes through a descriptor that a request opened, so that its name is not known.
    unnamed = [use for use in uses.values() if use["fd"] not in (None, 999) and use["read_bytes"] == 30]
    assert len(unnamed) == 1, uses


def compare_table(table, events, counts, report, pid, data):
    table = [row for row in table if row["pid"] == pid]
    # Each row has the program's number of its request, in which the operation's code is the upper half.
    own = [row for row in table if row["tid"] == pid]
    thread = [row for row in table if row["tid"] != pid]
    for ring, found in ("own", own), ("thread", thread):
        total = collections.defaultdict(lambda: [0, 0, 0, 0])
        for row in found:
            numbers = total[row["name"]]
            numbers[0] += 1
            numbers[1] += row["ret"] is not None
            numbers[2] += row["error"] is not None
            if row["name"] in ("READ", "WRITE"):
                numbers[3] += max(row["ret"], 0)
        expected = {operation: list(numbers) for operation, numbers in counts[ring].items()}
        assert total == expected, (ring, dict(total), expected)
        assert len({row["user_data"] for row in found}) == len(found), ring
    assert {row["comm"][:8] for row in thread} == {"iou-sqp-"}, thread
    errors = collections.Counter(row["error"] for row in own if row["error"])
    assert errors == {"EBADF": 6, "EINVAL": 2, "ECANCELED": 2, "ETIME": 1}, errors
    assert {row["path"] for row in table if row["name"] == "WRITE"} == {data}, table
    assert {row["fd"] for row in table if row["is_fixed"]} == {None}, table
    # The durations are those between the events, paired by the program's own numbers.
    begins = {(event["ctx"], event["user_data"]): event["ns"] for event in events if event["is_begin"]}
    ends = {(event["ctx"], event["user_data"]): event["ns"]
            for event in events if not event["is_begin"] and event["req"]}
    known = {(begins[key], key[1]): ends[key] - begins[key] for key in begins if key in ends}
    done = [row for row in table if row["ret"] is not None]
    assert len(done) == len(known), (len(done), len(known))
    for row in done:
        # (Both times are rounded to nanoseconds.)
        assert abs(row["duration_ns"] - known[row["ns"], row["user_data"]]) <= 1, (row, known)
    took = collections.Counter()
    for row in table:
        took[row["name"]] += row["duration_ns"] or 0
    for row in report["io"]["uring"]["operations"]:
        if row["pid"] == pid:
            assert row["took"]["total_ns"] == took[row["operation"]], (row, took)


def compare_lines(lines, counts, further, data):
    found = collections.defaultdict(lambda: [0, 0, 0])
    resumed = 0
    for line in lines:
        if re.search(r"<\.\.\. io_uring resumed>\(user_data: 0x\w+\) = 1 \(IORING_CQE_F_MORE\)$", line):
            resumed += 1
        elif request := re.search(r" (?:uring|iou-sqp-\d+)/\d+ io_uring (\w+)\((.*)\) (= |<unfinished \.\.\.>)(-?\d*)", line):
            numbers = found[request[1]]
            numbers[0] += 1
            numbers[1] += request[3] == "= "
            numbers[2] += request[4].startswith("-")
    expected = {operation: numbers[:3] for operation, numbers in sums(counts.values()).items()}
    assert found == expected, (dict(found), expected)
    assert resumed == further, (resumed, further)
    text = "".join(lines)
    for line in [
        r"io_uring WRITE\(fd: \d+<%s>, user_data: 0x1700000000\) = 100( by iou-wrk-\d+/\d+)?$" % re.escape(data),
        r"io_uring READ\(fd: \[fixed file\], user_data: 0x16\w{8}, flags: IOSQE_FIXED_FILE\) = 20( by iou-wrk-\d+/\d+)?$",
        r"io_uring READ\(fd: 999, user_data: 0x16\w{8}\) = -1 EBADF \(Bad file descriptor\)$",
        r"io_uring NOP\(user_data: 0x\w+\) = -1 ECANCELED \(Operation canceled\)$",
        r"io_uring NOP\(user_data: 0x\w+, flags: IOSQE_CQE_SKIP_SUCCESS\) <unfinished \.\.\.>$",
        r"io_uring FSYNC\(fd: \d+<%s>, user_data: 0x\w+, flags: IOSQE_ASYNC\) = 0" % re.escape(data),
    ]:
        assert re.search(line, text, re.M), (line, text)


def compare_bpftrace(path, counts, further):
    """bpftrace prints maps of the same tracepoints: by operation, and results."""
    theirs = collections.Counter()
    for line in open(path):
        if entry := re.match(r"@(begun|refused)\[(\w+)\]: (\d+)$", line):
            theirs[entry[2]] += int(entry[3])
        elif entry := re.match(r"@(results|further): (\d+)$", line):
            theirs[entry[1]] += int(entry[2])
    total = sums(counts.values())
    expected = collections.Counter({operation: numbers[0] for operation, numbers in total.items()})
    expected["results"] = sum(numbers[1] for numbers in total.values())
    expected["further"] = further
    assert theirs == expected, (theirs - expected, expected - theirs)


def main(program, data, report, table, events, lines, bpftrace=None):
    counts, further, pid = of_program(program)
    with open(report) as file:
        report = json.load(file)
    compare_report(report, counts, further, pid)
    compare_files(report, pid, data)
    compare_table(rows(table), rows(events), counts, report, pid, data)
    compare_lines(open(lines).readlines(), counts, further, data)
    if bpftrace:
        compare_bpftrace(bpftrace, counts, further)


if __name__ == "__main__":
    main(*sys.argv[1:])
