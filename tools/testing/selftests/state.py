# SPDX-License-Identifier: GPL-2.0
"""Compares the state of the system in /proc with a trace's events of the state.

Usage: state.py proc FILE             writes the state of all threads in /proc to FILE
       state.py threads DIR A B [...] checks each state in the trace DIR: it was recorded between the files A and B,
                                      and has all that both have. The next state has the next pair of files
"""

import collections
import os
import pickle
import re
import sys

import ctf

NAMESPACES = "cgroup ipc mnt net time uts".split()
# The letters of /proc/TID/stat, and LTTng's values for them.
STATUS = {"R": {1, 2}, "S": {5}, "D": {5}, "Z": {4}, "I": {5}}

Thread = collections.namedtuple("Thread", "pid ppid comm letter waited kernel ns vpid vuid files")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def thread(pid, tid):
    """State of a thread in /proc; None if the thread has ended, or ends."""
    base = f"/proc/{pid}/task/{tid}"
    try:
        comm, rest = re.match(rb"\d+ \((.*)\) (.*)", read(base + "/stat"), re.S).groups()
        rest = rest.split()
        status = dict(re.findall(r"^(\w+):[ \t]*(.*)$", read(base + "/status").decode(errors="replace"), re.M))
        ns, files = {}, {}
        for name in NAMESPACES + ["pid", "user"]:
            try:
                ns[name] = int(re.search(r"\[(\d+)\]", os.readlink(f"{base}/ns/{name}"))[1])
            except FileNotFoundError:
                pass
        for fd in os.listdir(base + "/fd"):
            try:
                flags = re.search(rb"^flags:\s*(\d+)", read(f"{base}/fdinfo/{fd}"), re.M)
                files[int(fd)] = (os.fsencode(os.readlink(f"{base}/fd/{fd}")), int(flags[1], 8))
            except FileNotFoundError:
                pass
        # PF_KTHREAD
        kernel = bool(int(rest[6]) & 0x200000)
        waited = int(status["voluntary_ctxt_switches"])
        return Thread(pid, int(rest[1]), comm, rest[0].decode(), waited, kernel, ns,
                      [int(id) for id in status["NStgid"].split()], int(status["Uid"].split()[0]), files)
    except (FileNotFoundError, ProcessLookupError, OSError):
        return None


def proc():
    threads = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            tids = os.listdir(f"/proc/{pid}/task")
        except FileNotFoundError:
            continue
        for tid in tids:
            if found := thread(int(pid), int(tid)):
                threads[int(tid)] = found
    return threads


def states(dir):
    """The states in a trace, in order: each a list of (event, fields)."""
    events = sorted((time, place, name, fields) for place, (_, time, name, fields)
                    in enumerate(ctf.events(dir)) if "_statedump_" in name)
    found = []
    for _, _, name, fields in events:
        name = name.split("_statedump_")[1]
        if name == "start":
            found.append([])
        elif name != "end":
            found[-1].append((name, fields))
    return found


def check(state, before, after):
    """Compares a state with what was noted before and after it; returns how many threads it could."""
    threads, files, ns = {}, collections.defaultdict(dict), collections.defaultdict(dict)
    levels = collections.defaultdict(list)
    for name, fields in state:
        if name == "process_state":
            assert fields["tid"] not in threads, f"thread {fields['tid']} twice"
            threads[fields["tid"]] = fields
        elif name == "file_descriptor":
            table = files[fields["file_table_address"]]
            assert threads[fields["pid"]]["file_table_address"] in (fields["file_table_address"], 0), fields
            entry = (fields["filename"], fields["flags"])
            assert table.setdefault(fields["fd"], entry) == entry, f"{fields}: it was {table}"
        elif name in ("process_pid_ns", "process_user_ns"):
            kind = name.split("_")[1]
            levels[kind, fields["tid"]].append(fields)
        elif m := re.fullmatch("process_(.*)_ns", name):
            ns[fields["tid"]][m[1]] = fields["ns_inum"]
    # A thread that exists only for a moment may be missing in both lists; but none may be invented.
    unknown = [tid for tid in threads if tid not in before and tid not in after]
    compared = 0
    for tid, known in before.items():
        now = after.get(tid)
        if not now or now.pid != known.pid or now.comm != known.comm:
            continue
        assert tid in threads, f"thread {tid} ({known.comm}) is missing"
        has = threads[tid]
        where = f"thread {tid} ({known.comm}): {has}, but {known}"
        assert has["pid"] == known.pid, where
        name = has["name"].split(b"\0")[0]
        # /proc shows longer names of kernel threads.
        assert known.comm.startswith(name) if known.kernel else known.comm == name, where
        assert has["type"] == known.kernel, where
        assert has["mode"] == 5 and has["submode"] == 0, where
        if known.ppid == now.ppid:
            assert has["ppid"] == known.ppid, where
        if known.letter == now.letter == "Z":
            assert has["status"] == 4, where
        elif known.letter == now.letter and known.letter in STATUS:
            # A thread may have run in between, or waited, which is counted.
            waited = {5} if known.waited != now.waited else set()
            assert has["status"] in STATUS[known.letter] | {2} | waited, where
        if known.ns == now.ns and known.letter != "Z":
            assert ns[tid] == {kind: known.ns[kind] for kind in NAMESPACES if kind in known.ns}, f"{where}: {ns[tid]}"
            for kind in "pid", "user":
                own = levels[kind, tid]
                assert own and own[0]["ns_inum"] == known.ns[kind], f"{where}: {own}"
                assert [at["ns_level"] for at in own] == list(range(len(own)))[::-1], f"{where}: {own}"
            # From the outermost namespace on, as in /proc.
            assert [at["vpid"] for at in levels["pid", tid]][::-1] == known.vpid, f"{where}: {levels['pid', tid]}"
            assert levels["user", tid][-1]["vuid"] == known.vuid, f"{where}: {levels['user', tid]}"
        for fd, file in known.files.items():
            if now.files.get(fd) == file:
                found = files[has["file_table_address"]].get(fd)
                assert found == (file[0][:999], file[1]), f"{where}: file {fd} is {found}"
        compared += 1
    print(f"{len(threads)} threads, {compared} of them known, {len(unknown)} for a moment, "
          f"{sum(map(len, files.values()))} files in {len(files)} tables")
    return compared


def main(command, *args):
    if command == "proc":
        with open(args[0], "wb") as file:
            pickle.dump(proc(), file)
    elif command == "threads":
        noted = [pickle.loads(read(name)) for name in args[1:]]
        found = states(args[0])
        assert len(found) == len(noted) // 2, f"{len(found)} states"
        for place, state in enumerate(found):
            compared = check(state, noted[2 * place], noted[2 * place + 1])
            assert compared > 20, f"only {compared} threads"
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
