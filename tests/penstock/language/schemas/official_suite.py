"""The official tests of JSON Schema against our check. The suite is not part of this repository.

git clone https://github.com/json-schema-org/JSON-Schema-Test-Suite
python -m tests.penstock.language.schemas.official_suite JSON-Schema-Test-Suite/tests/draft2020-12
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.errors import PenstockError
from penstock.language.schemas import check_schema
from penstock.language.schemas.budget import Budget
from penstock.language.schemas.faults import faults
from penstock.language.schemas.validator import Validator
from penstock.language.terms.options import Wrong


def cases(folder: Path) -> Iterator[tuple[str, Any, Any, bool]]:
    """Yield each test of the suite: its name, the schema, the value, and whether the value fits. Optional tests are left out."""
    for file in sorted(folder.glob("*.json")):
        for group in json.loads(file.read_text()):
            for test in group["tests"]:
                name = f"{file.stem}: {group['description']}: {test['description']}"
                yield name, group["schema"], test["data"], test["valid"]


def verdict(schema: Any, value: Any) -> bool | str:
    """Return whether the value fits, or why a declaration refuses the schema."""
    try:
        check_schema({"allOf": [schema]} if isinstance(schema, bool) else schema)
    except (Wrong, PenstockError) as error:
        return str(error)
    validator = Validator({"allOf": [schema]} if isinstance(schema, bool) else schema)
    fits = validator.fits(value, Budget())
    if bool(list(faults(validator, value, Budget()))) is fits:
        return f"fits: {fits}, and yet the faults differ"
    return fits


def main(folder: str) -> int:
    count, stricter, wrong, refused = 0, 0, [], Counter[str]()
    for name, schema, value, is_valid in cases(Path(folder)):
        count += 1
        answer = verdict(schema, value)
        if isinstance(answer, str):
            refused[f"{name.partition(':')[0]}: {answer}"] += 1
        elif answer is not is_valid and name.endswith("is only an annotation by default"):
            stricter += 1  # the formats of `formats.FORMATS` refuse, as a schema may ask for
        elif answer is not is_valid:
            wrong.append(name)
    for reason, times in sorted(refused.items()):
        print(f"refused {times} times: {reason}")
    for name in wrong:
        print(f"wrong: {name}")
    right = count - stricter - len(wrong) - refused.total()
    print(
        f"{count} tests: {right} right, {len(wrong)} wrong, {stricter} of formats, {refused.total()} of refused schemas"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
