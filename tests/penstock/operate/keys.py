"""Master keys of secrets, for tests."""

from __future__ import annotations

import base64

KEY = base64.b64encode(b"one key of thirty-two bytes long").decode()
OTHER = base64.b64encode(b"another of thirty-two bytes long").decode()
