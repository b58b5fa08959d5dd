"""The conformance of workers that call a gateway: cases that play with a worker of any language, against a real installation.

Not here: the command that prints the results.
"""
