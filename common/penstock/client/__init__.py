"""The client of programs, which publish, start, wait, ask and steer: `Client` and its parts.

Not here: what an operator asks of an installation (`operate`), and any statement (`store`).
"""
