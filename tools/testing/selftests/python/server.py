# SPDX-License-Identifier: GPL-2.0
"""Runs programs in python without starting python for each: they are children of this one, which has loaded
what most of them need. In an emulated machine that takes a fifth of the time.

Usage: server.py SOCKET

client.c says what is to be run, in the words that python3 takes: -m NAME, -c TEXT, - or FILE, and arguments.
The child has the client's standard input, output and error, its directory and its environment, and ends when the
client does. Whatever else a process has from its parent it has from this one: limits, CPUs, a
control group, namespaces. At its end it waits for no threads.
"""

import ctypes
import fcntl
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import traceback
import types

import ctf
import rtrace

LOADED = ctypes, ctf, json, random, rtrace, subprocess
SYSTEM = [path for path in sys.path if path.startswith(sys.prefix)]


def run(arguments):
    """Runs the program that these name; its exit status."""
    what, *rest = arguments
    try:
        if what == "-m":
            sys.argv = rest
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif what in ("-", "-c"):
            text = sys.stdin.read() if what == "-" else rest.pop(0)
            sys.argv = [what, *rest]
            program = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(text, "<stdin>" if what == "-" else "<string>", "exec"), vars(program))
        else:
            sys.argv = arguments
            runpy.run_path(what, run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xff
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def serve(client):
    """In the child: runs what the client asks for, tells it the status, and ends."""
    text, fds, _, _ = socket.recv_fds(client, 1 << 20, 3)
    count, directory, *texts = os.fsdecode(text).split("\0")
    arguments, environment = texts[:int(count)], texts[int(count):-1]
    for fd, copy in enumerate(fds):
        os.dup2(copy, fd)
        os.close(copy)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(entry.split("=", 1) for entry in environment)
    sys.path[:] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(":")), *SYSTEM]
    # When the client is gone, SIGIO ends this process.
    own = os.getpid()
    fcntl.fcntl(client, fcntl.F_SETOWN, own)
    fcntl.fcntl(client, fcntl.F_SETFL, fcntl.fcntl(client, fcntl.F_GETFL) | os.O_ASYNC)
    status = run(arguments)
    sys.stdout.flush()
    # A child of the program may get here, too.
    if os.getpid() == own:
        client.send(bytes([status]))
    os._exit(status)


def main():
    # A shell that starts this in the background may have ignored them.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    # Ended children need no wait.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        # Clients connect as soon as the socket has its name.
        server.bind(sys.argv[1] + ".new")
        server.listen(100)
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        while True:
            client, _ = server.accept()
            if os.fork() == 0:
                server.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                serve(client)
            client.close()


main()
