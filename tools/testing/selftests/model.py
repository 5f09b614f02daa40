# SPDX-License-Identifier: GPL-2.0
"""A model of sessions, too simple to be wrong, and random steps that hold the kernel against it.

Usage: model.py SEED SECONDS

Each step writes to a file, or opens, reads or closes a stream. The model says what must come of
it, success or an errno, and after each step what every session must show. Exit status 1 and the
steps that led there if the kernel differs.
"""

import errno
import os
import random
import sys
import time

from rtrace import R, EVENT, PAGE, call

CPUS = sorted(os.sched_getaffinity(0))
NAMES = ("a", "b", "default")
CHANNELS = ("channel0", "more")
# Minimum number of steps: rare paths need some hundreds.
STEPS = 1000
CREATED, ACTIVE, STOPPED = "created", "active", "stopped"


class Trace:
    """State after a start: for each channel of that time, whether its buffers exist; for each CPU's
    stream, whether a reader has it open, and whether a reader has seen its end."""

    def __init__(self, channels):
        self.held = {channel: True for channel in channels}
        self.open = {(channel, cpu): False for channel in channels for cpu in CPUS}
        self.ended = dict(self.open)
        self.is_over = False

    def free(self):
        self.held = dict.fromkeys(self.held, False)

    def closed(self, channel):
        """Buffers go when each stream was read to its end and closed."""
        streams = [(channel, cpu) for cpu in CPUS]
        if all(self.ended[stream] and not self.open[stream] for stream in streams):
            self.held[channel] = False


class Session:
    def __init__(self):
        self.phase = CREATED
        self.trace = None
        self.uuid = None
        self.channels = ["channel0"]
        self.reset()

    def reset(self):
        self.settings = {channel: {"subbuf_size": "1048576", "mode": "overwrite", "contexts": ""}
                         for channel in self.channels}
        self.marker_channel = "channel0"
        self.chosen = set()

    def is_marking(self):
        return self.phase == ACTIVE and self.trace_marks


class Stream:
    """An open file."""

    def __init__(self, fd, trace, channel, cpu):
        self.fd, self.trace, self.channel, self.cpu = fd, trace, channel, cpu


def attempt(action):
    """Runs `action`. Returns None, or the errno."""
    try:
        action()
        return None
    except OSError as error:
        return error.errno


def write(path, text, flags=os.O_APPEND):
    fd = os.open(path, os.O_WRONLY | flags)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def read(path):
    try:
        with open(path) as file:
            return file.read().strip()
    except OSError as error:
        return error.errno


