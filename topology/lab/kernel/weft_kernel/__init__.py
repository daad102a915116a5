# SPDX-License-Identifier: Apache-2.0
"""The lab kernel: User-Mode Linux from Debian's sources, patched, cached.

    sources   the Debian mirror that this machine's apt uses
    archive   a private apt state: find, download and verify linux-source-*
    tree      a source tree: unpack, patch, configure, build, strip down
    store     the cache: which builds there are, and which one is current
    cli       what `build.py` runs

Standard library only: this runs before anything is installed.
"""
