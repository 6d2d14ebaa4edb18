// Package report writes and reads what was measured, and judges it.
//
// # Format
//
// A file is in Go's benchmark format (golang.org/design/14313-benchmark-format), which benchstat reads: lines of
// configuration, then a line for each subject of a scenario in each round, such as
//
//	BenchmarkCluster/subject=replica 1996000 371000 updates/s 0.61 ingester-cores
//
// The number behind the name is how many requests or updates the figures are of. Units end in what they are counted in:
// /s, -ms, -us/req, B, cores. Lines that begin with "# SCENARIO: " are notes for readers of the scenario's table.
//
// # Judgement
//
// A goal compares the ratio of a figure to that of another subject in the same round with a limit. Its interval is that of
// the median with a confidence of 95 % (benchmath.AssumeNothing), or the whole range where there are too few rounds for that.
// A goal is met if the whole interval keeps to the limit and missed if none of it does; else it is open.
//
// A page is written of one clean revision or not at all.
package report
