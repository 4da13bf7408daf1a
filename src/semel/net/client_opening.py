"""Opens the client's connections: connects, agrees on versions, authenticates; or says why not."""

import asyncio
from socket import gaierror
from ssl import SSLCertVerificationError
from typing import Any

from semel import __version__
from semel.net.client_connection import (
    IN_THE_CLEAR,
    AuthenticationFailed,
    ClientConnection,
    ConnectionLost,
    Endpoint,
    NotABroker,
    Security,
    not_a_broker,
)
from semel.net.client_sasl import Credentials
from semel.net.strangers import Greeting, identify
from semel.wire.errors import ErrorCode
from semel.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from semel.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from semel.wire.messages.sasl_handshake import SaslHandshakeRequest

# A session's lifetime (KIP-368) is used up to here; then the next request opens a new connection.
_USED_OF_LIFETIME = 0.85


async def open_connection(
    endpoint: Endpoint,
    *,
    client_id: str,
    security: Security = IN_THE_CLEAR,
    timeout_s: float = 30.0,
) -> ClientConnection:
    """Connects, agrees on versions and authenticates, all within `timeout_s`."""
    loop = asyncio.get_running_loop()
    connection = ClientConnection(endpoint, client_id)
    deadline = loop.time() + timeout_s
    try:
        async with asyncio.timeout_at(deadline):
            await loop.create_connection(
                lambda: connection,
                endpoint.host,
                endpoint.port,
                ssl=security.ssl,
                server_hostname=endpoint.host if security.ssl else None,
            )
            # Kafka's own order: the handshake first on SASL listeners, other requests after it;
            # ApiVersions alone is answered at any time.
            await _meet(connection, security, timeout_s)
            if security.credentials is not None:
                await _authenticate(connection, security.credentials, timeout_s)
    except TimeoutError:
        connection.close("no connection in time")
        raise ConnectionLost(f"{endpoint}: no connection within {timeout_s:g} s") from None
    except OSError as error:
        connection.close("not connected")
        raise await _explained(endpoint, security, error) from None
    except BaseException:
        connection.close("not connected")
        raise
    return connection


async def _explained(endpoint: Endpoint, security: Security, error: OSError) -> Exception:
    """Why there is no connection. Errors of TLS do not pass by themselves."""
    if isinstance(error, SSLCertVerificationError):
        return AuthenticationFailed(
            f"{endpoint}: the broker's certificate is not trusted ({error.strerror or error}). "
            "Name who has signed it (ssl_cafile), and the broker as its certificate does"
        )
    # Without TLS a refusal is a refusal; with it, whoever does not speak it hangs up.
    if security.ssl is not None and not isinstance(error, ConnectionRefusedError | gaierror):
        stranger = await identify(endpoint.host, endpoint.port, over_tls=True)
        if stranger is not None:
            return not_a_broker(endpoint, stranger)
    return ConnectionLost(f"{endpoint}: {error.strerror or error}")


async def _meet(connection: ClientConnection, security: Security, timeout_s: float) -> None:
    """The first request. Who hangs up at it without a word may be no broker."""
    try:
        await _agree_on_versions(connection, timeout_s)
    except ConnectionLost as lost:
        if connection.was_heard or isinstance(lost, NotABroker):
            raise
        host, port = connection.endpoint.host, connection.endpoint.port
        stranger = await identify(host, port, over_tls=security.ssl is not None)
        if stranger is None:
            raise
        raise not_a_broker(connection.endpoint, stranger) from None


async def _agree_on_versions(connection: ClientConnection, timeout_s: float) -> None:
    request: Any = Greeting("semel", __version__)
    version = ApiVersionsRequest.VERSIONS.stop - 1
    answer: ApiVersionsResponse = await connection.request(request, timeout_s, version)
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
        offered = next((k for k in answer.api_keys if k.api_key == request.API_KEY), None)
        version = min(version, offered.max_version) if offered else 0
        answer = await connection.request(request, timeout_s, version)
    if answer.error_code:
        raise ConnectionLost(f"{connection.endpoint}: {ErrorCode.of(answer.error_code).meaning}")
    connection.versions = {
        key.api_key: range(key.min_version, key.max_version + 1) for key in answer.api_keys
    }
    connection.features = {f.name: f.max_version_level for f in answer.finalized_features}
    connection.believe()


async def _authenticate(
    connection: ClientConnection, credentials: Credentials, timeout_s: float
) -> None:
    handshake = SaslHandshakeRequest(mechanism=credentials.mechanism)
    offer = await connection.request(handshake, timeout_s)
    if offer.error_code:
        raise AuthenticationFailed(
            f"{connection.endpoint} does not offer {credentials.mechanism}, "
            f"but {', '.join(offer.mechanisms) or 'nothing'}"
        )
    try:
        exchange = await credentials.begin()
    except Exception as error:  # of the user's own function that gets a token
        raise AuthenticationFailed(
            f"{connection.endpoint}: the function given as sasl_oauth_token failed: {error!r}"
        ) from error
    message = exchange.first()
    while True:
        answer = await connection.request(SaslAuthenticateRequest(auth_bytes=message), timeout_s)
        if answer.error_code:
            why = answer.error_message or ErrorCode.of(answer.error_code).meaning
            raise AuthenticationFailed(f"{connection.endpoint}: {why}")
        try:
            following = exchange.next(bytes(answer.auth_bytes))
        except ValueError as error:
            raise AuthenticationFailed(f"{connection.endpoint}: {error}") from None
        if following is None:
            break
        message = following
    if answer.session_lifetime_ms > 0:
        lifetime = answer.session_lifetime_ms / 1000 * _USED_OF_LIFETIME
        connection.expires_at = asyncio.get_running_loop().time() + lifetime
