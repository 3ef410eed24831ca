"""A process that compiles or measures for a search: ``python -m tilewright._worker``."""

import sys

from ._tilewright import serve_worker

if __name__ == "__main__":
    sys.exit(serve_worker(sys.argv[1:]))
