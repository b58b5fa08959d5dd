"""The places where code reaches the server of Celery's messages by itself. They are clients with the address of the broker
under another name, and calls that read or change a queue."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from penstock_import.celery_calls import (
    NotLiteral,
    called,
    children,
    imported_names,
    literal,
    root_name,
    walk,
)
from penstock_import.celery_setting_names import is_setting, today
from penstock_import.celery_uses import READ_SERVER, SERVER_SETTINGS, Use, setting_of
from penstock_import.environment_defaults import with_defaults

_GIVEN = frozenset({"broker_read_url", "broker_url", "broker_write_url", "result_backend"})
"""The settings with the address of a server, by their present names."""
_WORDS = frozenset({"backend", "broker"})
"""The arguments of `Celery(...)` with the address of a server."""
_FAMILIES = {
    "amqp": "amqp", "amqps": "amqp", "pyamqp": "amqp", "redis": "redis", "rediss": "redis", "sqs": "sqs",
    "unix": "unix", "sentinel": "sentinel", "valkey": "redis", "valkeys": "redis",
}  # fmt: skip
_PORTS = {"amqp": 5672, "redis": 6379}
_LOCAL = {"127.0.0.1": "localhost", "": "localhost", "::1": "localhost", "0.0.0.0": "localhost"}
_BY_DEFAULT = "amqp://guest@localhost:5672//"
"""The broker of an application that names none."""
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+")
_OF_SERVER = re.compile(r"(?i)amqp|broker|celery|queue|rabbit|redis|sqs|valkey")
_OF_HOST = re.compile(r"(?i)addr|domain|host|server|uri|url")
_OF_DATABASE = re.compile(r"(?i)database|mongo|mysql|postgres|sqlalchemy|(?:^|_)(?:db|sql)(?:_|$)")
_READERS = frozenset(
    {"Field", "SecretStr", "env", "config", "get_secret_value", "getattr", "getenv", "str", "unicode_string"}
)
"""The calls that give back an address which is an argument or a variable of theirs."""
_CLIENTS = {
    "ConnectionParameters": "amqp",
    "ConnectionPool": "redis",
    "Redis": "redis",
    "StrictRedis": "redis",
    "Valkey": "redis",
}
"""The classes of clients that take the host as an argument of its own, with the kind of their server."""
_PACKAGES = frozenset({"aioredis", "aio_pika", "amqp", "coredis", "pika", "redis", "valkey"})
_SHOWING = frozenset({"critical", "debug", "error", "exception", "info", "log", "print", "warn", "warning"})
_OF_LISTS_TEXT = (
    "basic_cancel basic_consume basic_get basic_publish blmove blmpop blpop brpop brpoplpush execute_command get_queue_by_name "
    "get_queue_url lindex linsert llen lmove lmpop lpop lpos lpush lpushx lrange lrem lset ltrim purge_queue "
    "queue_bind queue_declare queue_delete queue_purge queue_unbind receive_message rpop rpoplpush rpush rpushx"
)
_OF_LISTS = frozenset(_OF_LISTS_TEXT.split())
"""The methods that only a client of Redis, of AMQP or of SQS has."""
_OF_KEYS_TEXT = (
    "copy declare_queue delete delete_queue dump eval evalsha exists expire get_queue hdel hget hgetall hkeys hlen hscan "
    "hscan_iter hset hvals keys memory_usage object persist pexpire rename renamenx sadd scan scan_iter scard smembers "
    "sort srem touch type unlink zadd zcard zcount zrange zrangebyscore zrem zscan zscore"
)
_OF_KEYS = frozenset(_OF_KEYS_TEXT.split())
"""The methods of such a client that other objects have, too."""
_OF_SCRIPTS = frozenset({"eval", "register_script", "script_load"})
"""The methods that are given a script for Redis."""
_OF_ALL_KEYS = frozenset({"flushall", "flushdb"})
_PARSING = frozenset({"make_url", "parse_url", "urlparse", "urlsplit", "URL"})
"""The calls that divide an address into its parts."""
_HOSTS_OF_PARSED = frozenset({"host", "hostname", "netloc"})
_OF_INTERFACE = re.compile(r":15672\b|/api/queues\b")
"""A pattern for the address of the interface of RabbitMQ for operators."""
_OF_KOMBU = frozenset({"unacked", "unacked_index", "unacked_mutex"})
_KEEPING = frozenset(
    {"dict", "enumerate", "frozenset", "list", "reversed", "set", "sorted", "str", "tuple", "zip"}
)
_READING = frozenset({"get", "items", "keys", "split", "union", "values"})
_BINDINGS = "_kombu.binding."
_PRIORITY = "\x06\x16"
"""The mark between the name of a queue and a priority, in the lists of Redis."""
_READ_QUEUE = (
    "In Penstock the messages are not in lists of that server: ask `penstock queues` or the client, and remove the "
    "call."
)
_MAX_STEPS = 8
_Binding = tuple[str, str, ast.expr]
"""The file, the key of a name, and a value that a statement gives the name."""


def reads_of_servers(trees: Mapping[str, ast.Module], queues: Collection[str]) -> Iterator[tuple[str, Use]]:
    """Yield each call that is given the address of Celery's server, and each that reads or changes one of these queues,
    with its file."""
    packages = {path.partition(".")[0] for tree in trees.values() for _, path in imported_names(tree)}
    if "celery" not in packages and not any(_gives(node) for tree in trees.values() for node in walk(tree)):
        return
    servers = _Servers(trees)
    for file, use in servers.uses():
        yield file, use
    texts = _Texts(trees)
    names = {*queues, *_OF_KOMBU}
    is_redis = not servers.is_other_than_redis()
    for file, tree in trees.items():
        is_near = any(
            path.partition(".")[0] in {*_PACKAGES, "boto3", "kombu"} for _, path in imported_names(tree)
        )
        for node in walk(tree):
            named = _use_of_queue(file, node, texts, names, is_near) if isinstance(node, ast.Call) else None
            if named is not None:
                yield file, named
            elif is_near and is_redis and _removes_all(node):
                yield (
                    file,
                    Use(node, f"{ast.unparse(node)}, which may remove the queues of Celery", _READ_QUEUE),
                )
            elif isinstance(node, ast.Constant) and _OF_INTERFACE.search(str(node.value)):
                yield file, Use(node, f"{node.value!r}, the interface of RabbitMQ for operators", _READ_QUEUE)


def _use_of_queue(
    file: str, node: ast.Call, texts: _Texts, names: Collection[str], is_near: bool
) -> Use | None:
    """Return the use of a call that reads or changes a queue; None for any other call."""
    if not isinstance(node.func, ast.Attribute) or ast.unparse(node.func.value) == "super()":
        return None  # a method of a class that extends another one: its callers have lines of their own
    method = node.func.attr
    if method in _OF_SCRIPTS and is_near:
        quoted = {
            name
            for text in _texts_of(file, node, texts)
            for name in names
            if f"'{name}'" in text or f'"{name}"' in text
        }
        if quoted:
            return Use(node, f"{ast.unparse(node.func)} of a script that may read or change a queue of Celery: "
                             f"{', '.join(map(repr, sorted(quoted)))}", _READ_QUEUE)  # fmt: skip
    is_client = method in _OF_KEYS and (is_near or bool(_OF_SERVER.search(ast.unparse(node.func.value))))
    if method not in _OF_LISTS and not is_client:
        return None
    if method == "scan" or method == "keys":
        hits = {
            text
            for text in _texts_of(file, node, texts)
            if text.rstrip("*") in names or text.startswith(_BINDINGS)
        }
    else:
        hits = {text for text in _texts_of(file, node, texts)
                if text.partition(_PRIORITY)[0] in names or text.startswith(_BINDINGS)}  # fmt: skip
    if not hits:
        return None
    listed = ", ".join(repr(text) for text in sorted(hits)[:4])
    subject = f"{ast.unparse(node)}, which may read or change a queue of Celery: {listed}"
    return Use(node, subject, _READ_QUEUE)


def _removes_all(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _OF_ALL_KEYS
    )


def _texts_of(file: str, node: ast.Call, texts: _Texts) -> set[str]:
    values = [*node.args, *(word.value for word in node.keywords)]
    return {text for value in values for text in texts.of(file, value)}


def _gives(node: ast.AST) -> bool:
    return any(True for _ in _given(node))


def _is_server(name: str) -> bool:
    return name in SERVER_SETTINGS or (is_setting(name, plain=True) and today(name) in _GIVEN)


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """Yield each value that a node gives Celery as the address of a server."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            name = setting_of(target) or (target.id if isinstance(target, ast.Name) else "")
            if _is_server(name):
                yield node.value
    elif isinstance(node, ast.Call):
        is_maker = called(node).endswith("Celery")
        is_update = called(node) in ("add_defaults", "update")
        for word in node.keywords:
            if word.arg is not None and (
                (is_maker and word.arg in _WORDS) or ((is_maker or is_update) and _is_server(word.arg))
            ):
                yield word.value
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _is_server(key.value):
                yield value


