"""From the first address to the last file: the page is served until it is stopped. Releases stay, nothing else."""

import sys
import threading
import webbrowser

from privmeasure.app.commands import Commands
from privmeasure.app.desk import Desk
from privmeasure.app.leftovers import delete_left, visit_folder
from privmeasure.app.server import PageServer
from privmeasure.app.views import Site
from privmeasure.errors import ArgumentError


def serve(commands: Commands, *, port: int, upload_limit: int, open_browser: bool) -> None:
    """Serve the page until somebody stops it; if work is interrupted by that, it is told after all was deleted.

    Work is done on the thread that calls this, requests are answered on others.
    """
    for release in delete_left():
        print(f"warning: a page that was killed left {release}. Move it elsewhere to keep it.", file=sys.stderr)
    with visit_folder() as folder:
        desk = Desk(commands, folder)
        try:
            server = PageServer(port, upload_limit=upload_limit)
        except OSError:
            raise ArgumentError(
                f"Port {port} cannot be had: it is taken, or not yours. Give another, or none for one that is free."
            ) from None
        try:
            site = Site(server.door, desk, upload_limit)
            server.respond, server.upload = site.respond, site.upload
            threading.Thread(target=server.serve_forever, daemon=True).start()
            print(
                f"Open this address, once, in your browser (Ctrl-C stops the page):\n{server.door.address}", flush=True
            )
            if open_browser:
                webbrowser.open(server.door.address)
            desk.jobs.run()
        finally:
            desk.close()
            server.shutdown()
            server.server_close()
            for made in desk.lost:
                try:
                    kept = f"It is saved at {commands.keep(made.path)}."
                except OSError:
                    kept = "It could not be saved, and is gone; its epsilon is spent."
                print(f"warning: release {made.number} was not downloaded. {kept}", file=sys.stderr)
