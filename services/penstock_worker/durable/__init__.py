"""Runs durable functions: what they record goes to the database together with what others record at that moment."""
