// Package build says which build of the programs is running: the version that they share, and what the go command
// recorded of the sources. It is for people and for metrics; nothing decides by it.
package build

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is what health, status and `ledgerd version` say: always N.N.N. A release may name another when it is linked.
var Version = "0.1.0"

// stamped is the revision that a build of a release names itself, for where the sources lie in no repository:
//
//	go build -ldflags '-X ledgerd/cmd/internal/build.stamped=REVISION'
var stamped string

// Revision returns the commit that the program was built from, with +dirty behind it where the sources had changes that
// were not committed, and "unknown" where the build recorded none.
func Revision() string {
	info, _ := debug.ReadBuildInfo() // nil: built without modules
	return revision(stamped, info)
}

func revision(stamped string, info *debug.BuildInfo) string {
	if stamped != "" {
		return stamped
	}
	commit, dirty := "unknown", ""
	if info == nil {
		return commit
	}
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+dirty"
		}
	}
	return commit + dirty
}

// Line returns what a program's --version prints: name, version, revision, Go version and platform.
func Line(program string) string {
	return fmt.Sprintf("%s %s (revision %s, %s, %s/%s)", program, Version, Revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
