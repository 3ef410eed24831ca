"""The exception that everything in this package raises for what it cannot do."""

import json


class Error(Exception):
    """A refusal: ``str()`` of it is the diagnostic as the command line prints it, with its places and its help.

    ``code`` is stable, such as ``"TW1022"``; ``tilewright explain CODE`` shows its page, and so does the manual. ``message`` is
    the first line alone. ``data`` has all of it: ``places`` in the texts, ``help``, and under ``more`` what else is wrong.
    """

    def __init__(self, text, code, message, data):
        super().__init__(text, code, message, data)
        self.code = code
        self.message = message
        self.data = json.loads(data)

    def __str__(self):
        return self.args[0]

    @property
    def help(self):
        """What to do about it, where there is one thing to say."""
        return self.data["help"]


# Tracebacks and documentation know it by the name under which it is imported.
Error.__module__ = "tilewright"
