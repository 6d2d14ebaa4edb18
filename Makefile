# Targets a person types, by topic: make alone prints them. Flags belong to the commands.

HUNDREDS = 13
STRIDE = 6
CYCLES = 16
SCHEDULES = 200
CUTS = 1000
SOAK = 2h

# Packages are compiled in one way for tests, programs and releases, and once. make vet does all that go test would do of it, too.
export CGO_ENABLED ?= 0
export GOFLAGS := -trimpath -vet=off $(GOFLAGS)

help: ## print this
	@awk -F ':.*## ' '/^##@ / { print "\n" substr($$0, 5) } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

##@ Start
run: build ## build, and start a node with the built-in simulated ledger
	bin/ledgerd serve --rpc-listen 127.0.0.1:8899 --source sim:pools=16 --data all --index-mints

cluster: build ## build, and start a cluster on this machine: nats-servers, ingesters, replicas, a balancer
	go build -C bench/peer/nats -o $(CURDIR)/bin/ github.com/nats-io/nats-server/v2
	bin/ledgercluster

build: ## build the programs into bin/
	go build -buildvcs=auto -o bin/ ./cmd/...

##@ Trust a change
test: ## everything a contributor needs to trust a change
	go test -p 4 -timeout 20m -skip 'InABrowser' ./...
	go test -run 'InABrowser' ./cmd/ledgerd # a browser that draws without a graphics card wants the machine to itself

check: fmt vet staticcheck faults-check race ## gofmt, vet, staticcheck, whether the page of faults is up to date, and race

faults-check:
	@.ci/faults --check

fmt:
	@test -z "$$(gofmt -l .)" || { gofmt -l . ; echo "these files need gofmt" ; exit 1 ; }

vet:
	go vet ./...

staticcheck:
	go tool staticcheck ./...

documents: httpd/console/node_modules ## lint the documents of the interface
	npm run --silent --prefix httpd/console lint

openapi: documents ## the same, have generated clients ask a node, and run the manual in both shells
	LEDGERD_GENERATORS=1 go test -count 1 -timeout 10m -run 'GeneratedClients|CommandsOfTheManual' ./cmd/ledgerd

httpd/console/node_modules: httpd/console/package-lock.json
	npm ci --prefix httpd/console --no-audit --no-fund
	@touch $@

race: race-parts race-nodes ## the tests under the race detector, the exhaustive ones sampled

# The race detector else has each process sleep for a second at its end.
RACE = CGO_ENABLED=1 GORACE=atexit_sleep_ms=100 go test -race -short -parallel 3 -timeout 15m

race-built: # what both share, which they may begin to compile at the same time, each for itself
	CGO_ENABLED=1 go build -race ./bench/... ./engine/... ./httpd/... ./shard/... ./snapshot/...

