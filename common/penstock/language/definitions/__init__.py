"""The declarations of users, in Python or (see `penstock.language.packs`) in YAML."""

from __future__ import annotations

from penstock.language.definitions.action import Action, ActionOptions
from penstock.language.definitions.batch import Batch
from penstock.language.definitions.breaker import Breaker
from penstock.language.definitions.decorator import action
from penstock.language.definitions.document import Document
from penstock.language.definitions.limit import Limit
from penstock.language.definitions.program_actions import command_action, http_action, kubernetes_action
from penstock.language.definitions.qualified_name import Pack
from penstock.language.definitions.route import Route
from penstock.language.definitions.rule import Rule
from penstock.language.definitions.schedule import MissedFires, Overlap, Schedule, schedule
from penstock.language.definitions.trigger import Trigger, trigger
from penstock.language.definitions.window import Window

__all__ = [
    "Action",
    "ActionOptions",
    "Batch",
    "Breaker",
    "Document",
    "Limit",
    "MissedFires",
    "Overlap",
    "Pack",
    "Route",
    "Rule",
    "Schedule",
    "Trigger",
    "Window",
    "action",
    "command_action",
    "http_action",
    "kubernetes_action",
    "schedule",
    "trigger",
]
