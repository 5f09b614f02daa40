#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""commands.py RTRACE RTRACED FILE...: checks that the commands in documents exist as they are written there.

Takes each `rtrace` and `rtraced` command of the examples and of the text in FILE, puts --help behind its options, and
runs the result. The program prints its help only if it knows all commands, options and values before that.
"""
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

# Values in place of words that the program would not accept, or not on every machine.
PLACEHOLDERS = {"TID": "1", "PID": "1", "N": "1", "HZ": "99", "DURATION": "1s", "SIZE": "1M", "LIST": "0",
                "TIME": "12:00:00", "FORMAT": "csv", "ADDR:PORT": "127.0.0.1:1", "HOST:PORT": "localhost:1",
                "tracing": "0"}

# First words of a file, not commands.
FORMATS = ("mappings", "symbols")

# The program must not record, even if --help is taken for a word of the command to run.
NOWHERE = ["--debugfs", "/nonexistent"]


def examples(text):
    """The command lines of a page, with their numbers: of its examples, and of the code in its text."""
    lines = text.splitlines()
    joined = ""
    for number, line in enumerate(lines, 1):
        if line.startswith("    ") or line.startswith("      "):
            line = joined + line.strip()
            joined = ""
            if line.endswith("\\"):
                joined = line[:-1]
                continue
            line = re.sub(r"^[#$] ", "", line)
            # An explanation follows after several spaces.
            line = re.sub(r"\s{3,}[^\s'\"-].*$", "", line)
            for part in re.findall(r"(?:^|\$\(|'|; )((?:\S*/)?rtraced? .*)", line):
                yield number, part
        else:
            for code in re.findall(r"`([^`]+)`", line):
                for part in code.split("; "):
                    if re.match(r"rtraced? ", part):
                        yield number, part.replace("\\|", "|")


def words(command):
    """The words of a command up to a pipe, a redirection, a comment or the command that it runs."""
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|;<>")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        found = list(lexer)
    except ValueError:
        # The command is quoted in another one, which the line does not end.
        found = command.split("'")[0].split()
    result = []
    for word in found:
        if word == "--" or set(word) <= set("|;<>&") or word in ("{", "}"):
            break
        result.append(PLACEHOLDERS.get(word, word))
    return result


def check(programs, command):
    """The message of a program that does not know the command; none if it does."""
    found = words(command)
    name = found[0].rpartition("/")[2]
    # Not a placeholder for any command, nor a list of programs.
    if len(found) > 1 and not re.match(r"(-|[a-z]+(-[a-z]+)*$)", found[1]) or found[1:2] and found[1] in FORMATS:
        return None
    given = found[1:] if name == "rtraced" else NOWHERE + found[1:]
    result = subprocess.run([programs[name], *given, "--help"], capture_output=True, text=True, check=False)
    said = result.stderr.strip().split("\n")[0]
    # The text names an option without its value.
    if result.returncode == 0 or "a value is required" in said and found[-1].startswith("-"):
        return None
    return said


def main(rtrace, rtraced, *paths):
    programs = {"rtrace": rtrace, "rtraced": rtraced}
    found = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for number, command in examples(file.read()):
                found.setdefault(command, f"{path}:{number}")
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda command: check(programs, command), found))
    wrong = [(place, command, answer) for (command, place), answer in zip(found.items(), answers) if answer]
    for place, command, answer in wrong:
        print(f"{place}: {command}\n    {answer}")
    print(f"{len(found)} commands, {len(wrong)} wrong")
    return bool(wrong) or len(found) < 100


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
