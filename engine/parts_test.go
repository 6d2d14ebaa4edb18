package engine

import (
	"ledgerd/engine/ingest"
	"ledgerd/engine/published"
)

const (
	batchEvents    = ingest.BatchEvents
	eventLane      = ingest.EventLane
	spaceRetry     = ingest.SpaceRetry
	defaultMaxLag  = ingest.DefaultMaxLag
	keptSnapshots  = ingest.KeptSnapshots
	maxReplayBytes = ingest.MaxReplayBytes
	snapshotShare  = ingest.SnapshotShare
)

type headTrail = published.Trail
