"""The mistakes of a newcomer, and a word that the answer has to have. Each stands for a kind of mistake."""

from __future__ import annotations

from collections.abc import Mapping

_HEAD = "from penstock import *\npack = Pack('shop')\n"
_CHARGE = _HEAD + "@action\nasync def charge(order: int) -> str: ...\n"

PYTHON: Mapping[str, tuple[str, str]] = {
    "retries": (_HEAD + "@action(retries=3)\ndef f() -> None: ...", "retry"),
    "max_retries": (_HEAD + "@action(retry={'max_retries': 3})\ndef f() -> None: ...", "max_attempts"),
    "no attempts": (_HEAD + "@action(retry={'max_attempts': 0})\ndef f() -> None: ...", "1"),
    "a delay over the longest": (
        _HEAD + "@action(retry={'initial_delay': '5m'})\ndef f() -> None: ...",
        "max_delay",
    ),
    "an unknown backoff": (_HEAD + "@action(retry={'backoff': 'expo'})\ndef f() -> None: ...", "exponential"),
    "a time that is no time": (_HEAD + "@action(timeout='10 parsecs')\ndef f() -> None: ...", "10s"),
    "a negative time": (_HEAD + "@action(timeout=-1)\ndef f() -> None: ...", "timeout"),
    "timeout twice": (
        _HEAD + "@action(timeout=1, timeouts={'attempt': 2})\ndef f() -> None: ...",
        "timeouts",
    ),
    "no pack": ("from penstock import action\n@action\ndef f() -> None: ...", "Pack("),
    "a pack in capitals": (
        "from penstock import action\n@action(pack='Shop')\ndef f() -> None: ...",
        "small letters",
    ),
    "a function in capitals": (_HEAD + "@action\ndef Charge() -> None: ...", "small letters"),
    "positional parameters": (_HEAD + "@action\ndef f(*args) -> None: ...", "by name"),
    "a generator": (_HEAD + "@action\ndef f():\n    yield 1", "list"),
    "a class": (_HEAD + "@action\nclass F: ...", "def"),
    "a type that is not JSON": (_HEAD + "@action\ndef f(x: complex.__class__) -> None: ...", "x"),
    "options of another executor": (_HEAD + "@action(options={'image': 'x'})\ndef f() -> None: ...", "image"),
    "a label that is none": (_HEAD + "@action(labels={'gpu': ''})\ndef f() -> None: ...", "gpu"),
    "schedule below action": (_HEAD + "@action\n@schedule('@daily')\ndef f() -> None: ...", "above"),
    "four fields of cron": (_CHARGE + "Schedule('shop.s', action=charge, cron='0 2 * *')", "field"),
    "a cron minute of 61": (
        _CHARGE + "Schedule('shop.s', action=charge, cron='61 2 * * *')",
        "between 0 and 59",
    ),
    "a weekday that is misspelt": (
        _CHARGE + "Schedule('shop.s', action=charge, cron='0 6 * * MON-FRY')",
        "Did you mean 'FRI'?",
    ),
    "a cron hour in words": (
        _CHARGE + "Schedule('shop.s', action=charge, cron='0 six * * *')",
        "Give numbers from 0 to 23",
    ),
    "a word of cron": (_CHARGE + "Schedule('shop.s', action=charge, cron='@dayly')", "@daily"),
    "no time at all": (_CHARGE + "Schedule('shop.s', action=charge)", "cron"),
    "two times": (_CHARGE + "Schedule('shop.s', action=charge, cron='@daily', every='1h')", "one of"),
    "a zone that is none": (
        _CHARGE + "Schedule('shop.s', action=charge, cron='@daily', timezone='Paris')",
        "Europe/Paris",
    ),
    "a rule without its trigger": (_CHARGE + "Rule('shop.r', action=charge)", "trigger"),
    "a condition that does not parse": (
        _CHARGE + "Rule('shop.r', trigger='shop.t', action=charge, when='payload.x >')",
        "payload.x >",
    ),
    "a condition of Python": (
        _CHARGE + "Rule('shop.r', trigger='shop.t', action=charge, when='payload.x is not None && true')",
        "&",
    ),
    "a template that is not closed": (
        _CHARGE + "Rule('shop.r', trigger='shop.t', action=charge, params={'order': '{{ payload.x'})",
        "order",
    ),
    "a filter that is not there": (
        _CHARGE
        + "Rule('shop.r', trigger='shop.t', action=charge, params={'order': '{{ payload.x | uper }}'})",
        "upper",
    ),
    "a limit of none": (_HEAD + "@action(limits=[Limit(0)])\ndef f() -> None: ...", "1"),
    "a rate that is none": (_HEAD + "@action(limits=[Limit(rate='fast')])\ndef f() -> None: ...", "100/min"),
    "a module that is not there": ("import requestz\n", "requestz"),
    "a syntax error": ("def f(:\n", "not Python"),
    "a bracket that stays open": ("\nwanted = [1,\nx = 2\n", "at: wanted = [1,"),
    "a workflow of nothing": (_CHARGE + "@workflow\ndef w(): ...", "task"),
    "if on a result": (
        _CHARGE + "@workflow\ndef w():\n    if charge(order=1):\n        charge(order=2)",
        "when",
    ),
    "for over a result": (
        _CHARGE + "@workflow\ndef w():\n    for x in charge(order=1):\n        charge(order=x)",
        "each",
    ),
    "and between rules": (
        _CHARGE
        + "@workflow\ndef w():\n    a, b = charge(order=1), charge(order=2)\n"
        + "    charge(order=3).when(success(a) and success(b))",
        "all_of",
    ),
    "each of a number": (_CHARGE + "@workflow\ndef w():\n    charge(order=each(3))", "list"),
    "a method": (_HEAD + "class A:\n    @action\n    def f(self, x: int) -> None: ...", "take 'self' away"),
    "a limit that is a number": (_HEAD + "@action(limits=3)\ndef f() -> None: ...", "limits=[Limit(3)]"),
    "a list of numbers as limits": (_HEAD + "@action(limits=[3])\ndef f() -> None: ...", "limits=[Limit(3)]"),
    "a route that is a list": (_HEAD + "@action(route=['gpu'])\ndef f() -> None: ...", "as text"),
    "a program as text": (_HEAD + "command_action('shop.list', 'ls -l')", "list"),
    "a condition that is a function": (
        _CHARGE + "Rule('shop.r', trigger='shop.t', action=charge, when=lambda payload: True)",
        "as text",
    ),
    "a function that is not an action": (
        _CHARGE + "def g(): ...\nRule('shop.r', trigger='shop.t', action=g)",
        "@action",
    ),
    "a name that penstock has not": ("from penstock import Actoin", "Did you mean 'Action'?"),
    "one sign of equality": (
        _CHARGE + "Rule('shop.r', trigger='shop.t', action=charge, when='payload.x = 3')",
        "==",
    ),
    "a type of Python": (_HEAD + "Trigger('shop.t', schema={'id': 'int'})", "integer"),
    "await in a workflow": (_CHARGE + "@workflow\nasync def w():\n    await charge(order=1)", "async"),
}
"""By kind of mistake: a module, and a word of the answer."""

