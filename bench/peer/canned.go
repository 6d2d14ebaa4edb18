package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"time"
)

func startCanned(ctx context.Context, c *RESTConfig) (*RESTServer, error) {
	return startRESTChild(ctx, c, "canned", "a goroutine for each connection", func(w io.Writer) error {
		return json.NewEncoder(w).Encode(c.Answer)
	})
}

// cannedBurst is how many answers are written at once.
const cannedBurst = 64

// serveCanned answers everybody the answer that comes first, until in ends.
func serveCanned(ln net.Listener, in io.Reader) error {
	var a Answer
	if err := json.NewDecoder(in).Decode(&a); err != nil {
		return err
	}
	text := a.text(time.Now())
	answers := bytes.Repeat(text, cannedBurst)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = ln.Close()
	}()
	for {
		conn, err := ln.Accept()
		if err != nil {
			return nil // it is closed, and the process ends
		}
		go answerCanned(conn, answers, len(text))
	}
}

var emptyLine = []byte("\r\n\r\n")

// answerCanned answers requests, which come whole here, each with size bytes of the answers, until the client closes.
func answerCanned(conn net.Conn, answers []byte, size int) {
	defer conn.Close()
	for room := make([]byte, 64<<10); ; {
		n, err := conn.Read(room)
		for count := bytes.Count(room[:n], emptyLine); count > 0 && err == nil; count -= cannedBurst {
			_, err = conn.Write(answers[:min(count, cannedBurst)*size])
		}
		if err != nil {
			return
		}
	}
}
