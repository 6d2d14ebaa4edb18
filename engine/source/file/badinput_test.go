package file

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"ledgerd/engine/codec"
	"ledgerd/engine/ledger"
)

// badWord is the word that bad input holds wherever it has room for one, and that no message
// may repeat.
const badWord = "Zanzibar"

// badInput is the content of a file and what is said of it after "cannot read FILE: ".
type badInput struct{ content, want string }

func badInputs(t testing.TB) map[string]badInput {
	all := badFiles(t)
	for _, more := range []map[string]badInput{
		badLines(), badLineAccounts(), badLineFacts(), badJSON(), badResponses(), badBlocks(), badTransactions(), badNodeAccounts(),
	} {
		maps.Copy(all, more)
	}
	return all
}

// lineAmong returns an event line as the third line of a good file.
func lineAmong(s string) string { return blockLine(1, 0) + "\n" + s + "\n" + blockLine(2, 1) }

// accountLine returns base state of one account as the third line of a good file.
func accountLine(fields string) string {
	return lineAmong(`{"type":"accounts","slot":1,"accounts":[{` + fields + `}]}`)
}

// blockWith returns the result of getBlock with more fields than it must have.
func blockWith(fields string) string {
	return fmt.Sprintf(`{"parentSlot":5,"blockhash":%q,%s}`, testKey(1), fields)
}

// blockWithTransaction returns the result of getBlock with one transaction.
func blockWithTransaction(body, meta string) string {
	return blockWith(`"transactions":[{"transaction":` + body + `,"meta":` + meta + `}]`)
}

func badFiles(t testing.TB) map[string]badInput {
	return map[string]badInput{
		"empty":                   {"", "it is empty"},
		"white space":             {" \n\t\r\n", "it is empty"},
		"empty gzip":              {gzipped(t, ""), "it is empty"},
		"empty zstd":              {zstded(t, ""), "it is empty"},
		"text":                    {badWord, "its content is none of the recorded forms"},
		"cut gzip":                {gzipped(t, blockLine(1, 0))[:40], "line 1: its gzip packing ends too early"},
		"cut zstd":                {zstded(t, blockLine(1, 0))[:40], "its zstd packing ends too early"},
		"gzip header only":        {"\x1f\x8b", "its gzip packing ends too early"},
		"gzip of another method":  {"\x1f\x8b\x01" + badWord, "its gzip packing is damaged: gzip: invalid header"},
		"zstd of a large window":  {"\x28\xb5\x2f\xfd\x00\xff" + badWord, "its zstd packing is damaged: window size exceeded"},
		"a stream, cut":           {"\x00\x00\x00\x05\x0a", "message 1: the input ends in it"},
		"a stream, cut in front":  {"\x00\x00\x00\x02\x0a\x00\x00", "message 2: the input ends in it"},
		"a stream of words":       {"\x00\x00\x00\x05\x0a" + badWord, "message 1: a field is cut short or of another type"},
		"a stream of a giant":     {"\x00\x00\x00\x02\x0a\x00\xff\xff\xff\xff", "message 2: it is said to have 4294967295 bytes, more than 67108864"},
		"an event file, cut":      {codec.EventFileMagic, "event file at byte 0: unexpected EOF"},
		"an event file, tomorrow": {codec.EventFileMagic + "\xff\xff\xff\xff", "event file at byte 0: corrupt encoding: format version 4294967295, only 1 is known"},
	}
}