class Model:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sessions = {"default": Session()}
        self.streams = []
        self.said = []
        self.steps = self.traces = 0

    def fail(self, why):
        for line in self.said[-40:]:
            print(line)
        sys.exit(why)

    def must(self, what, expected, action):
        found = attempt(action)
        name = lambda error: errno.errorcode.get(error, error) if error else "done"
        self.said.append(f"{what}: {name(found)}")
        if found != expected:
            self.fail(f"{what}: expected {name(expected)}, got {name(found)}")
        return found is None

    def must_write(self, path, text, expected, flags=os.O_APPEND):
        return self.must(f"'{text}' to {path}", expected, lambda: write(f"{R}/{path}", text, flags))

    def pick(self, choices):
        return self.random.choice(list(choices))

    def step(self):
        name = self.pick(NAMES)
        self.touched = name
        if name not in self.sessions:
            if self.random.random() < 0.8:
                self.must_write("create_session", name, None)
                self.sessions[name] = Session()
            else:
                self.must_write("destroy_session", name, errno.ENOENT)
            return
        getattr(self, self.pick((
            "create", "destroy", "start", "start", "start", "stop", "stop", "configure", "choose_contexts",
            "choose_marker_channel", "choose_event", "add_channel", "reset", "free", "mark", "mark_all",
            "open_stream", "open_stream", "read_stream", "read_stream", "close_stream", "close_stream",
            "read_out", "read_out")))(name, self.sessions[name])

    def create(self, name, session):
        self.must_write("create_session", name, errno.EEXIST)

    def destroy(self, name, session):
        if name == "default":
            self.must_write("destroy_session", name, errno.EBUSY)
        elif self.random.random() < 0.3:
            self.must_write("destroy_session", name, None)
            if session.trace:
                session.trace.is_over = True
            del self.sessions[name]

    def start(self, name, session):
        if not session.chosen:
            # Otherwise the default events are enabled, which takes long.
            self.choose_event(name, session)
        self.must_write(f"sessions/{name}/enable", "1", None)
        if session.phase == ACTIVE:
            return
        session.phase = ACTIVE
        session.trace = Trace(session.channels)
        session.trace_marks = session.marker_channel != "none"
        uuid = read(f"{R}/sessions/{name}/uuid")
        if uuid == session.uuid or not isinstance(uuid, str):
            self.fail(f"{name}: the new trace's uuid is {uuid}")
        session.uuid = uuid
        self.traces += 1

    def stop(self, name, session):
        self.must_write(f"sessions/{name}/enable", "0", None)
        if session.phase == ACTIVE:
            session.phase = STOPPED
            session.trace.is_over = True

    def busy(self, session):
        return errno.EBUSY if session.phase == ACTIVE else None

    def configure(self, name, session):
        channel = self.pick(session.channels)
        file, value = self.pick((("subbuf_size", str(PAGE)), ("subbuf_size", "65536"), ("mode", "discard"),
                                 ("mode", "overwrite"), ("subbuf_size", "5000")))
        wrong = errno.EINVAL if value == "5000" else None
        if self.must_write(f"sessions/{name}/channels/{channel}/{file}", value, self.busy(session) or wrong):
            session.settings[channel][file] = value

    def choose_contexts(self, name, session):
        channel = self.pick(session.channels)
        value = self.pick(("tid", "comm tid", "callstack-kernel", "perf:cpu:page-faults cpu", "nothing"))
        wrong = errno.EINVAL if value == "nothing" else None
        path = f"sessions/{name}/channels/{channel}/contexts"
        if self.must_write(path, value, self.busy(session) or wrong, os.O_TRUNC):
            session.settings[channel]["contexts"] = "\n".join(value.split())

    def choose_marker_channel(self, name, session):
        value = self.pick((*session.channels, "none", "no-such"))
        wrong = errno.EINVAL if value == "no-such" else None
        if self.must_write(f"sessions/{name}/marker_channel", value, self.busy(session) or wrong):
            session.marker_channel = value

    def choose_event(self, name, session):
        channel = self.pick(session.channels)
        self.must_write(f"sessions/{name}/channels/{channel}/set_event", EVENT, None)
        session.chosen.add(channel)

    def add_channel(self, name, session):
        channel = self.pick((*CHANNELS, ".no"))
        if channel == ".no":
            expected = errno.EINVAL
        elif session.phase == ACTIVE:
            expected = errno.EBUSY
        else:
            expected = errno.EEXIST if channel in session.channels else None
        if self.must_write(f"sessions/{name}/create_channel", channel, expected):
            settings = session.settings
            session.channels.append(channel)
            session.settings = {**settings, channel: {
                "subbuf_size": "1048576", "mode": "overwrite", "contexts": ""}}

    def reset(self, name, session):
        if self.must_write(f"sessions/{name}/reset", "1", self.busy(session)):
            session.reset()

    def free(self, name, session):
        if self.must_write(f"sessions/{name}/free_buffer", "1", self.busy(session)) and session.trace:
            session.trace.free()

    def mark(self, name, session):
        self.must_write(f"sessions/{name}/marker", "a marker", None if session.is_marking() else errno.EBADF)

    def mark_all(self, name, session):
        any_marks = any(session.is_marking() for session in self.sessions.values())
        self.must_write("marker", "a marker", None if any_marks else errno.EBADF)

    def open_stream(self, name, session):
        self.open(name, session, self.pick(session.channels), self.pick(CPUS))

    def open(self, name, session, channel, cpu):
        trace = session.trace
        if not trace or channel not in trace.held or not trace.held[channel]:
            expected = errno.ENODATA
        else:
            expected = errno.EBUSY if trace.open[channel, cpu] else None
        path = f"sessions/{name}/channels/{channel}/cpu{cpu}"
        opened = []
        if self.must(f"open {path}", expected,
                     lambda: opened.append(os.open(f"{R}/{path}", os.O_RDONLY | os.O_NONBLOCK))):
            trace.open[channel, cpu] = True
            self.streams.append(Stream(opened[0], trace, channel, cpu))

    def read_stream(self, name, session):
        """To its end, or to where there is nothing at the moment."""
        if self.streams:
            self.read(self.pick(self.streams))

    def read(self, stream):
        what = f"read {stream.channel} cpu{stream.cpu}"

        def drain():
            while os.read(stream.fd, 1 << 20):
                pass
        if self.must(what, None if stream.trace.is_over else errno.EAGAIN, drain):
            stream.trace.ended[stream.channel, stream.cpu] = True

    def close_stream(self, name, session):
        if self.streams:
            self.close(self.pick(self.streams))

    def close(self, stream):
        self.streams.remove(stream)
        os.close(stream.fd)
        self.said.append(f"close {stream.channel} cpu{stream.cpu}")
        stream.trace.open[stream.channel, stream.cpu] = False
        stream.trace.closed(stream.channel)

    def read_out(self, name, session):
        """All of a channel, but now and then one of its streams stays open."""
        self.stop(name, session)
        channel = self.pick(session.channels)
        for cpu in CPUS:
            self.open(name, session, channel, cpu)
        those = [stream for stream in self.streams if stream.trace is session.trace and stream.channel == channel]
        for stream in those:
            self.read(stream)
        for stream in those[self.random.choice((0, 0, 0, 1)):]:
            self.close(stream)
        self.open(name, session, channel, self.pick(CPUS))

    def shows(self, path, expected):
        found = read(f"{R}/{path}")
        if found != expected:
            self.fail(f"{path}: expected {expected!r}, got {found!r}")

    def check(self, sessions):
        """All that can be seen of these sessions, and that there are no others than there should be."""
        def same(what, expected, found):
            if sorted(expected) != sorted(found):
                self.fail(f"{what}: expected {sorted(expected)}, got {sorted(found)}")
        same("sessions", self.sessions, os.listdir(f"{R}/sessions"))
        for name, session in sessions.items():
            top = f"sessions/{name}"
            same(f"{name}: channels", session.channels, os.listdir(f"{R}/{top}/channels"))
            self.shows(f"{top}/enable", "1" if session.phase == ACTIVE else "0")
            self.shows(f"{top}/marker_channel", session.marker_channel)
            self.shows(f"{top}/uuid", session.uuid if session.trace else errno.ENODATA)
            has_metadata = isinstance(read(f"{R}/{top}/metadata"), str)
            if has_metadata != bool(session.trace):
                self.fail(f"{name}: metadata: {has_metadata}")
            for channel, settings in session.settings.items():
                for file, value in settings.items():
                    self.shows(f"{top}/channels/{channel}/{file}", value)
                counted = isinstance(read(f"{R}/{top}/channels/{channel}/stats"), str)
                if counted != bool(session.trace and channel in session.trace.held):
                    self.fail(f"{name}: stats of {channel}: {counted}")
        call(1)


def main(seed, seconds):
    model = Model(seed)
    until = time.monotonic() + float(seconds)
    while time.monotonic() < until or model.steps < STEPS:
        model.step()
        touched = {name: session for name, session in model.sessions.items() if name == model.touched}
        # Sessions that no step touched are unchanged.
        model.check(touched if model.steps % 10 else model.sessions)
        model.steps += 1
    print(f"{model.steps} steps, {model.traces} traces")


if __name__ == "__main__":
    main(*sys.argv[1:])
