# SPDX-License-Identifier: GPL-2.0
"""The stream files as a program uses them, and the session's files, for tests.

Usage: rtrace.py keep_calling SECONDS  see keep_calling(); prints how many
"""

import ctypes
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections import namedtuple

R = os.environ.get("RTRACE_FILES") or "/sys/kernel/debug/rtrace"
S = R + "/sessions/default"
C = S + "/channels/channel0"
PAGE = os.sysconf("SC_PAGE_SIZE")
# Number of events per 4 KiB of a buffer that is made of pages: a page of 16 KiB holds four times as many.
SCALE = PAGE // 4096

# Copied from rust/abi/ioctl.rs, so that a change there is noticed.
GET_PACKET = 0x8020F701
PUT_PACKET = 0x0000F702
FLUSH = 0x0000F703
GET_MAPPED = 0x8028F704
MAP_SIZE = 0x8008F705
PREPARE = 0x0000F706
TAKE_ALL = 0x8008F707
PACKET = struct.Struct("=QQQQ")
Packet = namedtuple("Packet", "sequence size content records")
MAPPED = struct.Struct("=QQQQQ")


def read(path):
    with open(path) as file:
        return file.read()


def write(path, text):
    # One write(2), without O_TRUNC.
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, str(text).encode())
    finally:
        os.close(fd)


def start():
    write(R + "/enable", 1)


def stop():
    write(R + "/enable", 0)


def unload():
    """Unloads the module. A mounted file system holds it."""
    if files := os.environ.get("RTRACE_FILES"):
        subprocess.run(["umount", "-l", files], check=True)
    subprocess.run(["rmmod", "rtrace"], check=True)


def stats():
    """{row: {column: value}}; rows are CPUs as text, and "total"."""
    lines = [line.split() for line in read(C + "/stats").splitlines()]
    return {row[0]: dict(zip(lines[0][1:], map(int, row[1:]))) for row in lines[1:]}


def set_channel(**settings):
    for name, value in settings.items():
        write(f"{C}/{name}", value)


def only(pattern):
    """Enables exactly the events that match."""
    with open(R + "/set_event", "w") as file:
        file.write(pattern)


# A system call that no other process makes, and that does nothing: EVENT fires exactly as often
# as calls() says. Its field policy is the argument: a sequence number.
EVENT = "syscalls:syscall_entry_sched_get_priority_min"
NAME, FIELD = "syscall_entry_sched_get_priority_min", "policy"
call = ctypes.CDLL(None).sched_get_priority_min


def calls(n, cpu=0, first=0):
    """n calls on one CPU, numbered from first."""
    os.sched_setaffinity(0, {cpu})
    for i in range(first, first + n):
        call(i)


def online():
    cpus = set()
    for part in read("/sys/devices/system/cpu/online").split(","):
        low, _, high = part.strip().partition("-")
        cpus |= set(range(int(low), int(high or low) + 1))
    return sorted(cpus)


def function_calls(cpu):
    """Calls of functions on the CPU that other CPUs asked for by an interrupt, ever."""
    lines = read("/proc/interrupts").splitlines()
    at = 1 + lines[0].split().index(f"CPU{cpu}")
    return int(next(line for line in lines if line.endswith("Function call interrupts")).split()[at])


def keep_calling(seconds, path=None, processes=2):
    """Calls for so long, and then for as long as there is a file of that path, from some processes
    that run on whatever CPU there is; how many."""
    r, w = os.pipe()

    def caller():
        n, end = 0, time.monotonic() + seconds
        while time.monotonic() < end or path and os.path.exists(path):
            for _ in range(20):
                call(n)
                n += 1
            # CPUs come and go, and a slow machine must keep up.
            time.sleep(0.01)
        os.write(w, b"%d\n" % n)

    for pid in [child(caller) for _ in range(processes)]:
        join(pid)
    os.close(w)
    return sum(map(int, os.read(r, 65536).split()))


def child(function, *args):
    """Runs the function in a process of its own; its id."""
    pid = os.fork()
    if pid == 0:
        try:
            function(*args)
            os._exit(0)
        except BaseException as error:
            print(f"child: {error!r}", flush=True)
            os._exit(1)
    return pid


def join(pid):
    assert os.waitpid(pid, 0)[1] == 0, "a child failed"


def calls_at_once(n, cpus):
    """n calls on each of the CPUs, all at once."""
    r, w = os.pipe()

    def caller(cpu):
        os.close(w)
        os.read(r, 1)  # ends when the parent closes its end
        calls(n, cpu)

    pids = [child(caller, cpu) for cpu in cpus]
    os.close(w)
    for pid in pids:
        join(pid)


class Stream:
    """An open stream file."""

    def __init__(self, cpu=0, nonblock=False, name="cpu"):
        flags = os.O_RDONLY | (os.O_NONBLOCK if nonblock else 0)
        self.fd = os.open(f"{C}/{name}{cpu}", flags)

    def close(self):
        os.close(self.fd)

    def get(self):
        return Packet(*PACKET.unpack(fcntl.ioctl(self.fd, GET_PACKET, bytes(PACKET.size))))

    def put(self):
        fcntl.ioctl(self.fd, PUT_PACKET)

    def get_mapped(self):
        """As get(), and where in a mapping it is."""
        *packet, offset = MAPPED.unpack(fcntl.ioctl(self.fd, GET_MAPPED, bytes(MAPPED.size)))
        return Packet(*packet), offset

    def map_size(self):
        return struct.unpack("=Q", fcntl.ioctl(self.fd, MAP_SIZE, bytes(8)))[0]

    def flush(self):
        fcntl.ioctl(self.fd, FLUSH)

    def prepare(self):
        fcntl.ioctl(self.fd, PREPARE)

    def take_all(self):
        return struct.unpack("=Q", fcntl.ioctl(self.fd, TAKE_ALL, bytes(8)))[0]

    def read(self, n=1 << 20):
        return os.read(self.fd, n)

    def poll(self, seconds=0):
        """The names of what poll(2) says, without NORM."""
        poller = select.poll()
        poller.register(self.fd, select.POLLIN | select.POLLPRI)
        ready = dict(poller.poll(seconds * 1000)).get(self.fd, 0)
        names = {"IN": select.POLLIN, "PRI": select.POLLPRI, "HUP": select.POLLHUP, "ERR": select.POLLERR}
        return {name for name, bit in names.items() if ready & bit}

    def splice(self, pipe, n):
        return os.splice(self.fd, pipe, n)

    def spliced(self, packet):
        """The held packet's bytes, through a pipe."""
        data = b""
        r, w = os.pipe()
        while moved := self.splice(w, packet.size):
            while moved:
                part = os.read(r, moved)
                data += part
                moved -= len(part)
        os.close(r)
        os.close(w)
        return data

    def packets(self):
        """(packet, bytes) of all that is there, each given back."""
        while True:
            try:
                packet = self.get()
            except OSError:
                return
            data = self.spliced(packet)
            self.put()
            yield packet, data


def fails(errno, function, *args):
    """The call must fail with this errno."""
    try:
        result = function(*args)
    except OSError as error:
        assert error.errno == errno, f"{function.__name__}{args}: {error}"
        return
    raise AssertionError(f"{function.__name__}{args} gave {result!r}, not {os.strerror(errno)}")


def eventually(condition, what, seconds=10):
    """Waits until the condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["keep_calling", seconds, *path]:
            print(keep_calling(float(seconds), *path))
        case _:
            sys.exit(__doc__)
