"""`privmeasure app`: a page on this machine, for those who do not live in a terminal."""

from typing import Annotated

import typer

UPLOAD_MEGABYTES = 512


def run_app(
    *,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; 0 for any that is free.")] = 0,
    upload_limit: Annotated[
        int,
        typer.Option("--upload-limit", min=1, max=65536, help="The most megabytes of an upload; a path has no limit."),
    ] = UPLOAD_MEGABYTES,
    open_browser: Annotated[
        bool,
        typer.Option(
            "--open", help="Open the browser. Other users of this machine could then see the address, and be faster."
        ),
    ] = False,
) -> None:
    """Serve a page on this machine: choose a table, fill in its schema, see the plan, release once, download.

    It does what the other commands do, with the same checks and words. It answers on 127.0.0.1 alone, and to the one
    browser that brings the token of the address that it prints, which works once. Epsilon is spent only after a page
    that says so, and only with a ledger. Ctrl-C stops it, and everything that was uploaded or made here is deleted:
    download first. A release that was not downloaded goes to your data folder. It needs
    `pip install jinja2 matplotlib` (the extra "app").

    Examples:

      privmeasure app
      privmeasure app --port 8123 --upload-limit 2000
    """
    from privmeasure.app.visit import serve
    from privmeasure.cli.serving import LocalCommands
    from privmeasure.report.canvas import check_pictures

    check_pictures()
    serve(LocalCommands(), port=port, upload_limit=upload_limit << 20, open_browser=open_browser)
    print("stopped; everything that was uploaded or made here is deleted.")
