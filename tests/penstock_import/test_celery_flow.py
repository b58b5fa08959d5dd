"""A value that reaches code under a name of its own is followed there: compared with what Celery has after such code has run."""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock_import.celery import CeleryProject

HEAD = """\
from celery import Celery
from contextlib import contextmanager
from functools import partial
app = Celery('depot', set_as_current=False)
app.conf.beat_schedule = {'n': {'task': 'tasks.weigh', 'schedule': 30.0, 'args': [1]}}
@app.task
def weigh(crate): ...
@app.task
def sort(crate): ...
"""
KEYS = "OPTION = 'rate_limit'\nSETTING = 'task_acks_late'\n"
STEPS: dict[str, tuple[str, str]] = {
    "name": ("n# = $", "n#"),
    "list": ("n# = [$, 1]", "n#[0]"),
    "pair": ("n#, o# = $, 1", "n#"),
    "rest": ("*o#, n# = [1, $]", "n#"),
    "dict": ("n# = {'a': $}", "n#['a']"),
    "get": ("n# = dict(a=$)", "n#.get('a')"),
    "item": ("n# = {}\nn#['a'] = $", "n#['a']"),
    "default": ("n# = {}\nn#.setdefault('a', []).append($)", "n#['a'][0]"),
    "append": ("n# = []\nn#.append($)", "n#[0]"),
    "loop": ("for n# in ($,):\n    pass", "n#"),
    "items": ("for k#, n# in {'a': $}.items():\n    pass", "n#"),
    "count": ("for k#, n# in enumerate([$]):\n    pass", "n#"),
    "zip": ("for k#, n# in zip([1], [$]):\n    pass", "n#"),
    "walrus": ("print('', (n# := $) is None, end='')", "n#"),
    "listed": ("n# = [x for x in [$]]", "n#[0]"),
    "by key": ("n# = {k: x for k, x in [('a', $)]}", "n#['a']"),
    "generated": ("n# = next(x for x in [$])", "n#"),
    "parameter": ("def f#(x):\n    return x\nn# = f#($)", "n#"),
    "word": ("def f#(*, x=1):\n    return x\nn# = f#(x=$)", "n#"),
    "spread": ("def f#(*x):\n    return x[0]\nn# = f#(*[$])", "n#"),
    "words": ("def f#(**x):\n    return x['a']\nn# = f#(**{'a': $})", "n#"),
    "parameter default": ("def f#(x=$):\n    return x", "f#()"),
    "closure": ("n# = $\ndef f#():\n    return n#\ng# = f#", "g#()"),
    "global": ("n# = None\ndef f#(x):\n    global n#\n    n# = x\nf#($)", "n#"),
    "nested": ("def f#(x):\n    def g():\n        return x\n    return g", "f#($)()"),
    "yielded": ("def f#(x):\n    yield x\nfor n# in f#($):\n    pass", "n#"),
    "with": ("@contextmanager\ndef f#(x):\n    yield x\nwith f#($) as n#:\n    pass", "n#"),
    "lambda": ("f# = lambda x: x\nn# = f#($)", "n#"),
    "thunk": ("n# = $\nf# = lambda: n#", "f#()"),
    "partial": ("def f#(x):\n    return x\nn# = partial(f#, $)()", "n#"),
    "map": ("n# = list(map(lambda x: x, [$]))[0]", "n#"),
    "sorted": ("n# = sorted([$], key=id)[0]", "n#"),
    "member": ("class C#: ...\nC#.m# = $", "C#.m#"),
    "member by text": ("class C#: ...\nsetattr(C#, 'm#', $)", "getattr(C#, 'm#')"),
    "class": ("class C#:\n    m# = $", "C#().m#"),
    "object": ("class C#:\n    def __init__(self, x):\n        self.m# = x\nn# = C#($)", "n#.m#"),
    "base": ("class C#:\n    def __init__(self, x):\n        self.m# = x\nclass D#(C#):\n    def __init__(self, x):\n"
             "        super().__init__(x)\nn# = D#($)", "n#.m#"),
    "method": ("class C#:\n    def m#(self, x):\n        return x\nn# = C#().m#($)", "n#"),
    "property": ("n# = $\nclass C#:\n    @property\n    def m#(self):\n        return n#", "C#().m#"),
    "choice": ("n# = $ if app else 1", "n#"),
    "globals": ("globals()['n#'] = $", "n#"),
    "match": ("match [$]:\n    case [n#]:\n        pass", "n#"),
    "union": ("n# = [1] + [$]", "n#[-1]"),
    "taken out": ("n# = {'a': $}.pop('a')", "n#"),
    "from globals": ("n# = $", "globals()['n#']"),
    "from variables": ("n# = $", "vars()['n#']"),
    "read by text": ("class C#:\n    m# = $", "getattr(getattr(C#, 'm#'), '__self__', C#.m#)"),
    "of a module": ("import sys\nsys.modules['m#'] = type('M', (), {})\nsys.modules['m#'].n# = $", "sys.modules['m#'].n#"),
    "decorated": ("def f#(x):\n    return lambda y: x\n@f#($)\ndef g#(): ...", "g#"),
}  # fmt: skip
"""By name: the statements that give a value another name, and the expression of that name."""
OF_TASK = (
    "$.rate_limit = '3/m'",
    "setattr($, 'rate_limit', '3/m')",
    "setattr($, OPTION, '3/m')",
    "$.__setattr__(OPTION, '3/m')",
    "$.__dict__.update(rate_limit='3/m')",
    "vars($)['rate_limit'] = '3/m'",
    "def tune(x, *, key, value):\n    setattr(x, key, value)\ntune($, key='rate_limit', value='3/m')",
    "list(map(lambda x: setattr(x, OPTION, '3/m'), [$]))",
    "setattr($.__class__, OPTION, '3/m')",
    "getattr($, '__dict__').update(rate_limit='3/m')",
    "getattr($, '__setattr__')(OPTION, '3/m')",
    "exec('x.rate_limit = ' + repr('3/m'), {'x': $})",
    "(lambda x: x.__dict__.update({OPTION: '3/m'}))($)",
)
OF_SETTINGS = (
    "$.task_acks_late = True",
    "$['task_acks_late'] = True",
    "$[SETTING] = True",
    "$.update(task_acks_late=True)",
    "$.update({SETTING: True})",
    "setattr($, SETTING, True)",
    "def tune(x):\n    x.task_acks_late = True\ntune($)",
    "getattr($, 'update')({SETTING: True})",
    "setter = $.update\nsetter(task_acks_late=True)",
    "getattr($, 'upd' + 'ate')(task_acks_late=True)",
    "$.changes[SETTING] = True",
    "vars($)['changes'][SETTING] = True",
    "$.maps[0].update({SETTING: True})",
    "$.update(**{SETTING: True})",
    "$.update([(SETTING, True)])",
    "$.setdefault(SETTING, True)\n$.update({f'{SETTING}': True})",
    "exec('x.task_acks_late = True', {'x': $})",
)
OF_BEAT = (
    "$['n']['args'] = [2]",
    "$['n'].update(args=[2])",
    "$.update(n={'task': 'tasks.weigh', 'schedule': 30.0, 'args': [2]})",
    "for each in $.values():\n    each['args'] = [2]",
    "def tune(x):\n    x['args'] = [2]\nfor key in $:\n    tune($[key])",
    "$.get('n')['args'][0] = 2",
    "$['n'].__setitem__('args', [2])",
    "getattr($, 'get')('n')['args'] = [2]",
    "for key, each in $.items():\n    each.update(dict(args=[2]))",
)


