package main

import (
	"io"
	"net/http"
	"strings"
)

// client asks one node after the other, and keeps no connection.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// answer is a response as it was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask asks for a URL, with header fields, and reads the answer. The body of one that upgrades the connection never ends.
func ask(client *http.Client, url string, fields ...string) (answer, error) {
	request, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	for _, field := range fields {
		name, value, _ := strings.Cut(field, ": ")
		request.Header.Set(name, value)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return answer{response.StatusCode, response.Header, ""}, nil
	}
	body, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, response.Header, string(body)}, err
}
