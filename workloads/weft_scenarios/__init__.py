"""Scenarios: experiments of papers as files, run, plotted and judged by one command each.

    scenarios/*.toml  --scenario-->  experiments, claims  --matrix-->  runs of `weft run`
    runs  --runner-->  folders  --metrics-->  results.csv  --claims, plot, report-->  RESULTS.md

Everything after the runner reads only files, so that plots and verdicts can be made again
without running anything.
"""
