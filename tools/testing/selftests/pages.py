#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""pages.py PAGE...: runs the commands in the examples of how-to pages, in the current folder, as root.

The current folder has the programs that the pages name, and those of samples/. A command must have the expected exit
status. If a page shows its output, each shown line must have the form of a line that the command has printed: the same
words, or the same kinds of columns. NOT_HERE names the commands that are not run, and why."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading

# Commands that are not run, by page: a regular expression of commands, and the reason.
NOT_HERE = {
    "after-crash": (".", "needs a crash"),
    "choose-events": ("nullb|xfs|zones", "kernel/module-null-blk has these commands"),
    "count-events": ("numbers|:9750", "tool/maps has these commands"),
    "define-probes": ("/bin/bash:", "needs bash's symbols"),
    "export-a-trace": ("mapped_reader|sessions/default", "stream/mmap has these commands"),
    "install": (".", "needs a network"),
    "measure-latency": (r"latency\.py|off\.sh|kept/1|-p 163|cycles|irqs-off", "latency/*-tool has these; no counter of cycles"),
    "profile": ("debuginfod", "needs a server"),
    "query-sql": (r"TRACE\.\.\.", "names no trace"),
    "record-aux": (".", "aux/record has these commands"),
    "record-from-boot": (".", "needs systemd"),
    "record-service": (r"systemctl|web\.toml", "needs systemd; the reader's file"),
    "send-over-network": (".", "needs machines; network/* has these commands"),
}

# The begin of a command in an example whose other lines are its output.
PROMPT = "[#$] [a-z.]"
# Lines of a page that certainly begin with a command.
CERTAIN = re.compile(f"^    (?:{PROMPT}|rtraced? [a-z-])", re.M)

# First words of commands, in examples without a prompt.
COMMANDS = "babeltrace2 cat cd echo for kill mkdir modprobe mount rtrace rtraced sleep umask".split()

# Words of the pages that stand for the reader's own, and words that would take too long here.
WORDS = [
    (r"\bDIR1 DIR2\b", "DIR before"), (r"\b(?:COMMAND|make)\b(?=$|;|')", "./make"),
    (r"\b(TID|162)\b", "$(cat pid)"), (r"/proc/PID\b", "/proc/self"), (r"\bext4\b", "overlay"),
    (r"\b(0,2-3|2,3)\b", "0,1"), (r"-C 2\b", "-C 1"), (r"-c 2\b", "-c 1"), (r"\bsleep \d+", "sleep 0.3"),
    (r"--duration \S+", "--duration 300ms"), (r"--count 60\b", "--count 1"), (r"1 \.\. 60000", "1 .. 50"),
    (r"count=64\b", "count=1"), (r"3000000\b", "200000"), (r"\| less$", "| cat"),
]

# Commands that end by Ctrl-C.
ENDLESS = re.compile(r"rtrace (record|trace|latency|top)\b(?!.* (--|-i|--once|--count|--duration|-p)( |$))|cat pipe|.*--serve")

# The longest time that another command may take, in seconds.
LONGEST = 10 * int(os.environ.get("RTRACE_TIME", "1"))

# The exit status of commands that do not end with 0.
STATUS = [("flaky-test|test-with-a-limit", 1)]


def examples(text):
    """The examples of a page: lists of (number, line)."""
    block, before = [], ""
    for number, line in enumerate(text.splitlines() + ["-"], 1):
        if re.match("    " + PROMPT, line) and not before and block and not re.match(PROMPT, block[0][1]):
            yield block
            block = []
        if line.startswith("    ") and (block or not before):
            block.append((number, line[4:]))
        elif line and block:
            yield block
            block = []
        before = line


def commands(block):
    """The commands of an example, as (number, command, shown lines)."""
    prompt = re.match(PROMPT, block[0][1])
    found, parts, end = [], [], None
    for number, line in block:
        text = line
        if not parts:
            if prompt and not re.match(PROMPT, line):
                found[-1][2].append(line)
                continue
            text = line[2:] if prompt else line
            if not prompt and text.split(" ")[0] not in COMMANDS:
                continue
        # An explanation follows after several spaces.
        text = re.sub(r"\s{3,}[^\s'\"-].*$|\s+# .*$", "", text.strip())
        parts.append((number, text))
        end = "done" if text.startswith("for ") else end
        if text.endswith("\\") or end and text != end:
            continue
        found.append((parts[0][0], "\n".join(part for _, part in parts), []))
        parts, end = [], None
    return found


def kind(word):
    """A word, or the kind of a word with digits."""
    if re.fullmatch(r"\d\d:\d\d:\d\d\.\d+", word):
        return "TIME"
    if re.fullmatch(r"[-+]?[\d.,]+%?", word):
        return "NUMBER"
    return "MIXED" if re.search(r"[\d/<]", word) else word


def matches(shown, printed):
    """Whether a printed line has the form of a shown one: the same words, or the same kinds of the first columns."""
    shown, printed = ([kind(word) for word in line.split()] for line in (shown, printed))
    if not {"TIME", "NUMBER", "MIXED"} & set(shown):
        return shown == printed
    # A row of a table has any name in its first words.
    if shown[0] == "NUMBER":
        shown, printed = (["WORD" if word.islower() else word for word in line] for line in (shown, printed))
    begin = 0 if shown[0].startswith("rtrace") or shown[0] in ("TIME", "NUMBER") else 1
    return shown[begin:3] == printed[begin:3]


