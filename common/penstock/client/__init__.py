"""What a program calls to publish, start, wait, ask and steer: `Client` and what hangs on it.

Not here: what an operator asks of an installation (`operate`), and any statement (`store`).
"""
