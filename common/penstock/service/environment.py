"""The settings from the environment: PENSTOCK_* variables. Unknown ones are errors."""

from __future__ import annotations

import os

from pydantic import ValidationError

from penstock.errors import ConfigurationError
from penstock.language.terms.aliases import setting_hint
from penstock.settings import Settings


def load(**overrides: object) -> Settings:
    """Return the settings of the environment, with overrides. Raises ConfigurationError that names what is wrong."""
    values = {name: value for name, value in overrides.items() if value is not None}
    names = {f"PENSTOCK_{name.upper()}" for name in Settings.model_fields}
    ours = [name for name in os.environ if name.startswith("PENSTOCK_") and not name.startswith(TESTS)]
    unknown = [name for name in ours if name not in names | FOREIGN]
    if unknown:
        raise ConfigurationError(
            f"unknown setting {', '.join(sorted(unknown))}",
            hint=" ".join(
                [*_of_other_systems(unknown), "See docs/configuration.md for every setting, or unset it."]
            ),
        )
    try:
        return Settings(**values)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'settings'}: {e['msg']}" for e in error.errors()]
        raise ConfigurationError("; ".join(lines), hint="See docs/configuration.md.") from None


def _of_other_systems(variables: list[str]) -> list[str]:
    """Return the hints for settings that other systems have."""
    hints = ((variable, setting_hint(variable)) for variable in sorted(variables))
    return [f"{variable}: {hint}" for variable, hint in hints if hint]


TESTS = "PENSTOCK_TEST_"
"""The prefix of the tests' own variables."""
FOREIGN = frozenset(
    f"PENSTOCK_{name}"
    for name in (
        *("HOME", "TEST_DATABASE_URL", "TEST_BROKER_URL"),
        *("SERVER", "TOKEN", "PROFILE", "PLAIN_HTTP"),
        *("EXECUTION_ID", "ATTEMPT", "MAX_ATTEMPTS", "NAMESPACE", "ACTION"),
        *("IDEMPOTENCY_TOKEN", "ATTEMPT_TOKEN"),
        *("TIMEOUT", "PARAMS", "CONTEXT", "ROOT_ID", "WORKFLOW_ID", "TASK"),
    )
)
"""Variables with the prefix of settings that are not settings: of the embedded server's folder, the tests, the command
line, and command actions."""
