package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	clientlib "ledgerd/httpd/client"
)

// errUnavailable says that a node cannot answer now: it walks through its accounts for somebody else, is being backed
// up, or has no finalized block yet.
var errUnavailable = errors.New("503")

// askOperators asks the operators' listener at an address for a path, and returns what it answers with 200. name is what errors call the node.
func askOperators(ctx context.Context, asker *http.Client, address, path, name string) (*http.Response, error) {
	if _, err := clientlib.ParseAddress(address); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := asker.Do(r)
	if err != nil || response.StatusCode == http.StatusOK {
		return response, err
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
