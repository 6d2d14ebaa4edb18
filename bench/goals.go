package bench

import "slices"

// Goals are what is asked of ledgerd, in the order in which they are reported. They stand in the file of their kind of scenario.
var Goals = slices.Concat(restGoals, streamGoals, dataGoals, clusterGoals)
