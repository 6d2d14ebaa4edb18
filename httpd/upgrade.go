package httpd

import (
	"cmp"
	"encoding/base64"
	"slices"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/wire"
)

// upgrade hands a valid WebSocket upgrade to the handler of the configuration. Every further byte
// of a connection that was taken over goes to its new owner unchecked.
func (r *request) upgrade() error {
	if !isUpgrade(&r.ctx.Request.Header) {
		return errUpgrade
	}
	if r.server.config.Upgrade == nil || r.server.config.Ledger.Head() == nil || !r.server.config.MayUpgrade() {
		// Before the first head, what the hub was told may not be durable yet, or was published before a restart.
		return cmp.Or(r.server.config.Ledger.Status().NotReady, ledger.ErrUnavailable)
	}
	// fasthttp/websocket reads the first line of each alone.
	r.ctx.Request.Header.Set(fasthttp.HeaderConnection, "Upgrade")
	r.ctx.Request.Header.Set(fasthttp.HeaderUpgrade, "websocket")
	r.upgraded = true
	r.server.config.Upgrade(r.ctx, r.client.Key, r.client.Exempt)
	if r.ctx.Hijacked() {
		r.conn.TakeOver()
	}
	return nil
}

// isUpgrade reports whether the request is the opening handshake of RFC 6455, section
// 4.2.1.
func isUpgrade(h *fasthttp.RequestHeader) bool {
	return h.IsGet() && h.IsHTTP11() &&
		hasWord(h.PeekAll("Connection"), "upgrade") &&
		hasWord(h.PeekAll("Upgrade"), "websocket") &&
		string(h.Peek("Sec-WebSocket-Version")) == "13" &&
		isNonce(h.Peek("Sec-WebSocket-Key"))
}

// hasWord reports whether one of a field's lines has a word.
func hasWord(lines [][]byte, word string) bool {
	return slices.ContainsFunc(lines, func(line []byte) bool { return wire.HasWord(line, word) })
}

// isNonce reports whether key is the base64 of 16 bytes.
func isNonce(key []byte) bool {
	const nonceBytes = 16
	if len(key) != base64.StdEncoding.EncodedLen(nonceBytes) {
		return false
	}
	var nonce [nonceBytes + 2]byte
	n, err := base64.StdEncoding.Decode(nonce[:], key)
	return err == nil && n == nonceBytes
}
