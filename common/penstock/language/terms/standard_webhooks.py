"""Signatures of Standard Webhooks (standardwebhooks.com), version 1: HMAC-SHA256 over the id, the instant and the body."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

PREFIX = "whsec_"


def new_secret() -> str:
    """Return a new secret of 192 random bits, in the standard's notation."""
    return PREFIX + base64.b64encode(os.urandom(24)).decode()


def signature(secret: str, id: str, at: str, body: bytes) -> str:
    """Return the signature without its version prefix. `secret` is base64, optionally after whsec_. `at` is text: the
    seconds since 1970."""
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()).decode()
