"""How a workflow moves on: pure functions from what is known and what has changed to what is to be done.

`plan` holds a workflow compiled; `advance` decides; `state` is what is kept between two decisions; `facts` is what a
decision asks for, so that whoever calls reads no more than it needs.

Not here: transactions, statements, clocks. Whoever drives the engine (the executor, a test) reads and writes for it.
"""
