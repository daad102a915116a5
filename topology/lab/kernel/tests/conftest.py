# SPDX-License-Identifier: Apache-2.0
"""The builder's modules are beside its tests, not installed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
