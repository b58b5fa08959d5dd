from __future__ import annotations

import threading

from hypothesis import given
from hypothesis import strategies as st

from penstock.run.run_log import LINE_LIMIT, MARKER, RunLog

Lines = list[tuple[str, str]]


def _log(limit: int = 10_000_000) -> tuple[RunLog, Lines]:
    lines: Lines = []
    return RunLog(lambda stream, line: lines.append((stream, line)), limit), lines


@given(st.lists(st.text(alphabet="ab\n", max_size=5)))
def test_lines_are_the_same_however_they_are_written_in_pieces(pieces: list[str]) -> None:
    log, lines = _log()
    for piece in pieces:
        log.write("stdout", piece)
    log.close()
    whole = "".join(pieces)
    assert [line for _, line in lines] == whole.removesuffix("\n").split("\n") if whole else lines == []


def test_streams_do_not_mix_their_lines() -> None:
    log, lines = _log()
    log.write("stdout", "to be ")
    log.write("stderr", "oops\n")
    log.write("stdout", "continued\n")
    assert lines == [("stderr", "oops"), ("stdout", "to be continued")]


def test_a_line_that_never_ends_is_broken() -> None:
    log, lines = _log()
    log.write("stdout", "x" * (LINE_LIMIT + 10))
    log.close()
    assert [len(line) for _, line in lines] == [LINE_LIMIT, 10]


@given(st.booleans(), st.integers(0, 40), st.integers(5, 40), st.sampled_from((97, LINE_LIMIT)))
def test_no_break_of_a_line_cuts_a_secret(in_child: bool, overlap: int, length: int, step: int) -> None:
    secret = "0123456789" * length
    text = "x" * (LINE_LIMIT - overlap) + secret + "y" * LINE_LIMIT + secret + "z" * 3 * LINE_LIMIT
    lines: Lines = []

    def keep(stream: str, line: str) -> None:
        lines.append((stream, line.replace(secret, "***")))

    log = RunLog(keep, conceal=lambda tail: tail.replace(secret, "***"))
    child = RunLog(lambda stream, line: log.write(stream, f"{line}\n"), pieces=log.write)
    for start in range(0, len(text), step):
        (child if in_child else log).write("stdout", text[start : start + step])
    child.close()
    log.close()
    assert "".join(line for _, line in lines) == text.replace(secret, "***")
    assert max(len(line) for _, line in lines) < 3 * LINE_LIMIT


def test_lines_over_the_limit_are_left_out_with_a_marker() -> None:
    log, lines = _log(10)
    for _ in range(5):
        log("log", "1234")
    assert lines[:2] == [("log", "1234")] * 2
    assert [stream for stream, _ in lines[2:]] == [MARKER]
    assert log.full


def test_the_limit_counts_bytes() -> None:
    log, lines = _log(6)
    log("log", "üü")
    log("log", "ü")
    assert [stream for stream, _ in lines] == ["log", MARKER]


def test_nothing_is_kept_after_the_end() -> None:
    log, lines = _log()
    log.write("stdout", "unfinished")
    log.close()
    log("log", "late")
    log.write("stdout", "late\n")
    assert lines == [("stdout", "unfinished")]


def test_characters_that_postgresql_refuses_are_replaced() -> None:
    log, lines = _log()
    log("log", "a\0b\ud800")
    assert lines == [("log", "a�b?")]


def test_threads_lose_and_tear_nothing() -> None:
    log, lines = _log()

    def say(word: str) -> None:
        for number in range(200):
            log("log", f"{word} {number}")

    threads = [threading.Thread(target=say, args=(word,)) for word in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for word in "ab":
        assert [line for _, line in lines if line[0] == word] == [f"{word} {number}" for number in range(200)]
