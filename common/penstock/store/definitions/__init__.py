"""The catalog of definitions.

Not here: their language.
"""
