"""The reliability study, repeated on this stack: `make study PROFILE=ci|laptop|gpu` writes perf/report."""
