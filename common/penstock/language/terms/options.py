"""Models of options that refuse unknown names, and suggest the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from penstock.errors import DefinitionError, as_one
from penstock.language.terms.aliases import alias_hint
from penstock.language.terms.column_ranges import INTEGER
from penstock.language.terms.sources import Location, Source, caller, of_frame
from penstock.run.cut_texts import cut_end

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)

T = TypeVar("T")
Items = Annotated[tuple[T, ...], Strict(False)]
"""A pydantic type for values in order, from a list or a tuple."""
Count = Annotated[int, Field(ge=1, le=INTEGER)]
"""A pydantic type for an integer from 1 up to PostgreSQL's maximum. Not `true`, not `"3"`."""


def printable(text: str) -> str:
    """Return `text` with lone surrogates, which no encoding accepts, as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


class Wrong(ValueError):
    """The error that validators of options raise. The error has the fault of the value, and what to write instead."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(printable(message))
        self.hint = hint and printable(hint)


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault at one place in the options."""

    at: Location
    message: str
    hint: str | None = None
    general: bool = False
    """The hint is the same for all options of this type. A more specific problem at the same place replaces it."""

    def __str__(self) -> str:
        return f"{dotted(self.at)}: {self.message}" if self.at else self.message


@dataclass(frozen=True, slots=True)
class UnknownRef(Problem):
    """A reference to a definition that is neither in the checked set nor registered."""


class _Explains(ModelMetaclass):
    """The metaclass that makes `RetryPolicy(max_atempts=3)` raise a DefinitionError with the place and the name that
    was meant.

    It handles only direct calls. Nested models are validated within the outer model, which keeps their place.
    """

    def __call__(cls, *positional: Any, **options: Any) -> Any:
        options |= zip(cls.positional, positional, strict=False)  # type: ignore[attr-defined]
        if len(positional) > len(cls.positional):  # type: ignore[attr-defined]
            raise TypeError(f"{cls.__name__} takes its options by name")
        frame = caller()
        try:
            instance = super().__call__(**options)
        except ValidationError as error:
            label, ref = cls.__name__, options.get("ref")
            if isinstance(ref, str) and ref and hasattr(cls, "kind"):
                label = f"{cls.kind} {cut_end(ref, LONGEST_WORD)}"
            raise refusal(label, problems(error), of_frame(frame)) from None
        instance.written_in(frame)
        return instance


class Options(BaseModel, metaclass=_Explains):
    """A frozen model in which an unknown option is an error. Subclasses may fold short forms into long ones."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, populate_by_name=True, protected_namespaces=()
    )
    # Strict, since pydantic would otherwise accept "no" for false, "3" for 3 and true for 1.

    nouns: ClassVar[str] = "option"
    """The noun for a field of the model in an error."""
    positional: ClassVar[tuple[str, ...]] = ()
    """The options that may be passed by position."""
    thing: ClassVar[str] = ""
    """The key in `penstock.language.terms.aliases` of the words that other systems have for its options."""

    @classmethod
    def fold(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return `values` with short forms (`timeout=5`) written out (`timeouts={"attempt": 5}`)."""
        return values

    @model_validator(mode="before")
    @classmethod
    def _only_known(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        values = cls.fold(
            {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}
        )
        names = cls.names()
        unknown = [
            InitErrorDetails(
                type=_unknown(cls.nouns, cls.thing, str(name), names), loc=(str(name),), input=None
            )
            for name in values
            if name not in names
        ]
        if unknown:
            raise ValidationError.from_exception_data(cls.__name__, unknown)
        return values

    @classmethod
    def names(cls) -> list[str]:
        """Return the names of the options, as users write them."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    def written_in(self, frame: FrameType) -> None:
        """Note the frame of the call that created this object. Only declarations, which remember their place, use it."""

    def written(self) -> dict[str, Any]:
        """Return the options as JSON, without those that have their default. The result is short, and equal for equal
        options."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


Chosen = TypeVar("Chosen", bound=Options)


def read_options(kind: type[Chosen], values: Mapping[str, Any], source: Source, label: str) -> Chosen:
    """Return a model of options that were read from elsewhere, such as a YAML file. Raises DefinitionError that names
    its lines."""
    try:
        return kind.model_validate(dict(values))
    except ValidationError as error:
        raise refusal(label, problems(error), source) from None


def refusal(label: str, faults: Sequence[Problem], source: Source) -> DefinitionError:
    """Return one error for all faults of the thing called `label`. Where several have hints of their own, each line ends in
    its hint."""
    if len({problem.hint for problem in faults if problem.hint}) > 1:
        return as_one([source.at(p.at).wrong(f"{label}: {p}", p.hint) for p in faults])
    lines = [source.at(problem.at).before(f"{label}: {problem}") for problem in faults]
    return DefinitionError("\n".join(lines), hint=next((p.hint for p in faults if p.hint), None))


def _unknown(noun: str, thing: str, name: str, names: Iterable[str]) -> PydanticCustomError:
    hint = unknown_hint(thing, name, names)
    return PydanticCustomError("unknown_option", "{problem}", {"problem": f"unknown {noun}", "hint": hint})


def unknown_hint(thing: str, name: str, names: Iterable[str]) -> str:
    """Return what to write for an option that does not exist: the option of ours that does the same, or the nearest name."""
    return alias_hint(thing, name) or did_you_mean(name, names)


LONGEST_WORD = 100
"""The maximum length of a word that a hint compares and shows, in characters. The comparison takes the square of it."""
MOST_COMPARED = 1000
"""The maximum number of words with which a hint compares a word."""


NEAR_IN_PACK = 0.5
"""The least similarity, from 0 to 1, of two names of one pack that a hint compares: `pay` and `paid` have 0.57."""


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is most similar to `word`, or None. Of refs in one pack the names must be similar, since the
    pack alone makes most refs look similar."""
    pack, dot, name = word[:LONGEST_WORD].rpartition(".")
    words = [choice for choice in islice(choices, MOST_COMPARED) if len(choice) <= LONGEST_WORD]
    if dot:
        inside = {choice[len(pack) + 1 :]: choice for choice in words if choice.startswith(f"{pack}.")}
        if near := get_close_matches(name, inside, n=1, cutoff=NEAR_IN_PACK):
            return inside[near[0]]
        words = [choice for choice in words if choice not in inside.values()]
    return next(iter(get_close_matches(word[:LONGEST_WORD], words, n=1)), None)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a hint for a word that is not one of `choices`: the most similar choice, or else the first ones."""
    words = sorted(choices)
    if near := nearest(word, words):
        return f"Did you mean {near!r}?"
    listed = ", ".join(candidate[:LONGEST_WORD] for candidate in words[:20]) + (
        ", ..." if len(words) > 20 else ""
    )
    return f"Available: {listed}." if words else "None is available."


def problems(error: ValidationError) -> list[Problem]:
    """Return pydantic's errors in our words. Values are not shown, since they may be secret."""
    return [
        _problem(e)
        for e in error.errors(include_url=False, include_input=False)
        if e["type"] != "default_factory"
    ]


def _problem(error: ErrorDetails) -> Problem:
    context: Mapping[str, Any] = error.get("ctx", {})
    cause = context.get("error")
    hint = getattr(cause, "hint", None) or context.get("hint") or _example(error)
    general = hint is None
    if general:
        name = str(error["loc"][-1]) if error["loc"] else "it"
        hint = _EXAMPLES.get(error["type"], f"Change {name}, or leave it out.")
    message = str(cause) if isinstance(cause, Wrong) else error["msg"]
    message = message.removeprefix("Input ").removeprefix("Value error, ")
    if error["type"] == "missing":
        message = "is missing"
    if error["type"] == "model_type":
        message = "should be a mapping of options"
    return Problem(_plain(error["loc"]), message[:1].lower() + message[1:], hint, general)


def _example(error: ErrorDetails) -> str | None:
    """Return a corrected form of a value of the wrong type, or None."""
    name = str(error["loc"][-1]) if error["loc"] else "it"
    match error["type"]:
        case "missing":
            return f"Add {name}."
        case "model_type" if name == "retry":
            return "Write retry={'max_attempts': 3}; in YAML retry: {max_attempts: 3}."
        case "model_type" if "limits" in error["loc"]:
            return "Write limits=[Limit(3)]; in YAML limits: [{max: 3}]."
        case "string_type" if "with_items" in error["loc"]:
            return "Write a list, or an expression that gives one, such as the result of a task."
        case "string_type":
            return "Write it as text, in quotes."
        case "model_type" | "dict_type":
            return f"Write {name}={{'option': value}}; in YAML {name}: {{option: value}}."
    return None


_EXAMPLES: Mapping[str, str] = {
    **dict.fromkeys(
        ("bool_type", "bool_parsing"), "Write true or false, without quotes; in Python True or False."
    ),
    **dict.fromkeys(
        ("int_type", "int_from_float", "int_parsing"), "Write a whole number, such as 3, without quotes."
    ),
    **dict.fromkeys(("float_type", "float_parsing"), "Write a number, such as 1.5, without quotes."),
    **dict.fromkeys(("list_type", "tuple_type"), "Write a list: [first, second]."),
    **dict.fromkeys(("literal_error", "enum"), "Write one of these words."),
    **dict.fromkeys(
        ("greater_than", "greater_than_equal", "less_than", "less_than_equal"),
        "Write a number within these bounds.",
    ),
}
"""The example of a valid value, by the type of pydantic's error."""


def _plain(location: Location) -> Location:
    """Return the location without the parts that pydantic adds for the branch of a union, such as
    `function-plain[seconds()]`."""
    return tuple(part for part in location if isinstance(part, int) or part.replace("_", "").isalnum())


def dotted(location: Location) -> str:
    """Return a location as text: `retry.max_attempts`, `limits[0].by`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".")
