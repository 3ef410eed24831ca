"""Deals the jobs of the tuner to seats in the cluster, and answers for those that are lost."""

import json
import logging
import os
import queue
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from ._checks import model
from ._placement import Refused, places
from ._seat import HELLO, Seat

#: How long the cluster may take to find a place for a process while there is none.
PATIENCE = 300.0

#: How long Ray may take to leave the cluster.
LEAVING = 10.0

#: How long a cluster may take to let this process in, in seconds. One for this run has to be started first.
CONNECTING = 120.0

#: How much longer than its job an actor may take to answer, before its host counts as lost.
SLACK = 60.0

#: How often a job is given to a seat whose actor is lost with it: it may be the job that breaks hosts.
ATTEMPTS = 3

#: How many failures in a row, without an answer between, a seat is allowed.
MAX_FAILURES = 3

#: How much of a line of Ray's errors is told, in characters.
MAX_LINE = 200

#: The longest message of an error, in bytes.
MAX_MESSAGE = 2048

#: What a job is told, by what its process did, as the tuner's own pool tells it.
COMPILE_KINDS = {"hang": "compile_timeout", "time": "compile_timeout", "memory": "out_of_memory", "protocol": "protocol"}
MEASURE_KINDS = {"hang": "hang", "memory": "out_of_memory", "protocol": "protocol"}


@dataclass
class Job:
    """A job of the tuner."""

    id: int
    line: bytes
    mode: str
    seconds: float
    #: How many actors were lost with it.
    lost: int = 0


@dataclass
class Place:
    """A seat as it is seen from here, across its actors."""

    name: str
    options: dict
    actor: Any = None
    #: Which of its actors: what an earlier one says late is not listened to.
    generation: int = 0
    is_ready: bool = False
    is_out: bool = False
    job: Job | None = None
    #: Since when its actor has had something to do, and until when it has to say something.
    since: float = 0.0
    until: float = field(default=float("inf"))
    failures: int = 0
    device: str | None = None

    def is_idle(self):
        return self.is_ready and self.job is None


def serve(asked, say, refuse):
    """Connects to the cluster, and serves until standard input ends. Returns the exit code."""
    ray = connect(asked.address, refuse)
    options = [ray_options(ray, it) for it in places(asked, ray.nodes())]
    bridge = Bridge(ray, asked, say, options)
    threading.Thread(target=read, args=(sys.stdin.buffer, bridge.events), daemon=True).start()
    return bridge.run()


def connect(address, refuse, patience=CONNECTING):
    """Ray, connected to a cluster. ``refuse`` is called in place of a return where the cluster does not answer."""
    try:
        import ray
    except ImportError as err:
        raise Refused(f"Ray cannot be imported: {err}; pip install 'tilewright[ray]'") from err
    local = {"include_dashboard": False} if address == "local" else {}
    # Ray itself would go on for many minutes where nobody is at an address any more, and listens to no signal meanwhile.
    late = Refused(f"the Ray cluster at `{address}` did not answer within {patience:.0f} s")
    watch = threading.Timer(patience, refuse, [late])
    watch.start()
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **local)
    except Exception as err:
        raise Refused(f"the Ray cluster at `{address}` cannot be reached: {words_of(err)}") from err
    finally:
        watch.cancel()
    return ray


def ray_options(ray, place):
    """What Ray is asked for on behalf of a place."""
    options = {"num_cpus": place.cpus, "num_gpus": place.gpus, "max_restarts": 0, "max_task_retries": 0}
    options["scheduling_strategy"] = "SPREAD"
    if place.kind is not None:
        options["accelerator_type"] = place.kind
    if place.node is not None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # Another host will do if that one is gone.
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(place.node, soft=True)
    return options


def read(stream, events):
    """Passes lines on until the end. One that is cut off is none: whoever wrote it is gone."""
    for line in stream:
        if line.endswith(b"\n"):
            events.put(("job", line))
    events.put(("end",))


