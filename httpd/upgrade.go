package httpd

import (
	"encoding/base64"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
)

// upgrade hands a valid WebSocket upgrade to the handler of the configuration. From a
// connection it took over every further byte goes to its new owner unchecked.
func (r *request) upgrade() error {
	if !isUpgrade(&r.ctx.Request.Header) {
		return errUpgrade
	}
	if r.server.upgrade == nil || r.server.ledger.Head() == nil {
		// Before the first head, what the hub was told may not be durable yet.
		return ledger.ErrUnavailable
	}
	r.foreign = true
	r.server.upgrade(r.ctx, r.client.key, r.client.exempt)
	if r.ctx.Hijacked() {
		r.conn.takeOver()
	}
	return nil
}

// isUpgrade reports whether the request is the opening handshake of RFC 6455, section
// 4.2.1.
func isUpgrade(h *fasthttp.RequestHeader) bool {
	return h.IsGet() && h.IsHTTP11() &&
		hasWord(h.Peek("Connection"), "upgrade") &&
		hasWord(h.Peek("Upgrade"), "websocket") &&
		string(h.Peek("Sec-WebSocket-Version")) == "13" &&
		isNonce(h.Peek("Sec-WebSocket-Key"))
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
