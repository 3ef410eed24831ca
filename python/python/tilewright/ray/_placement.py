"""How many processes of a cluster compile and measure, and what each of them needs. Knows what Ray says of hosts, and calls nothing of it."""

from collections import Counter
from typing import NamedTuple

#: The most processes that compile: as many as the command line takes.
MAX_COMPILERS = 256

#: How Ray names the resource that says what kind a host's GPUs are.
KIND = "accelerator_type:"


class Refused(Exception):
    """Why a cluster cannot be used, in words for the user."""


class Place(NamedTuple):
    """What a process needs: processors, GPUs of a kind, and the host that it would best run on."""

    cpus: int
    gpus: int
    kind: str | None
    node: str | None


def places(asked, nodes):
    """The places of the processes of a role.

    ``nodes`` is what ``ray.nodes()`` says. Each process that measures has a GPU to itself, or a host where the target is the CPU. The
    processors that they leave are for those that compile.
    """
    alive = [it for it in nodes if it["Alive"]]
    cpus = int(sum(it["Resources"].get("CPU", 0) for it in alive))
    if asked.role == "measure":
        if asked.target == "cuda":
            # Their processors are left free for them below, and not booked: those that compile may have taken all of a host's, whose GPUs
            # would wait for ever.
            return measure_on_gpus(asked, alive)
        measuring = measure_on_hosts(asked, alive)
        share = processors(cpus, len(measuring))
        return [it._replace(cpus=share) for it in measuring]
    left = cpus - measurers(asked, alive) * processors(cpus, measurers(asked, alive))
    count = asked.compilers or max(1, left)
    return [Place(cpus=1, gpus=0, kind=None, node=None)] * min(count, MAX_COMPILERS)


def processors(cpus, measurers):
    """How many processors are for a process that measures: none where that would leave nothing to compile with."""
    return 1 if cpus > measurers else 0


def measurers(asked, alive):
    """How many processes measure, as far as those that compile have to know."""
    if asked.measurers:
        return asked.measurers
    if asked.target == "cpu":
        return len(alive)
    kinds = gpus_by_kind(alive)
    return kinds[asked.gpu] if asked.gpu else sum(kinds.values())


def measure_on_hosts(asked, alive):
    """A process for each host, or as many as asked for, spread over them."""
    if not alive:
        raise Refused("the cluster has no host")
    hosts = [it["NodeID"] for it in alive]
    count = asked.measurers or len(hosts)
    return [Place(cpus=0, gpus=0, kind=None, node=hosts[at % len(hosts)]) for at in range(count)]


def measure_on_gpus(asked, alive):
    """A process for each GPU of one kind, or for as many of them as asked for."""
    kinds = gpus_by_kind(alive)
    if not kinds:
        raise Refused("no host of the cluster has a GPU, and the target is CUDA")
    words = ", ".join(f"{kind or 'of no known kind'} ({count})" for kind, count in sorted(kinds.items(), key=str))
    if asked.gpu is None and len(kinds) > 1:
        raise Refused(
            f"the cluster has GPUs of {len(kinds)} kinds, whose times cannot be compared: {words}; "
            "`--gpu KIND` chooses one (`gpu=` in Python)"
        )
    kind = asked.gpu if asked.gpu is not None else next(iter(kinds))
    if kind not in kinds:
        raise Refused(f"the cluster has no GPU of the kind `{kind}`; it has {words}")
    count = asked.measurers or kinds[kind]
    if count > kinds[kind]:
        raise Refused(f"{count} processes are to measure, and the cluster has {kinds[kind]} GPUs for them: {words}")
    return [Place(cpus=0, gpus=1, kind=kind, node=None)] * count


def gpus_by_kind(alive):
    """How many GPUs of each kind there are. Those of hosts that do not say what they have are of the kind ``None``."""
    kinds = Counter()
    for node in alive:
        resources = node["Resources"]
        count = int(resources.get("GPU", 0))
        if count:
            named = [it.removeprefix(KIND) for it in resources if it.startswith(KIND)]
            kinds[named[0] if named else None] += count
    return kinds
