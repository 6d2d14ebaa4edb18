package bench

import "slices"

// Goals are what is asked of ledgerd, in the order in which they are reported.
var Goals = slices.Concat(restGoals, streamGoals, dataGoals, clusterGoals)
