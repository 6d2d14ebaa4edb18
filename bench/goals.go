package bench

import (
	"slices"

	"ledgerd/bench/report"
)

// Goals are what is asked of ledgerd, in the order in which they are reported.
var Goals = slices.Concat(restGoals, streamGoals, dataGoals, clusterGoals)

// Each scenario's goals stand in the file of its kind.
var (
	streamScenarios []Scenario
	streamGoals     []report.Goal
)
