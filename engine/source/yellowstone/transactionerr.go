package yellowstone

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"

	"ledgerd/engine/ledger"
)

// Names of the variants of TransactionError and InstructionError, by their numbers in bincode, and after ":" what value some have, as errText
// reads it. Sources: the crates solana-transaction-error and solana-instruction-error, src/lib.rs.
var (
	transactionErrs = []string{
		"AccountInUse", "AccountLoadedTwice", "AccountNotFound", "ProgramAccountNotFound", "InsufficientFundsForFee", "InvalidAccountForFee",
		"AlreadyProcessed", "BlockhashNotFound", "InstructionError:instruction", "CallChainTooDeep", "MissingSignatureForFee",
		"InvalidAccountIndex", "SignatureFailure", "InvalidProgramForExecution", "SanitizeFailure", "ClusterMaintenance",
		"AccountBorrowOutstanding", "WouldExceedMaxBlockCostLimit", "UnsupportedVersion", "InvalidWritableAccount",
		"WouldExceedMaxAccountCostLimit", "WouldExceedAccountDataBlockLimit", "TooManyAccountLocks", "AddressLookupTableNotFound",
		"InvalidAddressLookupTableOwner", "InvalidAddressLookupTableData", "InvalidAddressLookupTableIndex", "InvalidRentPayingAccount",
		"WouldExceedMaxVoteCostLimit", "WouldExceedAccountDataTotalLimit", "DuplicateInstruction:u8",
		"InsufficientFundsForRent:account", "MaxLoadedAccountsDataSizeExceeded", "InvalidLoadedAccountsDataSizeLimit",
		"ResanitizationNeeded", "ProgramExecutionTemporarilyRestricted:account", "UnbalancedTransaction",
		"ProgramCacheHitMaxLimit", "CommitCancelled",
	}
	instructionErrs = []string{
		"GenericError", "InvalidArgument", "InvalidInstructionData", "InvalidAccountData", "AccountDataTooSmall", "InsufficientFunds",
		"IncorrectProgramId", "MissingRequiredSignature", "AccountAlreadyInitialized", "UninitializedAccount", "UnbalancedInstruction",
		"ModifiedProgramId", "ExternalAccountLamportSpend", "ExternalAccountDataModified", "ReadonlyLamportChange", "ReadonlyDataModified",
		"DuplicateAccountIndex", "ExecutableModified", "RentEpochModified", "NotEnoughAccountKeys", "AccountDataSizeChanged",
		"AccountNotExecutable", "AccountBorrowFailed", "AccountBorrowOutstanding", "DuplicateAccountOutOfSync", "Custom:u32",
		"InvalidError", "ExecutableDataModified", "ExecutableLamportChange", "ExecutableAccountNotRentExempt", "UnsupportedProgramId",
		"CallDepth", "MissingAccount", "ReentrancyNotAllowed", "MaxSeedLengthExceeded", "InvalidSeeds", "InvalidRealloc",
		"ComputationalBudgetExceeded", "PrivilegeEscalation", "ProgramEnvironmentSetupFailure", "ProgramFailedToComplete",
		"ProgramFailedToCompile", "Immutable", "IncorrectAuthority", "BorshIoError:text", "AccountNotRentExempt", "InvalidAccountOwner",
		"ArithmeticOverflow", "UnsupportedSysvar", "IllegalOwner", "MaxAccountsDataAllocationsExceeded", "MaxAccountsExceeded",
		"MaxInstructionTraceLengthExceeded", "BuiltinProgramsMustConsumeComputeUnits",
	}
)

// decodeErr returns the JSON of a message TransactionError {err 1}, where err is what a transaction failed with, in bincode. It returns "" for
// variants that are unknown here, and for what is cut short or too long to be kept.
func decodeErr(message []byte) string {
	var b bincode
	for m := (reader{rest: message}); m.next(); {
		if m.number == 1 {
			b.rest = m.part()
		}
	}
	if text := b.errText(transactionErrs); !b.wrong && len(text) <= ledger.MaxErrBytes {
		return text
	}
	return ""
}

// bincode reads the numbers of a value in turn, little endian.
type bincode struct {
	rest  []byte
	wrong bool // it is cut short, or of an unknown variant
}

// take returns the next n bytes, or as many zeros.
func (b *bincode) take(n uint64) (taken []byte) {
	if n > uint64(len(b.rest)) {
		b.wrong, b.rest = true, nil
		return make([]byte, 8)
	}
	taken, b.rest = b.rest[:n], b.rest[n:]
	return taken
}

func (b *bincode) u8() byte    { return b.take(1)[0] }
func (b *bincode) u32() uint32 { return binary.LittleEndian.Uint32(b.take(4)) }

// errText reads a variant of those named, and returns its JSON. BorshIoError had a text until version 3 of its crate.
func (b *bincode) errText(names []string) string {
	number := b.u32()
	if number >= uint32(len(names)) {
		b.wrong = true
		return ""
	}
	name, value, _ := strings.Cut(names[number], ":")
	switch {
	case value == "instruction":
		return fmt.Sprintf(`{"%s":[%d,%s]}`, name, b.u8(), b.errText(instructionErrs))
	case value == "u8":
		return fmt.Sprintf(`{"%s":%d}`, name, b.u8())
	case value == "account":
		return fmt.Sprintf(`{"%s":{"account_index":%d}}`, name, b.u8())
	case value == "u32":
		return fmt.Sprintf(`{"%s":%d}`, name, b.u32())
	case value == "text" && len(b.rest) > 0:
		text, err := json.Marshal(string(b.take(binary.LittleEndian.Uint64(b.take(8)))))
		b.wrong = b.wrong || err != nil
		return fmt.Sprintf(`{"%s":%s}`, name, text)
	}
	return `"` + name + `"`
}
