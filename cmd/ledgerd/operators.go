package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	clientlib "ledgerd/httpd/client"
)

// errUnavailable says that a node cannot answer now: it walks through its accounts for somebody else, is being backed
// up, or has no finalized block yet.
var errUnavailable = errors.New("503")

// awaited is what a node sends. A read that takes too long ends with it; what becomes of the bytes may take its time.
type awaited struct {
	io.ReadCloser
	late    *time.Timer
	silence time.Duration
	giveUp  context.CancelCauseFunc
}

// Read implements io.Reader.
func (a *awaited) Read(p []byte) (int, error) {
	a.late.Reset(a.silence)
	defer a.late.Stop()
	return a.ReadCloser.Read(p)
}

// Close implements io.Closer.
func (a *awaited) Close() error {
	defer a.giveUp(nil)
	return a.ReadCloser.Close()
}

// askOperators asks the operators' listener at an address for a path, and returns what it answers with 200. name is what errors call the node.
// It gives up a node that sends nothing for the time of silence, before its answer or amid it; 0: for two minutes.
func askOperators(ctx context.Context, asker *http.Client, address, path, name string, silence time.Duration) (*http.Response, error) {
	if _, err := clientlib.ParseAddress(address); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	silence = cmp.Or(silence, 2*time.Minute)
	ctx, giveUp := context.WithCancelCause(ctx)
	late := time.AfterFunc(silence, func() { giveUp(fmt.Errorf("nothing came for %v", silence)) })
	defer late.Stop()
	response, err := asker.Do(r.WithContext(ctx))
	if err != nil {
		giveUp(nil)
		return nil, err
	}
	response.Body = &awaited{response.Body, late, silence, giveUp}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	switch told := details(response.Body); response.StatusCode {
	case http.StatusNotFound:
		return nil, fmt.Errorf("%s answers 404: %s; the operators' listener is where --ops-listen is", name, told)
	case http.StatusServiceUnavailable:
		return nil, fmt.Errorf("%s answers %w: %s", name, errUnavailable, told)
	default:
		return nil, fmt.Errorf("%s answers %d: %s", name, response.StatusCode, told)
	}
}

// details returns what an error record of the node says.
func details(body io.Reader) string {
	var record struct {
		Details string `json:"details"`
	}
	text, _ := io.ReadAll(io.LimitReader(body, 4<<10))
	if json.Unmarshal(text, &record) != nil || record.Details == "" {
		return string(text)
	}
	return record.Details
}
