package stream

import (
	"errors"
	"net"

	"github.com/fasthttp/websocket"

	"ledgerd/httpd/stream/frame"
)

// codeSlow is the close code of a slow consumer, one of our own.
const codeSlow = 4008

// closing says how a connection ends. As an error it travels from where a rule was broken
// to the outbox.
type closing struct {
	reason string // for operators: one of endReasons
	code   uint16 // 0: there is nobody to send a close frame to
	text   string
}

// atOnce reports whether what waits is dropped, because the client is gone or reads too slowly.
func (c *closing) atOnce() bool { return c != nil && (c.code == 0 || c.isSlow()) }

// isSlow reports whether the client did not read fast enough for what it asked for.
func (c *closing) isSlow() bool {
	return c != nil && (c.reason == endSlow.reason || c.reason == endMemory.reason)
}

// hasTime reports whether a socket that takes little at a time has writeTimeout for the rest of a frame, so that the close frame
// reaches it.
func (c *closing) hasTime() bool { return c.isSlow() || c.reason == endShutdown.reason }

func (c *closing) Error() string { return c.text }

var (
	endGone     = closing{reason: "gone"}    // the socket broke or ended without a close frame
	endStalled  = closing{reason: "stalled"} // reset: the socket took no byte for writeTimeout
	endShutdown = closing{"shutdown", websocket.CloseGoingAway, "the server is shutting down"}
	endRate     = closing{"policy", websocket.ClosePolicyViolation, "too many messages"}
	endNames    = closing{"policy", websocket.ClosePolicyViolation, "more than 10000 keys"}
	endSilent   = closing{"silent", websocket.ClosePolicyViolation, "no sign of life"}
	endRevoked  = closing{"policy", websocket.ClosePolicyViolation, "the API key was revoked"}
	endInternal = closing{"internal", websocket.CloseInternalServerErr, "internal error"}
	endMemory   = closing{"memory", websocket.CloseTryAgainLater, "memory runs short, try again"}
	// The writer completes the text of endSlow with the last seq it sent.
	endSlow = closing{"slow_consumer", codeSlow, "slow consumer"}
)

// reasonClient is the reason of a connection that the client closed, with a code of its own.
const reasonClient = "client"

// breaches are the reasons of what clients do wrong within a frame, by close code.
var breaches = map[uint16]string{
	websocket.CloseProtocolError: "protocol", websocket.CloseUnsupportedData: "binary", websocket.CloseInvalidFramePayloadData: "utf8", websocket.CloseMessageTooBig: "too_big",
}

// endReasons are all reasons, each one value of a metric's label.
var endReasons = []string{
	reasonClient, "gone", "shutdown", "protocol", "binary", "utf8", "policy",
	"silent", "too_big", "internal", "memory", "slow_consumer", "stalled",
}

// endAfter returns how the connection ends after a read, nil if that did not fail.
func endAfter(err error) *closing {
	var breach *frame.Error
	var end *closing
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &end):
		return end
	case errors.As(err, &breach):
		return &closing{breaches[breach.Code], breach.Code, breach.Text}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &endSilent
	}
	return &endGone
}
