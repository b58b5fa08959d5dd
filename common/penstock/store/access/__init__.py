"""People, tokens, secrets, webhooks, subscriptions and the audit.

Not here: the rights of database roles.
"""
