# SPDX-License-Identifier: Apache-2.0
"""Errors in the documentation."""


class DocsError(Exception):
    """An error that the user can fix; the message says what and where."""
