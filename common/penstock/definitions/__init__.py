"""How users declare things, in Python or (see `penstock.packs`) in YAML."""

from __future__ import annotations

from penstock.definitions.action import Action, ActionOptions
from penstock.definitions.collection import Definitions
from penstock.definitions.decorator import action
from penstock.definitions.document import Document
from penstock.definitions.limit import Limit
from penstock.definitions.loading import load, load_all
from penstock.definitions.programs import command_action, http_action, kubernetes_action
from penstock.definitions.refs import Pack
from penstock.definitions.route import Route
from penstock.definitions.rule import Rule
from penstock.definitions.schedule import MissedFires, Overlap, Schedule, schedule
from penstock.definitions.trigger import Trigger, trigger

__all__ = [
    "Action",
    "ActionOptions",
    "Definitions",
    "Document",
    "Limit",
    "MissedFires",
    "Overlap",
    "Pack",
    "Route",
    "Rule",
    "Schedule",
    "Trigger",
    "action",
    "command_action",
    "http_action",
    "kubernetes_action",
    "load",
    "load_all",
    "schedule",
    "trigger",
]
