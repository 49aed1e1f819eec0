"""Poise's own store. One writer per run (per rank where ranks record); any number of readers, while it grows.

A run folder holds

    run.json                    the header: what a comparison needs, written once
    rows-R-N.tail               framed appends of rank R, segment N: schemas and rows (see `frames.py`)
    rows-R-N.GROUP.arrow        a sealed segment, series by series, for any Arrow tool
    events-R.jsonl              findings, incidents, texts, exceptions: one JSON object a line

Nothing is overwritten. A tail is removed only after its sealed files are complete and flushed.
"""
