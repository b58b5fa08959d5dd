"""A secret is masked in a text that was cut, squeezed or made storable before its secrets were known."""

from __future__ import annotations

import random
import re

import pytest

from penstock.language.policies.after_attempt import ending_of
from penstock.language.policies.policies import RetryPolicy
from penstock.language.terms.redaction import SHORTEST, cleaned, concealed, hidden_forms
from penstock.messaging.retry_log import reason_of
from penstock.run.cut_texts import cut_end, shortened
from penstock.run.outcomes import Outcome, TaskError
from penstock.run.progress import Progress
from penstock.run.root_cause import headline
from penstock_worker.executors.processes.child_output import Text

LETTERS = "abXY019 \t\u00a0\n-_=+/%\"'\\<&äß€😀\0"
MARK = re.compile(r"\n\.\.\. [\d,]+ characters left out \.\.\.\n|\*\*\*")
SECRETS = [
    "s3cr3t-PADDED-value",
    "correct  horse  battery",
    "tab\tand\u00a0space",
    "ab\ncdefgh\ni",
    "€€€€ä\0x",
]


def secrets(count: int) -> list[str]:
    rng = random.Random(7)
    texts = ["".join(rng.choices(LETTERS, k=rng.choice((4, 9, 30, 200)))) for _ in range(count)]
    return [*SECRETS, *(text for text in texts if len("".join(text.split())) >= 2 * SHORTEST)]


def longest_piece(secret: str, text: str) -> int:
    """Return the length of the longest beginning or end of a secret that is in the text, without its marks."""
    text = MARK.sub("", text)
    pieces = [piece for length in range(1, len(secret) + 1) for piece in (secret[:length], secret[-length:])]
    return max((len(piece) for piece in pieces if piece.strip() and piece in text), default=0)


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("cut", [shortened, cut_end])
def test_secret_at_each_offset_of_a_cut_is_masked(cut: object, secret: str) -> None:
    forms = hidden_forms([secret])
    for offset in range(300):
        text = "." * offset + secret + "." * (600 - offset)
        text = concealed(cut(text, 300), forms)  # type: ignore[operator]
        assert longest_piece(secret, text) < SHORTEST, (offset, text)


def test_random_secret_in_a_long_error_is_masked() -> None:
    for secret in secrets(8):
        forms = hidden_forms([secret])
        for offset in [*range(2010, 2040)]:
            text = "#" * offset + secret + "#" * (5000 - offset)
            error = TaskError("X", text, text * 4)
            again = TaskError("X", error.message, error.traceback)
            assert again == error  # as it is read from another process, before its secrets are masked
            masked = concealed(error.message, forms)
            stored = secret.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
            assert longest_piece(stored, masked) < SHORTEST, (secret, offset)


def test_random_secret_in_progress_is_masked() -> None:
    for secret in secrets(400):
        line = concealed(Progress(0.5, f"with  {secret}  and").line(), hidden_forms([secret]))
        assert line.replace(" ", "") == "0.5with***and", secret  # a space beside it may belong to the secret


def test_secret_in_the_cause_of_a_failed_step_is_masked() -> None:
    for offset in range(250, 310):
        cause = {"path": "a", "type": "X", "message": cut_end("#" * offset + SECRETS[0] + "#" * 200, 300)}
        masked = cleaned({"type": "StepFailed", "message": "", "cause": cause}, hidden_forms(SECRETS))
        assert longest_piece(SECRETS[0], headline(masked) or "") < SHORTEST, offset


def test_end_of_a_secret_at_the_begin_of_a_kept_output_is_masked() -> None:
    for offset in range(20):
        text = Text(lambda _: None, keep=100)
        text(("#" * 50 + SECRETS[0] + "#" * (100 - offset)).encode())
        assert longest_piece(SECRETS[0], concealed(text.last, hidden_forms(SECRETS))) < SHORTEST, offset


def test_text_with_an_ellipsis_keeps_its_words() -> None:
    assert concealed("loading… done", hidden_forms(["s3cr3t"])) == "loading… done"
    assert concealed("a s3cr3t, and s3cr3t…", hidden_forms(["s3cr3t"])) == "a ***, and ***…"


@pytest.mark.parametrize("limit", [200, 500])
def test_secret_at_the_cut_of_a_reason_is_masked(limit: int) -> None:
    error = ValueError("#" * (limit - len("ValueError: ") - 9) + SECRETS[0])
    outcome = Outcome.failed(TaskError("ValueError", str(error), retryable=False))
    reason = reason_of(error) if limit == 500 else ending_of(outcome, RetryPolicy(), 0).reason
    assert reason is not None
    assert len(reason) == limit
    assert concealed(reason, hidden_forms(SECRETS)).endswith("#***…")
