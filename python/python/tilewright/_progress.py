"""The line that tells how far a search is."""

import sys


class Line:
    """A line on standard error that is written over where that is a terminal; elsewhere one for each tenth of the way."""

    def __init__(self, stream=None):
        self._stream = sys.stderr if stream is None else stream
        self._is_terminal = self._stream.isatty()
        self._tenth = -1

    def __call__(self, progress):
        """Tells where a search stands."""
        text = words(progress)
        if self._is_terminal:
            self._stream.write(f"\r\x1b[K{text}")
        else:
            tenth = 10 * progress["trials"] // max(progress["of"], 1)
            if tenth == self._tenth:
                return
            self._tenth = tenth
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def end(self):
        """Leaves the line as it is."""
        if self._is_terminal:
            self._stream.write("\n")
            self._stream.flush()


def words(progress):
    """Where a search stands, in words."""
    best = progress["best"]
    if best is None:
        speed = "no result yet"
    else:
        speed = f"best {1e6 * best['seconds']:.1f} us (trial {best['trial']})"
    failed = sum(progress["failed"].values())
    rest = f", {failed} failed" if failed else ""
    waits = progress.get("waits_for") if progress["what"] == "searching" else None
    load = f"; waits for {waits}, devices idle {100 * progress['idle']:.0f} %" if waits else ""
    return f"{progress['trials']}/{progress['of']} trials, {progress['what']}: {speed}{rest}{load}"