# Where nobody starts a goroutine or shares anything, nothing races. Scenarios of bench measure: what they do it with is tested by itself.
race-parts: race-built
	$(RACE) -p 2 $$(for d in $$(go list -f '{{.Dir}}' ./... | grep -vE 'cmd/ledgerd$$|/bench$$'); do grep -qsE '^\s*go |\.Go\(|"sync|synctest' $$d/*.go && echo $$d; done)

# Of the tests of whole nodes, those where clients, faults and stops meet.
race-nodes: race-built
	$(RACE) -run 'FaultSchedules|StopDuring|Client|TheEndOfABlock|TestScripts/(diskfailure|drain|cluster_down|stop_clients|tls)$$' ./cmd/ledgerd

##@ Try it for longer
# It fails every disk call of a run, kills nodes, stops them while they recover, cuts the power, fills the disk, cuts the
# streams of the client libraries and follows schedules of faults.
crash: ## the long durability test; CYCLES=4 SCHEDULES=50 CUTS=250 STRIDE= is a quarter as long
	LEDGERD_CRASH_ALL=$(STRIDE) LEDGERD_CRASH_CYCLES=$(CYCLES) LEDGERD_POWER_CUTS=$(CYCLES) LEDGERD_DISK_CYCLES=$(CYCLES) LEDGERD_FAULT_SCHEDULES=$(SCHEDULES) LEDGERD_CLIENT_CUTS=$(CUTS) go test -count 1 -timeout 30m -run 'EveryDiskCall|KilledNode|PowerCut|FullDisk|StopDuringReplay|FaultSchedules|ClientsFollow|FaultAtEveryCall' ./engine ./snapshot/wal ./cmd/ledgerd

crash-all: ## everything that other tests sample: a quarter of an hour
	LEDGERD_CRASH_ALL=1 go test -count 1 -timeout 60m ./engine/... ./snapshot/...

abuse: abuse-slow abuse-load ## attack a node from a few addresses, and bound its memory, its processor time and the answers of others

abuse-slow: ## of these, the attacks that take their time, and nothing else
	LEDGERD_ABUSE=1 go test -count 1 -timeout 20m -run 'AbuseSlow' ./cmd/ledgerd

abuse-load: ## of these, all others, which want the machine to themselves
	LEDGERD_ABUSE=1 go test -count 1 -timeout 20m -p 1 -run 'Abuse|Spray|Hostile' -skip 'AbuseSlow' ./httpd/ratelimit ./engine/source/rpc ./cmd/ledgerd

live: ## the long test of live sources: 2,000 schedules of faults, and 100,000 disconnects of a stream
	LEDGERD_DISCONNECTS=100000 go test -count 1 -timeout 40m -v -run TestNoGapIsMissed ./engine/source/geyser
	LEDGERD_FAULT_SCHEDULES=2000 go test -count 1 -timeout 60m -run TestFaultSchedules ./cmd/ledgerd

soak: ## two hours under everything that the internet and a machine do to a node at once; SOAK=10m is shorter
	LEDGERD_SOAK=$(SOAK) go test -count 1 -timeout 8h -v -run TestSoak ./cmd/ledgerd

chaos: ## the long test of clusters: servers and nodes are killed at random; HUNDREDS=3 is about a minute
	LEDGERD_NATS_TOOL=nats-server LEDGERD_CLUSTER_HUNDREDS=$(HUNDREDS) go test -count 1 -timeout 30m -v -run TestClusterSurvives ./cmd/ledgerd
	LEDGERD_RACES=12 go test -count 1 -timeout 20m -run 'TestServers/side_by_side/writers_race' ./engine/cluster

faults: ## write into the manual which tests prove which faults, and run these tests: ten minutes
	.ci/faults
	.ci/faults --run

fuzz: ## every fuzz target, a minute each
	@grep -rl '^func Fuzz' --include=*_test.go . | while read -r f; do for t in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\).*/\1/p' $$f); do go test -run '^$$' -fuzz "^$$t$$" -fuzztime 60s -fuzzminimizetime 0x $$(dirname $$f) || exit 1; done; done

##@ Measure
bench-once: ## every benchmark once and small, and every scenario of ledgerbench, so that none stops running unseen
	go test -short -run '^$$' -bench . -benchtime 1x -timeout 5m $$(grep -rl '^func Benchmark' --include=*_test.go . | xargs dirname | sort -u)
	LEDGERD_BENCH_ALL=1 go test -count 1 -timeout 5m -run Scenarios ./bench

bench: ## ten runs of every benchmark, into bench.txt
	go test -run '^$$' -bench . -count 10 ./... | tee bench.txt

bench-compare: ## the benchmarks of REF and of this tree in turns, compared: REF=HEAD~1 [PACKAGES=./shard]
	bench/compare.sh "$(REF)" $(PACKAGES)

load: ## measure everything, in turns with other services, into bench/RESULTS.md: less than an hour
	go build -buildvcs=auto -o bin/ ./cmd/...
	go build -C bench/peer/nats -o $(CURDIR)/bin/ github.com/nats-io/nats-server/v2
	bin/ledgerbench run --peers --output bin/load.txt
	bin/ledgerbench report bin/load.txt bench/RESULTS.md

##@ Release
screenshots: httpd/console/node_modules ## pictures of the console into bin/screenshots, on desktop and phone, dark and light; three are the manual's
	LEDGERD_SCREENSHOTS=$(CURDIR)/bin/screenshots go test -count 1 -run TestConsoleScreenshots ./cmd/ledgerd

release: ## what users install, into bin/release: programs, packages, images, SBOMs, checksums; VERSION=N.N.N
	cmd/ledgerd/deploy/release.sh bin/release

release-test: ## a release for this machine, made twice, read back, installed, upgraded and removed
	go test -C cmd/ledgerd/deploy/tools -count 1 -timeout 15m .
	go vet -C cmd/ledgerd/deploy/tools ./...

release-all: ## the same for all machines, on a fresh Debian: some minutes
	LEDGERD_RELEASE_ALL=1 go test -C cmd/ledgerd/deploy/tools -count 1 -timeout 30m .

.PHONY: help run cluster build test check faults-check fmt vet staticcheck documents openapi race race-built race-parts race-nodes fuzz crash crash-all abuse abuse-slow abuse-load live soak chaos faults bench-once bench bench-compare load screenshots release release-test release-all
