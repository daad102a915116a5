# SPDX-License-Identifier: Apache-2.0
"""The book: pages of reference made from the program, and links that resolve."""
