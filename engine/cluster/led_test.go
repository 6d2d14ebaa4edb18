package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

func TestOnlyALeaderOfMostTellsOfAStream(t *testing.T) {
	peer := func(name string, active time.Duration) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: name, Active: active}
	}
	type peers = []*jetstream.PeerInfo
	for name, tt := range map[string]struct {
		cluster *jetstream.ClusterInfo
		want    error
	}{
		"one server, no cluster":        {nil, nil},
		"one copy in a cluster":         {&jetstream.ClusterInfo{Leader: "a"}, nil},
		"a leader that hears from all":  {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", time.Second), peer("c", time.Second)}}, nil},
		"a leader that hears from one":  {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", time.Second), peer("c", time.Hour)}}, nil},
		"a leader that was cut off":     {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", aliveWithin), peer("c", time.Hour)}}, errMinority},
		"a leader that never heard any": {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", 0), peer("c", 0)}}, errMinority},
		"the others are offline": {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{
			{Name: "b", Active: time.Second, Offline: true}, {Name: "c", Active: time.Second, Offline: true}}}, errMinority},
		"two of five":               {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", 1), peer("c", 0), peer("d", 0), peer("e", 0)}}, errMinority},
		"three of five":             {&jetstream.ClusterInfo{Leader: "a", Replicas: peers{peer("b", 1), peer("c", 1), peer("d", 0), peer("e", 0)}}, nil},
		"nobody leads":              {&jetstream.ClusterInfo{Replicas: peers{peer("a", time.Second), peer("b", time.Second), peer("c", time.Second)}}, errLeaderless},
		"one that follows a leader": {&jetstream.ClusterInfo{Leader: "b", Replicas: peers{peer("b", time.Second), peer("c", time.Second)}}, errLeaderless},
	} {
		if err := checkQuorumLeader(&jetstream.StreamInfo{Cluster: tt.cluster}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}
