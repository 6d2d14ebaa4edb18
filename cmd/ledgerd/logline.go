package main

import (
	"fmt"
	"strconv"

	"ledgerd/engine/ledger"
	"ledgerd/engine/source/file"
	"ledgerd/snapshot/wal"
)

// The columns of a dump. Position and durable count bytes of the log from its beginning, offset
// those of the segment. A commit goes on while its records say more.
const (
	logHeading = "    position  segment:offset   version kind           slot hash                                         commit updates         seq      durable"
	logColumns = "%12d %15s %9d %-8s %10d %-44s %-6s %7d %11s %12d"
)

// appendLogLine appends the line of a record, newline included; last tells whether it is the
// last of its commit.
func appendLogLine(dst []byte, e *wal.Entry, last bool) []byte {
	r := e.Record
	commit, seq := "more", "-"
	if last {
		commit = "end"
	}
	if len(r.Updates) > 0 {
		seq = fmt.Sprintf("%d-%d", r.FirstSeq, r.LastSeq())
	}
	dst = fmt.Appendf(dst, logColumns, e.Position, fmt.Sprintf("%d:%d", e.Segment, e.Offset), r.Version,
		kindNames[r.Kind], r.Slot, r.Hash, commit, len(r.Updates), seq, e.Durable)
	switch {
	case r.Block != nil:
		dst = fmt.Appendf(dst, "  parent %d, %d transactions", r.Block.ParentSlot, len(r.Block.Transactions))
	case r.Base != nil:
		dst = fmt.Appendf(dst, "  %d accounts, %d mints", len(r.Base.Accounts), len(r.Base.Mints))
	case r.Kind == ledger.RollbackRecord:
		dst = fmt.Appendf(dst, "  from slot %d", r.FromSlot)
	case r.Kind == ledger.StatusRecord:
		dst = fmt.Appendf(dst, "  %s", r.Status)
	}
	return append(dst, '\n')
}

// kindNames are what a dump calls the kinds of records: the reader of the log lets no others through.
var kindNames = map[ledger.RecordKind]string{
	ledger.BlockRecord: "block", ledger.RollbackRecord: "rollback", ledger.StatusRecord: "status", ledger.BaseRecord: "base",
}

// appendUpdates appends a line of JSON for each update of a record: the account after it, as
// event lines show accounts.
func appendUpdates(dst []byte, r *ledger.Record) []byte {
	for i := range r.Updates {
		u := &r.Updates[i]
		dst = append(dst, `{"seq":`...)
		dst = strconv.AppendUint(dst, uint64(r.FirstSeq)+uint64(i), 10)
		dst = append(dst, `,"account":`...)
		dst = file.AppendAccount(dst, &ledger.AccountWrite{
			Pubkey: u.Account.Pubkey, Lamports: u.Account.Lamports, Owner: u.Account.Owner, RentEpoch: u.Account.RentEpoch,
			Executable: u.Account.Executable, Known: u.Account.Known, Token: u.Account.Token,
		})
		if u.OwnerBefore.Known {
			dst = append(dst, `,"owner_before":"`...)
			dst = append(u.OwnerBefore.Value.AppendBase58(dst), '"')
		}
		if u.WalletBefore.Known {
			dst = append(dst, `,"wallet_before":"`...)
			dst = append(u.WalletBefore.Value.AppendBase58(dst), '"')
		}
		dst = append(dst, "}\n"...)
	}
	return dst
}
