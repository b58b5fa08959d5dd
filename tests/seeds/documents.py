"""The five documents that Penstock was built from, and what a script finds in them: code, options, events, statuses.

They lie beside the project (`shared/seeds`), and are not part of it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = ("000", "001", "002", "003", "004")
"""The beginnings of the names of the documents: scaling, executor, tasks, cron, dispatcher."""


def folder() -> Path | None:
    """Return the folder of the documents, or None where they are not there."""
    return next((at / "shared/seeds" for at in ROOT.parents if (at / "shared/seeds").is_dir()), None)


def read() -> dict[str, list[str]]:
    """Return the lines of each document by its number."""
    place = folder()
    assert place is not None
    return {name: next(place.glob(f"{name}_*.txt")).read_text().splitlines() for name in NAMES}


@dataclass(frozen=True, slots=True)
class Fragment:
    """Lines of code in a document. `line` counts from 1."""

    document: str
    line: int
    language: str
    text: str

    @property
    def key(self) -> tuple[str, int]:
        return self.document, self.line


_BEGINS = {
    "python": re.compile(r"@cloaca\."),
    "rust": re.compile(
        r"\s*(let |if self\.|if let |pub (struct|trait|async fn)|impl |async fn |fn |use |tokio::|tracing::|match tokio|"
        r"#\[derive|"
        r"// (Register a cron|Stop heartbeat|Execute task|Valid cron|Expression valid|DST tran|Route ML|Create runner))"
    ),
    "sql": re.compile(r"(CREATE|ALTER) |-- Optimized"),
    "diagram": re.compile(r"\s*(sequenceDiagram|flowchart |graph TB|stateDiagram)"),
    "text": re.compile(r"Runner A \(GPU box\)|┌"),
}
_GOES_ON = {
    "python": re.compile(
        r"(@cloaca|def |\"\"\"|#|if |else|try:|except |return |print\(|context\.|result = |set_counter|current = |"
        r"backup_\w+ = )"
    ),
    "text": re.compile(r"(Runner [ABC]|[│┌*] ?)"),
}


def fragments(documents: dict[str, list[str]]) -> list[Fragment]:
    """Return all code of the documents, in order."""
    found: list[Fragment] = []
    for name, lines in documents.items():
        at = 0
        while at < len(lines):
            language = next((word for word, begins in _BEGINS.items() if begins.match(lines[at])), None)
            if language is None:
                at += 1
                continue
            end = _end(lines, at, language)
            found.append(Fragment(name, at + 1, language, "\n".join(lines[at:end])))
            at = end
    return found


def _end(lines: list[str], at: int, language: str) -> int:
    if language in _GOES_ON:
        end = at + 1
        while end < len(lines) and _GOES_ON[language].match(lines[end]):
            end += 1
        return end
    if language == "diagram":
        end = at + 1
        while (
            end < len(lines)
            and re.match(r"\s|subgraph|end\b|[A-Z]{1,3}(\[| -|-|\()|participant|loop|alt|style", lines[end])
            and lines[end]
        ):
            end += 1
        return end
    end, depth = at, 0
    while end < len(lines):
        code = re.sub(r"\"(\\.|[^\"\\])*\"|//.*", "", lines[end])
        depth += sum(code.count(mark) for mark in "({[") - sum(code.count(mark) for mark in ")}]")
        end += 1
        whole = code.strip().endswith((";", "}", ")")) or (language == "rust" and not code.strip())
        if depth <= 0 and whole and code.strip():
            following = next((line for line in lines[end : end + 2] if line.strip()), "")
            if re.match(r"\s*(\.|else|\} else)", following) and not code.strip().endswith(";"):
                continue
            break
    return end


def struct_fields(code: list[Fragment]) -> set[str]:
    """Return `Struct.field` for each public field of the structs in the documents."""
    fields: set[str] = set()
    for fragment in code:
        struct = ""
        for line in fragment.text.splitlines():
            if match := re.match(r"\s*pub struct (\w+)", line):
                struct = match[1]
            elif (match := re.match(r"\s*pub (\w+): ", line)) and struct:
                fields.add(f"{struct}.{match[1]}")
    return fields


def builder_options(code: list[Fragment]) -> set[str]:
    """Return the options that builders are given: `.enable_claiming(true)`."""
    builders = [
        fragment.text
        for fragment in code
        if "builder()" in fragment.text or "RoutingConfig::new" in fragment.text
    ]
    names = {
        match[1]
        for text in builders
        for match in re.finditer(r"^\s*(?://\s*config)?\.(\w+)\b", text, re.MULTILINE)
    }
    return names - {"build", "await"}


def table_options(documents: dict[str, list[str]]) -> set[str]:
    """Return the options of the configuration reference, with their defaults: `heartbeat_interval=10s`."""
    rows = (
        re.match(r"([a-z_]+) (true|None|\d+s?) [A-Z]", line) for lines in documents.values() for line in lines
    )
    return {f"{row[1]}={row[2]}" for row in rows if row}


def schedule_options(code: list[Fragment]) -> set[str]:
    """Return the fields with which a schedule is written."""
    texts = [fragment.text for fragment in code if "let schedule = CronSchedule {" in fragment.text]
    return {match[1] for text in texts for match in re.finditer(r"^\s*(\w+): ", text, re.MULTILINE)}


def task_options(code: list[Fragment]) -> set[str]:
    """Return the options of `@cloaca.task`."""
    return {
        match[1]
        for fragment in code
        if fragment.language == "python"
        for match in re.finditer(r"@cloaca\.task\((\w+)=", fragment.text)
    }


def events(documents: dict[str, list[str]]) -> set[str]:
    """Return the names of messages and events: `execution.requested`, `TaskReadyEvent`."""
    text = "\n".join(line for lines in documents.values() for line in lines)
    dotted = set(
        re.findall(
            r"\b((?:event|enforcement|execution|inquiry)\.(?:created|requested|completed|responded))", text
        )
    )
    return dotted | set(
        re.findall(r"(TaskReadyEvent|InquiryCreated|ExecutionRequested|ExecutionResult)", text)
    )


def statuses(documents: dict[str, list[str]]) -> set[str]:
    """Return the statuses that the documents name, by their system."""
    text = "\n".join(line for lines in documents.values() for line in lines)
    ours = set(re.findall(r"\b(NotStarted|Ready|Running|Completed|Failed|Skipped)\b", text))
    attune = set(
        re.findall(r"\bstatus = '(\w+)'|exactly\n(\w+)|`?(requested|scheduling|scheduled)`? ->", text)
    )
    return {f"Cloacina.{word}" for word in ours} | {f"Attune.{w}" for group in attune for w in group if w}


def variants(documents: dict[str, list[str]]) -> set[str]:
    """Return the results, errors and policies that are variants of an enum: `DispatchError::NoCapacity`."""
    text = "\n".join(line for lines in documents.values() for line in lines)
    return set(re.findall(r"\b(\w+(?:Status|Result|Error|Policy)::[A-Z]\w+)", text))


def cron_expressions(code: list[Fragment]) -> list[str]:
    """Return the cron expressions that are shown as valid, and those of schedules."""
    return sorted(
        {
            match
            for fragment in code
            for match in re.findall(
                r"\"([0-9*/,-]+ [0-9*/,-]+ [0-9*/,-]+ [0-9*/,-]+ [0-9A-Z*/,-]+)\"", fragment.text
            )
        }
    )


def route_rules(code: list[Fragment]) -> list[tuple[str, str]]:
    """Return the patterns and the targets of routing rules."""
    return [
        (match[1], match[2])
        for fragment in code
        for match in re.finditer(r"RoutingRule::new\(\"([^\"]+)\", \"(\w+)\"\)", fragment.text)
    ]


def defaults(documents: dict[str, list[str]]) -> list[str]:
    """Return the lines that name a default or a threshold."""
    return [
        f"{name}:{number}: {line.strip()}"
        for name, lines in documents.items()
        for number, line in enumerate(lines, 1)
        if re.search(
            r"[Dd]efault[: ]|default \d|> (10|5) \{|minutes\((30|5|2)\)|at least 3x|must be greater than|should be less",
            line,
        )
    ]


def fields_of_rust(code: list[Fragment], function: str) -> str:
    """Return the fragment in which a function or a type is defined."""
    return next(fragment.text for fragment in code if function in fragment.text)
