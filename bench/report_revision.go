package bench

import (
	"debug/buildinfo"
	"path/filepath"
)

// Revision says which program this is: its name and the commit that it was built from, as far as its
// build noted that.
func Revision(program string) string {
	name := filepath.Base(program)
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return name + " of an unknown commit"
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	commit := settings["vcs.revision"]
	if commit == "" {
		return name + " of an unknown commit"
	}
	name += " of commit " + commit[:min(len(commit), 12)]
	if settings["vcs.modified"] == "true" {
		name += " with changes"
	}
	return name
}
