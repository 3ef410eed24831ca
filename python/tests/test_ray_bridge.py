"""The bridge to a Ray cluster, without Ray: each actor is a thread of this process."""

import functools
import io
import json
import os
import queue
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from types import SimpleNamespace

import pytest

import tilewright
from tilewright.ray import _bridge
from tilewright.ray._placement import Refused
from tilewright.ray._process import Process

#: How long anything may take before a test fails, in seconds.
LONG = 60

#: What the scripts of workers begin with. `first NAME` is true once for a folder.
PRELUDE = """
say() { printf '%s\\n' "$1"; }
first() { mkdir "$STATE/$1" 2>/dev/null; }
job() { read -r line || exit 0; id=${line#*'"id": '}; id=${id%%,*}; }
hello() { say '{"k":"hello","proto":1,"tool":"fake","capacity":1,"machine":{"name":"fake","arch":"cpu","units":1}}'; }
useless() { say '{"k":"hello","proto":1,"tool":"fake","capacity":1,"machine":null,"problem":"no GPU"}'; }
outcome() { say '{"k":"answer","id":'"$id"',"ms":1,"outcome":'"$1"'}'; }
lost() { outcome '{"Err":{"stage":"run","kind":"device_lost","message":"m","sticky":true}}'; }
serve() { while job; do outcome '{"Ok":{"made":"measured"}}'; done; }
"""


class Actor:
    """Does what it is asked one after the other. What it has no name for is never done."""

    def __init__(self, it, names):
        self._it, self._thread = it, ThreadPoolExecutor(1)
        for name in ("open", "perform"):
            call = functools.partial(self._call, name) if name in names else lambda *_: SimpleNamespace(future=Future)
            setattr(self, name, SimpleNamespace(remote=call))

    def _call(self, name, *words):
        future = self._thread.submit(getattr(self._it, name), *words)
        return SimpleNamespace(future=lambda: future)

    def end(self):
        self._it._close()
        self._thread.shutdown()


class Cluster:
    """Ray, as far as the bridge uses it."""

    __version__ = "0"

    def __init__(self):
        self.actors = []
        self.names = ("open", "perform")

    def remote(self, kind):
        self._kind = kind
        return self

    def options(self, **_):
        return SimpleNamespace(remote=self._start)

    def _start(self, *words):
        self.actors.append(Actor(self._kind(*words), self.names))
        return self.actors[-1]

    def kill(self, actor):
        actor.end()

    def shutdown(self):
        for it in self.actors:
            it.end()


def served(tmp_path, script, jobs, cluster=None):
    """What a bridge with one place says to so many jobs, until all are answered, and why it ended if it refused."""
    command = f"STATE='{tmp_path}'\n{PRELUDE}\n{script}"
    asked = SimpleNamespace(role="measure", target="cpu", tool=None, worker=command)
    said, why = [], None

    def say(message):
        said.append(message)
        if sum(it["k"] == "answer" for it in said) == jobs:
            bridge.events.put(("end",))

    cluster = cluster or Cluster()
    bridge = _bridge.Bridge(cluster, asked, say, [{}])
    for n in range(jobs):
        line = json.dumps({"id": n, "task": {"mode": "screen"}, "seconds": LONG}).encode() + b"\n"
        bridge.events.put(("job", line))
    try:
        assert bridge.run() == 0
    except Refused as err:
        why = str(err)
        cluster.shutdown()
    answers = [(it["id"], it["outcome"].get("Err", {}).get("kind", "ok")) for it in said if it["k"] == "answer"]
    return answers, said, why


def news(said):
    return [it["what"].removeprefix("worker_") for it in said if it["k"] == "news"]


def test_a_process_that_comes_up_without_its_device_gets_no_job(tmp_path):
    script = "first a && { hello; job; lost; job; }; first b && useless || hello; serve"
    answers, said, why = served(tmp_path, script, 3)
    # The job that it would have had is still the next one.
    assert answers == [(0, "device_lost"), (1, "ok"), (2, "ok")] and why is None
    assert news(said) == ["started", "replaced", "replaced"]
    assert said[-3]["detail"] == "measure-0: it cannot measure any more: no GPU", said


