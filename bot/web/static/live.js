// Keeps a page that is not final up to date: fetches it again and puts its content in place, open parts stay open.
"use strict";

(() => {
  const main = () => document.getElementById("main");
  let failed = 0;

  async function refresh() {
    let again = Number(main().dataset.refresh);
    if (!again) return;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) throw new Error(String(answer.status));
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      replace(page);
      failed = 0;
    } catch {
      failed = Math.min(failed + 1, 5);
      again *= 2 ** failed;
    }
    setTimeout(refresh, again * 1000);
  }

  function replace(page) {
    const fresh = page.getElementById("main");
    if (!fresh || fresh.outerHTML === main().outerHTML) return;
    const open = [...main().querySelectorAll("details")].map((part) => part.open);
    [...fresh.querySelectorAll("details")].forEach((part, at) => { part.open = open[at] ?? part.open; });
    document.title = page.title;
    main().replaceWith(fresh);
    document.dispatchEvent(new Event("benchbot:replaced"));
  }

  setTimeout(refresh, Number(main().dataset.refresh || 0) * 1000);
})();
