"""`runners.spec.GitHubCaller` on our client: what a backend may ask of GitHub, with refusals in the runners' words."""

from collections.abc import Mapping
from typing import Any

import aiohttp
import gidgethub

from bot.github.client import Denied, GitHub, Gone
from runners.spec import GitHubRefusal


class GitHubAwayError(OSError):
    """GitHub cannot be reached, or wants us to come again later."""


class Caller:
    """GitHub for backends."""

    def __init__(self, github: GitHub) -> None:
        self._github = github

    async def get(self, repository: str, path: str) -> Any:
        """Read something below a repository."""
        return await self._ask("GET", repository, path, {})

    async def post(self, repository: str, path: str, body: Mapping[str, Any]) -> Any:
        """Change something below a repository."""
        return await self._ask("POST", repository, path, body)

    async def _ask(self, method: str, repository: str, path: str, body: Mapping[str, Any]) -> Any:
        try:
            return await self._github.ask(method, repository, path, body)
        except Gone as error:
            raise GitHubRefusal(404, str(error)) from error
        except Denied as error:
            raise GitHubRefusal(403, str(error)) from error
        except gidgethub.BadRequest as error:
            # 401: our token was refused and is forgotten; 403 and 429 come here only as limits that pass
            if error.status_code not in (401, 403, 429):
                raise GitHubRefusal(int(error.status_code), str(error)) from error
            raise GitHubAwayError(str(error)) from error
        except (gidgethub.GitHubException, aiohttp.ClientError, TimeoutError) as error:
            raise GitHubAwayError(str(error) or "GitHub cannot be reached") from error
