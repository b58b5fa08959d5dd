"""Counts of what makes the prose and the names of this repository hard to read, and their limits.

`make check` fails when a count is above `tests/prose_limits.toml`. `python -m tests.prose_counts lower` writes the
counts of today there; it refuses to raise a limit. `python -m tests.prose_counts subject FILE` checks the subject of
one commit message, for a commit-msg hook. `docs/contributing/style.md` explains each count.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LIMITS = Path(__file__).with_name("prose_limits.toml")
CODE = ("common", "services", "extras", "migrations")
BESIDE = {
    **dict.fromkeys(("bench", "deploy", "docs"), ("headless_docstrings", "verbless_docstrings")),
    "tests": ("headless_docstrings",),
}
"""Folders beside the product, and what is counted in each."""
SENTENCE_WORDS = 25
SUBJECT_CHARACTERS = 72
# Commits up to this one have subjects of another form.
FIRST_COUNTED_COMMIT = "5d94bc85ec"
SUBJECT = re.compile(r"^[a-z][\w/ .,-]*: [a-z`]")

HEADLESS = re.compile(
    r"^(What|Who|Whoever|Whose|Whether|How|Where|Which|When|Why|Of|For|Those|That|The same|As)\b"
)
VERBLESS = re.compile(
    r"^(The|A|An|It|Its|They|These|This|All|Any|Some|Something|Nothing|Every|True|False|Until|Without|Into|To|From"
    r"|Made|Seconds|Names)\b"
)
HEADLESS_OPTION = re.compile(
    r"\b(?:help|description)=f?\"(What|Who|Whose|Whether|How|Where|Of|That|Those|Only those)\b"
)
NEGATED_NOUN = re.compile(
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!longer|more|less|other|such|room|time|reason|need|better|worse|finer"
    r"|stricter|different)[a-zA-Z{]"
)
GLOSSARY_WORD = re.compile(r"^\| \*\*", re.MULTILINE)
PERSONS = re.compile(r"\b(who|whoever|whose|nobody|somebody|anybody|everybody|he|his|him)\b", re.IGNORECASE)
PERSONS_IN_TESTS = re.compile(r"_(who|whoever|what|nobody|somebody)_")
SENTENCE_END = re.compile(r"(?<=[.:;])\s+")
VAGUE_NAME = re.compile(
    r"_*(found|one|said|took|told|given|here|left|kept|who|what|made|there|came|over|each|known|asked|chosen|ended|begun"
    r"|shown|seen|wanted|lost|taken|put|parted|others|more|rest|most|before|after)_*"
)
COUNTS = (
    "headless_docstrings",
    "verbless_docstrings",
    "headless_options",
    "long_sentences",
    "headless_sql_headers",
    "vague_names",
    "negated_nouns",
    "persons",
    "tests_of_persons",
    "glossary_words",
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)


def count(root: Path) -> dict[str, int]:
    """Return each count of the tree below `root`, by its name in `prose_limits.toml`."""
    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    for part in CODE:
        for path in sorted((root / part).rglob("*.py")):
            counts.update(_python(path.read_text()))
    for part, counted in BESIDE.items():
        for path in sorted((root / part).rglob("*.py")):
            in_file = _python(path.read_text())
            counts.update({name: in_file[name] for name in counted})
    for path in sorted((root / "migrations").rglob("*.sql")):
        counts.update(_sql(path.read_text()))
    for path in sorted((root / "tests").rglob("test_*.py")):
        names = re.findall(r"def (test_\w+)", path.read_text())
        counts["tests_of_persons"] += sum(bool(PERSONS_IN_TESTS.search(f"{name}_")) for name in names)
    for path in root.glob("docs/glossary.md"):
        counts["glossary_words"] += len(GLOSSARY_WORD.findall(path.read_text()))
    return dict(counts)


def broken_limits(root: Path) -> Iterator[str]:
    """Yield a sentence for each count that is above its limit."""
    limits = _limits()
    for name, number in count(root).items():
        if number > limits[name]:
            yield (
                f"{LIMITS.name}: {name} is {number}, and may be at most {limits[name]}. "
                "See docs/contributing/style.md; `git diff` shows the lines that you added."
            )


def broken_subjects(root: Path) -> Iterator[str]:
    """Yield a sentence for each commit subject since FIRST_COUNTED_COMMIT that breaks the form."""
    log = subprocess.run(
        ["git", "log", "--no-merges", "--format=%h %s", f"{FIRST_COUNTED_COMMIT}..HEAD"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    if log.returncode != 0:
        return  # an archive, or a clone without history
    for line in log.stdout.splitlines():
        commit, _, subject = line.partition(" ")
        for fault in subject_faults(subject):
            yield f"commit {commit}: {fault}"


def subject_faults(subject: str) -> Iterator[str]:
    """Yield a sentence for each rule of form that the subject of a commit breaks."""
    if len(subject) > SUBJECT_CHARACTERS:
        yield f"the subject has {len(subject)} characters; at most {SUBJECT_CHARACTERS}"
    if ";" in subject or not SUBJECT.match(subject):
        yield f"the subject is not `area: imperative` with one change: {subject}"


def _python(source: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    counts["headless_options"] = len(HEADLESS_OPTION.findall(source))
    counts["negated_nouns"] = len(NEGATED_NOUN.findall(source))
    prose = re.findall(r"#\s(.*)", source)
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node) if isinstance(node, DOCUMENTED) else None
        if text:
            prose.append(text)
            counts["headless_docstrings"] += bool(HEADLESS.match(text))
            counts["verbless_docstrings"] += isinstance(node, FUNCTIONS) and bool(VERBLESS.match(text))
            counts["long_sentences"] += sum(
                len(sentence.split()) > SENTENCE_WORDS for sentence in SENTENCE_END.split(text)
            )
        counts["vague_names"] += bool(VAGUE_NAME.fullmatch(_bound_name(node) or ""))
    counts["persons"] = len(PERSONS.findall(" ".join(prose)))
    return counts


def _bound_name(node: ast.AST) -> str | None:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    return node.arg if isinstance(node, ast.arg) else None


def _sql(text: str) -> Counter[str]:
    header = re.match(r"--\s?(.*)", text)
    return Counter(
        headless_sql_headers=bool(header and HEADLESS.match(header[1])),
        negated_nouns=len(NEGATED_NOUN.findall(text)),
        persons=len(PERSONS.findall(" ".join(re.findall(r"--\s?(.*)", text)))),
    )


def _limits() -> dict[str, int]:
    return tomllib.loads(LIMITS.read_text())


def _lower(root: Path) -> None:
    limits = _limits()
    lower = {name: min(number, limits.get(name, number)) for name, number in count(root).items()}
    head = "".join(line for line in LIMITS.read_text().splitlines(keepends=True) if line.startswith("#"))
    LIMITS.write_text(head + "".join(f"{name} = {number}\n" for name, number in sorted(lower.items())))


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parents[1]
    match arguments:
        case []:
            limits = _limits()
            for name, number in count(root).items():
                print(f"{name:<22} {number:>5} of {limits[name]:>5}")
        case ["lower"]:
            _lower(root)
        case ["subject", file]:
            faults = list(subject_faults(Path(file).read_text().partition("\n")[0]))
            print("\n".join(faults), end="\n" if faults else "")
            return bool(faults)
        case _:
            print("usage: python -m tests.prose_counts [lower | subject FILE]", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
