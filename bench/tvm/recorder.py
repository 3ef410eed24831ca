"""A plugin of pytest that writes down what TVM's tests do with schedules.

For each schedule that a test makes: the program at first, each call with its arguments as an instruction of a trace, whether TVM
refused it, and the program in the end. `suite.py` starts it.
"""

import functools
import inspect
import json
import os

import pytest
import tvm.s_tir.schedule.testing
import tvm.testing  # tests of some files go without importing it
from tvm import s_tir
from tvm.s_tir.schedule import LoopRV, SBlockRV

# The attributes of an instruction; all other arguments that are no variables are left to the reader to refuse.
ATTRIBUTES = {
    "get_sblock": ["name", "func_name"],
    "bind": ["thread_axis"],
    "compute_at": ["preserve_unit_loops", "index"],
    "reverse_compute_at": ["preserve_unit_loops", "index"],
    "rfactor": ["factor_axis"],
    "storage_align": ["buffer_index", "axis", "factor", "offset"],
    "set_scope": ["buffer_index", "storage_scope"],
    "blockize": ["preserve_unit_iters"],
    "pad_einsum": ["padding"],
}
KINDS = {"get_sblock": "GetSBlock", "rfactor": "RFactor", "reindex": "ReIndex"}
BLOCK_PARAMETERS = {"block", "block_or_loop", "target"}
LEFT_ALONE = {"copy", "work_on", "show", "get", "get_sref", "remove_rv", "fork_seed", "seed", "can_decompose_padding"}


def kind_of(method):
    return KINDS.get(method) or "".join(word.capitalize() for word in method.split("_"))


def plain(value):
    """A value as JSON has it."""
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    if hasattr(value, "value") and isinstance(value.value, (int, float)):
        return value.value
    if hasattr(value, "items"):
        return {str(key): plain(it) for key, it in value.items()}
    if hasattr(value, "__iter__"):
        return [plain(it) for it in value]
    return str(value)


class Recorded:
    """What is known of a schedule."""

    def __init__(self, schedule):
        self.before = schedule.mod.script()
        self.functions = len(schedule.mod.functions_items())
        self.after = None
        self.calls = []
        self.variables = {}
        self.alive = []

    def variable(self, rv):
        """The variable of a loop or a block; TVM hands out a new object each time, which stays alive here."""
        key = rv.__hash__()
        if key not in self.variables:
            self.variables[key] = f"v{len(self.variables)}"
            self.alive.append(rv)
        return self.variables[key]

    def value(self, it):
        if isinstance(it, (LoopRV, SBlockRV)):
            return self.variable(it)
        if isinstance(it, (list, tuple)):
            return [self.value(one) for one in it]
        if isinstance(it, str):
            return json.dumps(it)
        return plain(it)


