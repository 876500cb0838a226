"""How far one constraint can get at the others: figures of perf/isolation.md."""
