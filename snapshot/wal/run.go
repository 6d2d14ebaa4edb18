package wal

// commitRun is a run of whole commits on its way from the disk to the caller.
type commitRun struct {
	entries []Entry
	ends    []int // of each commit, in entries
	read    int64 // bytes of the log read so far
}

// deliver calls visit for each commit of the run until it fails.
func (r *commitRun) deliver(visit func([]Entry) error) error {
	at := 0
	for _, end := range r.ends {
		if err := visit(r.entries[at:end:end]); err != nil {
			return err
		}
		at = end
	}
	return nil
}
