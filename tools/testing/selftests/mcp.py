#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""mcp.py DIR: records and reads traces below DIR with `rtrace mcp`, as a program that speaks the protocol."""
import json
import os
import signal
import subprocess
import sys
import time


class Client:
    """A server, and the requests to it."""

    def __init__(self, directory, *options):
        self.server = subprocess.Popen(["rtrace", "mcp", "--dir", directory, *options], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.last = 0
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test"}})

    def send(self, method, params):
        self.last += 1
        request = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()

    def ask(self, method, params):
        self.send(method, params)
        answer = json.loads(self.server.stdout.readline())
        assert answer["id"] == self.last, answer
        return answer["result"]

    def call(self, name, **arguments):
        """Returns the text of an answer, which must not be an error."""
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        text = "\n".join(part["text"] for part in result["content"])
        assert not result["isError"], f"{name} {arguments}: {text}"
        return text


def main(directory):
    os.mkdir(directory)
    client = Client(directory, "--allow-record", "--allow-commands", "--most-bytes", "8M")
    assert "sched_switch" in client.call("list", what="events", pattern="sched", budget=1000)
    assert "callstack-kernel" in client.call("list", what="contexts")

    # A recording ends after its time.
    client.call("record", output="timed", events=["sched"], seconds=1)
    summary = json.loads(client.call("report", trace="timed", json=True))
    assert summary["schema"] == "summary/1" and summary["recorded"] > 0, summary
    assert summary["recording"]["state"] in ("over", "stopped"), summary["recording"]
    assert 900_000_000 < summary["duration_ns"], summary

    # A recording ends at its size. Its trace is complete up to then.
    busy = ["sh", "-c", "while :; do cat /proc/self/stat; done >/dev/null"]
    said = client.call("record", output="sized", events=["syscalls"], bytes=1 << 20, seconds=50, command=busy)
    assert "above its limit" in said, said
    summary = json.loads(client.call("report", trace="sized", json=True))
    assert 0 < summary["bytes"] < 8 << 20, summary
    assert summary["recording"]["state"] in ("over", "stopped"), summary["recording"]

    # A command's traces are those that it made.
    client.call("record", output="command", events=["sched", "syscalls"], command=["sleep", "0.2"])
    assert "sleep" in client.call("why", trace="command", who="sleep")
    assert client.call("list").split() == ["command", "sized", "timed"]

    # A signal ends a recording and the server; the session is gone.
    client.send("tools/call", {"name": "record", "arguments": {"output": "cut", "events": ["sched"], "seconds": 50}})
    while not os.path.exists(f"{directory}/cut/metadata"):
        time.sleep(0.05)
    client.server.send_signal(signal.SIGTERM)
    assert client.server.wait() == 128 + signal.SIGTERM
    client = Client(directory)
    summary = json.loads(client.call("report", trace="cut", json=True))
    assert summary["recording"]["state"] in ("over", "stopped"), summary["recording"]
    client.server.stdin.close()
    assert client.server.wait() == 0
    sessions = json.loads(subprocess.run(["rtrace", "session", "list", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    assert [row["name"] for row in sessions["sessions"]] == ["default"], sessions


main(sys.argv[1])
