package build

import (
	"runtime/debug"
	"testing"

	"ledgerd/engine/ledger/ledgertest"
)

func TestRevisionIsWhatTheBuildRecorded(t *testing.T) {
	vcs := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0a1b"}, {Key: "vcs.modified", Value: modified}}}
	}
	for name, tt := range map[string]struct {
		stamped string
		info    *debug.BuildInfo
		want    string
	}{
		"committed":       {"", vcs("false"), "0a1b"},
		"changed since":   {"", vcs("true"), "0a1b+dirty"},
		"not recorded":    {"", &debug.BuildInfo{}, "unknown"},
		"without modules": {"", nil, "unknown"},
		"a release":       {"v9", vcs("true"), "v9"},
	} {
		ledgertest.Equal(t, revision(tt.stamped, tt.info), tt.want, "%s: revision", name)
	}
}
