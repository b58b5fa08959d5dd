"""Random durable programs, and an oracle that shares no code with the runtime of durable functions.

A program is data (`statements`). `interpreter` plays it against any context: that of a durable run, which is crashed and
suspended (`kit_run`), or a plain one without a journal (`plain`), which is never interrupted. `agreement` compares both.

Not here: what a durable function promises (docs/durable.md), and the cases that are written by hand.
"""
