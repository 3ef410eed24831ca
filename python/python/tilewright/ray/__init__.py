"""Searches on a Ray cluster: what ``tilewright tune --on ray://…`` and ``tilewright.tune(on="ray://…")`` start.

``python -m tilewright.ray`` speaks the protocol of workers on its standard streams and is a supervisor: each of its *seats* is an
actor somewhere in the cluster that owns one worker process. ``_bridge`` deals jobs to seats, ``_seat`` is what runs on the hosts of the
cluster, ``_process`` the worker process there, ``_placement`` says how many seats there are and what each needs. Results go to the process that
started this one, which alone writes the log.
"""
