# SPDX-License-Identifier: Apache-2.0
"""What runs inside a plain lab to test the kernel module; tests/test_kernel.py starts it.

Programs print TAP. They need nothing but Python.
"""