class _Texts:
    """The texts that the names of all files may mean: by an assignment, a loop, a default, or an argument of a call."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._own: dict[tuple[str, str], list[tuple[str, ast.expr]]] = {}
        """By file and name: the values, each with the file that it stands in."""
        self._of_any: dict[str, list[tuple[str, ast.expr]]] = {}
        functions: dict[str, list[tuple[str, list[str]]]] = {}
        for file, tree in trees.items():
            for node in walk(tree):
                for name, value in _bound(node):
                    self._own.setdefault((file, name), []).append((file, value))
                    if name.isupper():
                        self._of_any.setdefault(name, []).append((file, value))
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    arguments = node.args
                    names = [
                        part.arg for part in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
                    ]
                    functions.setdefault(node.name, []).append(
                        (file, [name for name in names if name not in ("self", "cls")])
                    )
        calls = [
            (file, node) for file, tree in trees.items() for node in walk(tree) if isinstance(node, ast.Call)
        ]
        for file, call in calls:
            for holder, names in functions.get(called(call), ()):
                words = [(str(word.arg), word.value) for word in call.keywords]
                for name, value in [*zip(names, call.args, strict=False), *words]:
                    if name in names and not isinstance(value, ast.Starred):
                        self._own.setdefault((holder, name), []).append((file, value))

    def of(self, file: str, node: ast.AST) -> set[str]:
        """Return the texts that an expression may have, or may have as a part. Each name is followed once, and at most
        _MAX_STEPS values lie between the expression and a text."""
        texts, followed = set[str](), set[tuple[str, str]]()
        waiting: list[tuple[str, ast.AST]] = [(file, node)]
        for _ in range(_MAX_STEPS):
            values: list[tuple[str, ast.AST]] = []
            while waiting:
                holder, part = waiting.pop()
                if isinstance(part, ast.Constant):
                    texts |= {part.value} if isinstance(part.value, str) else set()
                elif isinstance(part, ast.Name | ast.Attribute):
                    key = (holder, part.id if isinstance(part, ast.Name) else part.attr)
                    if key not in followed:
                        followed.add(key)
                        values += self._own.get(key) or self._of_any.get(key[1], [])
                else:
                    waiting += [(holder, inner) for inner in _whole_parts(part)]
            waiting = values
        return texts


def _whole_parts(node: ast.AST) -> list[ast.AST]:
    """Return the parts of an expression that may be its value, or an item of its value."""
    if isinstance(node, ast.Call):
        is_kept = isinstance(node.func, ast.Name) and node.func.id in _KEEPING
        is_read = isinstance(node.func, ast.Attribute) and node.func.attr in _READING
        return (
            [*node.args]
            if is_kept
            else [node.func.value]
            if is_read and isinstance(node.func, ast.Attribute)
            else []
        )
    if isinstance(node, ast.JoinedStr | ast.BinOp):
        texts = [
            part.value
            for part in ast.walk(node)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        ]
        is_whole = (
            isinstance(node, ast.BinOp)
            or len(node.values) == 1
            or all(text.startswith(_PRIORITY) for text in texts)
        )
        return children(node) if is_whole else []
    return [] if isinstance(node, ast.Lambda | ast.Compare) else children(node)


def _bound(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield each name that a node gives a value, or gives the items of a value."""
    pairs: list[tuple[ast.expr, ast.expr]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        pairs = [(node.target, node.value)]
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        pairs = [(part, node.iter) for part in ast.walk(node.target) if isinstance(part, ast.Name)]
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        defaults = [*zip(reversed(positional), reversed(node.defaults), strict=False),
                    *zip(node.kwonlyargs, node.kw_defaults, strict=True)]  # fmt: skip
        yield from ((part.arg, default) for part, default in defaults if default is not None)
    for target, value in pairs:
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Attribute):
            yield target.attr, value