func badLines() map[string]badInput {
	k, sig := testKey(1), testSignature(2)
	return map[string]badInput{
		"line: not JSON":           {lineAmong(badWord), "line 3: malformed JSON"},
		"line: first":              {`{"type":"slot",` + badWord + "}\n", "line 1: malformed JSON"},
		"line: after blank lines":  {"\n\n" + `{"type":"slot"}`, "line 3: slot is missing"},
		"line: cut":                {blockLine(1, 0) + `{"type":"slot","slot":1,"sta`, "line 2: it ends inside a JSON value"},
		"line: a list":             {lineAmong("[]"), "line 3: not a JSON object of the recorded forms"},
		"line: a string":           {lineAmong(`"` + badWord + `"`), "line 3: not a JSON object of the recorded forms"},
		"line: two values":         {lineAmong(`{"type":"slot","slot":1,"status":"dead"}{}`), "line 3: malformed JSON"},
		"line: no type":            {lineAmong(`{"slot":1}`), "line 3: type is neither block nor accounts nor slot"},
		"line: unknown type":       {lineAmong(`{"type":"` + badWord + `","slot":1}`), "line 3: type is neither block nor accounts nor slot"},
		"line: type is a number":   {lineAmong(`{"type":7}`), "line 3: type is of the wrong type or out of range"},
		"line: no slot":            {lineAmong(`{"type":"block"}`), "line 3: slot is missing"},
		"line: slot above 64 bits": {lineAmong(`{"type":"slot","slot":18446744073709551616,"status":"dead"}`), "line 3: slot is of the wrong type or out of range"},
		"line: negative slot":      {lineAmong(`{"type":"slot","slot":-1,"status":"dead"}`), "line 3: slot is of the wrong type or out of range"},
		"line: slot of a fraction": {lineAmong(`{"type":"slot","slot":1.0,"status":"dead"}`), "line 3: slot is of the wrong type or out of range"},
		"line: slot of exponent":   {lineAmong(`{"type":"slot","slot":1e3,"status":"dead"}`), "line 3: slot is of the wrong type or out of range"},
		"line: slot is text":       {lineAmong(`{"type":"slot","slot":"` + badWord + `","status":"dead"}`), "line 3: slot is of the wrong type or out of range"},
		"line: no status":          {lineAmong(`{"type":"slot","slot":1}`), "line 3: status is neither confirmed nor finalized nor dead"},
		"line: unknown status":     {lineAmong(`{"type":"slot","slot":1,"status":"` + badWord + `"}`), "line 3: status is neither confirmed nor finalized nor dead"},
		"line: status of no hash":  {lineAmong(`{"type":"slot","slot":1,"status":"dead","blockhash":"` + badWord + `"}`), "line 3: blockhash is not a base58 hash of 32 bytes"},
		"line: no parent":          {lineAmong(`{"type":"block","slot":2}`), "line 3: parent_slot is missing"},
		"line: no hash":            {lineAmong(`{"type":"block","slot":2,"parent_slot":1}`), "line 3: blockhash is missing"},
		"line: short hash":         {lineAmong(`{"type":"block","slot":2,"parent_slot":1,"blockhash":"` + badWord + `"}`), "line 3: blockhash is not a base58 hash of 32 bytes"},
		"line: bad previous hash":  {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"previous_blockhash":%q}`, k, badWord)), "line 3: previous_blockhash is not a base58 hash of 32 bytes"},
		"line: its own parent":     {lineAmong(blockLine(7, 7)), "line 3: the slot is not above its parent's"},
		"line: parent above":       {lineAmong(blockLine(7, 8)), "line 3: the slot is not above its parent's"},
		"line: bad signature":      {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"transactions":[{"signature":%q}]}`, k, k)), "line 3: transaction 0: signature is not a base58 signature of 64 bytes"},
		"line: bad account key":    {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"transactions":[{"signature":%q,"accounts":[%q]}]}`, k, sig, badWord)), "line 3: transaction 0: an account key is not a base58 key of 32 bytes"},
		"line: unknown commitment": {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"commitment":%q}`, k, badWord)), "line 3: commitment is neither processed nor confirmed nor finalized"},
		"line: count below list":   {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"transaction_count":0,"transactions":[{"signature":%q}]}`, k, sig)), "line 3: transaction_count is below the number of transactions"},
		"line: count is text":      {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"transaction_count":%q}`, k, badWord)), "line 3: transaction_count is of the wrong type or out of range"},
		"line: time of a fraction": {lineAmong(fmt.Sprintf(`{"type":"block","slot":2,"parent_slot":1,"blockhash":%q,"block_time":1.5}`, k)), "line 3: block_time is of the wrong type or out of range"},
	}
}

