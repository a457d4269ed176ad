"""Results that other benchmarks write, read as scores of methods on tasks.

`sources.read_benchmark` recognises what a file or folder holds, and returns a
`table.BenchmarkTable`; each format has a module. Nothing here ranks, and nothing in a file is
unpickled or run.
"""
