"""Searches on a Ray cluster. Where Ray is not installed they are skipped, unless ``TILEWRIGHT_REQUIRE_RAY`` is set."""

import contextlib
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from types import SimpleNamespace

import pytest

import tilewright
from tilewright.ray._placement import Refused, places
from tilewright.ray._process import Fault, Process

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(
    not HAS_RAY and not os.environ.get("TILEWRIGHT_REQUIRE_RAY"), reason="Ray is not installed: pip install 'tilewright[ray]'"
)

SPACE = """schedule(
    workload: "matmul",
    params: {"m": 48, "n": 48, "k": 48},
    knobs: {"rows": [2, 4, 8], "columns": [8, 16, 24]},
    steps: [
        split(loop: "i", into: {"io": None, "ii": "rows"}),
        split(loop: "j", into: {"jo": None, "ji": "columns"}),
        reorder(order: ["jo", "io", "k", "ii", "ji"]),
        vectorize(loop: "ji"),
    ],
)
"""
SEARCH = {"trials": 9, "rounds": 3, "baseline": False, "threads": 1, "progress": False}

#: How long anything may take before a test fails, in seconds.
LONG = 120


def asked(**words):
    defaults = {"role": "measure", "target": "cuda", "gpu": None, "compilers": None, "measurers": None}
    return SimpleNamespace(**{**defaults, **words})


def node(name, cpus, gpus=0, kind=None, alive=True):
    resources = {"CPU": float(cpus), **({"GPU": float(gpus)} if gpus else {})}
    if kind:
        resources[f"accelerator_type:{kind}"] = 1.0
    return {"NodeID": name, "Alive": alive, "Resources": resources}


def test_gpus_of_one_kind_are_all_used_and_the_other_processors_compile():
    nodes = [node("a", 64, 8, "H100"), node("b", 64, 8, "H100"), node("c", 32), node("d", 64, 8, "H100", alive=False)]
    measuring = places(asked(), nodes)
    assert len(measuring) == 16 and set(measuring) == {(0, 1, "H100", None)}
    compiling = places(asked(role="compile"), nodes)
    assert len(compiling) == 64 + 64 + 32 - 16 and set(compiling) == {(1, 0, None, None)}
    assert len(places(asked(measurers=3), nodes)) == 3
    assert len(places(asked(role="compile", compilers=20), nodes)) == 20
    assert len(places(asked(role="compile"), [node("a", 4000)])) == 256


def test_gpus_of_several_kinds_are_not_mixed():
    nodes = [node("a", 64, 4, "A100"), node("b", 64, 8, "H100")]
    with pytest.raises(Refused, match=r"GPUs of 2 kinds, whose times cannot be compared: A100 \(4\), H100 \(8\); `--gpu KIND`"):
        places(asked(), nodes)
    assert {it.kind for it in places(asked(gpu="A100"), nodes)} == {"A100"}
    with pytest.raises(Refused, match=r"no GPU of the kind `B200`; it has A100 \(4\), H100 \(8\)"):
        places(asked(gpu="B200"), nodes)
    with pytest.raises(Refused, match=r"5 processes are to measure, and the cluster has 4 GPUs"):
        places(asked(gpu="A100", measurers=5), nodes)
    with pytest.raises(Refused, match="no host of the cluster has a GPU"):
        places(asked(), [node("a", 64)])


def test_hosts_measure_what_is_for_the_cpu():
    nodes = [node("a", 4), node("b", 4)]
    assert [it.node for it in places(asked(target="cpu", measurers=3), nodes)] == ["a", "b", "a"]
    assert len(places(asked(target="cpu", role="compile"), nodes)) == 6
    # The only processor has to do both.
    (alone,) = places(asked(target="cpu"), [node("a", 1)])
    assert alone.cpus == 0 and len(places(asked(target="cpu", role="compile"), [node("a", 1)])) == 1


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        ("read it; kill -9 $$", "died", "was killed by SIGKILL (by another process, or by the system for want of memory)"),
        ("read it; echo why >&2; exit 3", "died", "ended with code 3 without an answer"),
        ("exec no-such-program", "died", "ended with code 127 (a shell found no such command)"),
        ("read it; echo hello; sleep 1000", "protocol", "wrote a line that is no message: `hello`"),
        ("read it; sleep 1000", "hang", "did not answer within 1.0 s"),
        ("exec >&-; sleep 1000", "died", "closed its standard output and lived on"),
    ],
)
def test_what_processes_do_instead_of_answering(script, kind, words):
    process = Process(["sh", "-c", script])
    with pytest.raises(Fault) as err:
        process.ask(b"{}\n", 1.0 if kind == "hang" else LONG)
    assert (err.value.kind, err.value.words) == (kind, words)
    assert "why" not in script or err.value.last == "why"
    assert process.has_ended()


