"""The OpenID Connect provider with which people sign in: the address to which they are sent, and the identity with
which they come back. Authlib checks signatures and claims."""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qs

import httpx
from authlib.common.errors import AuthlibBaseError
from authlib.common.urls import add_params_to_uri
from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.rfc6749.parameters import prepare_grant_uri, prepare_token_request
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet, KeySetSerialization

from penstock.errors import ConfigurationError, ConnectionFailed, NotAuthenticated
from penstock.language.terms.setting_values import is_tls_or_local
from penstock.operate.single_sign_on import Identity, Roles, roles_mapped
from penstock.run.cut_texts import cut_end
from penstock.service.http_addresses import trusted
from penstock.settings import Settings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The permitted algorithms: those of public keys only, whatever a token or the provider's metadata says. So neither
`none`, nor a secret in place of a key, is accepted."""
FRESH = 3600.0
"""The seconds for which the provider's metadata is cached."""
CLOCKS = 60
"""The permitted difference between the provider's clock and ours, in seconds."""
PATIENCE = 10.0
"""The timeout of each request to the provider, in seconds."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The values that were sent with a person to the provider, which its answer has to match."""

    state: str
    nonce: str
    verifier: str


@dataclass(slots=True)
class IdentityProvider:
    issuer: str
    client_id: str
    client_secret: str
    back: str
    signed_out: str
    """The address to which the provider sends a person after signing out there."""
    scopes: str
    name_claim: str
    roles_claim: str
    roles: Mapping[str, Roles]
    _described: tuple[Mapping[str, Any], float] | None = None
    _keys: KeySet | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    def of(cls, settings: Settings) -> IdentityProvider:
        """Return the provider that these settings name. Raises ConfigurationError if PENSTOCK_OIDC_ROLES has a role or
        a tenant that is not valid."""
        secret = settings.oidc_client_secret
        assert settings.oidc_issuer is not None
        assert settings.oidc_client_id is not None
        assert secret is not None
        assert settings.api_address is not None
        return cls(
            issuer=settings.oidc_issuer,
            client_id=settings.oidc_client_id,
            client_secret=secret.get_secret_value(),
            back=f"{settings.api_address.rstrip('/')}/sign-in/provider/back",
            signed_out=f"{settings.api_address.rstrip('/')}/sign-in",
            scopes=f"openid {settings.oidc_scopes}".strip(),
            name_claim=settings.oidc_name_claim,
            roles_claim=settings.oidc_roles_claim,
            roles=roles_mapped(settings.oidc_roles),
        )

    async def address(self, auth_request: Asked) -> str:
        """Return the provider's address to which the person is sent. Raises ConnectionFailed if the provider does not
        answer, and ConfigurationError if its description does not fit the settings."""
        described = await self._description()
        uri: str = prepare_grant_uri(
            described["authorization_endpoint"],
            self.client_id,
            "code",
            redirect_uri=self.back,
            scope=self.scopes,
            state=auth_request.state,
            nonce=auth_request.nonce,
            code_challenge=create_s256_code_challenge(auth_request.verifier),  # type: ignore[no-untyped-call]
            code_challenge_method="S256",
        )
        return uri

    async def identify(self, auth_request: Asked, query: Mapping[str, str]) -> Identity:
        """Return the identity of the person that came back with this query. Raises NotAuthenticated if the answer or
        its ID token is not valid. Raises ConnectionFailed if the provider does not answer, and ConfigurationError if
        its description or the client's secret does not fit the settings."""
        if not hmac.compare_digest(
            query.get("state", "").encode("utf-8", "replace"), auth_request.state.encode()
        ):
            raise _refused("the answer of the provider belongs to another sign-in (`state` differs)")
        if "error" in query:
            reason = query.get("error_description") or query["error"]
            raise _refused(f"the provider did not let you in: {cut_end(reason, 200)}")
        if query.get("iss", self.issuer) != self.issuer:
            raise _refused("the answer comes from another provider (`iss` differs)")
        if not query.get("code"):
            raise _refused("the provider sent no code")
        token = await self._token(query["code"], auth_request)
        claims = await self._claims(token, auth_request)
        return Identity(
            self.issuer, str(claims["sub"]), self._name(claims), self._roles(claims), token["id_token"]
        )

    async def log_out_address(self, id_token: str) -> str | None:
        """Return the address at which a person signs out of the provider (OpenID Connect RP-Initiated Logout 1.0).
        Return None if the provider has none. Raises ConnectionFailed if the provider does not answer, and
        ConfigurationError if its description does not fit the settings."""
        endpoint = (await self._description()).get("end_session_endpoint")
        if not isinstance(endpoint, str) or not is_tls_or_local(endpoint):
            return None
        params = {
            "id_token_hint": id_token,
            "client_id": self.client_id,
            "post_logout_redirect_uri": self.signed_out,
        }
        uri: str = add_params_to_uri(endpoint, params.items())
        return uri

    async def _token(self, code: str, auth_request: Asked) -> Mapping[str, Any]:
        described = await self._description()
        methods = described.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        method = "client_secret_basic" if "client_secret_basic" in methods else "client_secret_post"
        body = prepare_token_request(
            "authorization_code", redirect_uri=self.back, code=code, code_verifier=auth_request.verifier
        )
        headers = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}
        uri, headers, body = ClientAuth(self.client_id, self.client_secret, method).prepare(  # type: ignore[no-untyped-call]
            "POST", described["token_endpoint"], headers, body
        )
        answer = await self._send("POST", uri, headers=headers, data=_fields(body))
        if answer.status_code in (400, 401):
            error_code = _document(answer).get("error", "")
            if error_code in ("invalid_client", "unauthorized_client"):
                raise ConfigurationError(
                    "the provider does not know this client, or the client secret is wrong",
                    hint="Compare PENSTOCK_OIDC_CLIENT_ID and PENSTOCK_OIDC_CLIENT_SECRET with the values at the provider.",
                )
            raise _refused(
                "the provider did not accept its own code: it may have expired, or been used already"
            )
        return _document(_good(answer))

    async def _claims(self, token: Mapping[str, Any], auth_request: Asked) -> Mapping[str, Any]:
        if not isinstance(token.get("id_token"), str):
            raise _refused("the provider sent no ID token")
        try:
            read = await self._read(token["id_token"])
            claims = CodeIDToken(
                read.claims,
                read.header,
                {
                    "iss": {"essential": True, "value": self.issuer},
                    "aud": {"essential": True, "value": self.client_id},
                },
                {
                    "nonce": auth_request.nonce,
                    "client_id": self.client_id,
                    "access_token": token.get("access_token"),
                },
            )
            claims.validate(now=int(time.time()), leeway=CLOCKS)
        except (AuthlibBaseError, JoseError, ValueError, KeyError) as error:
            raise _refused(f"the ID token of the provider is not valid ({error})") from error
        return dict(claims)

    async def _read(self, id_token: str) -> jwt.Token:
        """Return the ID token after checking its signature. An unknown key is requested from the provider once."""
        try:
            return jwt.decode(id_token, await self._key_set(), algorithms=ALGORITHMS)
        except (InvalidKeyIdError, BadSignatureError):
            return jwt.decode(id_token, await self._key_set(anew=True), algorithms=ALGORITHMS)

    async def _key_set(self, *, anew: bool = False) -> KeySet:
        if self._keys is None or anew:
            described = await self._description()
            answer = _good(await self._send("GET", described["jwks_uri"]))
            self._keys = KeySet.import_key_set(cast(KeySetSerialization, _document(answer)))
        return self._keys

    async def _description(self) -> Mapping[str, Any]:
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if self._described is None or now - self._described[1] > FRESH:
                where = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
                self._described = (self._sound(_document(_good(await self._send("GET", where)))), now)
            return self._described[0]

    def _sound(self, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the provider's metadata if it is valid. Raises ConfigurationError otherwise."""
        if metadata.get("issuer") != self.issuer:
            raise ConfigurationError(
                f"the provider calls itself {cut_end(str(metadata.get('issuer')), 200)!r}",
                hint="Set PENSTOCK_OIDC_ISSUER to exactly this text, also at its last slash.",
            )
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
            if not is_tls_or_local(str(metadata.get(name, ""))):
                raise ConfigurationError(
                    f"the provider's {name} is not an https address",
                    hint="Ask the administrator of the identity provider.",
                )
        return metadata

    async def _send(self, method: str, uri: str, **options: Any) -> httpx.Response:
        try:
            async with httpx.AsyncClient(
                verify=trusted(), timeout=PATIENCE, follow_redirects=False
            ) as client:
                return await client.request(method, uri, **options)
        except httpx.HTTPError as error:
            raise _down() from error

    def _name(self, claims: Mapping[str, Any]) -> str:
        name = claims.get(self.name_claim)
        if not isinstance(name, str) or not name:
            raise _refused(
                f"the provider did not send your name: the claim {self.name_claim!r} is missing",
                "An administrator can set PENSTOCK_OIDC_NAME_CLAIM, or PENSTOCK_OIDC_SCOPES.",
            )
        if self.name_claim == "email" and claims.get("email_verified") is not True:
            raise _refused(
                "the provider has not verified your e-mail address",
                "Verify the address at the provider. If the provider never verifies addresses, an "
                "administrator can set PENSTOCK_OIDC_NAME_CLAIM to a claim that users cannot choose "
                "themselves.",
            )
        return name

    def _roles(self, claims: Mapping[str, Any]) -> Roles:
        """Return the roles to which the values of the claim are mapped, and no others."""
        claim: Any = claims
        for part in self.roles_claim.split("."):
            claim = claim.get(part) if isinstance(claim, Mapping) else None
        values = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
        return tuple(
            sorted({pair for value in values if isinstance(value, str) for pair in self.roles.get(value, ())})
        )


def _fields(body: str) -> dict[str, str]:
    return {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True).items()}


def _good(answer: httpx.Response) -> httpx.Response:
    if answer.status_code != 200:
        raise _down()
    return answer


def _document(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        document = answer.json()
    except ValueError as error:
        raise _down() from error
    return document if isinstance(document, Mapping) else {}


def _down() -> ConnectionFailed:
    return ConnectionFailed(
        "the sign-in provider does not answer as expected",
        hint="Try again in a moment; a password or a token still lets you in.",
    )


def _refused(says: str, hint: str = "Begin again.") -> NotAuthenticated:
    return NotAuthenticated(says, hint=hint)
