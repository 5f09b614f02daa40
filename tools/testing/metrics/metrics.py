# SPDX-License-Identifier: GPL-2.0
"""Usage: metrics.py free-port
       metrics.py get URL
       metrics.py value PORT QUERY NUMBER
       metrics.py dashboard PORT FILE
       metrics.py quit PORT
       metrics.py rows MAPS

The parts of tools/testing/metrics/test that are not shell. `get` prints a document, `value` fails unless the prometheus at
PORT has this one number for a query, and `dashboard` unless each query of a Grafana dashboard has results there, with the
labels of its legend. `quit` ends prometheus. `rows` prints maps as a session's file does, with a row for each.
"""
import json
import re
import socket
import sys
import urllib.parse
import urllib.request


def get(url, data=None):
    return urllib.request.urlopen(url, data).read().decode()


def query(port, expression):
    """The results of a query."""
    arguments = urllib.parse.urlencode({"query": expression})
    answer = json.loads(get(f"http://127.0.0.1:{port}/api/v1/query?{arguments}"))
    assert answer["status"] == "success", expression
    return answer["data"]["result"]


def value(port, expression, number):
    [found] = query(port, expression)
    assert float(found["value"][1]) == float(number), found


def panels(of):
    for panel in of.get("panels", []):
        yield panel
        yield from panels(panel)


def dashboard(port, file):
    targets = [target for panel in panels(json.load(open(file))) for target in panel.get("targets", [])]
    assert targets
    for target in targets:
        expression = target["expr"].replace("$__rate_interval", "1m").replace("$session", ".*")
        # Losses are shown if there are some.
        expression = expression.removesuffix(" > 0")
        results = query(port, expression)
        assert results, f"no result: {expression}"
        for label in re.findall(r"{{(\w+)}}", target.get("legendFormat", "")):
            assert all(label in result["metric"] for result in results), f"no {label}: {expression}"


def rows(maps):
    for line in open(maps):
        words = line.split()
        if not words or line[0] == "#":
            continue
        keys = words[words.index("by") + 1].split(",") if "by" in words else []
        histogram, columns = re.findall(r"hist\((\w+)\)", line), re.findall(r"sum\(\w+\)", line)
        losses = ["overflow" + " 0" * (1 + len(columns)), "lacking 0", "unmatched 0", "repeated 0", "dropped 0"]
        row = ['"x"'] * len(keys) + ["896..1023"] * len(histogram) + ["4"] + ["4000"] * len(columns)
        print("map " + line.strip(), *losses, " ".join([*keys, *histogram, "count", *columns]), " ".join(row), "", sep="\n")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


match sys.argv[1:]:
    case ["free-port"]:
        print(free_port())
    case ["get", url]:
        print(get(url), end="")
    case ["value", port, expression, number]:
        value(port, expression, number)
    case ["dashboard", port, file]:
        dashboard(port, file)
    case ["quit", port]:
        get(f"http://127.0.0.1:{port}/-/quit", b"")
    case ["rows", maps]:
        rows(maps)
    case _:
        sys.exit(__doc__)
