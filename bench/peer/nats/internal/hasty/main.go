// Hasty is a nats-server that notices sooner that another one is gone. Tests kill servers all the time, and nearly all that they
// wait for is elections: one takes from four to nine seconds. The server takes no option for that, so that its variables are
// set here, as its own tests set them.
package main

import (
	"flag"
	"os"
	"time"
	_ "unsafe" // for linkname

	"github.com/nats-io/nats-server/v2/server"
)

var (
	//go:linkname minElectionTimeout github.com/nats-io/nats-server/v2/server.minElectionTimeout
	minElectionTimeout time.Duration
	//go:linkname maxElectionTimeout github.com/nats-io/nats-server/v2/server.maxElectionTimeout
	maxElectionTimeout time.Duration
	//go:linkname hbInterval github.com/nats-io/nats-server/v2/server.hbInterval
	hbInterval time.Duration
	//go:linkname lostQuorumInterval github.com/nats-io/nats-server/v2/server.lostQuorumInterval
	lostQuorumInterval time.Duration
	//go:linkname lostQuorumCheck github.com/nats-io/nats-server/v2/server.lostQuorumCheck
	lostQuorumCheck time.Duration
)

func main() {
	minElectionTimeout, maxElectionTimeout = 800*time.Millisecond, 1800*time.Millisecond
	hbInterval, lostQuorumInterval, lostQuorumCheck = 200*time.Millisecond, 2*time.Second, 2*time.Second

	flags := flag.NewFlagSet("hasty", flag.ExitOnError)
	options, err := server.ConfigureOptions(flags, os.Args[1:], server.PrintServerAndExit, flags.Usage, server.PrintTLSHelpAndDie)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s, err := server.NewServer(options)
	if err != nil {
		server.PrintAndDie(err.Error())
	}
	s.ConfigureLogger()
	if err := server.Run(s); err != nil {
		server.PrintAndDie(err.Error())
	}
	s.WaitForShutdown()
}