func badLineAccounts() map[string]badInput {
	k := testKey(1)
	return map[string]badInput{
		"account: no key":            {accountLine(`"lamports":1`), "line 3: account 0: pubkey is missing"},
		"account: key of 31 bytes":   {accountLine(`"pubkey":"1111111111111111111111111111111","lamports":1`), "line 3: account 0: pubkey is not a base58 key of 32 bytes"},
		"account: key of letters":    {accountLine(`"pubkey":"0OIl` + badWord + `","lamports":1`), "line 3: account 0: pubkey is not a base58 key of 32 bytes"},
		"account: no lamports":       {accountLine(fmt.Sprintf(`"pubkey":%q`, k)), "line 3: account 0: lamports is missing"},
		"account: too many lamports": {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":18446744073709551616`, k)), "line 3: account 0: lamports is of the wrong type or out of range"},
		"account: bad owner":         {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q`, k, badWord)), "line 3: account 0: owner is not a base58 key of 32 bytes"},
		"account: rent epoch":        {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"rent_epoch":1.8446744073709552e19`, k)), "line 3: account 0: rent_epoch is of the wrong type or out of range"},
		"account: executable":        {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"executable":%q`, k, badWord)), "line 3: account 0: executable is of the wrong type or out of range"},
		"account: data, no owner":    {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"data":""`, k)), "line 3: account 0: data without owner"},
		"account: data not base64":   {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":"%s!"`, k, k, badWord)), "line 3: account 0: data is not base64"},
		"account: data and bits":     {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":"QQ=="`, k, k) + `},{"pubkey":"` + k + `","lamports":1,"owner":"` + k + `","data":"QR=="`), "line 3: account 1: data is not base64"},
		"account: unknown encoding":  {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":["",%q]`, k, k, badWord)), "line 3: account 0: data is in an unknown encoding"},
		"account: data is a number":  {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":5`, k, k)), "line 3: account 0: data is neither text with its encoding, nor a list of bytes, nor parsed"},
		"account: data of three":     {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":["","base64",""]`, k, k)), "line 3: account 0: data is neither text with its encoding, nor a list of bytes, nor parsed"},
		"account: data and facts":    {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":"","mint":{"decimals":1}`, k, k)), "line 3: account 0: it has both data and facts"},
	}
}

func badLineFacts() map[string]badInput {
	k := testKey(1)
	token := func(fields string) string {
		return accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"token":{%s}`, k, fields))
	}
	mint := func(fields string) string {
		return accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"mint":{%s}`, k, fields))
	}
	return map[string]badInput{
		"token: no mint":              {token(`"amount":"1"`), "line 3: account 0: token: mint is missing"},
		"token: bad mint":             {token(`"mint":"` + badWord + `","amount":"1"`), "line 3: account 0: token: mint is not a base58 key of 32 bytes"},
		"token: bad owner":            {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"1"`, k, badWord)), "line 3: account 0: token: owner is not a base58 key of 32 bytes"},
		"token: no amount":            {token(fmt.Sprintf(`"mint":%q,"owner":%q`, k, k)), "line 3: account 0: token: amount is missing"},
		"token: amount is a number":   {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":1`, k, k)), "line 3: account 0: amount is of the wrong type or out of range"},
		"token: amount above 64 bits": {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"18446744073709551616"`, k, k)), "line 3: account 0: token: amount is not a decimal string of a 64-bit number"},
		"token: amount with zeros":    {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"01"`, k, k)), "line 3: account 0: token: amount is not a decimal string of a 64-bit number"},
		"token: amount with sign":     {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"+1"`, k, k)), "line 3: account 0: token: amount is not a decimal string of a 64-bit number"},
		"token: empty amount":         {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":""`, k, k)), "line 3: account 0: token: amount is not a decimal string of a 64-bit number"},
		"token: unknown state":        {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"1","state":%q`, k, k, badWord)), "line 3: account 0: token: state is neither initialized nor frozen"},
		"token: delegate, no state":   {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"1","delegate":%q`, k, k, k)), "line 3: account 0: token: state is missing"},
		"token: state, no owner":      {token(fmt.Sprintf(`"mint":%q,"amount":"1","state":"frozen"`, k)), "line 3: account 0: token: a token account with a state has no owner"},
		"token: native":               {token(fmt.Sprintf(`"mint":%q,"owner":%q,"amount":"1","is_native":true`, k, k)), "line 3: account 0: token: is_native contradicts the mint"},
		"token: true":                 {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"token":true`, k)), "line 3: account 0: token is of the wrong type or out of range"},
		"token: text":                 {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"token":%q`, k, badWord)), "line 3: account 0: token is of the wrong type or out of range"},
		"mint: a list":                {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"mint":[]`, k)), "line 3: account 0: mint is of the wrong type or out of range"},
		"mint: none, no lamports":     {accountLine(fmt.Sprintf(`"pubkey":%q,"mint":false`, k)), "line 3: account 0: lamports is missing"},
		"mint: none, and data":        {accountLine(fmt.Sprintf(`"pubkey":%q,"lamports":1,"owner":%q,"data":"","mint":false`, k, k)), "line 3: account 0: it has both data and facts"},
		"mint: no decimals":           {mint(`"supply":"1"`), "line 3: account 0: mint: decimals is missing"},
		"mint: decimals of 256":       {mint(`"decimals":256`), "line 3: account 0: decimals is of the wrong type or out of range"},
		"mint: bad supply":            {mint(`"decimals":6,"supply":"` + badWord + `"`), "line 3: account 0: mint: supply is not a decimal string of a 64-bit number"},
		"mint: scaled":                {mint(`"decimals":6,"scaled":1`), "line 3: account 0: scaled is of the wrong type or out of range"},
	}
}

func badJSON() map[string]badInput {
	return map[string]badInput{
		"json: cut":                       {`{"parentSlot":5,"bl`, "it ends inside a JSON value"},
		"json: malformed":                 {`{"parentSlot":5,` + badWord + `}`, "malformed JSON"},
		"json: null":                      {"[null]", "entry 1: null instead of a block or an account"},
		"json: a string in a list":        {`["` + badWord + `"]`, "entry 1: not a JSON object of the recorded forms"},
		"json: a list in a list":          {`[[]]`, "entry 1: not a JSON object of the recorded forms"},
		"json: list not closed":           {"[" + blockWith(`"slot":6`) + ",", "entry 2: it ends inside a JSON value"},
		"json: list not closed, no comma": {"[" + blockWith(`"slot":6`), "it ends inside a JSON value"},
		"json: list just opened":          {"[", "it ends inside a JSON value"},
		"json: list without comma":        {"[" + blockWith(`"slot":6`) + blockWith(`"slot":7`) + "]", "entry 2: malformed JSON"},
		"json: more after a list":         {"[" + blockWith(`"slot":6`) + "] 7", "something follows the list"},
		"json: more after a block":        {blockWith(`"slot":6`) + badWord, "entry 2: malformed JSON"},
		"json: another object":            {`{"name":"` + badWord + `"}`, "a JSON object that is neither a block nor an account"},
		"json: one transaction":           {`{"slot":5,"transaction":["` + badWord + `","base64"],"meta":null}`, "a single transaction, which is neither a block nor an account"},
	}
}

