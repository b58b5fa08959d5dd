"""nginx before an API of the tests: over TLS, below a path, in the ways that people set it up."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from tests.servers.containers import wait_until
from tests.servers.errors import NoServer
from tests.servers.process import Process, free_port, new_folder, remove

WAYS = {
    "kept": "proxy_pass http://127.0.0.1:{upstream};",
    "stripped": "proxy_pass http://127.0.0.1:{upstream}/;",
    "modern": "proxy_pass http://127.0.0.1:{upstream}; proxy_http_version 1.1; proxy_set_header Connection '';"
    " proxy_set_header Host $http_host;",
}
"""How nginx passes a request on. The first two rewrite Host and speak HTTP/1.0, as nginx does when nothing is said."""


def find_program() -> str | None:
    beside = "/usr/sbin/nginx"  # not on an ordinary user's path in Debian
    return shutil.which("nginx") or (beside if Path(beside).exists() else None)


class Nginx:
    """A proxy with a port for each of the WAYS: `address(way)`."""

    def __init__(self, upstream: int, path: str) -> None:
        program = find_program()
        if program is None:
            raise NoServer("nginx is not installed.")
        self.folder = new_folder("nginx")
        self.ports = {way: free_port() for way in WAYS}
        self._path = path
        certificate = (
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
        )
        command = ["openssl", *certificate.split(), "-addext", "subjectAltName=DNS:localhost"]
        files = ["-keyout", str(self.folder / "key.pem"), "-out", str(self.certificate)]
        subprocess.run([*command, *files], check=True, capture_output=True)
        configuration = self.folder / "nginx.conf"
        configuration.write_text(self._configuration(upstream))
        self._process = Process(
            [program, "-p", str(self.folder), "-c", str(configuration), "-e", str(self.folder / "error.log")],
            log=self.folder / "log",
            env=dict(os.environ),
            spawn={},
        )
        wait_until(self._listens, "nginx", 20)

    @property
    def certificate(self) -> Path:
        return self.folder / "certificate.pem"

    def address(self, way: str) -> str:
        return f"https://localhost:{self.ports[way]}{self._path}"

    def close(self) -> None:
        self._process.end(signal.SIGTERM, 5)
        remove(self.folder)

    def _listens(self) -> bool:
        if not self._process.alive():
            raise RuntimeError(f"nginx ended while it started.\n{(self.folder / 'log').read_text()[-4000:]}")
        for port in self.ports.values():
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)):
                    return False
        return True

    def _configuration(self, upstream: int) -> str:
        servers = "\n".join(
            f"server {{ listen 127.0.0.1:{self.ports[way]} ssl; ssl_certificate {self.certificate};"
            f" ssl_certificate_key {self.folder}/key.pem;"
            f" location {self._path}/ {{ {text.format(upstream=upstream)}"
            " proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }"
            for way, text in WAYS.items()
        )
        temporary = "".join(
            f"{name}_temp_path {self.folder}/{name}; "
            for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        return (
            f"daemon off; worker_processes 1; pid {self.folder}/pid;\n"
            "events { worker_connections 200; }\n"
            f"http {{ access_log off; {temporary}\n{servers}\n}}\n"
        )
