"""The agent as one file: every module that it needs in a zip that Python can run. Same sources, same bytes."""

import io
import zipfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_START = "import sys\n\nfrom runners.agent.__main__ import main\n\nsys.exit(main())\n"
# zip cannot say an earlier time than this
_EPOCH = (1980, 1, 1, 0, 0, 0)


def build_agent() -> bytes:
    """The .pyz: `python agent.pyz --help` says what it takes."""
    files = {"__main__.py": _START.encode()}
    for path in (_HERE / "__init__.py", _HERE / "protocol.py", *sorted((_HERE / "agent").glob("*.py"))):
        files[f"runners/{path.relative_to(_HERE)}"] = path.read_bytes()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, content in files.items():
            bundle.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    return out.getvalue()
