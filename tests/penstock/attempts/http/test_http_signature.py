from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from penstock.attempts.http import http_signature
from penstock.errors import ConfigurationError


def test_it_is_the_signature_of_the_standard_webhooks_libraries() -> None:
    signed = http_signature.headers(
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1614265330,
        b'{"test": 2432232314}',
    )
    assert signed == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_a_plain_text_secret_is_its_own_key() -> None:
    signed = http_signature.headers("a secret", "id", 7, b"{}")["webhook-signature"]
    expected = hmac.new(b"a secret", b"id.7.{}", hashlib.sha256).digest()
    assert signed == f"v1,{base64.b64encode(expected).decode()}"


def test_a_secret_that_pretends_to_be_base64_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        http_signature.headers("whsec_???", "id", 7, b"{}")
