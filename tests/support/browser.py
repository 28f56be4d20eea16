"""A headless Chromium that opens one page."""

import shutil
import subprocess

from support.waiting import DEADLINE

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip


def open_page(browser, file, folder, *options):
    """Open a page with a browser command; the output includes its console."""
    return subprocess.run(
        [browser, *QUIET, f"--user-data-dir={folder / 'profile'}", "--enable-logging=stderr", *options, file.as_uri()],
        capture_output=True, text=True, timeout=DEADLINE, check=False,
    )  # fmt: skip
