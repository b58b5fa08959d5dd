"""The contents of every StackStorm installation: built-in actions, and the parameters that runners take beside those
of an action."""

from __future__ import annotations

BUILT_IN = {
    "core.local": """
def core_local(cmd: str, **more) -> dict:
    \"\"\"A command of the shell, on the worker.\"\"\"
    ran = subprocess.run(cmd, shell=True, capture_output=True, text=True, env={**os.environ, **(more.get("env") or {})})
    if ran.returncode:
        raise RuntimeError(f"exit code {ran.returncode}: {ran.stderr}")
    return {"stdout": ran.stdout.rstrip("\\n"), "stderr": ran.stderr, "return_code": 0, "succeeded": True, "failed": False}
""",
    "core.echo": """
def core_echo(message: str = "", **more) -> dict:
    return {"stdout": message, "stderr": "", "return_code": 0, "succeeded": True, "failed": False}
""",
    "core.noop": """
def core_noop(**more) -> dict:
    return {}
""",
}
"""Actions that every installation of StackStorm has, as functions."""

_SHELL = frozenset({"cmd", "cwd", "env", "kwarg_op", "sudo", "sudo_password", "timeout"})
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
    **dict.fromkeys(("local-shell-cmd", "local-shell-script", "shell"), _SHELL),
    **dict.fromkeys(("remote-shell-cmd", "remote-shell-script"), _REMOTE),
    "python-script": frozenset({"env", "timeout", "log_level", "content_version"}),
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
        }
    ),
}


def runner_parameters(runner: str) -> frozenset[str]:
    """Names of what may be given to any action that it runs."""
    return _RUNNERS.get(runner, frozenset())
