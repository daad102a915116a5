# SPDX-License-Identifier: Apache-2.0
"""Bare Debian systems on which README's commands are tried, for `tests/fresh`.

plan     which systems, who works in them, and where the checkout lies
readme   the steps, as README has them
reasons  why this machine cannot make such systems
root     the folder of a system: made, set up, removed
walk     the steps in a system, a line for each
"""
