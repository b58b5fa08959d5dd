"""Durable functions: what their code is given (`context`), how it is held against what is recorded of their run (`journal`), and
how an attempt is run (`drive`).

Not here: where records are kept and how children start, which is the worker's (`backend` says what it has to do); and the kit
that crashes them in tests, which is `penstock.testing`.
"""
