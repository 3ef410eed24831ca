"""Random schedules in TVM and in tilewright, and what comes of them.

    python differential.py --tilewright PATH [--count 2000] [--seed 0] [--out differential.csv]

TVM takes random steps on programs of this file. What it accepted goes to tilewright as a trace. Then the two scheduled programs are
compared as texts, and tilewright's is written as TVMScript, which TVM reads, compiles and runs: its numbers must be those of the
unscheduled program, and so must those of TVM's own. The table lists each schedule on which the two are not equal, and counts the others.
"""

import argparse
import collections
import csv
import importlib.util
import json
import linecache
import multiprocessing
import pathlib
import random
import re
import tempfile

import numpy
import tvm
import tvm_ffi
from canonical import difference, same
from programs import PROGRAMS
from suite import Tool
from tvm import s_tir

HERE = pathlib.Path(__file__).parent
LIMIT = 15
SCOPES = ["global", "local"]
MOVES = ["split"] * 4 + ["fuse", "reorder", "reorder", "cache_read", "cache_write", "compute_at", "compute_at"]
MOVES += ["reverse_compute_at", "reverse_compute_at", "inline", "reverse_inline", "decompose", "rfactor"]
# How loops run is said last: a loop that is marked is not cut up any more in tilewright, and that would be most of what there is to see.
MARKS = ["parallel", "vectorize", "unroll"]


def blocks_of(schedule):
    """The blocks that there are, the root left out."""
    return [it for it in re.findall(r'T\.sblock\("(\w+)"\)', schedule.mod.script()) if it != "root"]


class Changed(Exception):
    """TVM refused a step and had changed the program already."""


class Steps:
    """A schedule of TVM's, and the instructions that it took."""

    def __init__(self, module, choice):
        self.schedule = s_tir.Schedule(module)
        self.choice = choice
        self.instructions = []
        self.count = 0

    def var(self):
        self.count += 1
        return f"v{self.count}"

    def block(self):
        name = self.choice.choice(blocks_of(self.schedule))
        rv, var = self.schedule.get_sblock(name), self.var()
        self.instructions.append(["GetSBlock", [], [name, "main"], [var]])
        return rv, var

    def loops(self, block):
        rvs = list(self.schedule.get_loops(block[0]))
        names = [self.var() for _ in rvs]
        self.instructions.append(["GetLoops", [block[1]], [], names])
        return list(zip(rvs, names))

    def step(self, kinds):
        """Tries a random step of some kinds; whether TVM took it."""
        kept, before = len(self.instructions), self.schedule.mod
        try:
            self.instructions.append(self.random_step(self.choice.choice(kinds)))
            return True
        except (RuntimeError, ValueError, IndexError, TypeError):
            if not tvm_ffi.structural_equal(before, self.schedule.mod):
                raise Changed(self.instructions[-1][0]) from None
            del self.instructions[kept:]
            return False

    def random_step(self, kind):
        sch, choice = self.schedule, self.choice
        block = self.block()
        loops = self.loops(block)
        one = choice.choice(loops) if loops else None
        if kind == "split":
            factors = [None, choice.choice([2, 3, 4, 5, 8])]
            choice.shuffle(factors)
            made = sch.split(one[0], factors)
            return ["Split", [one[1], *factors], [1, 0], [self.var() for _ in made]]
        if kind == "fuse":
            at = choice.randrange(len(loops) - 1)
            sch.fuse(loops[at][0], loops[at + 1][0])
            return ["Fuse", [loops[at][1], loops[at + 1][1]], [1], [self.var()]]
        if kind == "reorder":
            some = choice.sample(loops, choice.randint(2, len(loops)))
            sch.reorder(*[it[0] for it in some])
            return ["Reorder", [it[1] for it in some], [], []]
        if kind in ("cache_read", "cache_write"):
            regions = sch.get(block[0]).reads if kind == "cache_read" else sch.get(block[0]).writes
            at, scope = choice.randrange(len(regions)), choice.choice(SCOPES)
            getattr(sch, kind)(block[0], at, scope)
            word = "CacheRead" if kind == "cache_read" else "CacheWrite"
            return [word, [block[1], []], [at, scope], [self.var()]]
        if kind in ("compute_at", "reverse_compute_at"):
            target = choice.choice(self.loops(self.block()))
            getattr(sch, kind)(block[0], target[0], preserve_unit_loops=True)
            word = "ComputeAt" if kind == "compute_at" else "ReverseComputeAt"
            return [word, [block[1], target[1]], [1, -1], []]
        if kind == "inline":
            sch.compute_inline(block[0])
            return ["ComputeInline", [block[1]], [], []]
        if kind == "reverse_inline":
            sch.reverse_compute_inline(block[0])
            return ["ReverseComputeInline", [block[1]], [], []]
        if kind == "decompose":
            sch.decompose_reduction(block[0], one[0])
            return ["DecomposeReduction", [block[1], one[1]], [], [self.var()]]
        if kind == "rfactor":
            sch.rfactor(one[0], 0)
            return ["RFactor", [one[1]], [0], [self.var()]]
        if kind != "parallel" and int(sch.get(one[0]).extent) > 8:
            raise ValueError("what is written out so often takes TVM's compiler minutes")
        getattr(sch, kind)(one[0])
        return [kind.capitalize(), [one[1]], [], []]


