package bench

// WebSocket returns the scenarios of the stream, in the order in which they are run.
func WebSocket() []Scenario {
	return []Scenario{firehose, latency, following, idle, filtered, stalled, storm, soak}
}
