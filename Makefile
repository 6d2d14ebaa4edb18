# Targets a person types. Each is one line; flags belong to the commands.

run: build ## build and start with the built-in simulator
	bin/ledgerd serve

build: ## build the programs into bin/
	go build -trimpath -o bin/ ./cmd/...

test: ## everything a contributor needs to trust a change
	go test ./...

check: fmt vet staticcheck race ## what CI asks besides the tests

fmt:
	@test -z "$$(gofmt -l .)" || { gofmt -l . ; echo "these files need gofmt" ; exit 1 ; }

vet:
	go vet ./...

staticcheck:
	go tool staticcheck ./...

race: ## all tests under the race detector
	go test -race ./...

fuzz: ## every fuzz target, a minute each
	@grep -rl '^func Fuzz' --include=*_test.go . | while read -r f; do for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$f); do go test -run '^$$' -fuzz "^$$t$$" -fuzztime 60s -fuzzminimizetime 0x $$(dirname $$f) || exit 1; done; done

bench: ## ten runs of every benchmark, into bench.txt
	go test -run '^$$' -bench . -count 10 ./... | tee bench.txt

.PHONY: run build test check fmt vet staticcheck race fuzz bench