def numbers(module, inputs, outputs):
    """What a module computes, by TVM's compiler."""
    arrays = [tvm.runtime.tensor(it) for it in (*inputs, *(numpy.full_like(it, numpy.nan) for it in outputs))]
    tvm.compile(module, target="llvm")(*arrays)
    return [it.numpy() for it in arrays[len(inputs) :]]


def loaded(path):
    """The module of a file with one function, which is loaded as its users would load it."""
    spec = importlib.util.spec_from_file_location("again", path)
    module = importlib.util.module_from_spec(spec)
    linecache.checkcache(str(path))
    spec.loader.exec_module(module)
    found = [it for it in vars(module).values() if isinstance(it, tvm.tirx.PrimFunc)]
    return tvm.IRModule({"main": found[0]})


def agree(ours, wanted):
    return all(numpy.allclose(a, b, rtol=1e-3, atol=1e-3) for a, b in zip(ours, wanted))


def apart(work):
    """What `work` gives in a process of its own: TVM may end it, or never end."""
    parent, child = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=lambda: child.send(work()))
    process.start()
    try:
        child.close()
        return parent.recv() if parent.poll(LIMIT) else ("does not end", f"TVM compiles for more than {LIMIT} seconds", "")
    except EOFError:
        return ("a process that was ended", "", "")
    finally:
        process.kill()
        process.join()


def judged(tool, name, choice):
    """A random schedule: what came out, why, and the steps."""
    make, inputs, outputs = PROGRAMS[name]
    wanted = numbers(make(), inputs, outputs)
    steps = Steps(make(), choice)
    try:
        for _ in range(choice.randint(2, 12)):
            steps.step(MOVES)
        for _ in range(choice.randint(0, 3)):
            steps.step(MARKS)
    except Changed as err:
        return "TVM changed what it refused", str(err), ""
    words = " ".join(it[0] for it in steps.instructions if not it[0].startswith("Get"))
    trace = [steps.instructions, []]
    ok, said = tool.run("import", tool.write("trace.json", json.dumps(trace)), "--program", f"{name}.py", "--out", "made.ron", "--force")
    if not ok:
        return "refused here", said, words
    ok, ours = tool.run("show", "made.ron", "--emit", "tvmscript")
    if not ok:
        return "not written", ours, words
    told = tool.run("show", "made.ron", "--emit", "ir")[1]
    ok, theirs = tool.run("import", tool.write("after.py", steps.schedule.mod.script()))
    if not ok:
        return "TVM's result refused here", theirs, words
    shape = same(told, theirs)
    try:
        again = loaded(tool.folder / tool.write("again.py", ours))
    except Exception as err:
        return "TVM does not read it", str(err).strip().splitlines()[-1][:200], words
    wrong = []
    for module, where in ((again, "here"), (steps.schedule.mod, "in TVM")):
        try:
            if not agree(numbers(module, inputs, outputs), wanted):
                wrong.append(where)
        except RuntimeError as err:
            nested = "Nested parallel" in str(err)
            return "TVM does not compile it", "parallel loops in each other" if nested else "", words
    if len(wrong) == 2:
        return "TVM compiles both to other numbers", f"the programs are {shape}", words
    if wrong:
        return f"other numbers {wrong[0]}", "", words
    why = difference(told, theirs) if shape == "different" else ""
    return shape, why, words


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tilewright", required=True, type=lambda it: str(pathlib.Path(it).resolve()))
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first schedule")
    parser.add_argument("--numbers", type=int, nargs="*", help="these schedules alone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "differential.csv")
    args = parser.parse_args()
    counts, rows = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        tool = Tool(args.tilewright, pathlib.Path(folder))
        for name, (make, _, _) in PROGRAMS.items():
            tool.write(f"{name}.py", make().script())
        for number in args.numbers or range(args.start, args.start + args.count):
            choice = random.Random(args.seed * 1_000_000 + number)
            name = choice.choice(sorted(PROGRAMS))
            outcome, why, words = apart(lambda name=name, choice=choice: judged(tool, name, choice))
            counts[outcome] += 1
            if outcome not in ("equal", "differently named", "unit loops"):
                rows.append([args.seed, number, name, outcome, why, words])
    with args.out.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["seed", "number", "program", "outcome", "why", "steps"])
        writer.writerows(rows)
    for outcome, count in counts.most_common():
        print(f"{count:5} {outcome}")


if __name__ == "__main__":
    main()
