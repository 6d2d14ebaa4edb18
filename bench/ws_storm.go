package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"

	"ledgerd/bench/feed"
)

// storm has 15,000 clients connect at the same moment, as after a restart, while somebody asks
// over REST. What is asked is whether all get in, whom the caps keep out and how, and what who
// asks meanwhile notices.
var storm = Scenario{
	Name: "storm",
	Help: "15,000 clients connect at once: whether all get in, and what REST notices.",
	Own:  "it fills the server up to its caps",
	Run:  runStorm,
}

// The server's caps, as it is told in its documentation, and what goes beyond them.
const (
	stormClients  = 15_000
	stormCap      = 16_384  // WebSockets in all
	stormOver     = 300     // clients that come when it is full
	stormEach     = 20      // WebSockets of one client
	stormGreedy   = 30      // clients that come from one address
	stormRate     = 500     // requests a second
	stormPollers  = 128     // connections that ask: so many that none waits for another
	stormRequests = 1 << 14 // different ones, before they come again
	stormFiles    = 500     // of both processes beside the clients' sockets

	// stormNice is the clients' priority. Elsewhere they have processors of their own; here they
	// get what server and poller leave.
	stormNice = 15
)

// stormRun is one run of the scenario.
type stormRun struct {
	*rig
	env    *Env
	self   []string // what runs the clients
	result *Result
	crowd  *stormProcess
	poll   *load
	asked  netip.Addr // the address that the next clients come from

	unanswered error // why a request was
}

func runStorm(ctx context.Context, env *Env) (*Result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return (&stormRun{env: env, self: []string{self, "helper", "storm"}, result: &Result{Scenario: "storm"}}).run(ctx)
}

func (s *stormRun) run(ctx context.Context) (r *Result, err error) {
	// Nobody is exempt, so that the caps hold.
	s.rig, err = startRig(ctx, s.env, feed.Config{Accounts: max(s.env.Scaled(networkAccounts), networkUpdates), Updates: networkUpdates},
		"--rate-limit-exempt", "192.0.2.0/24", "--retain-slots", "100")
	if err != nil {
		return nil, err
	}
	defer s.Kill()
	if s.crowd, err = startStormProcess(ctx, s.self); err != nil {
		return nil, err
	}
	defer s.crowd.end()
	before, _, _, err := standingOf(s.Server)
	if err != nil {
		return nil, err
	}
	if err := s.ask(ctx); err != nil {
		return nil, err
	}
	after, err := settle(ctx, s.Server, before)
	if err != nil {
		return nil, err
	}
	s.goals()
	s.result.compareStanding(before, after)
	s.result.Notes = append(s.result.Notes, "The clients run on the same processors as the server, at a lower priority.")
	return s.result, s.Stop()
}

// ask asks over REST, at the pace of a busy network, while the rounds run.
func (s *stormRun) ask(ctx context.Context) error {
	address, err := addressOf(s.URL())
	if err != nil {
		return err
	}
	known := &truth{address: address, ledger: s.feed.Config()}
	config := loadConfig{Address: address, Connections: stormPollers, Rate: stormRate, Frame: frameLast}
	config.Script = newScript(stormRequests, func(c *rand.Rand) restAsk { return restAsk{askAccount, uint32(c.IntN(known.ledger.Accounts))} }, known.write)
	config.Check = func(a restAsk, status int, head, body []byte) error {
		if status != 200 {
			return nil // which is counted
		}
		return known.check(a, status, head, body)
	}
	for i := range byte(4) { // one client may have a hundred
		config.Locals = append(config.Locals, netip.AddrFrom4([4]byte{127, 0, 1, 1 + i}))
	}
	if s.poll, err = newLoad(ctx, config); err != nil {
		return err
	}
	defer s.poll.close()
	open, stop := context.WithCancel(ctx)
	var busy sync.WaitGroup
	paced, asked := make(chan error, 1), make(chan error, 1)
	busy.Go(func() { asked <- s.poll.run(open) })
	busy.Go(func() {
		_, err := s.feed.Pace(open, networkInterval, math.MaxInt)
		paced <- err
	})
	for round := range s.env.Rounds {
		if err = s.round(ctx, round); err != nil {
			break
		}
	}
	stop()
	busy.Wait()
	return errors.Join(err, <-paced, <-asked, s.unanswered)
}

func (s *stormRun) round(ctx context.Context, round int) error {
	s.asked = netip.AddrFrom4([4]byte{127, 1, 0, 1})
	row := s.result.Row("ledgerd")
	s.poll.take()
	pause(ctx, s.env.Duration)
	s.noteREST(row, "before", s.poll.take())
	calm := row.last("REST p99 before")
	clients := s.env.Scaled(stormClients)
	clients, note, err := socketRoom(clients)
	if err != nil {
		return err
	}
	if note != "" && round == 0 {
		s.result.Notes = append(s.result.Notes, note)
	}
	in, err := s.connect(clients, stormEach)
	if err != nil {
		return err
	}
	s.noteREST(row, "meanwhile", s.poll.take())
	row.Add("REST p99 meanwhile, of that before", "×", ratio(row.last("REST p99 meanwhile"), calm))
	row.Add("connected", "", float64(in.Connected))
	row.Add("not let in", "", float64(clients-in.Connected))
	row.Add("until all were in", "s", in.Seconds)
	row.Add("handshake p50", "ms", in.P50)
	row.Add("handshake p99", "ms", in.P99)
	s.env.Say("storm round %d: %d of %d clients are in after %.1f s; REST p99 %.2f ms before, %.2f ms meanwhile%s",
		round+1, in.Connected, clients, in.Seconds, calm, row.last("REST p99 meanwhile"), because(in.Why))
	if err := s.exceed(ctx, row, in.Connected); err != nil {
		return err
	}
	_, err = s.crowd.ask(stormOrder{Do: "leave"})
	return err
}

