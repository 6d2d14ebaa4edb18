package httpd

import (
	"bytes"
	_ "embed"
	"fmt"
	"time"

	"github.com/valyala/fasthttp"

	"ledgerd/httpd/console"
	"ledgerd/httpd/encode"
	"ledgerd/httpd/wire"
)

// metricsText is room for the numbers of a whole node, which are about 73 KB.
const metricsText = 96 << 10

// health answers whether clients should query the node, and with include=details what a healthy node cannot answer.
func (r *request) health() error {
	status := r.server.config.Ledger.Status()
	if status.Unhealthy != "" {
		return &wire.Fault{Status: fasthttp.StatusServiceUnavailable, Text: status.Unhealthy}
	}
	r.body = fmt.Appendf(r.body, `{"status":"ok","version":%q,"timestamp":`, r.server.config.Version)
	r.body = encode.AppendTime(r.body, r.now)
	if r.params.details {
		r.body = append(r.body, `,"details":`...)
		r.body = encode.AppendString(r.body, status.Degraded)
	}
	r.body = append(r.body, '}')
	return nil
}

// nodeStatus answers what the node is, healthy or not.
func (r *request) nodeStatus() error {
	status := r.server.config.Ledger.Status()
	r.body = fmt.Appendf(r.body, `{"status":"running","uptime":%q,"version":%q,"node_info":{"node_id":%s,"node_type":"indexer","peer_count":%d}}`,
		status.Uptime.Truncate(time.Second).String(), r.server.config.Version, encode.AppendString(nil, status.NodeID), status.Peers)
	return nil
}

// metrics answers the numbers of the whole node.
func (r *request) metrics() error {
	r.contentType = typeMetrics
	r.grow(metricsText)
	buf := bytes.NewBuffer(r.body)
	r.server.config.WriteMetrics(buf)
	r.body = buf.Bytes()
	return nil
}

// openAPIDocument describes the interface in OpenAPI 3. Tests hold every response they
// see against it.
//
//go:embed openapi.json
var openAPIDocument []byte

// openAPIPage is the document, compressed once in each coding.
var openAPIPage = newPage(console.Resource{Body: func() []byte { return openAPIDocument }})

// openAPI answers the description of the interface.
func (r *request) openAPI() error {
	r.fixed = openAPIPage
	return nil
}
