"""The contents of every StackStorm installation: built-in actions, and the parameters that runners take beside those
of an action."""

from __future__ import annotations

from typing import Any

_TEXT: dict[str, Any] = {"type": "string", "required": True}
_SHELL_PARAMETERS: dict[str, Any] = {
    "cwd": {"type": ["string", "null"]},
    "env": {"type": ["object", "null"]},
}
_SHELL_NEEDS = ("ActionFailed", "end_session", "run_shell", "_options")
SHELLS = frozenset({"local-shell-cmd", "local-shell-script"})
"""The runners of shells. Their generated functions end a command after its `timeout`."""

NOOP_RESULT = '{"failed": False, "succeeded": True, "return_code": 0}'

BUILT_IN: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "core.local": (
        'def core_local_(**parameters):\n    return run_shell(parameters.pop("cmd"), **_options(parameters))\n',
        _SHELL_NEEDS,
        {"parameters": {"cmd": _TEXT, **_SHELL_PARAMETERS}, "timeout": 60, "on_worker_loss": "fail"},
    ),
    "core.local_sudo": (
        "def core_local_sudo_(**parameters):\n"
        '    return run_shell(parameters.pop("cmd"), **_options(parameters) | {"sudo": True})\n',
        _SHELL_NEEDS,
        {"parameters": {"cmd": _TEXT, **_SHELL_PARAMETERS}, "timeout": 60, "on_worker_loss": "fail"},
    ),
    "core.echo": (
        "def core_echo_(**parameters):\n"
        '    command = rendered(\'echo "{{message}}"\', parameters, ["message"])\n'
        "    return run_shell(command, **_options(parameters))\n",
        (*_SHELL_NEEDS, "rendered"),
        {"parameters": {"message": _TEXT, **_SHELL_PARAMETERS}, "timeout": 60, "on_worker_loss": "fail"},
    ),
    "core.noop": (
        f"def core_noop_(**parameters):\n    return {NOOP_RESULT}\n",
        (),
        {"parameters": {}},
    ),
}
"""Actions that every installation of StackStorm has: the source of a function, the functions it calls, and the options of
the action."""
OF_CORE = {
    "inject_trigger": "Call `current().sync.publish(trigger, payload)` in the function.",
    "pause": "Write `delay` of the task after it, or call `sleep(seconds)` of penstock.run.steering in the function.",
    "remote": "Run a worker on that machine, or call `ssh` in the function.",
    "remote_sudo": "Run a worker on that machine, or call `ssh` in the function.",
    "http": "Write an action of the executor `http` with `request` (docs/how-to/call-an-api.md).",
}
"""The work by hand for the actions of StackStorm's core that are not mapped, by name."""
CORE_RUNNERS = {
    **dict.fromkeys(("remote", "remote_sudo", "sendmail", "error"), "remote-shell-cmd"),
    **dict.fromkeys(("inject_trigger", "pause", "uuid"), "python-script"),
    "http": "http-request",
    "winrm_cmd": "winrm-cmd",
    "winrm_ps_cmd": "winrm-ps-cmd",
}
"""The runners of actions of StackStorm's core with a function to be written, by name. A local command counts as a
remote one, since no generated function ends it."""
LINUX_RUNNERS = {
    **dict.fromkeys(
        (
            *("linux.cp", "linux.file_touch", "linux.lsof", "linux.lsof_pids", "linux.mv", "linux.netstat"),
            *("linux.netstat_grep", "linux.pkill", "linux.rm", "linux.rsync", "linux.scp", "linux.vmstat"),
        ),
        "remote-shell-cmd",
    ),
    **dict.fromkeys(
        ("linux.check_loadavg", "linux.check_processes", "linux.service", "linux.traceroute"),
        "remote-shell-script",
    ),
    **dict.fromkeys(("linux.dig", "linux.wait_for_ssh"), "python-script"),
}
"""The runners of the actions of the pack `linux`, which every installation of StackStorm has."""
OWN_TIMEOUTS = {"linux.wait_for_ssh": 400}
"""Seconds after which an action of the pack `linux` ends, if that is not the limit of its runner."""

