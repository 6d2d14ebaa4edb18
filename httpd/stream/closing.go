package stream

import (
	"errors"
	"net"

	"ledgerd/httpd/stream/frame"
)

// reason says for operators why a connection ended. Each is one value of a metric's label.
type reason uint8

const (
	reasonClient   reason = iota // the client closed it
	reasonGone                   // the socket broke or ended without a close frame
	reasonShutdown               // 1001
	reasonProtocol               // 1002
	reasonBinary                 // 1003
	reasonUTF8                   // 1007
	reasonPolicy                 // 1008: too many messages, too much work, or too many names
	reasonSilent                 // 1008: nothing came for Config.SilenceTimeout
	reasonTooBig                 // 1009
	reasonInternal               // 1011
	reasonMemory                 // 1013
	reasonSlow                   // 4008
	reasonStalled                // reset: the socket took no byte for Config.WriteTimeout
	reasons
)

var reasonNames = [reasons]string{
	"client", "gone", "shutdown", "protocol", "binary", "utf8", "policy",
	"silent", "too_big", "internal", "memory", "slow_consumer", "stalled",
}

// breaches are the reasons of what clients do wrong within a frame, by close code.
var breaches = map[uint16]reason{
	frame.CodeProtocol: reasonProtocol, frame.CodeUnsupported: reasonBinary,
	frame.CodeBadUTF8: reasonUTF8, frame.CodeTooBig: reasonTooBig,
}

// codeSlow is the close code of a slow consumer, one of our own.
const codeSlow = 4008

// closing says how a connection ends. As an error it travels from where a rule was broken
// to the outbox.
type closing struct {
	reason reason
	code   uint16 // 0: there is nobody to send a close frame to
	text   string
}

// atOnce reports whether what waits is dropped: nobody reads it, or not fast enough.
func (c *closing) atOnce() bool {
	return c.code == 0 || c.reason == reasonSlow || c.reason == reasonMemory
}

func (c *closing) Error() string { return c.text }

var (
	endGone     = closing{reason: reasonGone}
	endShutdown = closing{reasonShutdown, frame.CodeGoingAway, "the server is shutting down"}
	endRate     = closing{reasonPolicy, frame.CodePolicy, "too many messages"}
	endNames    = closing{reasonPolicy, frame.CodePolicy, "more than 10000 keys"}
	endSilent   = closing{reasonSilent, frame.CodePolicy, "no sign of life"}
	endInternal = closing{reasonInternal, frame.CodeInternal, "internal error"}
	endMemory   = closing{reasonMemory, frame.CodeTryAgain, "memory runs short, try again"}
	// The writer completes the text of endSlow with the last seq it sent.
	endSlow = closing{reasonSlow, codeSlow, "slow consumer"}
)

// endAfter returns how the connection ends after a failed read.
func endAfter(err error) *closing {
	var breach *frame.Error
	var timeout net.Error
	switch {
	case errors.As(err, &breach):
		return &closing{breaches[breach.Code], breach.Code, breach.Text}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &endSilent
	}
	return &endGone
}
