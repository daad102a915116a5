# SPDX-License-Identifier: Apache-2.0
"""What a scenario file asks for, read with errors that name the line."""