class Page:
    """Runs the commands of a page, and counts them."""

    def __init__(self, path):
        self.name = os.path.basename(path).removesuffix(".md")
        with open(path, encoding="utf-8") as file:
            # The pages show x86-64's names of functions.
            self.text = file.read().replace("__x64_", "__arm64_" if os.uname().machine == "aarch64" else "__x64_")
        self.home = os.getcwd()
        self.ran = self.skipped = self.found = 0
        self.wrong = []
        # Numbers of threads and others, from a page's output to those of this run.
        self.numbers = {}

    def run(self):
        for trace in ("DIR", "lttng", "before"):
            shutil.rmtree(trace, ignore_errors=True)
        for block in examples(self.text):
            folder = self.home
            for number, command, shown in commands(block):
                self.found += 1
                if re.search(NOT_HERE.get(self.name, ("(?!)",))[0], command):
                    self.skipped += 1
                elif command.startswith("cd "):
                    folder = os.path.expanduser(command[3:])
                else:
                    self.command(folder, number, command, shown)
        self.clean()
        certain = len(CERTAIN.findall(self.text))
        if self.found < certain:
            self.wrong.append("%s.md: %d commands were found, but %d lines begin with one" % (self.name, self.found, certain))
        return not self.wrong

    def clean(self):
        """Ends what the page has left."""
        subprocess.run("""rtrace stop; pkill -x rtraced
            for name in web busy; do rtrace session destroy $name; done
            echo >/sys/kernel/debug/rtrace/set_event_pid; echo >/sys/kernel/debug/rtrace/dynamic_events
            rtrace session reset; umount /run/tracing/rtrace""", shell=True, capture_output=True, check=False)

    def prepare(self, folder, command):
        """Removes what the command will write; puts a trace where it will read one."""
        for target in re.findall(r"(?:-o|--output) (\S+)", command):
            path = os.path.join(folder, target)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
            command = command.replace(target, "")
        for trace in re.findall(r"\b(?:DIR(?:/1|/chunk-000002)?|lttng|before|late)\b", command):
            path = os.path.join(folder, trace)
            if not os.path.exists(path):
                shutil.copytree(os.path.join(self.home, "trace"), path)
        if re.match("rtraced ", command) and "--session" not in command:
            # The earlier example of rtraced ends first.
            subprocess.run("""if pgrep -x rtraced; then rtrace stop; fi
                for _ in $(seq 600); do pgrep -x rtraced || break; sleep 0.1; done
                rtrace start -e sched""", shell=True, capture_output=True, check=False)

    def command(self, folder, number, command, shown):
        text = command.replace("\\\n", " ")
        for old, new in WORDS:
            text = re.sub(old, new, text)
        # A process of the reader, which ends soon.
        other = subprocess.Popen(["sleep", "3"]) if re.search(r"\b(1234|1236)\b", text) else None
        if other:
            text = re.sub(r"\b(1234|1236)\b", str(other.pid), text)
            threading.Thread(target=other.wait).start()
        for old, new in self.numbers.items():
            text = re.sub(r"\b%s\b" % old, new, text)
        self.prepare(folder, text)
        with open("output", "w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(["bash", "-o", "pipefail", "-c", text], cwd=folder, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
            try:
                process.wait(1.5 if (endless := ENDLESS.match(text)) else LONGEST)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGINT)
                try:
                    process.wait(LONGEST)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            output.seek(0)
            printed = output.read()
        self.ran += 1
        expected = next((status for pattern, status in STATUS if re.search(pattern, text)), 0)
        wrong = []
        if process.returncode != expected and not (endless and process.returncode in (130, -2)):
            wrong.append("exit status %d" % process.returncode)
        lines = printed.splitlines()
        for line in shown:
            if line.strip() and line.strip() != "..." and not any(matches(line, other) for other in lines):
                wrong.append("does not print: " + line)
            # "player (166): ..." has another number here.
            old = re.match(r"(\w+) \((\d+)\): ", line)
            for other in lines if old else []:
                new = re.match(r"%s \((\d+)\): " % old.group(1), other)
                if new:
                    self.numbers[old.group(2)] = new.group(1)
        if wrong:
            with open("/sys/kernel/debug/rtrace/error_log", encoding="utf-8") as file:
                reason = file.read().strip()
            self.wrong.append("%s.md:%d: %s\n  %s\n  error_log: %s\n  it prints:\n%s" % (
                self.name, number, text, "\n  ".join(wrong), reason, "\n".join(lines[-6:])))


def main(*paths):
    # A test that runs in the background inherits an ignored Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    pages = [Page(path) for path in paths]
    fine = all([page.run() for page in pages])
    for page in pages:
        for wrong in page.wrong:
            print(wrong)
    print("%d commands, %d not run here" % (sum(page.ran for page in pages), sum(page.skipped for page in pages)))
    return not fine


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
