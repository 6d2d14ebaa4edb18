package main

import (
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// A library writes no lines of its own between the messages: grpc would, of a server that ends connections because of too many pings.
func TestMessagesAreOneObjectALine(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, err = io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
			server := http2.NewFramer(conn, nil)
			if err == nil && server.WriteSettings() == nil && server.WriteGoAway(0, http2.ErrCodeEnhanceYourCalm, []byte("too_many_pings")) == nil {
				_, _ = io.Copy(io.Discard, conn)
			}
			conn.Close()
		}
	}()
	v := launch(t, "--data-dir", t.TempDir(), "--log-format", "json", "--source", "geyser:http://"+listener.Addr().String())
	v.errs.await(t, `(?s)session with the node ended.*session with the node ended`)
	said := v.errs.String()
	for line := range strings.Lines(said[:strings.LastIndexByte(said, '\n')+1]) {
		if !json.Valid([]byte(line)) {
			t.Errorf("it says %q", line)
		}
	}
}
