package packed

import "ledgerd/engine/ledger/ledgertest"

var seeded, key = ledgertest.Seeded, ledgertest.Key
