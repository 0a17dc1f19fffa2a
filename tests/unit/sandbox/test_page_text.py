"""How the pages show Markdown and differences."""

from bot.sandbox.pages.markdown import markdown
from bot.sandbox.pages.view import LONGEST_DIFFERENCE, differences


def test_markdown_keeps_what_github_keeps() -> None:
    shown = markdown(
        "| a | b | c |\n|--:|:-:|---|\n| 1 | 2 | ~~3~~ |\n\n<sub>x</sub> ![curve](https://x.example/a.png)"
    )
    assert '<th align="right">a</th>' in shown
    assert '<td align="center">2</td>' in shown
    assert "<s>3</s>" in shown
    assert "<sub>x</sub>" in shown
    assert '<img src="https://x.example/a.png" alt="curve">' in shown
    assert "<p>one<br>\ntwo</p>" in markdown("one\ntwo")
    assert "benchbot:" not in markdown("<!-- benchbot:1:results -->\nx")


def test_tasks_have_boxes() -> None:
    shown = markdown("- [x] done\n- [ ] open\n- plain\n\n[x] no list\n\n- `[x]` code")
    assert "<li>☑ done</li>\n<li>☐ open</li>\n<li>plain</li>" in shown
    assert "<p>[x] no list</p>" in shown
    assert "<li><code>[x]</code> code</li>" in shown


def test_lines_of_a_difference_are_told_apart() -> None:
    patch = (
        "diff --git a/q.sql b/q.sql\nindex 1..2 100644\n--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n"
        "--- a remark\n+++ another\n kept\n"
        "diff --git a/x b/new name\nsimilarity index 100%\nrename from x\nrename to new name\n"
    )
    (sql, renamed), left_out = differences(patch)
    assert left_out == 0
    assert [kind for kind, _ in sql.lines] == ["head", "head", "head", "head", "place", "cut", "add", ""]
    assert (sql.path, renamed.path) == ("q.sql", "new name")
    assert {kind for kind, _ in renamed.lines} == {"head"}
    assert differences("") == ([], 0)


def test_a_long_difference_is_cut() -> None:
    patch = "diff --git a/x b/x\n@@ -0,0 +1 @@\n" + "+1\n" * LONGEST_DIFFERENCE
    (only,), left_out = differences(patch)
    assert len(only.lines) == LONGEST_DIFFERENCE
    assert left_out == 2