def _as_celery(names: dict[str, Any]) -> tuple[Any, bool, list[Any]]:
    app = names["app"]
    return (
        app.tasks["tasks.weigh"].rate_limit,
        bool(app.conf.task_acks_late),
        app.conf.beat_schedule["n"]["args"],
    )


def _imported(folder: Path, text: str, change: int = 0) -> tuple[tuple[Any, bool, list[Any]], list[str]]:
    """Return what is mapped, and the gaps from a line on; without one, from the end of the head on."""
    (folder / "tasks.py").write_text(text)
    source = CeleryProject(folder)
    project = source.mapped()
    weigh, schedule = project.actions["weigh"], project.schedules["n"]
    first = change or HEAD.count("\n") + 1
    gaps = [f"{gap.line} {gap.what}" for gap in source.report.gaps if gap.line >= first]
    limit = weigh.get("limits")
    return (limit, weigh["on_worker_loss"] == "rerun", [schedule["params"]["crate"]]), gaps


def _chain(chance: random.Random, value: str, setters: tuple[str, ...], steps: list[str]) -> tuple[str, str]:
    """Return statements that give a value a chain of names, and those that change it by the last name."""
    lines = []
    for number, step in enumerate(steps):
        statements, expression = (part.replace("#", str(number)) for part in STEPS[step])
        lines.append(statements.replace("$", value))
        value = expression.replace("$", value)
    setter = chance.choice(setters).replace("$", value)
    return "".join(f"{line}\n" for line in lines), f"{setter}\n"


STARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "task": ("weigh", OF_TASK),
    "tasks": ("app.tasks['tasks.weigh']", OF_TASK),
    "conf": ("app.conf", OF_SETTINGS),
    "app": ("app", tuple(text.replace("$", "$.conf") for text in OF_SETTINGS)),
    "beat": ("app.conf.beat_schedule", OF_BEAT),
    "beat by item": ("app.conf['beat_' + 'schedule']", OF_BEAT),
    "beat by a call": ("app.conf.get('beat_schedule')", OF_BEAT),
    "beat by text": ("getattr(app.conf, 'beat_schedule')", OF_BEAT),
    "conf by text": ("getattr(app, 'conf')", OF_SETTINGS),
    "conf by a part": ("getattr(app, 'co' + 'nf')", OF_SETTINGS),
    "app of a task": ("weigh.app", tuple(text.replace("$", "$.conf") for text in OF_SETTINGS)),
}


def _check(folder: Path, names_text: str, change: str) -> None:
    text = names_text + change
    plain: dict[str, Any] = {"__name__": "tasks"}
    exec(HEAD, plain)
    names: dict[str, Any] = {"__name__": "tasks"}
    exec(HEAD + KEYS + text, names)
    old_values, new_values = _as_celery(plain), _as_celery(names)
    assert old_values != new_values, text
    first, _ = _imported(folder, HEAD)
    start = HEAD + KEYS + names_text
    second, gaps = _imported(folder, start + change, start.count("\n") + 1)
    changed = [mapped != was for mapped, was in zip(second, first, strict=True)]
    is_mapped = changed == [new != old for new, old in zip(new_values, old_values, strict=True)]
    assert is_mapped or gaps, text


@pytest.mark.parametrize("step", STEPS)
def test_value_behind_a_further_name_is_followed(tmp_path: Path, step: str) -> None:
    for value, setters in STARTS.values():
        chance = random.Random(f"{step} {value}")
        _check(tmp_path, *_chain(chance, value, setters, [step]))


@pytest.mark.parametrize("seed", range(12))
def test_value_behind_a_chain_of_names_is_followed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for value, setters in STARTS.values():
        steps = [chance.choice([*STEPS]) for _ in range(chance.randrange(2, 5))]
        _check(tmp_path, *_chain(chance, value, setters, steps))


@pytest.mark.parametrize(
    "text",
    [
        "each = weigh\ncompany.register(each)\n",
        "jobs = {'a': weigh}\ncompany.register(jobs)\n",
        "def job():\n    return weigh\ncompany.register(job())\n",
        "class Jobs:\n    first = weigh\ncompany.register(Jobs.first)\n",
        "class Holder:\n    def __init__(self):\n        self.conf = app.conf\n"
        "    def go(self):\n        company.tune(self.conf)\n",
        "pool = company.Pool()\nclass Own:\n    def submit(self, job): ...\npool.submit(weigh)\n",
    ],
)
def test_value_that_foreign_code_is_given_is_named(tmp_path: Path, text: str) -> None:
    _, gaps = _imported(tmp_path, HEAD + "import company\n" + text)
    assert any("company." in gap or "pool." in gap for gap in gaps), gaps


