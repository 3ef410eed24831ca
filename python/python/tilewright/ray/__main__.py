"""A worker of the tuner whose work is done in a Ray cluster: ``python -m tilewright.ray --address auto --role measure …``."""

import argparse
import functools
import json
import os
import sys
import traceback

from ._placement import Refused


def arguments(words):
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tilewright.ray", description=__doc__)
    parser.add_argument("--address", required=True, help="of the cluster, in Ray's words: auto, local, ray://host:port, host:port")
    parser.add_argument("--role", required=True, choices=["compile", "measure"])
    parser.add_argument("--target", required=True, choices=["cpu", "cuda"])
    parser.add_argument("--tool", help="the program and version that workers have to be")
    parser.add_argument("--gpu", help="the kind of GPU to measure on, as Ray names it")
    parser.add_argument("--compilers", type=int, help="how many processes compile")
    parser.add_argument("--measurers", type=int, help="how many processes measure")
    parser.add_argument("--worker", help="the command of each process, for a shell on its host")
    return parser.parse_args(words)


class Output:
    """Standard output, taken for messages alone: whatever else this process prints goes to standard error."""

    def __init__(self):
        self._ours = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._is_used = False

    def say(self, message):
        """Sends a message."""
        self._is_used = True
        self._ours.write(json.dumps(message, separators=(",", ":"), allow_nan=False).encode() + b"\n")
        self._ours.flush()

    def refuse(self, role, err):
        """Says why the cluster is of no use, and ends this process. No thread is waited for: some read, and some are Ray's."""
        if role == "measure" and not self._is_used:
            self.say({"k": "hello", "proto": 1, "tool": "ray", "capacity": 1, "problem": str(err)})
        sys.stderr.write(f"{err}\n")
        sys.stderr.flush()
        os._exit(1)


def main():
    """Serves until standard input ends. Exit code: 0 then, 1 if the cluster cannot be used or has no place left."""
    asked = arguments(sys.argv[1:])
    output = Output()
    refuse = functools.partial(output.refuse, asked.role)
    # A search is nobody's business but the user's.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        from ._bridge import serve

        code = serve(asked, output.say, refuse)
    except Refused as err:
        refuse(err)
    except Exception as err:
        # The last words of this process are what the user is told, and a traceback would fill them.
        at = traceback.extract_tb(err.__traceback__)[-1]
        refuse(f"the bridge to the cluster failed: {type(err).__name__}: {err} ({os.path.basename(at.filename)}:{at.lineno})")
    os._exit(code)


if __name__ == "__main__":
    main()