PACKS: Mapping[str, tuple[str, str]] = {
    "no name": ("actions: {}", "name: shop"),
    "a section that is not there": ("name: shop\naction: {}", "actions"),
    "a tab": ("name: shop\n\tactions: {}", "tab"),
    "an action of nothing": ("name: shop\nactions: {f: {}}", "function"),
    "a command as text": ("name: shop\nactions: {f: {command: ls -l}}", "list"),
    "an option that is not there": ("name: shop\nactions: {f: {command: [ls], timeot: 3}}", "timeout"),
    "a url without its scheme": ("name: shop\nactions: {f: {url: shop.example.org}}", "https://"),
    "a rule without its action": ("name: shop\nrules: {r: {trigger: t}}", "action"),
    "whenn": ("name: shop\nrules: {r: {trigger: t, action: a, whenn: x}}", "when"),
    "a version that is a number": ("name: shop\nversion: 1.0", "quotes"),
    "a list in place of names": ("name: shop\nactions: [f]", "key: value"),
    "one brace": (
        "name: shop\nactions: {f: {command: [ls]}}\nrules: {r: {trigger: t, action: f, params: {a: {{ payload.x }}}}}",
        "pack.yaml",
    ),
    "a task that needs nobody": ("name: shop\nworkflows: {w: {tasks: {a: {action: noop, needs: [b]}}}}", "b"),
    "tasks in a circle": (
        "name: shop\nworkflows: {w: {tasks: {a: {action: noop, needs: [b]}, b: {action: noop, needs: [a]}}}}",
        "a",
    ),
    "a task of two things": (
        "name: shop\nworkflows: {w: {tasks: {a: {action: noop, workflow: x.y}}}}",
        "one",
    ),
    "a function that is not there": ("name: shop\nactions: {f: {function: code:nothing}}", "code"),
    "a bracket that is not closed": (
        "name: shop\nactions: {f: {command: [ls]}\n",
        "opened on line 2 is not closed",
    ),
    "a quote that is not closed": ('name: shop\nactions:\n  f:\n    command: ["ls]\n', "opened on line 4"),
    "a line that is indented too far": (
        "name: shop\nactions:\n  f:\n   command: [ls]\n     timeout: 3",
        "Indent this line",
    ),
    "a line that is indented too little": (
        "name: shop\nactions:\n   f: {command: [ls]}\n  g: {command: [ls]}",
        "Indent this line",
    ),
    "a colon in a value": ("name: shop\ndescription: what: ever", "in quotes"),
    "a cron without quotes": (
        "name: shop\nactions: {f: {command: [ls]}}\nschedules: {s: {action: f, cron: * * * * *}}",
        "in quotes",
    ),
    "a limit of another name": ("name: shop\nactions: {f: {command: [ls], limits: [{maximum: 5}]}}", "'max'"),
    "a task after next that is not there": (
        "name: shop\nworkflows: {w: {tasks: {a: {action: noop, next: [{when: succeeded(), do: z}]}}}}",
        "no task `z`",
    ),
    "the same key twice": ("name: shop\nname: shop", "twice"),
}
"""By kind of mistake: a pack.yaml, and a word of the answer."""

COMMANDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "a command that is not there": (("start", "shop.charge"), "No such command"),
    "an action that is not there": (("run", "shop.chrage", "order=7"), "shop.charge"),
    "a parameter that it lacks": (("run", "shop.charge", "ordr=7"), "order"),
    "a parameter of another type": (("run", "shop.charge", "order=seven"), "order"),
    "no parameter": (("run", "shop.charge"), "order"),
    "a parameter without its name": (("run", "shop.charge", "7"), "order=7"),
    "an id that is none": (("show", "7"), "characters of an id"),
    "an id of nothing": (("show", "0198c7a2-0000-7000-8000-000000000000"), "penstock executions"),
    "a trigger that is not there": (("publish", "shop.order_palced"), "shop.order_placed"),
    "a payload that does not fit": (
        ("publish", "shop.order_placed", "id=seven"),
        "It takes: id=integer (optional).",
    ),
    "a status that is not there": (("executions", "--status", "faild"), "failed"),
    "a time that is none": (("executions", "--since", "yesterday"), "1h"),
    "cancel of nobody": (("cancel",), "--status"),
    "an option of dev for apply": (("apply", "--module", "shop.py"), "Did you mean: penstock apply shop.py"),
    "an option of dev for lint": (("lint", "-m", "shop.py"), "Did you mean: penstock lint shop.py"),
    "a file without its option": (("worker", "shop.py"), "Did you mean: penstock worker --module shop.py"),
    "a file that is not there": (("apply", "shoop.py"), "shoop.py"),
    "a limit that is not there": (("limit", "set", "shop.chrage", "5"), "--scope"),
    "a schedule that is not there": (("schedule", "run", "shop.nightly"), "shop.nightly"),
    "a cron that is none": (("schedule", "preview", "every day"), "field"),
    "an answer to nothing": (("answer", "0198c7a2-0000-7000-8000-000000000000", "yes"), "penstock inquiries"),
}
"""By kind of mistake: what is typed, and a word of the answer."""
