"""The executor: it turns events into executions, admits and routes them, advances workflows, and recovers lost work."""
