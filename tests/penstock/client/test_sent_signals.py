"""The answer to a signal that the function may not wait for."""

import pytest

from penstock.client.sent_signals import sent_signal

STORED = "The signal is stored until the function asks for it."


@pytest.mark.parametrize(
    ("awaits", "notice"),
    [
        (
            ["approve"],
            f"The function waits for 'approve', and not for 'aprove'. Did you mean 'approve'? {STORED}",
        ),
        (["paid", "gone"], f"The function waits for 'gone', 'paid', and not for 'aprove'. {STORED}"),
        ([], f"The function waits for no signal now. {STORED}"),
        (None, f"The function does not wait for 'aprove' now. {STORED}"),
    ],
)
def test_notice_names_awaited_signals(awaits: list[str] | None, notice: str) -> None:
    sent = sent_signal("aprove", awaits, None)
    assert (sent.is_awaited, sent.awaits, sent.notice) == (False, sorted(awaits or []), notice)


def test_awaited_signal_has_no_notice() -> None:
    sent = sent_signal("paid", ["paid", "paid", "gone"], None)
    assert (sent.is_awaited, sent.awaits, sent.notice) == (True, ["gone", "paid"], None)
