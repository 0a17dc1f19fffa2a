"""How a comment reads on a terminal."""

from bot.cli.conversation import readable


def test_a_comment_reads_as_on_a_page() -> None:
    body = (
        "<!-- benchbot:x:results -->\n### 1 regression\nHead `abc` · [results](http://bot/requests/x)\n\n\n\n"
        '<img src="http://bot/c.png" width="860" alt="Curves">\n\n'
        "<details><summary>Runs (4)</summary>\n\n| # |\n|---|\n| 1 |\n\n</details>\n\n"
        "<sub>Next: `/benchmark help`</sub>\n"
    )
    assert readable(body) == (
        "### 1 regression\nHead `abc` · results <http://bot/requests/x>\n\n[picture: http://bot/c.png]\n\n"
        "▸ Runs (4)\n\nNext: `/benchmark help`"
    )
