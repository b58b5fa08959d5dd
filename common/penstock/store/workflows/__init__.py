"""Statements on running workflows: their state, facts that the engine asks for, children, commands, waits.

Rows come out as dataclasses. Reading about workflows for people is `penstock.store.workflows.workflow_runs`.
"""
