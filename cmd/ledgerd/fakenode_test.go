package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/fasthttp/websocket"
)

// turn is a message that a client sends, as a pattern, and the frames that it is answered with.
type turn struct {
	asked  string
	frames []string
}

// conversation reads turns: after a line of > and the pattern of a message come the frames that answer it, a line each, as frame writes them.
func conversation(text string, frame func(line string) string) (all []turn) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if asked, is := strings.CutPrefix(line, "> "); is {
			all = append(all, turn{asked: asked})
		} else {
			all[len(all)-1].frames = append(all[len(all)-1].frames, frame(line))
		}
	}
	return all
}

// converse makes a request a WebSocket, has the turns of a conversation there, one after the other, and closes it, or waits until the client does.
// It returns what was said in place of what is asked.
func converse(w http.ResponseWriter, r *http.Request, all []turn, waits bool) error {
	conn, err := new(websocket.Upgrader).Upgrade(w, r, nil)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, turn := range all {
		_, text, err := conn.ReadMessage()
		if err != nil || len(text) > 64<<10 || !regexp.MustCompile(turn.asked).Match(text) {
			return fmt.Errorf("want %s, got %d bytes, %v: %.60s … %.60s", turn.asked, len(text), err, text, text[max(0, len(text)-60):])
		}
		for _, f := range turn.frames {
			_ = conn.WriteMessage(websocket.TextMessage, []byte(f)) // who leaves is told nothing
		}
	}
	if waits {
		_, _, _ = conn.ReadMessage()
	}
	return nil
}

// fake has a server answer in place of a node; $FAKE is its address.
func (p *page) fake(handler http.HandlerFunc) {
	server := httptest.NewServer(handler)
	p.Defer(server.Close)
	p.Setenv("FAKE", server.URL)
}

// talks has each WebSocket hold the conversation in a file.
func (p *page) talks(args []string) {
	all := conversation(p.ReadFile(args[0]), func(frame string) string { return frame })
	p.fake(func(w http.ResponseWriter, r *http.Request) {
		if err := converse(w, r, all, false); err != nil {
			p.t.Error(err)
		}
	})
}

// answers has requests below a path of one name be answered with the file NAME.STATUS of a directory. Of what comes with 200 is said that it has at
// least the length of whole.200, but for endless.200, of which no length is said.
func (p *page) answers(args []string) {
	dir := p.MkAbs(args[0])
	whole, err := os.Stat(filepath.Join(dir, "whole.200"))
	p.Check(err)
	p.fake(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(r.URL.Path[1:], "/")
		files, _ := filepath.Glob(filepath.Join(dir, name+".*"))
		content, err := os.ReadFile(strings.Join(files, ""))
		if err != nil {
			p.t.Error(err)
		}
		status := http.StatusOK
		_, _ = fmt.Sscan(filepath.Ext(files[0])[1:], &status)
		if status == http.StatusOK && name != "endless" {
			w.Header().Set("Content-Length", fmt.Sprint(max(whole.Size(), int64(len(content)))))
		}
		w.WriteHeader(status)
		_ = http.NewResponseController(w).Flush() // else a short answer has its length
		_, _ = w.Write(content)
	})
}
