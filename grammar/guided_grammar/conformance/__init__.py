"""Corpora of constraints with texts they accept and reject, run against the compiler in killable processes."""
