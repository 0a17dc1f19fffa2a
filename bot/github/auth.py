"""Who we are to GitHub: the App's own token, and tokens of its installations, kept until shortly before they end."""

import time
from dataclasses import dataclass, field

import jwt


@dataclass(slots=True)
class AppKey:
    """The App's identity. `api_url` has no slash at its end."""

    app_id: int
    private_key: str
    api_url: str
    _tokens: dict[int, tuple[str, float]] = field(default_factory=dict)

    def app_token(self) -> str:
        """A signed token for calls about the App itself; GitHub wants real time in it, and at most ten minutes."""
        now = int(time.time())
        claims = {"iat": now - 60, "exp": now + 540, "iss": str(self.app_id)}
        return jwt.encode(claims, self.private_key, algorithm="RS256")

    def known(self, installation_id: int) -> str | None:
        """A token of the installation that is good for five more minutes."""
        token, until = self._tokens.get(installation_id, ("", 0.0))
        return token if until > time.time() + 300 else None

    def forget(self, installation_id: int) -> None:
        """GitHub does not take the token any more; the next call asks for a new one."""
        self._tokens.pop(installation_id, None)

    def keep(self, installation_id: int, token: str, seconds: float) -> None:
        """Remember a token that ends in `seconds`."""
        self._tokens[installation_id] = (token, time.time() + seconds)
