# SPDX-License-Identifier: GPL-2.0
"""Compares the litmus tests of arm64 with the compiled module: compiled.py TEST... <DISASSEMBLY

A line of a test's header says which function has the steps of a program:

    Compiled: P0 Ring::deliver: str reference+32, dmb ish, str commit_seq+40

The program must have these steps in this order, and so must each path of the function that has the last of them. In the
function a plain access is one of 64 bits at this offset. A stronger barrier is right, too. If only some paths have the
steps, the line ends with ", some path". A test of what must never happen has such a line, or "Not compiled: WHY".
"""

import re
import sys

# An access of 64 bits: other fields of a ring are narrower.
PLAIN = re.compile(r"(ldr|str)\tx\d+, \[x\d+(?:, #(\d+))?\]!?$")
ORDERED = re.compile(r"(ldar|stlr|ldxr|stxr)\t")
EXCHANGE = re.compile(r"(cas|ldadd)\t")
JUMP = re.compile(r"(b|b\.\w+|cbn?z|tbn?z)\t(?:.*, )?([0-9a-f]+) <")


def functions(lines):
    """The instructions of each function: NAME, [(ADDRESS, TEXT)]."""
    name, code = None, []
    for line in lines:
        if found := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            if name:
                yield name, code
            name, code = found[1], []
        elif found := re.match(r" *([0-9a-f]+):\t(.*?)(?:\s+//.*)?$", line):
            code.append((int(found[1], 16), found[2]))
    if name:
        yield name, code


def step(text):
    """The step that an instruction is, or None."""
    if text.startswith("dmb"):
        return text.replace("\t", " ")
    if found := ORDERED.match(text):
        return found[1]
    if found := PLAIN.match(text):
        return f"{found[1]} +{found[2] or 0}"
    return None


def paths(code, everything, wanted):
    """The steps of each path through a function, without going round a loop: only those that can be a wanted one."""
    wanted = {*wanted, *(["dmb ish"] if "dmb ishld" in wanted else [])}
    at = {address: index for index, (address, _) in enumerate(code)}
    todo = [(0, (), frozenset())]
    seen = set()
    while todo:
        index, steps, visited = todo.pop()
        while index < len(code) and index not in visited:
            if (index, steps) in seen:
                break
            seen.add((index, steps))
            visited |= {index}
            text = code[index][1]
            if (made := step(text)) in wanted:
                steps += (made,)
            jump = JUMP.match(text)
            if jump:
                target = int(jump[2], 16)
                if target not in at:
                    # Out of line is the loop of a processor without LSE. The instruction before it replaces the jump.
                    found = EXCHANGE.match(everything.get(target - 4, ""))
                    if jump[1] == "b" and found and everything[target].startswith("ldxr\t"):
                        steps += (found[1],) if found[1] in wanted else ()
                    elif jump[1] == "b":
                        break
                elif jump[1] == "b":
                    index = at[target]
                    continue
                else:
                    todo.append((at[target], steps, visited))
            if text.startswith("ret"):
                break
            index += 1
        yield steps


def program(text, number):
    """The steps of a program of a test."""
    variables = dict(re.findall(rf"\b{number}:(X\d+)=(\w+);", text))
    for row in re.findall(r"^ (.*);$", text, re.M)[1:]:
        words = re.split(r"[ ,]+", row.split("|")[number].strip().lower())
        if words[0] == "dmb":
            yield " ".join(words)
        elif words[0] in ("ldar", "stlr", "ldxr", "stxr", "cas"):
            yield words[0]
        elif words[0] in ("ldr", "str"):
            yield f"{words[0]} {variables[words[2].strip('[]').upper()]}"


def has(steps, wanted):
    """Whether the wanted steps are among the steps, in this order."""
    steps = iter(steps)
    return all(any(made == one or (made, one) == ("dmb ish", "dmb ishld") for made in steps) for one in wanted)


def main():
    code = list(functions(sys.stdin))
    everything = {address: text for _, body in code for address, text in body}
    faults, compared = [], 0
    for path in sys.argv[1:]:
        text = open(path).read()
        test = re.search(r"^AArch64 (\S+)", text)[1]
        if "\n * Result: Never\n" in text and not re.search(r"^ \* (Not compiled|Compiled): ", text, re.M):
            faults.append(f"{test}: no line says which function has its steps")
        for number, function, rest in re.findall(r"^ \* Compiled: P(\d) (\S+): (.*)$", text, re.M):
            label = f"{test} P{number}"
            steps = rest.split(", ")
            some = steps[-1] == "some path"
            steps = steps[:-1] if some else steps
            if not has(program(text, int(number)), [re.sub(r"\+\d+", "", one) for one in steps]):
                faults.append(f"{label}: the program itself lacks: {', '.join(steps)}")
            wanted = [re.sub(r"\w+\+", "+", one) for one in steps]
            room, _, member = function.rpartition("::")
            # A function of C has no room.
            name = re.compile(rf"\b{re.escape(room)}\b.*::{re.escape(member)}(::<.*>)?$" if room else rf"^{member}$")
            found = [list(paths(body, everything, wanted)) for full, body in code if name.search(full)]
            if not found:
                faults.append(f"{label}: the module has no function {function}")
                continue
            # A function with a parameter has several bodies; some only call another function.
            found = [[(has(one, wanted), wanted[-1] in one) for one in made] for made in found]
            found = [made for made in found if any(last for _, last in made)]
            right = all(any(one for one, _ in made) if some else all(one == last for one, last in made) for made in found)
            if not found or not right:
                faults.append(f"{label}: not on each path of {function}: {', '.join(steps)}")
            compared += 1
    if not compared:
        faults.append("nothing to compare")
    print("\n".join([*faults, f"{compared} programs compared"]))
    sys.exit(bool(faults))


main()
