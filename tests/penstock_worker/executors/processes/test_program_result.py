from __future__ import annotations

import pytest

from penstock_worker.executors.processes.program_result import failure, success


@pytest.mark.parametrize(
    ("output", "result", "rest"),
    [
        (b"", None, b""),
        (b"\n", None, b""),
        (b"7\n", 7, b""),
        (b'{\n "a": [\n  1\n ]\n}\n', {"a": [1]}, b""),
        (b"text\n7", 7, b"text\n"),
        (b'text\n{\n "a": 1\n}\n\n', {"a": 1}, b"text\n"),
        (b"[1]\n[2]\n", [2], b"[1]\n"),
    ],
)
def test_the_result_is_the_document_that_ends_the_output(output: bytes, result: object, rest: bytes) -> None:
    outcome, remaining = success(output, 1000)
    assert (outcome.kind, outcome.result, remaining) == ("completed", result, rest)


@pytest.mark.parametrize("output", [b"text", b"7\ntext", b'{"a": 1} and more', b"{\n" * 500])
def test_output_that_does_not_end_with_a_document_is_no_result(output: bytes) -> None:
    outcome, rest = success(output, 1000)
    assert outcome.error is not None
    assert outcome.error.type == "ResultNotStorable"
    assert rest == output.rstrip()


def test_the_beginning_of_an_output_that_was_cut_is_never_taken_for_a_document() -> None:
    assert success(b"1234\n", 1000, cut=True)[0].kind == "failed"
    assert success(b"1234\n[5]", 1000, cut=True)[0].result == [5]
    assert success(b"", 1000, cut=True)[0].kind == "failed"


def test_a_signal_is_named() -> None:
    outcome = failure(-15, "")
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.message) == ("Killed", "killed by SIGTERM")
