"""Mutants of the functions of the database."""