func badResponses() map[string]badInput {
	return map[string]badInput{
		"response: refused":             {`{"jsonrpc":"2.0","error":{"code":-32007,"message":"` + badWord + `"},"id":1}`, "the node's error -32007 instead of a result"},
		"response: null":                {`{"jsonrpc":"2.0","result":null,"id":1}`, "the node's result is null: it has no such block"},
		"response: a number":            {`{"jsonrpc":"2.0","result":5,"id":1}`, "the node's result is neither a block nor an account"},
		"response: a string":            {`{"jsonrpc":"2.0","result":"` + badWord + `","id":1}`, "the node's result is neither a block nor an account"},
		"response: another result":      {`{"jsonrpc":"2.0","result":{"` + badWord + `":1},"id":1}`, "a JSON object that is neither a block nor an account"},
		"response: inside another":      {`{"result":{"result":{"result":1}}}`, "a response inside a response"},
		"response: value is a number":   {`{"result":{"context":{"slot":1},"value":5}}`, "the value is not an account"},
		"response: no value":            {`{"result":{"context":{"slot":1}}}`, "value is missing"},
		"response: value of a bad type": {`{"result":{"context":{"slot":1},"value":{"lamports":"1"}}}`, "lamports is of the wrong type or out of range"},
		"response: value without key":   {`{"result":{"context":{"slot":1},"value":{"lamports":1}}}`, "pubkey is neither in the object nor in the name of the file"},
		"response: values without key":  {`{"result":{"context":{"slot":1},"value":[{"lamports":1}]}}`, "account 1: pubkey is missing"},
	}
}

