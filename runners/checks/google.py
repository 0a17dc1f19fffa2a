"""What both of Google's backends need: credentials that work, and permissions in the project."""

from collections.abc import Mapping, Sequence

from runners.backends.base import BackendError, Finding, finding_of
from runners.checks import clock
from runners.google import CloudAwayError, GoogleApi, Refused


async def project(options: Mapping[str, str], name: str, needed: Sequence[str], role: str) -> list[Finding]:
    """Whether we may do in the project what we are going to do, as Google's own test of permissions says.

    The first finding is a fault about "project" where no call can succeed.
    """
    api = GoogleApi(
        "Google Resource Manager",
        "cloudresourcemanager.googleapis.com",
        credentials_file=options.get("credentials_file", ""),
        endpoint=options.get("endpoint", ""),
    )
    try:
        answer = await api.call("POST", f"v1/projects/{name}:testIamPermissions", {}, {"permissions": list(needed)})
    except Refused as refused:
        return [*clock("Google", api.dated), _refused(api, name, refused)]
    except (BackendError, CloudAwayError) as error:
        return [finding_of("project", error, advice(error))]
    missing = [one for one in needed if one not in answer.get("permissions", [])]
    who = api.account or "the bot's account"
    if not missing:
        told = f"{who} has all permissions that orders need in {name}."
        return [*clock("Google", api.dated), Finding(about="permissions", level="ok", sentence=told)]
    member = f"serviceAccount:{api.account}" if api.account else "serviceAccount:ACCOUNT"
    lack = Finding(
        about="permissions",
        level="fault",
        sentence=f"{who} lacks in {name}: {', '.join(missing)}.",
        advice=f"gcloud projects add-iam-policy-binding {name} --member {member} --role {role}",
    )
    return [*clock("Google", api.dated), lack]


_CREDENTIALS = (
    "Set `credentials_file` to the key of a service account, made by: "
    "gcloud iam service-accounts keys create FILE --iam-account ACCOUNT"
)


def advice(error: BackendError | CloudAwayError) -> str:
    """What to do about a call that got no answer; empty where waiting may do."""
    if isinstance(error, CloudAwayError):
        return ""
    return error.sentence.partition(": ")[2] if "pip install" in error.sentence else _CREDENTIALS


def _refused(api: GoogleApi, name: str, refused: Refused) -> Finding:
    if refused.code == 401:
        return Finding(about="project", level="fault", sentence=f"{refused.away()}", advice=_CREDENTIALS)
    advice = f"Look at them by hand: gcloud projects get-iam-policy {name}"
    if refused.is_off:
        advice = f"gcloud services enable cloudresourcemanager.googleapis.com --project {name}"
    sentence = f"They could not be looked at: {refused.sentence}"
    return Finding(about="permissions", level="warning", sentence=sentence, advice=advice)
