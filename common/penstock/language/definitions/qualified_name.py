"""The names of definitions. A ref is `pack.name`, in lower snake case. A name without a pack belongs to the module's
pack."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Annotated, Any, TypeGuard

from pydantic import BeforeValidator

from penstock.language.terms.options import Wrong
from penstock.language.terms.sources import caller, of_frame
from penstock.language.terms.system_triggers import SYSTEM_TRIGGERS, hint, is_system

LONGEST = 64
"""The maximum length of a pack's name, and of a name inside a pack, in characters."""

_NAME = re.compile(rf"[a-z][a-z0-9_]{{0,{LONGEST - 1}}}")


class Pack:
    """A group of definitions: `pack = Pack("shop")` at the top of a module makes `shop.` the start of its refs."""

    __slots__ = ("description", "name", "version")

    def __init__(self, name: str, *, version: str = "", description: str = "") -> None:
        """Create a pack. Raises DefinitionError for a bad name."""
        if not is_name(name):
            raise of_frame(caller()).wrong(f"{name!r} is not a pack's name", _hint(name))
        self.name = name
        self.version = version
        self.description = description

    def __repr__(self) -> str:
        return f"Pack({self.name!r})"


def is_name(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def is_ref(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and text.count(".") == 1 and all(map(is_name, text.split(".")))


GENERATED = "-items"
"""The end of a generated ref: that of the workflow that runs an action for each of its items. User-defined refs cannot
end so."""


def is_generated(text: object) -> bool:
    """Return whether `text` is a ref that Penstock generated."""
    return isinstance(text, str) and text.endswith(GENERATED) and is_ref(text.removesuffix(GENERATED))


def checked_ref(text: object) -> str:
    """Return `text` if it is a valid ref. Raises Wrong for anything else."""
    if not isinstance(text, str):
        raise Wrong("is not a ref", "Write it as text, 'pack.name', or have @action above the function.")
    if not is_ref(text) and not is_generated(text):
        raise Wrong(f"is not a ref: {text!r}", _hint(text))
    return text


def _hint(text: object) -> str:
    rule = f"A ref is pack.name, each of small letters, digits and _, at most {LONGEST}, a letter first."
    meant = re.sub(r"[^a-z0-9_.]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(text)).lower()).strip(
        "_."
    )
    return f"{rule} Perhaps {meant!r}?" if meant and meant != text else rule


def ref_of(thing: object) -> object:
    """Return the ref of an action, trigger or workflow object. Return anything else unchanged."""
    return getattr(thing, "ref", thing)


Ref = Annotated[str, BeforeValidator(lambda value: checked_ref(ref_of(value)))]
"""A pydantic type: a ref, or an object that has one."""


def checked_trigger(text: object) -> str:
    """Return `text` if it is a valid ref, or that of a system trigger. Raises Wrong for anything else."""
    if not is_system(text):
        return checked_ref(text)
    if text not in SYSTEM_TRIGGERS:
        raise Wrong(f"is not a system trigger: {text!r}", hint())
    return str(text)


TriggerRef = Annotated[str, BeforeValidator(lambda value: checked_trigger(ref_of(value)))]
"""A pydantic type: the ref of a trigger or of a system trigger, or an object that has one."""


def qualified(name: str, pack: str | None) -> str:
    """Return `name`, with the pack in front if it has none."""
    return f"{pack}.{name}" if pack and "." not in name else name


def pack_of(module: Mapping[str, Any]) -> Pack | None:
    """Return the pack that a module declares as `pack`, or that the nearest package around it declares. `module` are
    its globals."""
    name = str(module.get("__name__", ""))
    spaces: list[Mapping[str, Any]] = [module]
    while "." in name:
        name = name.rpartition(".")[0]
        if name in sys.modules:
            spaces.append(vars(sys.modules[name]))
    return next((space["pack"] for space in spaces if isinstance(space.get("pack"), Pack)), None)