func badBlocks() map[string]badInput {
	k := testKey(1)
	return map[string]badInput{
		"block: no hash":          {`{"parentSlot":5}`, "blockhash is missing"},
		"block: no parent":        {fmt.Sprintf(`{"blockhash":%q}`, k), "parentSlot is missing"},
		"block: bad hash":         {`{"parentSlot":5,"blockhash":"` + badWord + `"}`, "blockhash is not a base58 hash of 32 bytes"},
		"block: bad previous":     {blockWith(`"previousBlockhash":"` + badWord + `"`), "previousBlockhash is not a base58 hash of 32 bytes"},
		"block: its own parent":   {blockWith(`"slot":5`), "the slot is not above its parent's"},
		"block: parent above":     {blockWith(`"slot":4`), "the slot is not above its parent's"},
		"block: after the last":   {fmt.Sprintf(`{"parentSlot":18446744073709551615,"blockhash":%q}`, k), "the slot is not above its parent's"},
		"block: negative parent":  {fmt.Sprintf(`{"parentSlot":-1,"blockhash":%q}`, k), "parentSlot is of the wrong type or out of range"},
		"block: height":           {blockWith(`"blockHeight":18446744073709551616`), "blockHeight is of the wrong type or out of range"},
		"block: reward key":       {blockWith(`"rewards":[{"pubkey":"` + badWord + `"}]`), "reward 0: pubkey is not a base58 key of 32 bytes"},
		"block: second in a list": {"[" + blockWith(`"slot":6`) + "," + blockWith(`"slot":5`) + "]", "entry 2: the slot is not above its parent's"},
	}
}