class _Servers:
    """The addresses of the servers that the files give Celery, and the names that have them."""

    def __init__(self, trees: Mapping[str, ast.Module]) -> None:
        self._trees = trees
        self._given = [
            (file, value) for file, tree in trees.items() for node in walk(tree) for value in _given(node)
        ]
        self._inside = {id(part) for _, value in self._given for part in ast.walk(value)}
        self._keys: set[str] = set()
        self._hosts: set[str] = set()
        """The names that are a part of an address, as a host."""
        self._parsed: set[str] = set()
        """The names of addresses that are divided into their parts."""
        for file, value in self._given:
            self._add(file, value)
        if not self._given:
            self._keys.add(_normal(_BY_DEFAULT))
        bindings = [
            (file, self._key(file, name), value)
            for file, tree in trees.items()
            for node in walk(tree)
            if not isinstance(node, ast.For | ast.AsyncFor | ast.comprehension)
            for name, value in _bound(node)
        ]
        self._follow(bindings)

    def is_other_than_redis(self) -> bool:
        """Return whether all addresses that are known are those of other servers than Redis."""
        urls = {key.split(":")[1] for key in self._keys if key.startswith("url:")}
        return bool(urls) and not urls & {"redis", "sentinel", "unix"}

    def uses(self) -> Iterator[tuple[str, Use]]:
        """Yield each call with an argument that is the address of such a server."""
        for file, tree in self._trees.items():
            clients = {name for name, path in imported_names(tree) if path.partition(".")[0] in _PACKAGES}
            for node in walk(tree):
                if not isinstance(node, ast.Call) or id(node) in self._inside or self._is_plain(node):
                    continue
                arguments = [*node.args, *(word.value for word in node.keywords)]
                named = next(
                    (
                        part
                        for part in arguments
                        if id(part) not in self._inside and self._is_address(file, part)
                    ),
                    None,
                )
                if named is not None:
                    text = "the address" if isinstance(named, ast.Constant) else ast.unparse(named)
                    subject = (
                        f"{text} of Celery's server"
                        if isinstance(named, ast.Constant)
                        else f"{text}, the address of Celery's server"
                    )
                    yield file, Use(named, f"{subject}, which {ast.unparse(node.func)} is given", READ_SERVER)
                elif root_name(node.func) in clients and self._is_client(node):
                    yield (
                        file,
                        Use(node, f"the client {ast.unparse(node.func)} of Celery's server", READ_SERVER),
                    )
                elif called(node) in ("client", "resource") and self._is_sqs(node):
                    yield file, Use(node, f"the client {ast.unparse(node)} of Celery's server", READ_SERVER)

    def _is_plain(self, node: ast.Call) -> bool:
        """Return whether a call only reads, shows or compares an address, or gives Celery its settings."""
        return called(node) in _SHOWING or called(node).endswith("Celery") or _reads(node)

    def _is_address(self, file: str, node: ast.expr) -> bool:
        if any(_last(part) in SERVER_SETTINGS for part in ast.walk(node)):
            return False  # each read of it has a line of its own
        if self._is_parsed_host(file, node):
            return True
        own = self._keys_of(file, node)
        is_host = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call) and bool(
            own & self._hosts
        )
        return bool(own & self._keys) or is_host

    def _is_parsed_host(self, file: str, node: ast.expr) -> bool:
        """Return whether an expression is the host of such an address: `urlparse(BROKER_URL).hostname`."""
        if not isinstance(node, ast.Attribute) or node.attr not in _HOSTS_OF_PARSED:
            return False
        whole = node.value
        return self._is_parsing(file, whole) or (
            isinstance(whole, ast.Name | ast.Attribute) and self._key(file, _last(whole)) in self._parsed
        )

    def _is_parsing(self, file: str, node: ast.expr) -> bool:
        if not isinstance(node, ast.Call) or called(node) not in _PARSING or not node.args:
            return False
        is_setting = any(_last(part) in SERVER_SETTINGS for part in ast.walk(node.args[0]))
        return is_setting or bool(self._keys_of(file, node.args[0]) & self._keys)

    def _is_client(self, node: ast.Call) -> bool:
        """Return whether a client is given the host of such a server as a literal, or by its default."""
        kind = _CLIENTS.get(called(node))
        if kind is None or any(word.arg in (None, "connection_pool", "url") for word in node.keywords):
            return False
        supplied = dict(
            zip(("host", "port", "db" if kind == "redis" else "virtual_host"), node.args, strict=False)
        )
        supplied |= {str(word.arg): word.value for word in node.keywords}
        parts = [
            supplied.get("host", ast.Constant("localhost")),
            supplied.get("port", ast.Constant(_PORTS[kind])),
        ]
        parts.append(supplied.get("db", ast.Constant(0)) if kind == "redis" else ast.Constant(""))
        if not all(isinstance(part, ast.Constant) for part in parts):
            return False
        host, port, database = (getattr(part, "value", "") for part in parts)
        return _normal(f"{kind}://{host}:{port}/{database}") in self._keys

    def _is_sqs(self, node: ast.Call) -> bool:
        service = next((part.value for part in node.args if isinstance(part, ast.Constant)), None)
        return service == "sqs" and any(key.startswith("url:sqs") for key in self._keys)

    def _add(self, file: str, value: ast.expr) -> bool:
        """Add the names and the texts of an address. Return whether any of them is new."""
        keys = {key for key in self._keys_of(file, value) if not _OF_DATABASE.search(key.partition("@")[0])}
        hosts = {
            self._key(file, _last(part))
            for whole in ast.walk(value)
            if isinstance(whole, ast.JoinedStr | ast.BinOp | ast.Call) and _is_text(whole)
            for part in ast.walk(whole)
            if isinstance(part, ast.Name | ast.Attribute)
            and _OF_HOST.search(_last(part))
            and not _OF_DATABASE.search(_last(part))
        }
        hosts |= {
            key
            for whole in ast.walk(value)
            if isinstance(whole, ast.JoinedStr | ast.BinOp | ast.Call) and _is_text(whole)
            for part in ast.walk(whole)
            if isinstance(part, ast.Subscript) or (isinstance(part, ast.Call) and _reads(part))
            for key in self._keys_of(file, part)
            if key.startswith("name:")
            and _OF_HOST.search(key)
            and not _OF_DATABASE.search(key.partition("@")[0])
        }
        sizes = len(self._keys), len(self._hosts)
        self._keys |= keys
        self._hosts |= hosts
        return (len(self._keys), len(self._hosts)) != sizes

    def _follow(self, bindings: list[_Binding]) -> None:
        """Add the names with the same value, and the values of the names, until there are no more."""
        keys_of = [(file, key, value, self._keys_of(file, value)) for file, key, value in bindings]
        is_changed = True
        while is_changed:
            is_changed = False
            for file, key, value, own in keys_of:
                if key in self._keys:
                    is_changed |= self._add(file, value)
                elif own & self._keys and not _OF_DATABASE.search(key):
                    self._keys.add(key)
                    is_changed = True
                if self._is_parsing(file, value) and key not in self._parsed:
                    self._parsed.add(key)
                    is_changed = True
                if self._is_parsed_host(file, value) and key not in self._hosts:
                    self._hosts.add(key)
                    is_changed = True
                if (
                    own & self._hosts
                    and key not in self._hosts
                    and isinstance(value, ast.Name | ast.Attribute | ast.Call)
                ):
                    self._hosts.add(key)
                    is_changed = True

    @staticmethod
    def _key(file: str, name: str) -> str:
        """Return the key of a name. One in capitals, or with the word of a server, has the same value in all files."""
        is_shared = name.isupper() or bool(_OF_SERVER.search(name) and _OF_HOST.search(name))
        return f"name:{name}" if is_shared else f"name:{name}@{file}"

    def _keys_of(self, file: str, node: ast.expr) -> set[str]:
        """Return the keys of the values that an expression may have."""
        if isinstance(node, ast.Constant):
            return {_normal(node.value)} - {""} if isinstance(node.value, str) else set()
        if isinstance(node, ast.Name | ast.Attribute):
            return {self._key(file, _last(node))}
        if isinstance(node, ast.Subscript):
            key = getattr(node.slice, "value", None)
            return {self._key(file, key)} if isinstance(key, str) and _VARIABLE.fullmatch(key) else set()
        if isinstance(node, ast.BoolOp):
            return {key for part in node.values for key in self._keys_of(file, part)}
        if isinstance(node, ast.IfExp):
            return self._keys_of(file, node.body) | self._keys_of(file, node.orelse)
        if isinstance(node, ast.Call) and _reads(node):
            values = [
                *node.args,
                *(word.value for word in node.keywords if word.arg in (None, "default", "fallback")),
            ]
            variables = {
                f"name:{part.value}"
                for part in [*node.args, *(word.value for word in node.keywords)]
                if isinstance(part, ast.Constant)
                and isinstance(part.value, str)
                and _VARIABLE.fullmatch(part.value)
            }
            if isinstance(node.func, ast.Attribute) and called(node) in (
                "get_secret_value",
                "unicode_string",
            ):
                values.append(node.func.value)
            return variables | {key for part in values for key in self._keys_of(file, part)}
        if isinstance(node, ast.JoinedStr | ast.BinOp | ast.Call):
            with suppress(NotLiteral):
                text = literal(with_defaults(node, {})[0])
                return {_normal(text)} - {""} if isinstance(text, str) else set()
            is_certain = _is_text(node) or not any(isinstance(part, ast.Starred) for part in ast.walk(node))
            return {f"expression:{ast.unparse(node)}"} if is_certain else set()
        return set()


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _is_text(node: ast.AST) -> bool:
    """Return whether an expression makes a text of parts."""
    return not isinstance(node, ast.Call) or called(node) in ("format", "join")


def _reads(call: ast.Call) -> bool:
    """Return whether a call reads a variable of the environment or a setting, or gives back its argument."""
    first = call.args[0] if call.args else None
    is_variable = (
        isinstance(first, ast.Constant)
        and isinstance(first.value, str)
        and bool(_VARIABLE.fullmatch(first.value))
    )
    return is_variable or called(call) in _READERS


def _normal(address: str) -> str:
    """Return the key of the server in an address, without the name and the password of a user; an empty text for another
    text."""
    scheme, mark, _ = address.partition("://")
    family = _FAMILIES.get(scheme)
    if not mark or family is None:
        return ""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port or _PORTS.get(family, 0)
    except ValueError:
        return f"url:{address}"
    path = parts.path.strip("/") or ("0" if family == "redis" else "")
    return f"url:{family}://{_LOCAL.get(host, host)}:{port}/{path}"
