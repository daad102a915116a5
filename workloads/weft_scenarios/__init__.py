# SPDX-License-Identifier: Apache-2.0
"""Scenarios: experiments of papers, each a file. One command runs, plots and judges it.

    scenarios/*.toml  --scenario-->  experiments, claims  --matrix-->  runs of `weft run`
    runs  --runner-->  folders  --metrics-->  results.csv  --claims, plot, report-->  RESULTS.md

Everything after the runner only reads files. So plots and verdicts can be made again without
running a lab.
"""