func badTransactions() map[string]badInput {
	k, sig := testKey(1), testSignature(2)
	body := fmt.Sprintf(`{"signatures":[%q],"message":{"accountKeys":[%q]}}`, sig, k)
	row := func(fields string) string {
		return blockWithTransaction(body, `{"postBalances":[1],"postTokenBalances":[{`+fields+`}]}`)
	}
	amount := fmt.Sprintf(`"accountIndex":0,"mint":%q,"uiTokenAmount":`, k)
	return map[string]badInput{
		"transaction: null":             {blockWithTransaction("null", "null"), "a transaction is neither an object nor encoded"},
		"transaction: a number":         {blockWithTransaction("5", "null"), "a transaction is neither an object nor encoded"},
		"transaction: one of a pair":    {blockWithTransaction(`["`+badWord+`"]`, "null"), "a transaction is not a pair of text and encoding"},
		"transaction: unknown encoding": {blockWithTransaction(`["",  "`+badWord+`"]`, "null"), "a transaction is in an unknown encoding"},
		"transaction: not base64":       {blockWithTransaction(`["!`+badWord+`","base64"]`, "null"), "a transaction is not base64"},
		"transaction: not base58":       {blockWithTransaction(`"0`+badWord+`"`, "null"), "a transaction is not base58"},
		"transaction: too long":         {blockWithTransaction(`["`+strings.Repeat("A", 5000)+`","base64"]`, "null"), "a transaction is too long"},
		"transaction: garbage":          {blockWithTransaction(`["`+badWord+`","base64"]`, "null"), "transaction 0: malformed wire format"},
		"transaction: empty":            {blockWithTransaction(`["","base64"]`, "null"), "transaction 0: malformed wire format"},
		"transaction: no signature":     {blockWithTransaction(`{"signatures":[]}`, "null"), "transaction 0: it has no signature"},
		"transaction: bad signature":    {blockWithTransaction(`{"signatures":["`+badWord+`"]}`, "null"), "transaction 0: signature is not a base58 signature of 64 bytes"},
		"transaction: no keys":          {blockWithTransaction(fmt.Sprintf(`{"signatures":[%q]}`, sig), "null"), "transaction 0: accountKeys is missing"},
		"transaction: bad key":          {blockWithTransaction(fmt.Sprintf(`{"signatures":[%q],"message":{"accountKeys":[{"pubkey":%q}]}}`, sig, badWord), "null"), "transaction 0: an account key is not a base58 key of 32 bytes"},
		"transaction: bad loaded key":   {blockWithTransaction(body, `{"loadedAddresses":{"writable":["`+badWord+`"]}}`), "transaction 0: a loaded address is not a base58 key of 32 bytes"},
		"meta: fee":                     {blockWithTransaction(body, `{"fee":-1}`), "fee is of the wrong type or out of range"},
		"meta: too few balances":        {blockWithTransaction(body, `{"postBalances":[]}`), "transaction 0: 0 postBalances for 1 accounts"},
		"meta: too many balances":       {blockWithTransaction(body, `{"postBalances":[1,2]}`), "transaction 0: 2 postBalances for 1 accounts"},
		"meta: balance is null":         {blockWithTransaction(body, `{"postBalances":[null]}`), "a list of balances holds something else than 64-bit numbers"},
		"meta: balance above 64 bits":   {blockWithTransaction(body, `{"postBalances":[18446744073709551616]}`), "a list of balances holds something else than 64-bit numbers"},
		"meta: balances nested":         {blockWithTransaction(body, `{"postBalances":[[1],[2]]}`), "a list of balances holds something else than 64-bit numbers"},
		"meta: balances are text":       {blockWithTransaction(body, `{"postBalances":"`+badWord+`"}`), "a list of balances holds something else than 64-bit numbers"},
		"row: no index":                 {row(""), "transaction 0: postTokenBalances: accountIndex names no account"},
		"row: index past the end":       {row(`"accountIndex":1`), "transaction 0: postTokenBalances: accountIndex names no account"},
		"row: before, index":            {blockWithTransaction(body, `{"postBalances":[1],"postTokenBalances":[],"preTokenBalances":[{"accountIndex":-1}]}`), "transaction 0: preTokenBalances: accountIndex names no account"},
		"row: mint":                     {row(`"accountIndex":0`), "transaction 0: postTokenBalances: mint is not a base58 key of 32 bytes"},
		"row: no amount":                {row(amount + "{}"), "transaction 0: postTokenBalances: amount is missing"},
		"row: bad amount":               {row(amount + `{"amount":"` + badWord + `","decimals":0}`), "transaction 0: postTokenBalances: amount is not a decimal string of a 64-bit number"},
		"row: no decimals":              {row(amount + `{"amount":"1"}`), "transaction 0: postTokenBalances: decimals is missing"},
		"row: bad wallet":               {row(`"owner":"` + badWord + `",` + amount + `{"amount":"1","decimals":0}`), "transaction 0: postTokenBalances: owner is not a base58 key of 32 bytes"},
		"row: bad program":              {row(`"programId":"` + badWord + `",` + amount + `{"amount":"1","decimals":0}`), "transaction 0: postTokenBalances: programId is not a base58 key of 32 bytes"},
	}
}

