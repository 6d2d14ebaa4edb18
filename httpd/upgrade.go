package httpd

import (
	"cmp"
	"encoding/base64"

	"github.com/valyala/fasthttp"

	"ledgerd/engine/ledger"
	"ledgerd/httpd/ratelimit"
	"ledgerd/httpd/wire"
)

// upgrade hands a valid WebSocket handshake to the handler of the configuration. For another request it returns why a handshake
// would be refused, if it would be.
func (r *request) upgrade() error {
	c := &r.server.config
	if c.WouldRefuse != nil && !r.isUpgrade() {
		if err := r.mayUpgrade(c.Upgrade); err != nil {
			return err
		}
		if err := c.WouldRefuse(r.ctx, r.client); err != nil {
			return err
		}
	}
	return r.Upgrade(c.Upgrade)
}

// mayUpgrade returns why no handshake may be given to owner now, nil if it may.
func (x *Exchange) mayUpgrade(owner upgrader) error {
	if c := &x.server.config; owner == nil || c.Ledger.Head() == nil || c.MayUpgrade != nil && !c.MayUpgrade() || x.server.Stopping() {
		// Before the first head, the publications that the hub got may not be durable yet, or are from before a restart. While the
		// server stops, fasthttp puts "Connection: close" into every answer, which makes a 101 invalid.
		return cmp.Or(c.Ledger.Status().NotReady, ledger.ErrUnavailable)
	}
	return nil
}

// upgrader takes over the connection of a handshake, or returns why it does not.
type upgrader func(*fasthttp.RequestCtx, ratelimit.Client) error

// Upgrade lets the new owner answer a valid WebSocket handshake. Every further byte
// of the connection goes to the owner unchecked.
func (x *Exchange) Upgrade(owner upgrader) error {
	if !x.isUpgrade() {
		x.ctx.Response.Header.Set("Sec-WebSocket-Version", "13") // RFC 6455, section 4.2.2: the answer to a client of another version names ours
		return errUpgrade
	}
	if err := x.mayUpgrade(owner); err != nil {
		return err
	}
	// fasthttp/websocket reads the first line of each alone.
	x.ctx.Request.Header.Set(fasthttp.HeaderConnection, "Upgrade")
	x.ctx.Request.Header.Set(fasthttp.HeaderUpgrade, "websocket")
	if err := owner(x.ctx, x.client); err != nil {
		return err
	}
	x.upgraded = true
	x.conn.TakeOver()
	return nil
}

// isUpgrade reports whether the request is the opening handshake of RFC 6455, section
// 4.2.1. A handshake that also asks to close its connection is none: fasthttp would send both headers and close it.
func (x *Exchange) isUpgrade() bool {
	h := &x.ctx.Request.Header
	return h.IsGet() && h.IsHTTP11() &&
		wire.HasWord(x.joined("Connection"), "upgrade") && !wire.HasWord(x.joined("Connection"), "close") &&
		wire.HasWord(x.joined("Upgrade"), "websocket") &&
		string(h.Peek("Sec-WebSocket-Version")) == "13" &&
		isNonce(h.Peek("Sec-WebSocket-Key"))
}

// isNonce reports whether key is the base64 of 16 bytes.
func isNonce(key []byte) bool {
	const nonceBytes = 16
	nonce, err := base64.StdEncoding.AppendDecode(nil, key)
	return err == nil && len(nonce) == nonceBytes && len(key) == base64.StdEncoding.EncodedLen(nonceBytes)
}