class Bridge:
    """The seats and the jobs of a role. One thread does everything here; others only put events into the queue."""

    def __init__(self, ray, asked, say, options):
        self._ray, self._asked, self._say = ray, asked, say
        self._seat = ray.remote(Seat)
        self._places = [Place(f"{asked.role}-{at}", it) for at, it in enumerate(options)]
        self._pending = []
        self._model = None
        self._is_open = False
        self._fault = None
        self._last_ready = time.monotonic()
        self.events = queue.SimpleQueue()

    def run(self):
        """Serves until standard input ends (0). Raises where no seat is left, or none was ready for too long."""
        for place in self._places:
            self._start(place)
        while True:
            try:
                event = self.events.get(timeout=1.0)
            except queue.Empty:
                event = ("tick",)
            if event[0] == "end":
                self._leave()
                return 0
            getattr(self, f"_on_{event[0]}")(*event[1:])
            self._watch()
            self._expect_places()
            self._deal()

    def _expect_places(self):
        """Gives up where nothing is to be hoped for: whoever started this process may try another one."""
        if all(it.is_out for it in self._places):
            raise Refused(self._fault)
        now = time.monotonic()
        if any(it.is_ready for it in self._places):
            self._last_ready = now
        if now > self._last_ready + PATIENCE:
            raise Refused(f"the cluster had no place for a process within {PATIENCE:.0f} s: {self._fault or 'others use it'}")

    def _leave(self):
        """Leaves the cluster, and this process where that takes too long: a host that is gone may never answer."""
        late = threading.Timer(LEAVING, os._exit, [0])
        late.daemon = True
        late.start()
        self._ray.shutdown()
        late.cancel()

    def _on_tick(self):
        pass

    def _on_job(self, line):
        job = json.loads(line)
        self._pending.append(Job(job["id"], line, job["task"]["mode"], job.get("seconds") or 3600.0))

    def _on_said(self, place, generation, future):
        """An actor has answered, or is lost."""
        if generation != place.generation or place.is_out:
            return
        place.until = float("inf")
        try:
            said = future.result()
        except Exception as err:
            self._lost(place, f"is lost with its actor: {words_of(err)}")
            return
        job, place.job = place.job, None
        if job is None:
            self._opened(place, said)
        elif "answer" in said:
            self._answered(place, job, said["answer"])
        elif "unready" in said:
            # No process has seen the job, which cannot be the reason, then.
            self._pending.insert(0, job)
            self._failed(place, said["unready"]["words"], said["unready"]["last"])
        else:
            self._faulted(place, job, said["fault"])

    def _opened(self, place, said):
        """A process has said hello, or something else."""
        fault = said.get("fault") or self._refusal(said["hello"])
        if fault:
            self._failed(place, fault["words"], fault.get("last", ""), restart=True, final=fault["kind"] == "unfit")
            return
        hello, host = said["hello"], said["host"]
        machine = hello.get("machine") if self._asked.role == "measure" else None
        words = f"{hello.get('tool')} on {host}, process {said['process']}"
        device = None
        if machine:
            place.device = f"{host} {machine.get('id') or machine['arch']}"
            device = {"name": place.device, "machine": machine}
            if model(machine) != (self._model or model(machine)):
                self._failed(place, f"measures on {model_words(machine)}, the others on another model: left out", "", final=True)
                return
            self._model = model(machine)
        place.is_ready = True
        if not self._is_open:
            self._is_open = True
            tool = f"ray {self._ray.__version__}"
            hello_of_all = {"proto": 1, "tool": tool, "capacity": 1, "machine": machine, "supervisor": True}
            self._say({"k": "hello", **hello_of_all})
        self._news("worker_started", place, words, device)
        for warning in hello.get("warnings") or []:
            self._news("warning", place, warning)

    def _refusal(self, hello):
        """Why a process that said hello is of no use, if it is."""
        tool, wanted = str(hello.get("tool")), self._asked.tool
        if hello.get("k") != "hello" or hello.get("proto") != 1:
            return {"kind": "unfit", "words": f"speaks another protocol: {str(hello)[:200]}"}
        if wanted and tool.startswith("tilewright ") and tool != wanted:
            return {"kind": "unfit", "words": f"is {tool}, and the tuner is {wanted}: install the same on every host"}
        if self._asked.role == "measure" and not hello.get("machine"):
            return {"kind": "unmeasurable", "words": f"cannot measure: {hello.get('problem') or 'it has no machine'}"}
        return None

    def _answered(self, place, job, answer):
        error = answer["outcome"].get("Err") or {}
        self._say({**answer, "k": "answer", "id": job.id, "device": place.device})
        if error.get("sticky") and error.get("kind") == "device_lost":
            self._failed(place, "lost its device", "")
        else:
            place.failures = 0

    def _faulted(self, place, job, fault):
        """The process died, hung or lied: that costs the job, which may well be the reason."""
        kinds = COMPILE_KINDS if job.mode == "compile" else MEASURE_KINDS
        self._refuse(place, job, kinds.get(fault["kind"], "worker_died"), fault["words"], fault["last"])
        self._failed(place, fault["words"], fault["last"])

    def _lost(self, place, words):
        """The actor is gone, with its host or without. Its job is done elsewhere, unless that has happened too often."""
        job, place.job = place.job, None
        if job is not None:
            job.lost += 1
            if job.lost < ATTEMPTS:
                self._pending.insert(0, job)
            else:
                self._refuse(place, job, "worker_died", f"{words} ({job.lost} times with this job)", "")
        self._failed(place, words, "", restart=True)

    def _failed(self, place, words, last, restart=False, final=False):
        """Counts a failure of a seat, which gets another process or actor, unless it fails again and again."""
        place.failures = MAX_FAILURES if final else place.failures + 1
        place.is_out = place.failures >= MAX_FAILURES
        detail = f"{words}; its last words: {last}" if last else words
        self._fault = f"process {place.name} {detail}"
        if restart or place.is_out:
            place.is_ready = False
            self._end(place)
        self._news("worker_quarantined" if place.is_out else "worker_replaced", place, f"it {detail}")
        if restart and not place.is_out:
            self._start(place)

    def _refuse(self, place, job, kind, words, last):
        """Answers a job in the place of a process."""
        message = f"worker `{place.name}` {words}" + (f"; its last words: {last}" if last else "")
        message = message.encode()[:MAX_MESSAGE].decode(errors="ignore")
        stage = "compile" if job.mode == "compile" else "run"
        error = {"stage": stage, "kind": kind, "message": message, "sticky": True}
        ms = 1e3 * (time.monotonic() - place.since)
        self._say({"k": "answer", "id": job.id, "ms": ms, "outcome": {"Err": error}, "device": place.device})

    def _news(self, what, place, words, device=None):
        """Tells what happened, once there is somebody to tell."""
        if self._is_open:
            capacity = sum(it.is_ready for it in self._places)
            detail = f"{place.name}: {words}"
            self._say({"k": "news", "what": what, "detail": detail, "capacity": capacity, "device": device})

    def _start(self, place):
        """Asks the cluster for an actor, which comes up in its own time."""
        options = ["--compile-only"]
        if self._asked.role == "measure":
            # Ray shows an actor the GPU alone that it was given.
            options = ["--device", "cpu" if self._asked.target == "cpu" else "0"]
        place.generation += 1
        place.actor = self._seat.options(**place.options).remote(options, self._asked.worker)
        self._listen(place, place.actor.open.remote())

    def _end(self, place):
        """Gives an actor up."""
        place.generation += 1
        place.until = float("inf")
        try:
            self._ray.kill(place.actor)
        except Exception:
            # It is gone already, or will be with its host.
            pass

    def _listen(self, place, ref):
        generation = place.generation
        ref.future().add_done_callback(lambda it: self.events.put(("said", place, generation, it)))

    def _watch(self):
        """Gives up actors that say nothing for much longer than their jobs may take."""
        now = time.monotonic()
        for place in self._places:
            if now > place.until:
                self._lost(place, f"said nothing for {now - place.since:.0f} s")

    def _deal(self):
        """Gives jobs to seats, the first of them first, so that jobs one after the other are done on one device."""
        for place in self._places:
            if self._pending and place.is_idle():
                place.job = self._pending.pop(0)
                place.since = time.monotonic()
                place.until = place.since + place.job.seconds + HELLO + SLACK
                self._listen(place, place.actor.perform.remote(place.job.line, place.job.seconds, place.job.id, place.job.mode))


def model_words(machine):
    return f"{machine['name']} ({machine['arch']}, {machine['units']} units)"


def words_of(err):
    """What an error says: its first line, and its last one, which is the cause where Ray tells of an error elsewhere."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(err))
    if "No module named 'tilewright" in plain:
        return "its host lacks this package: pip install 'tilewright[ray]' on each host of the cluster"
    lines = [it.strip()[:MAX_LINE] for it in plain.splitlines() if it.strip()] or ["no words"]
    return f"{type(err).__name__}: " + " … ".join(dict.fromkeys([lines[0], lines[-1]]))
