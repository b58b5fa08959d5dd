"""YAML packs: definitions without Python. A pack is a folder with a `pack.yaml`, or one file with several sections.

shop/pack.yaml              Name, version, description, and optionally sections.
shop/actions/charge.yaml    One definition a file, named after it.
shop/rules.yaml             All definitions of a kind in one file, by name.
"""

from __future__ import annotations

from penstock.language.packs.pack_reader import read_file, read_folder

__all__ = ["read_file", "read_folder"]
