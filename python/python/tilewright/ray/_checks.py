"""What a process has to say for its words to be passed on: the tuner ends whoever says something else to it, and that would be all of the
bridge for one process."""

from ._process import Fault

#: What an answer to a job of each mode has made.
MADE = {"compile": "program", "screen": "measured", "finals": "finals"}

#: How much of a message is told, in characters.
MAX_EXCERPT = 200


def check_hello(hello):
    """Expects the first message of a worker."""
    if not isinstance(hello, dict):
        raise _fault("said something that is no hello", hello)
    if not isinstance(hello.get("warnings") or [], list):
        raise _fault("says a hello whose warnings are no list", hello)
    machine = hello.get("machine")
    if machine is not None:
        is_machine = isinstance(machine, dict) and isinstance(machine.get("units"), int)
        if not is_machine or not all(isinstance(machine.get(it), str) for it in ("name", "arch")):
            raise _fault("says that it measures on something that is no machine", machine)


def check_same(first, hello):
    """Expects that a process is of the use that the first one of its seat was of."""
    if first.get("machine") and not hello.get("machine"):
        raise Fault("unmeasurable", f"cannot measure any more: {hello.get('problem') or 'it has no machine'}", "")
    if _kind(first) != _kind(hello):
        raise _fault("is another kind of worker than the process before it", hello)


def check_answer(answer, number, mode):
    """Expects an answer to a job of this number and mode."""
    if not isinstance(answer, dict) or answer.get("k") != "answer":
        raise _fault("said something that is no answer", answer)
    if answer.get("id") != number:
        raise _fault(f"answered job {str(answer.get('id'))[:20]}, and has job {number}", answer)
    outcome = answer.get("outcome")
    if not isinstance(outcome, dict) or len(outcome) != 1 or not _is_number(answer.get("ms")):
        raise _fault("gave an answer without an outcome or a time", answer)
    made, error = outcome.get("Ok"), outcome.get("Err")
    if isinstance(error, dict):
        words = [error.get(it) for it in ("stage", "kind", "message")]
        if not all(isinstance(it, str) for it in words) or not isinstance(error.get("sticky", False), bool):
            raise _fault("gave an error without a stage, a kind or a message", answer)
    elif not isinstance(made, dict) or made.get("made") != MADE.get(mode):
        raise _fault("gave an answer of another kind than its job", answer)


def model(machine):
    """What has to be the same where times are compared."""
    return machine["name"], machine["arch"], machine["units"]


def _kind(hello):
    machine = hello.get("machine")
    return hello.get("k"), hello.get("proto"), hello.get("tool"), model(machine) if machine else None


def _is_number(it):
    return isinstance(it, (int, float)) and not isinstance(it, bool)


def _fault(words, message):
    return Fault("protocol", f"{words}: `{str(message)[:MAX_EXCERPT]}`", "")