func badNodeAccounts() map[string]badInput {
	k := testKey(1)
	node := func(fields string) string { return fmt.Sprintf(`{"pubkey":%q,%s}`, k, fields) }
	return map[string]badInput{
		"node account: no key":        {`{"lamports":1}`, "pubkey is neither in the object nor in the name of the file"},
		"node account: bad key":       {`{"pubkey":"` + badWord + `","lamports":1}`, "a key is not base58 or a list of 32 bytes"},
		"node account: 31 bytes":      {`{"pubkey":[` + strings.Repeat("1,", 30) + `1],"lamports":1}`, "a key is not base58 or a list of 32 bytes"},
		"node account: byte of 256":   {`{"pubkey":[` + strings.Repeat("1,", 31) + `256],"lamports":1}`, "a key is not base58 or a list of 32 bytes"},
		"node account: no lamports":   {node(`"account":{}`), "lamports is missing"},
		"node account: lamports":      {node(`"lamports":1.0`), "lamports is of the wrong type or out of range"},
		"node account: rent epoch":    {node(`"lamports":1,"rentEpoch":1.8e19`), "rentEpoch is of the wrong type or out of range"},
		"node account: data":          {node(`"lamports":1,"data":true`), "data is neither text with its encoding, nor a list of bytes, nor parsed"},
		"node account: data byte":     {node(`"lamports":1,"data":[1,-1]`), "data is neither text with its encoding, nor a list of bytes, nor parsed"},
		"node account: null data":     {node(`"lamports":1,"data":[null,"base64"]`), "data is neither text with its encoding, nor a list of bytes, nor parsed"},
		"node account: base64":        {node(`"lamports":1,"data":["` + badWord + `!","base64"]`), "data is not base64"},
		"node account: base58":        {node(`"lamports":1,"data":["0` + badWord + `","base58"]`), "data is not base58"},
		"node account: long base58":   {node(`"lamports":1,"data":"` + strings.Repeat("z", 3000) + `"`), "data is not base58"},
		"node account: zstd":          {node(`"lamports":1,"data":["` + badWord + `","base64+zstd"]`), "data is not base64+zstd"},
		"node account: encoding":      {node(`"lamports":1,"data":["","` + badWord + `"]`), "data is in an unknown encoding"},
		"node account: not parsed":    {node(`"lamports":1,"data":{"` + badWord + `":1}`), "data is neither text with its encoding, nor a list of bytes, nor parsed"},
		"node account: parsed":        {node(`"lamports":1,"data":{"program":"spl-token","parsed":{"type":"mint"}}`), "info is missing"},
		"node account: parsed mint":   {node(`"lamports":1,"data":{"program":"spl-token","parsed":{"type":"mint","info":{"decimals":300}}}`), "decimals is of the wrong type or out of range"},
		"node account: parsed amount": {node(fmt.Sprintf(`"lamports":1,"data":{"program":"spl-token","parsed":{"type":"account","info":{"mint":%q,"owner":%q,"state":"frozen"}}}`, k, k)), "amount is missing"},
	}
}

func TestBadInputIsRefusedWithoutRepeatingIt(t *testing.T) {
	for name, tt := range badInputs(t) {
		path := write(t, "a", tt.content)
		s, _ := open(t, path)
		got, err := run(s, nil)
		if want := "cannot read " + path + ": " + tt.want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
			continue
		}
		if strings.Contains(err.Error(), badWord) {
			t.Errorf("%s: the message repeats the input: %v", name, err)
		}
		// What stood in front of the error has been emitted; nothing after it.
		for _, e := range got {
			if b, ok := e.(*ledger.Block); !ok || (b.Slot != 1 && b.Slot != 6) {
				t.Errorf("%s: emitted %s", name, outline(got))
			}
		}
	}
}

func TestLinesAndValuesAreBounded(t *testing.T) {
	first := blockLine(1, 0)
	s, _ := open(t, "-")
	for name, tt := range map[string]struct{ tail, want string }{
		"a longest line": {strings.Repeat(" ", MaxLineBytes-1) + "\n", ""},
		"one byte more":  {strings.Repeat(" ", MaxLineBytes) + "\n", "cannot read standard input: line 2: line longer than 64 MiB"},
	} {
		s.stdin = strings.NewReader(first + tt.tail)
		got, err := run(s, nil)
		if fmt.Sprint(err) != tt.want && (err != nil || tt.want != "") || outline(got) != "block 1" {
			t.Errorf("%s: got %s, err = %v", name, outline(got), err)
		}
	}
	limit := valueLimit{strings.NewReader("some bytes"), 4}
	if n, err := limit.Read(make([]byte, 4)); n != 4 || err != nil {
		t.Errorf("within the bound: %d, %v", n, err)
	}
	if n, err := limit.Read(make([]byte, 4)); n != 0 || err != errValueTooLong {
		t.Errorf("past the bound: %d, %v", n, err)
	}
}