def test_a_line_that_nobody_reads_is_not_waited_for():
    process = Process(["sh", "-c", "sleep 1000"])
    with pytest.raises(Fault, match="did not answer"):
        process.ask(b"x" * (1 << 20) + b"\n", 0.5)


def test_clusters_that_cannot_be_used(tmp_path):
    with pytest.raises(tilewright.Error, match="`head:10001` is no address of a Ray cluster") as err:
        tilewright.tune(SPACE, log=tmp_path / "log", on="head:10001", **SEARCH)
    assert err.value.code == "TW5063"
    with pytest.raises(tilewright.Error, match="goes with a cluster") as err:
        tilewright.tune(SPACE, log=tmp_path / "log", measurers=2, **SEARCH)
    assert not (tmp_path / "log").exists()


def marked(mark):
    """The processes that have a word in their environment or on their command line."""
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if mark.encode() in command + (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append(command.replace(b"\0", b" ")[:100])
        except OSError:
            pass
    return found


def until(what, true):
    """Waits for something."""
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, what()
        time.sleep(0.05)


@contextlib.contextmanager
def environment():
    """A folder for Ray and for tokens, whose path is short enough for its sockets; all processes with it are gone in the end."""
    folder = tempfile.mkdtemp(prefix="tw")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("HOME", "RAY_TMPDIR"):
            patch.setenv(name, folder)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        yield folder, patch
    until(lambda: marked(folder), lambda: not marked(folder))
    shutil.rmtree(folder)


@pytest.fixture
def home():
    with environment() as (folder, _):
        yield folder


@pytest.fixture(scope="module")
def cluster():
    """A cluster of this machine, as an administrator starts it. It says that it has two GPUs."""
    with environment() as (folder, patch):
        yield from started_cluster(folder, patch)


def started_cluster(home, patch):
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--num-cpus=6", "--num-gpus=2"]
    kind = json.dumps({"accelerator_type:H100": 1})
    options = ["--port=0", f"--temp-dir={home}", "--include-dashboard=false", "--disable-usage-stats", f"--resources={kind}"]
    said = open(f"{home}/start.txt", "w+")
    ray = subprocess.Popen([*command, *options], stdout=said, stderr=said, stdin=subprocess.DEVNULL, start_new_session=True)

    def started():
        assert ray.poll() is None, pathlib.Path(said.name).read_text()
        return "Ray runtime started" in pathlib.Path(said.name).read_text()

    try:
        until(lambda: pathlib.Path(said.name).read_text(), started)
        # Of several clusters of a machine `auto` finds any, but for this.
        patch.setenv("RAY_ADDRESS", re.search(r"--address='([^']+)'", pathlib.Path(said.name).read_text())[1])
        yield home
    finally:
        ray.send_signal(signal.SIGTERM)
        try:
            ray.wait(LONG)
        finally:
            said.close()


def entries(log):
    (segment,) = pathlib.Path(log).glob("*.jsonl")
    return [json.loads(it) for it in segment.read_text().splitlines()]


def trials(lines):
    return {(it["n"], it["id"]) for it in lines if it["k"] == "trial"}


@needs_ray
def test_a_search_on_a_cluster_whose_workers_die_and_hang(cluster, tmp_path):
    state = tmp_path / "state"
    state.mkdir()
    worker = pathlib.Path(__file__).with_name("faulty_worker.py")
    command = f"exec '{sys.executable}' '{worker}' '{state}'"
    log = tmp_path / "cluster.twlog"
    found = tilewright.tune(
        SPACE, log=log, on="ray://auto", measurers=4, compilers=2, worker_cmd=[command], finalists=2, **SEARCH
    )
    assert found.stopped is None and found.summary["trials"] == 9
    lines = entries(log)
    # What was lost with the actor, whose host may have failed, was done again; the other two faults are those of trials.
    assert found.summary["failed"] == {"worker_died": 1, "hang": 1}, found.summary
    events = [it for it in lines if it["k"] == "event"]
    replaced = [it["detail"] for it in events if it["what"] == "worker_replaced"]
    for words in ("was killed by SIGKILL", "is lost with its actor", "did not answer within"):
        assert sum(words in it for it in replaced) == 1, replaced
    # Each process that measures says what it measures on, and the trials and finals which of them that was.
    devices = {it["device"]["name"]: it["device"]["machine"] for it in events if it.get("device")}
    measured = [it for it in lines if it["k"] == "trial" and "result" in it]
    (finals,) = (it for it in lines if it["k"] == "finals")
    assert {it["device"] for it in [*measured, finals]} <= set(devices)
    (run,) = (it for it in lines if it["k"] == "run")
    assert {it["name"] for it in devices.values()} == {run["machine"]["name"]}
    # The same candidates as without a cluster.
    alone = tmp_path / "alone.twlog"
    tilewright.tune(SPACE, log=alone, compilers=1, finalists=0, **SEARCH)
    assert trials(lines) == trials(entries(alone))
    # The cluster is still there, and nothing of the search.
    until(lambda: marked(str(state)), lambda: not marked(str(state)))


#: A worker with a GPU that is called as the environment says which one it may use.
FAKE_GPU = """
import json, os, sys
gpu = os.environ["CUDA_VISIBLE_DEVICES"]
machine = {"name": "fake", "arch": "sm_90a", "units": 1, "cache_bytes": 1, "versions": [], "id": "GPU-" + gpu}
print(json.dumps({"k": "hello", "proto": 1, "tool": "fake", "capacity": 1, "machine": machine}), flush=True)
for line in sys.stdin:
    print(json.dumps({"k": "answer", "id": json.loads(line)["id"], "ms": 1, "outcome": {"Ok": {"made": "measured", "gpu": gpu}}}), flush=True)
"""


def bridge(*words):
    command = [sys.executable, "-m", "tilewright.ray", "--address", "auto", "--role", "measure", "--target", "cuda", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@needs_ray
def test_each_gpu_of_a_kind_measures(cluster, tmp_path):
    (tmp_path / "fake.py").write_text(FAKE_GPU)
    with bridge("--gpu", "H100", "--worker", f"exec '{sys.executable}' '{tmp_path / 'fake.py'}'") as process:
        told, devices = [], {}
        while len(devices) < 2:
            told.append(json.loads(process.stdout.readline()))
            if device := told[-1].get("device"):
                devices[device["name"]] = told[-1]["capacity"]
        assert told[0]["supervisor"] and sorted(devices.values()) == [1, 2]
        assert {it.split()[-1] for it in devices} == {"GPU-0", "GPU-1"}
        for n in range(8):
            process.stdin.write(json.dumps({"id": n, "task": {"mode": "screen"}, "seconds": LONG}) + "\n")
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(8)]
        assert sorted(it["id"] for it in answers) == list(range(8))
        assert all(it["device"].endswith(f"GPU-{it['outcome']['Ok']['gpu']}") for it in answers)
        process.stdin.close()
        assert process.wait(LONG) == 0


@needs_ray
def test_a_kind_that_the_cluster_lacks(cluster, tmp_path):
    with bridge("--gpu", "B200") as process:
        hello = json.loads(process.stdout.readline())
        assert hello["problem"] == "the cluster has no GPU of the kind `B200`; it has H100 (2)"
        assert process.wait(LONG) == 1
    with pytest.raises(tilewright.Error, match="worker `ray-m` cannot measure: the cluster has no GPU of the kind") as err:
        tilewright.tune(SPACE, log=tmp_path / "none.twlog", target="cuda:sm_90a", on="ray://auto", gpu="B200", **SEARCH)
    assert err.value.code == "TW4112" and "`ray status`" in err.value.help


@needs_ray
def test_a_cluster_for_one_run_goes_with_it(home, tmp_path):
    log = tmp_path / "local.twlog"
    found = tilewright.tune(SPACE, log=log, on="ray://local", compilers=1, finalists=0, **{**SEARCH, "trials": 2})
    assert found.summary["ok"] == 2, found.summary


@needs_ray
def test_a_cluster_that_cannot_be_reached(monkeypatch):
    import ray

    from tilewright.ray import _bridge

    def fails(**_):
        raise ConnectionError("no such cluster\n\nsome hint\nand its cause")

    refused = []
    monkeypatch.setattr(ray, "init", fails)
    with pytest.raises(Refused, match="the Ray cluster at `auto` cannot be reached: ConnectionError: no such cluster … and its cause"):
        _bridge.connect("auto", refused.append)
    assert refused == []
    # Whoever waits for it is not told by an exception.
    monkeypatch.setattr(ray, "init", lambda **_: until(lambda: "patience has no end", lambda: refused))
    _bridge.connect("auto", refused.append, patience=0.1)
    assert str(refused[0]) == "the Ray cluster at `auto` did not answer within 0 s"
