package httpd

import (
	"cmp"
	"encoding/base64"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/wire"
)

// upgrade hands a valid WebSocket upgrade to the handler of the configuration. Every further byte
// of a connection that was taken over goes to its new owner unchecked.
func (r *request) upgrade() error {
	if !r.isUpgrade() {
		return errUpgrade
	}
	if c := &r.server.config; c.Upgrade == nil || c.Ledger.Head() == nil || !c.MayUpgrade() || r.server.Stopping() {
		// Before the first head, what the hub was told may not be durable yet, or was published before a restart. While the server stops fasthttp
		// puts "Connection: close" into every answer, which makes a 101 none.
		return cmp.Or(c.Ledger.Status().NotReady, ledger.ErrUnavailable)
	}
	// fasthttp/websocket reads the first line of each alone.
	r.ctx.Request.Header.Set(fasthttp.HeaderConnection, "Upgrade")
	r.ctx.Request.Header.Set(fasthttp.HeaderUpgrade, "websocket")
	r.upgraded = true
	r.server.config.Upgrade(r.ctx, r.client)
	if r.ctx.Hijacked() {
		r.conn.TakeOver()
	}
	return nil
}

// isUpgrade reports whether the request is the opening handshake of RFC 6455, section
// 4.2.1.
func (r *request) isUpgrade() bool {
	h := &r.ctx.Request.Header
	return h.IsGet() && h.IsHTTP11() &&
		wire.HasWord(r.joined("Connection"), "upgrade") &&
		wire.HasWord(r.joined("Upgrade"), "websocket") &&
		string(h.Peek("Sec-WebSocket-Version")) == "13" &&
		isNonce(h.Peek("Sec-WebSocket-Key"))
}

// isNonce reports whether key is the base64 of 16 bytes.
func isNonce(key []byte) bool {
	const nonceBytes = 16
	nonce, err := base64.StdEncoding.AppendDecode(nil, key)
	return err == nil && len(nonce) == nonceBytes && len(key) == base64.StdEncoding.EncodedLen(nonceBytes)
}
