"""The value of `{{ secrets.x }}`: a text that names secrets and holds none. Only the worker fills in their values.

It reads as it was written, `{{ secrets.x }}`. A text computed from it is plain text, and not a reference. A text from
outside that merely looks like a reference is plain text too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError

from penstock.language.expressions.budget import Refused
from penstock.language.terms.outside_names import SECRET

ROOT = "secrets"
"""The name under which expressions find secrets."""


class SecretName(str):
    """A part of a text that stands for the secret of this name."""

    __slots__ = ()


class SecretText(str):
    """A text with references to secrets. `parts` are plain texts and names of secrets, in order."""

    parts: tuple[str, ...]

    @classmethod
    def of(cls, parts: Iterable[str]) -> SecretText:
        pieces = tuple(parts)
        text = cls(
            "".join(f"{{{{ {ROOT}.{p} }}}}" if isinstance(p, SecretName) else str.__str__(p) for p in pieces)
        )
        text.parts = pieces
        return text

    @classmethod
    def joined(cls, texts: Iterable[str]) -> SecretText:
        """Return the texts one after another. References among them stay references."""
        return cls.of(p for text in texts for p in (text.parts if isinstance(text, SecretText) else (text,)))


class SecretNames(Mapping[str, SecretText]):
    """The value of `secrets` in expressions: a mapping with every name that a secret may have."""

    def __getitem__(self, name: str) -> SecretText:
        if not isinstance(name, str) or not SECRET.fullmatch(name):
            raise Refused("that is not a valid name of a secret", "Use a-z, A-Z, 0-9 and _.")
        return SecretText.of((SecretName(name),))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and SECRET.fullmatch(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


SECRETS = SecretNames()


def check_secrets(tree: nodes.Template) -> None:
    """Raise TemplateSyntaxError for any use of `secrets` other than `{{ secrets.name }}`."""
    alone = {
        id(part.node)
        for output in tree.body
        if isinstance(output, nodes.Output)
        for part in output.nodes
        if isinstance(part, nodes.Getattr)
    }
    for name in tree.find_all(nodes.Name):
        if name.name == ROOT and id(name) not in alone:
            error = TemplateSyntaxError("an expression cannot compute with secrets here", name.lineno)
            error.hint = (  # type: ignore[attr-defined]
                "Write {{ secrets.NAME }}, alone or within a text, as a parameter: only the worker gets "
                "the value of a secret."
            )
            raise error
