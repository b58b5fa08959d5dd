"""The executor: turns events into executions, admits and routes them, advances workflows, recovers what was lost."""
