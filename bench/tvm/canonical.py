"""Programs in the text form up to names, and up to how indices are written.

Loops and blocks are compared as a tree. Indices are compared by their values at some points of the loops and iterators around, and
guards where they hold; names are numbered in the order in which they come up.
"""

import random
import re

POINTS = 24
WORD = re.compile(r"[A-Za-z_]\w*")
FUNCTIONS = {"min": min, "max": max, "xor": lambda a, b: a ^ b}


def python(index):
    """An index as Python reads it."""
    index = re.sub(r"\bfloordiv\b", "//", index)
    return re.sub(r"\bmod\b", "%", index).replace("&&", " and ")


def split_top(text, separator=","):
    """The parts of a list, brackets left whole."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += letter in "([{"
        depth -= letter in ")]}"
        if letter == separator and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def closing(text, start):
    """Where the bracket that opens at a place is closed."""
    depth = 0
    for at in range(start, len(text)):
        depth += text[at] in "([{"
        depth -= text[at] in ")]}"
        if depth == 0:
            return at
    raise ValueError(text)


class Program:
    """A program as nested tuples that can be compared."""

    def __init__(self, text, keep_units=True):
        self.numbers = {}
        self.keep_units = keep_units
        self.buffers = {}
        lines = [line for line in text.splitlines() if line.strip()]
        head = lines[0]
        dims = re.search(r"\((.*)\)", head)
        self.points = [{} for _ in range(POINTS)]
        for dim in split_top(dims.group(1)) if dims else []:
            for at, point in enumerate(self.points):
                point[dim] = [8, 16, 33, 57, 120][at % 5]
        body = []
        for line in lines[1:]:
            found = re.match(r"  (in|out|temp) (\w+): (\w+)\[(.*?)\](.*)$", line)
            if found and not body:
                role, name, dtype, shape, rest = found.groups()
                scope = re.search(r"@\w+", rest)
                extents = [self.values(it, self.points) for it in split_top(shape)]
                self.buffers[name] = (role, dtype, str(extents), scope.group(0) if scope else "")
            else:
                body.append(line)
        parameters = [it for it in self.buffers if self.buffers[it][0] != "temp"]
        for name in parameters:
            self.number(name)
        self.tree = self.statements(body, self.points)
        self.declared = sorted((self.numbers[name], it) for name, it in self.buffers.items() if name in self.numbers)

    def number(self, name):
        return self.numbers.setdefault(name, len(self.numbers))

    def values(self, index, points):
        code = python(index)
        try:
            return [int(eval(code, {"__builtins__": {}}, {**FUNCTIONS, **point})) for point in points]
        except Exception:
            # What reads data is compared by its words.
            return WORD.sub(lambda it: str(self.numbers.get(it.group(0), it.group(0))), index)

    def statements(self, lines, points):
        out, at = [], 0
        while at < len(lines):
            depth = len(lines[at]) - len(lines[at].lstrip())
            end = at + 1
            while end < len(lines) and len(lines[end]) - len(lines[end].lstrip()) > depth:
                end += 1
            made = self.statement(lines[at].strip(), lines[at + 1 : end], points)
            out.extend(made)
            at = end
        return tuple(out)

    def extended(self, points, name, extents):
        """The points with a loop more. Where they are depends on how many loops are around that run more than once."""
        values = []
        for at, point in enumerate(points):
            extent = max(1, extents[at]) if isinstance(extents, list) else 8
            # The ends are looked at as well as what lies between.
            depth = point.get("depth of the loop", 0) + (extent > 1)
            value = [0, extent - 1][at] if at < 2 else random.Random(f"{depth} {at}").randrange(extent)
            values.append({**point, name: value, "depth of the loop": depth})
        return values

    def statement(self, line, below, points):
        found = re.match(r"for (\w+) in 0\.\.(.*?)( @[\w.]+)?( #\{.*\})?$", line)
        if found:
            name, extent, kind, _ = found.groups()
            extents = self.values(extent, points)
            inner = self.statements(below, self.extended(points, name, extents))
            if not self.keep_units and set(extents) == {1}:
                return inner
            return [("for", str(extents[:2]), kind or "", inner)]
        if line.startswith("block "):
            return [self.block(line, below, points)]
        if line == "init":
            return [("init", self.statements(below, points))]
        return [("store", self.store(line, points))]

    def block(self, line, below, points):
        start = line.index("(")
        end = closing(line, start)
        rest = line[end + 1 :]
        guard = re.match(r" if (.*?)( #\{.*\})?$", rest)
        holds = self.values(guard.group(1), points) if guard else [1] * len(points)
        shown = lambda all: all if isinstance(all, str) else [v for v, ok in zip(all, holds) if ok is True or ok == 1]
        # Iterators have no order, and in the body the values of their bindings.
        iters, inside = [], [dict(point) for point in points]
        for it in split_top(line[start + 1 : end]):
            var, _, about = it.partition(": ")
            extent, _, binding = about.partition(" = ")
            kind = "reduce" if extent.startswith("reduce ") else "spatial"
            extents = self.values(extent.removeprefix("reduce "), points)
            bound = self.values(binding, points)
            iters.append((kind, str(extents[:2]), str(shown(bound))))
            for point, value in zip(inside, bound if isinstance(bound, list) else [0] * len(inside)):
                point[var] = value
        truth = str([bool(it) for it in holds]) if isinstance(holds, list) else holds
        return ("block", tuple(sorted(iters)), truth, self.statements(below, inside))

    def store(self, line, points):
        """A store with names numbered, and subscripts and conditions by their values."""
        out, at = "", 0
        while at < len(line):
            word = WORD.match(line, at)
            if not word:
                out += line[at]
                at += 1
                continue
            name, at = word.group(0), word.end()
            if name in self.buffers and line[at : at + 1] == "[":
                end = closing(line, at)
                subscripts = [str(self.values(it, points)) for it in split_top(line[at + 1 : end])]
                out += f"#{self.number(name)}[{'; '.join(subscripts)}]"
                at = end + 1
            elif name == "select":
                first = split_top(line[at + 1 : closing(line, at)])[0]
                out += f"select({self.values(first, points)}"
                at += 1 + line[at + 1 :].index(first) + len(first)
            elif line[at : at + 1] == "{":
                end = closing(line, at)
                out += f"{name}{{{self.values(line[at + 1 : end], points)}}}"
                at = end + 1
            else:
                out += name
        return out


def same(a, b):
    """How two programs compare: equal, differently named, unit loops, or different."""
    if a == b:
        return "equal"
    one, two = Program(a), Program(b)
    if (one.tree, one.declared) == (two.tree, two.declared):
        return "differently named"
    one, two = Program(a, keep_units=False), Program(b, keep_units=False)
    if (one.tree, one.declared) == (two.tree, two.declared):
        return "unit loops"
    return "different"


def difference(a, b):
    """In a few words, the first part in which two programs differ."""
    one, two = Program(a, keep_units=False), Program(b, keep_units=False)
    found = differing(one.tree, two.tree)
    return found or "buffers: other types, shapes or scopes"


def differing(ours, theirs):
    if ours == theirs:
        return None
    if not (isinstance(ours, tuple) and isinstance(theirs, tuple)):
        return f"{ours} here, {theirs} in TVM"
    kinds = [it[0] if it and isinstance(it[0], str) else "statements" for it in (ours, theirs)]
    if kinds == ["statements", "statements"]:
        if len(ours) != len(theirs):
            return f"{len(ours)} statements here, {len(theirs)} in TVM"
        return next(filter(None, map(differing, ours, theirs)), None)
    if kinds[0] != kinds[1]:
        return f"a {kinds[0]} here, a {kinds[1]} in TVM"
    if kinds[0] == "for":
        if ours[1] != theirs[1]:
            return f"a loop of {ours[1]} here, of {theirs[1]} in TVM"
        if ours[2] != theirs[2]:
            return f"a loop{ours[2] or ' without a kind'} here,{theirs[2] or ' without a kind'} in TVM"
        return differing(ours[3], theirs[3])
    if kinds[0] == "block":
        for at, what in ((1, "iterators of a block"), (2, "guards of a block")):
            if ours[at] != theirs[at]:
                return f"other {what}"
        return differing(ours[3], theirs[3])
    if kinds[0] == "init":
        return differing(ours[1], theirs[1])
    return "another store"
