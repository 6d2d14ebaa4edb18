// Package bench loads a ledgerd server and measures what comes back.
//
// # Nouns
//
// A scenario is one kind of load with one question, such as how many requests are answered in a second. It starts a
// server (package proc) that follows blocks which the scenario makes up (package feed), so that it knows when each update
// was due and what every answer must be. Where a scenario has peers (package peer), they do the same work in the same
// run, in turns with ledgerd: on a shared machine only ratios within one round mean anything.
//
// A run is some scenarios, one after the other. It ends what a measurement, or else a scenario, has started with that. What it
// measures it records in Go's benchmark format (package report), a line for each subject in each round, so that benchstat compares
// runs. Goals are one table over these figures (goals.yaml).
//
// # Rules
//
// Server and load are processes of their own, and the server's CPU time comes from the kernel's accounting. Latency
// counts from when the work was due, not from when the generator came round to it. What is due and never sent is counted.
// Failed requests are figures. What fails of a scenario itself ends it at that step, as a step of a test does (check). The package
// speaks HTTP and WebSocket only: it knows of the server what any client knows, and what the operators' listener tells.
package bench