_OPTIONAL: dict[str, Any] = {"type": "string"}
_SECRET: dict[str, Any] = {"type": "string", "secret": True}
_FLAG: dict[str, Any] = {"type": "boolean", "default": False}
_MAPPING: dict[str, Any] = {"type": "object"}
_TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
_IN_SHELL: dict[str, dict[str, Any]] = {"cwd": _OPTIONAL, "env": _MAPPING}
_OF_SHELL: dict[str, dict[str, Any]] = {
    **_IN_SHELL,
    "kwarg_op": {"type": "string", "default": "--"},
    "sudo_password": _SECRET,
}
_ON_HOSTS: dict[str, dict[str, Any]] = {
    "cmd": _TEXT,
    "hosts": _TEXT,
    **_OF_SHELL,
    "cwd": {"type": "string", "default": "/tmp"},
    **dict.fromkeys(("bastion_host", "username"), _OPTIONAL),
    **dict.fromkeys(("passphrase", "password", "private_key"), _SECRET),
    "port": {"type": "integer"},
}
_IN_PYTHON: dict[str, dict[str, Any]] = {
    "env": _MAPPING,
    "content_version": _OPTIONAL,
    "debug": _FLAG,
    "log_level": {
        "type": "string",
        "enum": ["AUDIT", "CRITICAL", "ERROR", "WARNING", "INFO", "DEBUG"],
        "default": "DEBUG",
    },
}
_OVER_WINRM: dict[str, dict[str, Any]] = {
    **dict.fromkeys(("cmd", "host", "username"), _TEXT),
    "password": _SECRET | {"required": True},
    **_IN_SHELL,
    "kwarg_op": {"type": "string", "default": "-"},
    "port": {"type": "integer", "default": 5986},
    "scheme": {"type": "string", "default": "https"},
    "transport": {
        "type": "string",
        "enum": ["basic", "certificate", "credssp", "kerberos", "ntlm", "plaintext", "ssl"],
        "default": "ntlm",
    },
    "verify_ssl_cert": {"type": "boolean", "default": True},
}
CORE_PARAMETERS: dict[str, dict[str, dict[str, Any]]] = {
    "remote": _ON_HOSTS,
    "remote_sudo": _ON_HOSTS,
    "http": {
        "url": _TEXT,
        "method": {
            "type": "string",
            "enum": ["HEAD", "GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "PURGE"],
        },
        **dict.fromkeys(("headers", "params", "cookies"), _MAPPING),
        **dict.fromkeys(("auth", "body", "file_content", "file_content_type"), _OPTIONAL),
        **dict.fromkeys(("file_name", "file_path", "http_proxy", "https_proxy", "username"), _OPTIONAL),
        "password": _SECRET,
        "allow_redirects": _FLAG,
        "verify_ssl_cert": {"type": "boolean", "default": True},
        **dict.fromkeys(("url_hosts_blacklist", "url_hosts_whitelist"), _TEXTS),
    },
    "sendmail": {
        **dict.fromkeys(("to", "subject", "body"), _TEXT),
        "from": {"type": "string", "default": "stanley"},
        "sendmail_binary": {"type": "string", "default": "None"},
        "send_empty_body": {"type": "boolean", "default": True},
        "content_type": {"type": "string", "default": "text/html"},
        **dict.fromkeys(("attachments", "content_version"), _OPTIONAL),
        "debug": _FLAG,
        **_OF_SHELL,
    },
    "error": {"message": _TEXT, **_IN_SHELL},
    "inject_trigger": {
        **dict.fromkeys(("trigger", "trigger_name", "trace_tag"), _OPTIONAL),
        "payload": _MAPPING,
        **_IN_PYTHON,
    },
    "pause": {"max_pause": {"type": "integer", "required": True}, "random": _FLAG, **_IN_PYTHON},
    "uuid": {
        "uuid_type": {"type": "string", "enum": ["uuid1", "uuid4"], "default": "uuid4"},
        **_IN_PYTHON,
    },
    "winrm_cmd": _OVER_WINRM,
    "winrm_ps_cmd": _OVER_WINRM,
}
"""The parameters that callers may give to actions of StackStorm's core with a function to be written, by name. Those of
their runners are included, but for `timeout`."""
RUNNER_TIMEOUTS = {
    "local-shell-cmd": 60,
    "local-shell-script": 60,
    "remote-shell-cmd": 60,
    "remote-shell-script": 60,
    "python-script": 600,
    "http-request": 60,
    "winrm-cmd": 60,
    "winrm-ps-cmd": 60,
    "winrm-ps-script": 60,
}
"""Seconds after which a runner ends an action without a time limit of its own."""

_SHELL = frozenset({"cmd", "cwd", "env", "kwarg_op", "sudo", "sudo_password"})
_REMOTE = _SHELL | {
    "hosts",
    "dir",
    "username",
    "password",
    "private_key",
    "passphrase",
    "port",
    "parallel",
    "bastion_host",
}
_RUNNERS = {
    **dict.fromkeys(SHELLS, _SHELL),
    **dict.fromkeys(("remote-shell-cmd", "remote-shell-script"), _REMOTE | {"timeout"}),
    "python-script": frozenset({"env", "timeout", "log_level", "content_version", "debug"}),
    "http-request": frozenset(
        {
            "url",
            "headers",
            "cookies",
            "http_proxy",
            "https_proxy",
            "allow_redirects",
            "timeout",
            "verify_ssl_cert",
            "username",
            "password",
            "url_hosts_blacklist",
            "url_hosts_whitelist",
        }
    ),
}

RUNNER_TYPES = {
    **dict.fromkeys(("env", "headers", "cookies"), "object"),
    **dict.fromkeys(("sudo", "parallel", "allow_redirects", "verify_ssl_cert", "debug"), "boolean"),
    **dict.fromkeys(("url_hosts_blacklist", "url_hosts_whitelist"), "array"),
    "port": "integer",
}
"""The types of the parameters of runners. The others are texts."""
_OLDER_NAMES = {
    "run-local": "local-shell-cmd",
    "run-local-script": "local-shell-script",
    "run-remote": "remote-shell-cmd",
    "run-remote-script": "remote-shell-script",
    "run-python": "python-script",
    "http-runner": "http-request",
}
UNBOUNDED: dict[str, Any] = {"timeout": None, "on_worker_loss": "fail"}
"""The options of an action that is unknown: StackStorm runs it once, and its unknown runner bounds it."""


def runner_of(name: Any) -> str:
    """Return the name of a runner; an empty text if none is named. Some older names are converted."""
    return _OLDER_NAMES.get(str(name), str(name)) if name else ""


def runner_parameters(runner: str) -> frozenset[str]:
    """Return the names of the parameters that a runner accepts for each of its actions."""
    return _RUNNERS.get(runner, frozenset())
