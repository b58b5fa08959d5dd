"""The files of a pack, and the content of each."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from penstock.errors import all_at_once
from penstock.language.definitions.qualified_name import LONGEST, Pack, is_name
from penstock.language.packs.pack_files import FILES_CAP, mapping, read_yaml
from penstock.language.packs.sections import SECTIONS, Entry, build
from penstock.language.terms.options import did_you_mean
from penstock.language.terms.sources import Source
from penstock.language.workflows.serialization import from_value

HEADER = ("name", "version", "description")
YAML = (".yaml", ".yml")

Found = tuple[list[Any], list[Pack]]


def read_file(path: Path) -> Found:
    """Return the definitions of a single YAML file: a pack with its sections, or a workflow. Raises DefinitionError if
    the file cannot be read, or a definition is not valid."""
    value, source = read_yaml(path, path.parent)
    if isinstance(value, dict) and "workflow" in value:
        return [from_value(value, source)], []
    pack, entries = _pack_file(value, source)
    return build(pack, path.parent, entries), [pack]


def read_folder(folder: Path) -> Found:
    """Return the definitions of a folder with a `pack.yaml`. Raises DefinitionError if a file cannot be read, or a
    definition is not valid."""
    heads = [path for suffix in YAML if (path := folder / f"pack{suffix}").exists()]
    if len(heads) > 1:
        raise Source(str(heads[1]), 1).wrong("the pack has a pack.yaml too", "Keep one of them.")
    pack, entries = _pack_file(*read_yaml(heads[0], folder))
    files = [path for path in _yaml_files(folder) if path != heads[0]]
    if len(files) > FILES_CAP:
        raise Source(str(heads[0]), 1).wrong(f"the pack has more than {FILES_CAP:,} files", "Split the pack.")
    definitions: list[Any] = []
    with all_at_once() as problem:
        for path in files:
            with problem():
                value, source = read_yaml(path, folder)
                if path.parent == folder:
                    entries += _section(path.stem, value, source)
                else:
                    entries.append(Entry(path.parent.name, path.stem, value, source))
        with problem():
            definitions = build(pack, folder, entries)
    return definitions, [pack]


def _yaml_files(folder: Path) -> Iterator[Path]:
    """Yield the YAML files of sections: `rules.yaml` and the like, and the files in folders named after a section."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir() and path.name in SECTIONS:
            for inside in sorted(path.iterdir()):
                if inside.suffix in YAML:
                    yield inside
                elif not inside.name.startswith((".", "_")):
                    hint = "Code of a pack belongs in a folder of another name."
                    raise Source(str(inside), 1).wrong("it is not YAML", hint)
        elif path.is_dir():
            _refuse_near_miss(path)
        elif path.suffix in YAML:
            if path.stem not in (*SECTIONS, "pack"):
                hint = did_you_mean(path.stem, [*SECTIONS, "pack"])
                raise Source(str(path), 1).wrong(f"a pack has no {path.name}", hint)
            yield path


def _refuse_near_miss(path: Path) -> None:
    """Raise DefinitionError for a folder such as `action/`, which would otherwise be ignored. Other folders are
    permitted."""
    near = get_close_matches(path.name, SECTIONS, n=1, cutoff=0.8)
    if near and any(inside.suffix in YAML for inside in path.iterdir()):
        raise Source(str(path), 1).wrong(f"a pack has no folder {path.name}/", f"Did you mean '{near[0]}/'?")


def _pack_file(value: Any, source: Source) -> tuple[Pack, list[Entry]]:
    content = mapping(value, "a pack", source)
    with all_at_once() as problem:
        for key in content:
            with problem():
                if key not in (*HEADER, *SECTIONS):
                    hint = did_you_mean(key, [*HEADER, *SECTIONS])
                    raise source.at((key,)).wrong(f"a pack has no section {key!r}", hint)
    name = content.get("name")
    if not is_name(name):
        wrong = "the pack has no name" if name is None else f"{name!r} is not a pack's name"
        hint = f"Write name: shop, of small letters, digits and _, at most {LONGEST}, a letter first."
        raise source.at(("name",)).wrong(wrong, hint)
    texts = {key: content[key] for key in ("version", "description") if content.get(key) is not None}
    for key, text in texts.items():
        if not isinstance(text, str):
            raise source.at((key,)).wrong(f"{key} is not text", f'Put it in quotes: {key}: "{text}".')
    sections = [name for name in SECTIONS if name in content]
    entries = [entry for name in sections for entry in _section(name, content[name], source.at((name,)))]
    return Pack(name, **texts), entries


def _section(section: str, value: Any, source: Source) -> list[Entry]:
    """Return the entries of a section. The entries are a mapping by name. Those of routes are a list, since their order
    matters."""
    if isinstance(value, list) and section == "routes":
        return [Entry(section, "", item, source.at((n,))) for n, item in enumerate(value)]
    named = mapping(value, f"the section {section}", source)
    return [Entry(section, name, item, source.at((name,))) for name, item in named.items()]