def test_task_that_another_module_imports_is_followed(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text("import tasks as t\nKEY = 'priority'\nsetattr(t.weigh, KEY, 5)\n")
    (tmp_path / "slower.py").write_text("from tasks import *\nsetattr(weigh, KEY, 5)\n")
    (tmp_path / "tasks.py").write_text(HEAD)
    source = CeleryProject(tmp_path)
    source.mapped()
    named = {(gap.file, gap.line) for gap in source.report.gaps if "sets an option later" in gap.what}
    assert named == {("slow.py", 3), ("slower.py", 2)}


@pytest.mark.parametrize(
    "text",
    [
        "print(weigh.name, [each.name for each in (weigh, sort)])\n",
        "import logging\nlogging.getLogger().info('%s', weigh)\n",
        "def show(job):\n    return f'{job.name} {job!r}'\nshow(weigh)\n",
        "if weigh and not sort:\n    pass\n",
        "JOBS = {'a': weigh}\nassert JOBS['a'] is weigh\n",
        "def work():\n    weigh(1)\n    return [task for task in (weigh, sort) if task.name]\n",
    ],
)
def test_harmless_use_of_a_value_is_not_named(tmp_path: Path, text: str) -> None:
    _, gaps = _imported(tmp_path, HEAD + text)
    assert not gaps


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("app.conf = None\n", "app.conf, which is set on the application"),
        ("del app.conf.timezone\n", "the setting app.conf.timezone"),
        ("del app.conf['timezone']\n", "the setting app.conf['timezone']"),
        ("delattr(app.conf, 'timezone')\n", "which takes something from the configuration"),
        ("weigh.name = 'x'\n", "weigh.name, which is set on a task"),
        ("weigh.before_start = print\n", "the option weigh.before_start"),
        ("start = weigh.delay\n", "weigh.delay, which is read from a task"),
        ("start = getattr(weigh, 'apply_async')\n", "which is read from a task"),
        ("getattr(weigh, 'apply_' + 'async')((1,))\n", "a computed member of a task"),
        ("weigh.bind(app)\n", "the call weigh.bind(app)"),
        ("weigh.run(1)\n", "the call weigh.run(1)"),
        ("each = weigh.s(1)\neach.set(queue='x')\n", "the call each.set(queue='x')"),
        ("each = weigh.s(1)\neach.options['queue'] = 'x'\n", "the call weigh.s(1)"),
        ("each = weigh.s(1)\neach['options'] = {}\n", "each['options'], which is set on a signature"),
        ("globals()[input()].rate_limit = '1/m'\n", "globals()[input()], with a computed name"),
        ("eval('weigh').rate_limit = '1/m'\n", "eval('weigh'), which runs a text as code"),
        ("import sys\nsys.modules[__name__].weigh.rate_limit = '1/m'\n", "which is set later"),
        ("def run(x):\n    return getattr(x, 'delay')(1)\nrun(weigh)\n", "the call getattr(x, 'delay')(1)"),
        ("import company\ncompany.JOBS.append(weigh)\n", "the call company.JOBS.append(weigh)"),
        ("class Other(type(weigh)): ...\n", "which code binds to another name"),
        ("changed = app.conf.changes\n", "app.conf.changes"),
        ("class Box:\n    def keep(self): ...\nbox.keep(weigh)\n", "the call box.keep(weigh)"),
        ("@app.task(bind=True)\ndef lift(me):\n    return me.request.retries > 2\n", "me.request.retries, which is read"),
        ("@app.task(bind=True)\ndef lift(me):\n    me.update_state(state='x')\n", "the call me.update_state(state='x')"),
        ("app.user_options['worker'].add(print)\n", "app.user_options"),
        ("app.steps['worker'].add(print)\n", "app.steps"),
        ("def tune(x):\n    x.set_default()\n    x.on_configure.connect(print)\ntune(app)\n", "x.set_default"),
        ("def tune(x):\n    x.control.rate_limit('tasks.weigh', '1/m')\ntune(app)\n", "x.control"),
    ],
)  # fmt: skip
def test_use_of_a_value_is_named(tmp_path: Path, text: str, words: str) -> None:
    _, gaps = _imported(tmp_path, HEAD + text)
    assert any(words in gap for gap in gaps), gaps


@pytest.mark.parametrize(
    "text",
    [
        "def each(x):\n    yield x\nn = weigh\nn = each(n)\n",
        "class Box:\n    def each(self, x):\n        yield x\nbox = Box()\nbox.n = weigh\nbox.n = box.each(box.n)\n",
        "@contextmanager\ndef held(x):\n    yield x\nn = weigh\nwith held(n) as n:\n    pass\nn = held(n)\n",
        "def each(x):\n    yield dict(a=x)\nn = weigh\nn = each(dict(a=n))\n",
        "def each(x):\n    yield from ((part,) for part in x)\nn = [weigh]\nn = each(n)\n",
        "def each(x):\n    yield lambda: x\nn = weigh\nn = each([n])\n",
    ],
)
def test_generator_of_its_own_values_is_followed_to_an_end(tmp_path: Path, text: str) -> None:
    def stop(number: int, frame: object) -> None:
        raise TimeoutError("the import has no end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(20)
    try:
        _, gaps = _imported(tmp_path, HEAD + text + "for n in n:\n    n.rate_limit = '1/m'\n")
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    assert any("which is set later" in gap for gap in gaps), gaps