def test_a_place_whose_device_stays_lost_is_given_up(tmp_path):
    answers, said, why = served(tmp_path, "first a && { hello; job; lost; job; }; useless; serve", 3)
    assert answers == [(0, "device_lost")]
    assert news(said) == ["started", "replaced", "replaced", "quarantined"]
    assert why == "process measure-0 cannot measure any more: no GPU"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[]", "said something that is no answer: `[]`"),
        ('{"k":"news"}', "said something that is no answer"),
        ('{"k":"answer","id":7,"ms":1,"outcome":{"Ok":{"made":"measured"}}}', "answered job 7, and has job 0"),
        ('{"k":"answer","id":0,"ms":1,"outcome":"fine"}', "gave an answer without an outcome or a time"),
        ('{"k":"answer","id":0,"outcome":{"Ok":{"made":"measured"}}}', "gave an answer without an outcome or a time"),
        ('{"k":"answer","id":0,"ms":1,"outcome":{"Ok":{"made":"program"}}}', "gave an answer of another kind than its job"),
        ('{"k":"answer","id":0,"ms":1,"outcome":{"Err":{"kind":"hang"}}}', "gave an error without a stage, a kind or a message"),
        ('{"k":"answer","id":0,"ms":NaN,"outcome":{"Ok":{"made":"measured"}}}', "wrote a line that is no message"),
    ],
)
def test_what_is_no_answer_costs_the_process_that_said_it(tmp_path, line, words):
    answers, said, why = served(tmp_path, f"hello; first a && {{ job; say '{line}'; sleep 1000; }}; serve", 2)
    assert answers == [(0, "protocol"), (1, "ok")] and why is None
    assert news(said) == ["started", "replaced"]
    (refused,) = (it["outcome"]["Err"]["message"] for it in said if "Err" in it.get("outcome", {}))
    assert refused.startswith(f"worker `measure-0` {words}"), refused


@pytest.mark.parametrize("line", ["[]", "1", '{"k":"hello","proto":1,"tool":"fake","machine":{"name":"fake"}}'])
def test_what_is_no_hello(tmp_path, line):
    answers, said, why = served(tmp_path, f"say '{line}'; sleep 1000", 1)
    assert (answers, said) == ([], [])
    assert why.startswith("process measure-0 said ") or why.startswith("process measure-0 says "), why


def test_a_cluster_that_has_no_place_any_more_is_waited_for_only_so_long(tmp_path, monkeypatch):
    monkeypatch.setattr(_bridge, "PATIENCE", 0.5)
    cluster = Cluster()

    class Lost(_bridge.Seat):
        def perform(self, *_):
            # The next actor never comes up.
            cluster.names = ()
            raise ConnectionError("no such host")

    monkeypatch.setattr(_bridge, "Seat", Lost)
    answers, said, why = served(tmp_path, "hello; serve", 1, cluster)
    assert answers == [] and news(said) == ["started", "replaced"]
    words = "the cluster had no place for a process within 0 s: process measure-0 is lost with its actor: ConnectionError: no such host"
    assert why == words


def test_a_line_that_is_cut_off_is_no_job():
    events = queue.SimpleQueue()
    _bridge.read(io.BytesIO(b'{"id":1}\n{"id":'), events)
    assert [events.get(), events.get()] == [("job", b'{"id":1}\n'), ("end",)] and events.empty()


def test_whatever_else_goes_wrong_is_told_in_a_line(tmp_path):
    (tmp_path / "ray.py").write_text("def init(**_): pass\ndef nodes(): return [{}]\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    command = [sys.executable, "-m", "tilewright.ray", "--address", "auto", "--role", "measure", "--target", "cpu"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LONG, stdin=subprocess.DEVNULL)
    words = "the bridge to the cluster failed: KeyError: 'Alive' (_placement.py:"
    assert done.returncode == 1 and done.stderr.startswith(words) and done.stderr.count("\n") == 1, done.stderr
    assert json.loads(done.stdout)["problem"].startswith(words)


def test_a_process_that_has_ended_keeps_its_number_until_it_is_killed():
    process = Process(["sh", "-c", "exit 3"])
    end = time.monotonic() + LONG
    while not process.has_ended():
        assert time.monotonic() < end
        time.sleep(0.01)
    os.kill(process.pid, 0)
    assert process.kill() == 3 and process.kill() == 3 and process.has_ended()
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_devices_are_those_of_this_machine_and_kinds_those_of_a_cluster(tmp_path):
    with pytest.raises(ValueError, match="`gpu` .* goes with `on`"):
        tilewright.tune("matmul", log=tmp_path / "log", gpu="H100")
    with pytest.raises(ValueError, match="`devices` .* do not go with `on`"):
        tilewright.tune("matmul", log=tmp_path / "log", on="ray://auto", devices=(0,))
    assert not (tmp_path / "log").exists()
