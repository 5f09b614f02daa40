#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""commands.py RTRACE RTRACED FILE...: checks that commands exist as they are written in documents, scripts and units.

Takes each `rtrace` and `rtraced` command of FILE, puts --help behind its options, and runs the result. The program
prints its help only if it knows all commands, options and values before that. First checks itself: it must find a wrong
command in each kind of file. The number of checked commands has a floor for each folder.
"""
import ast
import re
import shlex
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

# Values in place of words that the program would not accept, or not on every machine.
PLACEHOLDERS = {"TID": "1", "PID": "1", "N": "1", "HZ": "99", "DURATION": "1s", "SIZE": "1M", "LIST": "0",
                "TIME": "12:00:00", "FORMAT": "csv", "ADDR:PORT": "127.0.0.1:1", "HOST:PORT": "localhost:1",
                "tracing": "0", "$format": "csv"}

# First words of a file, not commands.
FORMATS = ("mappings", "symbols")

# The program must not record, even if --help is taken for a word of the command to run.
NOWHERE = ["--debugfs", "/nonexistent"]

# Fewest commands to check in each folder.
FLOORS = {"README.md": 14, "Documentation": 350, "packaging": 6, "samples": 10, "scripts": 1, "tools": 600}

# Where a script runs a command: after an operator, a keyword or a command that runs another one; with any folder.
RUNS = re.compile(r"""(?:^|[;&|({!`]|\$\(|\b(?:then|do|else|if|until|while|exec|status|nohup|setsid|sudo|member|show)\s|
                      \btimeout\s(?:-\S+\s)*\S+\s|\bwait_for\s\d+\s|\brefused\s"[^"]*"\s|\b\w+=\S*\s)\s*
                      "?(?:\$\{\w+\}/?|\$\w+/|/[\w/]+/)?(rtraced?)"?(\s.*)""", re.VERBOSE)


def joined(text):
    """The lines of a text, with their numbers. A line that ends in a backslash continues in the next one."""
    before = ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.endswith("\\"):
            before += (line[:-1].strip() if before else line[:-1].rstrip()) + " "
            continue
        yield number, before + line.strip() if before else line
        before = ""


def quoted(line):
    """The commands in `backquotes`."""
    for code in re.findall(r"`([^`]+)`", line):
        for part in code.rstrip("\\").split("; "):
            if re.match(r"rtraced? ", part):
                yield part.replace("\\|", "|")


def document(text):
    """The commands of a page: of its examples, and of the code in its text."""
    for number, line in joined(text):
        if line.startswith("    "):
            line = re.sub(r"^[#$] ", "", line.strip())
            # An explanation follows after several spaces.
            line = re.sub(r"\s{3,}[^\s'\"-].*$", "", line)
            for part in re.findall(r"(?:^|\$\(|'|; )((?:\S*/)?rtraced? .*)", line):
                yield number, part
        else:
            for part in quoted(line):
                yield number, part


def notes(text):
    """The commands in comments, of any kind of file: in backquotes, or with an option in a line of their own."""
    for number, line in joined(text):
        for part in quoted(line):
            yield number, part
        for part in re.findall(r"^\s*(?:#|//|--|\*)\s+(rtraced? .*\s-.*)", line):
            yield number, part


def script(text):
    """The commands of a shell script, except wrong usage that it tests."""
    yield from notes(text)
    lines = list(joined(text))
    for (number, line), (_, after) in zip(lines, lines[1:] + [(0, "")]):
        line = "" if re.match(r'\s*equal ".*" 2 \$STATUS', after) else line.strip()
        while (found := RUNS.search(line)) and not line.startswith("#"):
            line = found[2]
            yield number, found[1] + line


def unit(text):
    """The commands of a systemd unit, with the variables that it sets."""
    yield from notes(text)
    values = {}
    for number, line in joined(text):
        if line.startswith("Environment="):
            values.update(word.split("=", 1) for word in shlex.split(line.partition("=")[2]))
        elif found := re.match(r"Exec\w+=[-+!@:|]*(\S*/rtraced? .*)", line):
            yield number, re.sub(r"\$\{?(\w+)\}?", lambda name: values.get(name[1], "$" + name[1]), found[1])


def program(text):
    """The commands of a Python program: lists of words, and texts that a shell runs."""
    yield from notes(text)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.List):
            words = [part.value if isinstance(part, ast.Constant) else "$_" for part in node.elts]
            if words and words[0] in ("rtrace", "rtraced"):
                yield node.lineno, shlex.join(map(str, words))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).startswith("subprocess."):
            texts = [text for text in node.args[:1] if isinstance(text, ast.Constant)]
            for number, command in script(texts[0].value) if texts else ():
                yield node.lineno + number - 1, command


def commands(path, text):
    """The command lines of a file, with their numbers."""
    if path.endswith(".md"):
        return document(text)
    if path.endswith(".service"):
        return unit(text)
    if path.endswith(".py"):
        return program(text)
    if path.endswith((".sh", ".tc")) or re.match(r"#!.*sh\b|.*\n# shellcheck shell=", text):
        return script(text)
    return notes(text)


def words(command):
    """The words of a command up to a pipe, a redirection, a comment or the command that it runs."""
    command = re.split(r"\s--(?:\s|$)", command)[0]
    # The output of a command is not known.
    while (shorter := re.sub(r"\$\([^()]*\)", "$_", command)) != command:
        command = shorter
    command = re.sub(r"\s\d(?=[<>])", " ", command)
    try:
        lexer = shlex.shlex(command, posix=True, punctuation_chars="|;<>&()")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        found = list(lexer)
    except ValueError:
        # The command is quoted in another one, which the line does not end.
        found = re.split("['\")]", command)[0].split()
    result = []
    for word in found:
        if set(word) <= set("|;<>&()") or word in ("{", "}"):
            break
        result.append(PLACEHOLDERS.get(word, word))
    return result


def check(programs, command, is_strict):
    """The message of a program that does not know the command; none if it does. A word with a variable may stand for
    any number of words: it is left out if the program does not accept it. Unless `is_strict`, only commands and options
    must exist: tests give wrong values to options."""
    found = words(command)
    name = found[0].rpartition("/")[2]
    # Not a placeholder for any command, nor a list of programs.
    if len(found) > 1 and not re.match(r"(-|[a-z]+(-[a-z]+)*$)", found[1]) or found[1:2] and found[1] in FORMATS:
        return None
    # A variable behind an option may be its value.
    given = [word for before, word in zip(found, found[1:]) if not word.startswith("$") or before.startswith("-")]
    while True:
        place = [] if name == "rtraced" else NOWHERE
        result = subprocess.run([programs[name], *place, *given, "--help"], capture_output=True, text=True, check=False,
                                stdin=subprocess.DEVNULL)
        said = result.stderr.strip().split("\n")[0]
        # The text names an option without its value.
        if result.returncode == 0 or "a value is required" in said and given[-1].startswith("-"):
            return None
        # `--help` is a word of the command to run, so all options before it are known.
        if result.returncode == 125:
            return None
        refused = re.search(r"(unexpected argument|invalid value|unrecognized subcommand) '(.*?)'", said)
        place = [number for number, word in enumerate(given) if "$" in word and refused and refused[2] in word]
        if not place:
            is_unknown = refused and refused[1] != "invalid value"
            return said if is_strict or is_unknown else None
        # Together with its option.
        first = place[0] - (refused[1] == "invalid value" and given[place[0] - 1].startswith("-"))
        del given[first:place[0] + 1]


def find_wrong(programs, found):
    """The wrong ones of the commands (path, number, command), with what the program says."""
    different = list({(command, path.endswith(".md")): None for path, _, command in found})
    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(different, pool.map(lambda one: check(programs, *one), different)))
    said = [(f"{path}:{number}", command, answers[command, path.endswith(".md")]) for path, number, command in found]
    return [(place, command, answer) for place, command, answer in said if answer]


# Files of each kind, with wrong commands in lines that have the word WRONG, and right ones in the others.
SAMPLES = {
    "a.md": "    # rtrace create web     WRONG\n    $ rtrace session create web\nSay `rtrace stop --now WRONG`.\n"
            "    rtrace record -o x \\\n        --sesion web # WRONG\n",
    "a.service": 'Environment=S=web "O=--rotate 1G"\nExecStartPre=-+/usr/bin/rtrace create ${S} # WRONG\n'
                 "ExecStart=/usr/bin/rtraced -s ${S} -o /x $O\nExecStart=/usr/bin/rtraced -o /x $O --begin x # WRONG\n",
    "a.sh": '[ -d "$F" ] || "${BIN}rtrace" create "$S" # WRONG\n[ -d "$F" ] || "${BIN}rtrace" session create "$S"\n'
            'exec "${BIN}rtrace" --session "$S" start \\\n--config "$2"\nstatus rtrace record $mode --sesion a -e $C # WRONG\n'
            'status rtrace record $mode -p $(cat "$x") -e $C -o x "$@" true 2>err &\nrtrace stop; rtrace go # WRONG\n'
            'status rtrace session go\nequal "exit status" 2 $STATUS\n',
    "a.py": 'run(["rtrace", "create", name]) # WRONG\nrun(["rtrace", "session", "create", name])\n'
            'subprocess.run("rtrace create web", shell=True) # WRONG\n',
    "a.toml": "# rtrace record --konfig a.toml  # WRONG\n# rtrace record --config a.toml\n# `rtrace create web WRONG`\n",
}


def check_itself(programs):
    """Whether exactly the wrong commands of the samples are found."""
    for path, text in SAMPLES.items():
        found = [(path, number, command) for number, command in commands(path, text)]
        wrong = {int(place.rpartition(":")[2]) for place, _, _ in find_wrong(programs, found)}
        expected = {number for number, line in enumerate(text.splitlines(), 1) if "WRONG" in line}
        if wrong != expected:
            print(f"{path}: finds wrong commands in lines {sorted(wrong)}, not in {sorted(expected)}")
            return False
    return True


def main(rtrace, rtraced, *paths):
    programs = {"rtrace": rtrace, "rtraced": rtraced}
    if not check_itself(programs):
        return True
    found = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            found += [(path, number, command) for number, command in commands(path, file.read())]
    wrong = find_wrong(programs, found)
    for place, command, answer in wrong:
        print(f"{place}: {command}\n    {answer}")
    checked = Counter(path.split("/")[0] for path, _, _ in found)
    few = [folder for folder, floor in FLOORS.items() if checked[folder] < floor]
    print(f"{len(found)} commands in {dict(checked)}, {len(wrong)} wrong" + "".join(f"; too few in {name}" for name in few))
    return bool(wrong) or bool(few)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
