"""The name of the caller that has not signed in, and needs not: open pages, and commands that reach the database."""

from __future__ import annotations

LOCAL_ACCESS = "local access"
"""The caller of pages and routes with open access, and the owner of views that the command line saves in the database. A person
that works on one machine so has one list of views."""
