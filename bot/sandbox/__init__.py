"""A GitHub on this machine: REST, webhooks, git over HTTP, a page of each pull request. It knows nothing of the bot.

`world.Sandbox` is the way in. What GitHub's own description says of a call is checked in the tests; what stands only in
its prose (signatures, rights, limits) is written here as understood.
"""
