# SPDX-License-Identifier: Apache-2.0
"""Scenarios: experiments of papers, each a file. One command runs, plots and judges it.

    scenarios/*.toml  --definition-->  experiments, plots, claims
    experiments  --runs-->  folders of `weft run`, in a store
    folders  --measures-->  numbers and curves of each run
    numbers  --results-->  results.csv, verdicts
    results  --report-->  plots, RESULTS.md, HTML

`experiment.py` conducts them all. Imports go one way: from `report` to `results`, `runs`,
`measures` and `definition`. What comes after the runs only reads files, so plots and verdicts can
be made again without running a lab.
"""