class Recorder:
    def __init__(self):
        self.schedules = []
        self.depth = 0
        self.out = open(os.environ["TVM_SUITE_RECORDS"], "a", encoding="utf-8")

    def install(self):
        init = s_tir.Schedule.__init__
        recorder = self

        def made(schedule, *args, **kwargs):
            recorder.depth += 1
            try:
                init(schedule, *args, **kwargs)
            finally:
                recorder.depth -= 1
            if recorder.depth == 0:
                recorder.schedules.append((schedule, Recorded(schedule)))

        s_tir.Schedule.__init__ = made
        for name, method in list(vars(s_tir.Schedule).items()):
            if inspect.isfunction(method) and not name.startswith("_") and name not in LEFT_ALONE:
                setattr(s_tir.Schedule, name, self.wrapped(name, method))

    def wrapped(self, name, method):
        signature = inspect.signature(method)

        @functools.wraps(method)
        def call(schedule, *args, **kwargs):
            found = next((it for of, it in self.schedules if of is schedule), None)
            if self.depth > 0 or found is None:
                return method(schedule, *args, **kwargs)
            try:
                bound = signature.bind(schedule, *args, **kwargs)
                bound.apply_defaults()
                instruction = self.instruction(schedule, found, name, dict(bound.arguments))
            except Exception as err:  # what cannot be told is told as such
                instruction = [f"{kind_of(name)}: {err}"[:200], [], [], []]
            self.depth += 1
            try:
                result = method(schedule, *args, **kwargs)
            except Exception as err:
                found.calls.append({"instruction": instruction, "refused": str(err).strip().splitlines()[-1][:300]})
                raise
            finally:
                self.depth -= 1
            results = result if isinstance(result, (list, tuple)) or hasattr(result, "__len__") else [result]
            outputs = [found.variable(it) for it in results if isinstance(it, (LoopRV, SBlockRV))]
            instruction[3] = outputs
            found.calls.append({"instruction": instruction})
            found.after = schedule.mod.script()
            return result

        return call

    def instruction(self, schedule, found, name, arguments):
        arguments.pop("self", None)
        for key in BLOCK_PARAMETERS & arguments.keys():
            if isinstance(arguments[key], str):
                variable = f"n{len(found.calls)}"
                found.calls.append({"instruction": ["GetSBlock", [], [arguments[key], "main"], [variable]]})
                arguments[key] = Named(variable)
        value = lambda it: it.variable if isinstance(it, Named) else found.value(it)
        attributes = [plain(arguments.get(key)) for key in ATTRIBUTES.get(name, [])]
        given = [it for key, it in arguments.items() if key not in ATTRIBUTES.get(name, [])]
        if name == "split":
            inputs = [value(arguments["loop"]), *(found.value(it) for it in arguments["factors"])]
            attributes = [plain(arguments["preserve_unit_iters"]), plain(arguments["disable_predication"])]
        elif name in ("fuse", "merge", "reorder"):
            loops = next(it for it in given if isinstance(it, tuple))
            inputs = [value(it) for it in loops]
        elif name in ("cache_read", "cache_write"):
            which = "read" if name == "cache_read" else "write"
            block, index = arguments["block"], arguments[f"{which}_buffer_index"]
            if not isinstance(index, int):
                regions = getattr(schedule.get(block), f"{which}s")
                index = [it.buffer.name == getattr(index, "name", index) for it in regions].index(True)
            consumers = arguments.get("consumer_blocks") or []
            inputs = [value(block), [value(it) for it in consumers]]
            attributes = [index, arguments["storage_scope"]]
        elif name == "reindex":
            buffer = arguments["buffer"]
            inputs, attributes = [value(arguments["block"])], [buffer[1], 0 if buffer[0] == "read" else 1]
        elif name == "annotate":
            inputs = [value(arguments["block_or_loop"]), found.value(arguments["ann_val"])]
            attributes = [arguments["ann_key"]]
        else:
            inputs = [value(it) for it in given if isinstance(it, (LoopRV, SBlockRV, Named))]
        return [kind_of(name), inputs, attributes, []]

    def flush(self, nodeid):
        for number, (_, it) in enumerate(self.schedules):
            record = {"test": nodeid, "number": number, "functions": it.functions, "before": it.before}
            record |= {"calls": it.calls, "after": it.after}
            self.out.write(json.dumps(record) + "\n")
        if not self.schedules:
            self.out.write(json.dumps({"test": nodeid, "number": 0, "calls": None}) + "\n")
        self.out.flush()
        self.schedules.clear()


class Named:
    """A block that was named and not handed over as a variable."""

    def __init__(self, variable):
        self.variable = variable


# TVM 0.27 ends the process where it writes a trace of a schedule with annotations; what it would check is not asked here.
tvm.s_tir.schedule.testing.verify_trace_roundtrip = lambda sch, *args, **kwargs: sch

RECORDER = Recorder()
RECORDER.install()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    RECORDER.schedules.clear()
    yield
    RECORDER.flush(item.nodeid)
