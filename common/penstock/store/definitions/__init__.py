"""The catalog of definitions.

Not here: the language of definitions.
"""
