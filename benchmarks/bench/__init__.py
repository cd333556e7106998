"""What the benchmarks of this folder share: workloads, contenders, timing, rooflines, reports."""
