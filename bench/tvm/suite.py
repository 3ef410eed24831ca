"""TVM's own tests of schedules as a suite of tilewright's.

    python suite.py TESTS --tilewright PATH [--out suite.csv]

TESTS is `tests/python/s_tir/schedule` of a checkout of TVM whose version is that of the installed `apache-tvm`; pytest is needed,
too. Each test runs as it is, with what it does to schedules written down. Then tilewright reads the program of each schedule, takes
the same steps, and the result is compared with TVM's. No text of TVM's is kept: the table has the names of tests, what came out, and
why.
"""

import argparse
import collections
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from canonical import difference, same

HERE = pathlib.Path(__file__).parent
QUERIES = {"GetSBlock", "GetLoops", "GetChildBlocks", "GetProducers", "GetConsumers", "GetOutputBlocks"}


class Tool:
    """The command `tilewright`, in a folder of its own."""

    def __init__(self, path, folder):
        self.path, self.folder = path, folder

    def run(self, *args):
        done = subprocess.run([self.path, *args], cwd=self.folder, capture_output=True, text=True, timeout=120)
        if done.returncode < 0 or done.returncode > 3 or "panicked" in done.stderr:
            raise RuntimeError(f"{args}: {done.stderr}")
        return done.returncode == 0, done.stdout if done.returncode == 0 else reason(done.stderr)

    def write(self, name, text):
        (self.folder / name).write_text(text, encoding="utf-8")
        return name


def reason(stderr):
    """The first line of a refusal, without names of this case."""
    lines = [line for line in stderr.splitlines() if line.startswith("error[")]
    return lines[0].removeprefix("error") if lines else stderr.strip()[:200]


def judged(tool, record):
    """What came out of one schedule, and why."""
    if record["calls"] is None:
        return "outside", "the test makes no schedule"
    calls = record["calls"]
    steps = [it for it in calls if it["instruction"][0] not in QUERIES]
    if not steps:
        return "outside", "no step is taken"
    if record["functions"] != 1:
        return "outside", "a module of several functions"
    ok, said = tool.run("import", tool.write("before.py", record["before"]), "--out", "before.tw", "--force")
    if not ok:
        return "program refused", said
    refused = next((at for at, it in enumerate(calls) if "refused" in it), None)
    taken = calls if refused is None else calls[: refused + 1]
    trace = [[it["instruction"] for it in taken], []]
    ok, said = tool.run(
        "import", tool.write("trace.json", json.dumps(trace)), "--program", "before.tw", "--target", target_of(taken),
        "--out", "script.ron", "--force",
    )
    if refused is not None:
        if ok:
            return "accepted here alone", f"TVM refuses instruction {len(taken)}, `{taken[-1]['instruction'][0]}`"
        last = f"instruction {len(taken)}," in said
        return ("refused by both", said) if last else ("step refused", said)
    if not ok:
        return "step refused", said
    ok, ours = tool.run("show", "script.ron", "--emit", "ir")
    if not ok:
        return "step refused", ours
    ok, theirs = tool.run("import", tool.write("after.py", record["after"]))
    if not ok:
        return "result refused", theirs
    outcome = same(ours, theirs)
    return outcome, difference(ours, theirs) if outcome == "different" else ""


def target_of(calls):
    """CUDA where something is bound to threads."""
    return "cuda:sm_80" if any(it["instruction"][0] in ("Bind", "SetScope") for it in calls) else "cpu"


def recorded(tests, path):
    """Runs the tests with the recorder."""
    env = os.environ | {"TVM_SUITE_RECORDS": str(path), "PYTHONPATH": str(HERE)}
    # A file of tests is a process: what ends it costs no other.
    for file in sorted(tests.glob("test_*.py")):
        command = [sys.executable, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", file.name]
        subprocess.run(command, env=env, cwd=tests, stdout=sys.stderr, check=False)
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tests", type=pathlib.Path)
    parser.add_argument("--tilewright", required=True, type=lambda it: str(pathlib.Path(it).resolve()))
    parser.add_argument("--records", type=pathlib.Path, help="read what an earlier run wrote down, or keep it there")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "suite.csv")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if args.records and args.records.exists():
            records = [json.loads(line) for line in args.records.read_text(encoding="utf-8").splitlines()]
        else:
            path = (args.records or folder / "records.jsonl").resolve()
            records = recorded(args.tests.resolve(), path)
        tool = Tool(args.tilewright, folder)
        rows = []
        for record in records:
            outcome, why = judged(tool, record)
            test = pathlib.PurePath(record["test"]).name
            rows.append([test, record["number"], outcome, why])
    with args.out.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["test", "schedule", "outcome", "why"])
        writer.writerows(rows)
    counts = collections.Counter(row[2] for row in rows)
    compared = {row[0].split("[")[0] for row in rows if row[2] not in ("outside", "program refused")}
    for outcome, count in counts.most_common():
        print(f"{count:5} {outcome}")
    print(f"{len(rows)} schedules of {len({row[0] for row in rows})} tests; {len(compared)} test functions compared")


if __name__ == "__main__":
    main()