// because tells why a client failed, if one did.
func because(why string) string {
	if why != "" {
		return "; one failed: " + why
	}
	return ""
}

// exceed sees that all are still there, and whom the caps keep out.
func (s *stormRun) exceed(ctx context.Context, row *Row, in int) error {
	greedy, err := s.connect(stormGreedy, stormGreedy)
	if err != nil {
		return err
	}
	in += greedy.Connected
	row.Add("above the client's cap, not answered 429", "", float64(stormGreedy-stormEach-greedy.Refused[429]))
	full, err := s.fill(row, in)
	if err != nil {
		return err
	}
	in += full
	known, err := s.crowd.ask(stormOrder{Do: "ping"})
	if err != nil {
		return err
	}
	row.Add("lost", "", float64(in-known.Connected))
	s.noteREST(row, "afterwards", s.poll.take())
	return ctx.Err()
}

// fill has so many clients connect that the server is full, and some more.
func (s *stormRun) fill(row *Row, in int) (more int, err error) {
	room := stormCap - in - 1 // one is ours
	total := in + room + stormOver
	if can, _, err := socketRoom(total + stormFiles); err != nil || can < total || s.env.Scaled(stormClients) < stormClients {
		if note := "the server was not filled up: that takes the full scale, and the files for it"; !slices.Contains(s.result.Notes, note) {
			s.result.Notes = append(s.result.Notes, note)
		}
		return 0, err
	}
	report, err := s.connect(room+stormOver, stormEach)
	if err != nil {
		return 0, err
	}
	row.Add("below the server's cap, not let in", "", float64(room-report.Connected))
	row.Add("above the server's cap, not answered 503", "", float64(stormOver-report.Refused[503]))
	return report.Connected, nil
}

// connect has clients connect from addresses that nobody came from before.
func (s *stormRun) connect(clients, each int) (stormReport, error) {
	report, err := s.crowd.ask(stormOrder{Do: "connect", URL: s.StreamURL() + "?mode=none", Clients: clients, First: s.asked, Each: each})
	for range (clients + each - 1) / each {
		s.asked = s.asked.Next()
	}
	return report, err
}

func (s *stormRun) noteREST(row *Row, when string, c *loadCounts) {
	if s.unanswered == nil && c.Failed > 0 {
		s.unanswered = fmt.Errorf("a request was not answered: %w", c.Why)
	}
	row.Add("REST p50 "+when, "ms", milliseconds(c.Latency.Quantile(0.5)))
	row.Add("REST p99 "+when, "ms", milliseconds(c.Latency.Quantile(0.99)))
	row.Add("REST not answered 200 "+when, "", float64(c.answered()-c.Statuses[200]+c.Failed))
}

func (s *stormRun) goals() {
	row := s.result.Row("ledgerd")
	s.result.Goals = append(s.result.Goals, Goal{
		What: "REST p99 meanwhile, of that before", Value: row.figure("REST p99 meanwhile, of that before").Median(), Limit: 2,
	})
	for _, name := range []string{
		"not let in", "lost", "above the client's cap, not answered 429", "below the server's cap, not let in",
		"above the server's cap, not answered 503", "REST not answered 200 meanwhile",
	} {
		if f := row.figure(name); len(f.Values) > 0 {
			least, most := f.Spread()
			s.result.Goals = append(s.result.Goals, Goal{What: "clients " + name, Value: math.Max(most, -least), Limit: 0})
		}
	}
}

// stormProcess is a process that runs StormClients.
type stormProcess struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startStormProcess(ctx context.Context, self []string) (*stormProcess, error) {
	p := &stormProcess{cmd: exec.CommandContext(ctx, self[0], self[1:]...)}
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the clients: %w", err)
	}
	// Of a group every thread is meant, of a process one alone.
	if err := syscall.Setpriority(syscall.PRIO_PGRP, p.cmd.Process.Pid, stormNice); err != nil {
		p.end()
		return nil, fmt.Errorf("cannot lower the clients' priority: %w", err)
	}
	return p, nil
}

// ask has the clients do something and returns how it went.
func (p *stormProcess) ask(o stormOrder) (r stormReport, err error) {
	if err := json.NewEncoder(p.in).Encode(o); err != nil {
		return r, fmt.Errorf("cannot tell the clients to %s: %w", o.Do, err)
	}
	line, err := p.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err != nil {
		return r, fmt.Errorf("the clients did not say how they fared (%s): %w", o.Do, err)
	}
	return r, nil
}

// end lets the process end, which it does when nobody tells it more.
func (p *stormProcess) end() {
	_ = p.in.Close()
	_ = p.cmd.Wait() // what it did is known
}
